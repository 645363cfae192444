#!/usr/bin/env bash
# The reference of the API is made without a warning, has a page for every header, and a wrong comment would be found.
# Argument: the build folder. Exit code 77 where Doxygen is missing.
set -euo pipefail
build=$1
cd "$(dirname "$0")/../.."
if ! command -v doxygen >/dev/null || [ ! -e "$build/Doxyfile" ]; then
  echo "skipped: there is no Doxygen, or the build was made without it"
  exit 77
fi
doxygen "$build/Doxyfile"
for header in $(find include -name '*.hpp' -o -name '*.h' | grep -v /impl/); do
  page=$(basename "$header" | sed 's/_/__/g; s/[.]/_8/').html
  [ -n "$(find "$build/reference" -name "*$page" -print -quit)" ] || { echo "$header has no page"; exit 1; }
done
grep -q "<b>Input</b>" "$build/reference/find__layouts_8hpp.html" || { echo "the opening comment is not on the page"; exit 1; }

# One header with a wrong comment is a failure.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '// Input: nothing.\n#pragma once\n\n/// Takes \\nosuchcommand.\nint wrong();\n' >"$folder/wrong.hpp"
(cat "$build/Doxyfile"; echo "INPUT = $folder"; echo "OUTPUT_DIRECTORY = $folder"; echo "USE_MDFILE_AS_MAINPAGE =") >"$folder/Doxyfile"
if doxygen "$folder/Doxyfile" 2>/dev/null; then
  echo "a wrong comment was not found"
  exit 1
fi
