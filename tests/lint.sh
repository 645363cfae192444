#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy) over the library and the programs; every finding is an error. The one file that includes
# libtorch is left out: clang 14 cannot compile it.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DGPUMEM_BUILD_PYTHON=ON >/dev/null
git ls-files 'src/*.cpp' ':!src/train/torch_network.cpp' | xargs -P "$(nproc)" -n 1 clang-tidy -p build/release --quiet --warnings-as-errors='*'
