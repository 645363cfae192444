#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy) over the library and the programs, and compiles every public header alone, as a program does
# that includes it first; every finding is an error. The one file that includes
# libtorch is left out: clang 14 cannot compile it. So are what needs emscripten's headers, and gpumem-webhook where its
# HTTP library is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
webhook=OFF
left_out=(':!src/train/torch_network.cpp' ':!src/web/*')
if pkg-config --exists cpp-httplib; then
  webhook=ON
else
  left_out+=(':!src/webhook/*')
fi
# A folder of its own, without precompiled headers, and in pieces: most of a file's time goes to the headers it includes.
build=build/lint
cmake --preset release -B "$build" -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DGPUMEM_UNITY_BUILD=ON -DGPUMEM_BUILD_WEBHOOK="$webhook" \
  -DGPUMEM_BUILD_PYTHON=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
mapfile -t pieces < <(find "$build" -path '*/Unity/*.cxx')
# What no piece holds is read by itself.
alone=()
while read -r file; do
  grep -qF "/$file\"" "${pieces[@]}" || alone+=("$file")
done < <(git ls-files 'src/*.cpp' "${left_out[@]}")
./tests/headers_alone.py "$build"
printf '%s\n' "${pieces[@]}" "${alone[@]}" |
  xargs -P "$(nproc)" -n 1 clang-tidy -p "$build" --quiet --warnings-as-errors='*' --checks=-bugprone-suspicious-include \
    --extra-arg=-Wno-shadow --extra-arg=-Wno-unused-command-line-argument
