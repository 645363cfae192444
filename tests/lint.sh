#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy) over the library and the command line; every finding is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
git ls-files 'src/*.cpp' | xargs -P "$(nproc)" -n 1 clang-tidy -p build/release --quiet --warnings-as-errors='*'
