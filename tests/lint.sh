#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy) over the library and the programs; every finding is an error. The one file that includes
# libtorch is left out: clang 14 cannot compile it. So is gpumem-webhook where its HTTP library is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
webhook=OFF
left_out=(':!src/webhook/*')
if pkg-config --exists cpp-httplib; then
  webhook=ON
  left_out=()
fi
# A folder of its own, without precompiled headers: each file is read as it stands, with what it includes.
cmake --preset release -B build/lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DGPUMEM_BUILD_WEBHOOK="$webhook" -DGPUMEM_BUILD_PYTHON=ON \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
git ls-files 'src/*.cpp' ':!src/train/torch_network.cpp' "${left_out[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy -p build/lint --quiet --warnings-as-errors='*'
