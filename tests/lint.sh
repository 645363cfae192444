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
# A folder of its own, without precompiled headers, and in few pieces: most of a file's time goes to the headers it includes.
export build=build/lint
cmake --preset release -B "$build" -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DGPUMEM_UNITY_BUILD=ON -DGPUMEM_BUILD_WEBHOOK="$webhook" \
  -DGPUMEM_BUILD_PYTHON=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
mapfile -t library < <(find "$build/CMakeFiles/gpumem.dir/Unity" -name '*.cxx')
mapfile -t units < <(find "$build/src" -path '*/Unity/*.cxx' | sort -r)
# What no piece holds.
while read -r file; do
  grep -qF "/$file\"" "${library[@]}" "${units[@]}" || units+=("$file")
done < <(git ls-files 'src/*.cpp' "${left_out[@]}")
./tests/headers_alone.py "$build"
# performance-unnecessary-value-param searches a whole piece for each thing it says, also in CLI11's headers, of which nothing
# is printed: a third of a piece's time. It does not search for a fix where a parameter is written by a macro.
mkdir -p "$build/around/CLI"
{
  grep -hE '^#include <[a-z_]+>' /usr/include/CLI/*.hpp | sort -u
  printf '%s\n' '#pragma clang diagnostic ignored "-Wkeyword-macro"' '#define std std' '#define const const' \
    '#include_next <CLI/CLI.hpp>' '#undef const' '#undef std'
} > "$build/around/CLI/CLI.hpp"

tidy() {  # FOLDER FILE: the commands that compile it are in FOLDER
  clang-tidy -p "$1" --quiet --warnings-as-errors='*' --checks=-bugprone-suspicious-include \
    --extra-arg-before=-isystem"$PWD/$build/around" --extra-arg=-Wreserved-identifier --extra-arg=-Wreserved-macro-identifier \
    --extra-arg=-Wno-shadow --extra-arg=-Wno-unused-command-line-argument "$2" 2>&1
}
# A joined piece, and its units. Two of them may name something alike: what each says by itself counts.
read_piece() {  # FILE [UNIT...]
  local output unit code=0
  if [ $# -eq 1 ]; then
    tidy "$build" "$1"
    return
  fi
  if output=$(tidy "$build/joined" "$1"); then
    echo "$output"
    return
  fi
  for unit in "${@:2}"; do tidy "$build" "$unit" || code=1; done
  if [ "$code" -eq 0 ]; then echo "clean one by one, and not as one piece, which is slower: ${*:2}"; fi
  return "$code"
}
export -f tidy read_piece
# The library's first, which take longest.
{
  printf '%s\n' "${library[@]}"
  ./tests/lint_pieces.py "$build" "${units[@]}"
} | xargs -P "$(nproc)" -L 1 bash -c 'read_piece "$@"' lint
