#!/usr/bin/env bash
# Every manual page is read by man without a warning, and has a name that whatis finds. Argument: the program. Exit code 77
# where man is missing.
set -euo pipefail
gpumem=$1
for tool in man lexgrog groff; do
  command -v "$tool" >/dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$gpumem" man --out "$folder"
"$gpumem" man model show | cmp - "$folder/gpumem-model-show.1"
failed=0
pages=0
for page in "$folder"/*.1; do
  pages=$((pages + 1))
  warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' man -l --warnings -E UTF-8 "$page" 2>&1 >/dev/null)
  if [ -n "$warnings" ]; then
    echo "$page: $warnings"
    failed=1
  fi
  name=$(basename "$page" .1)
  case $(lexgrog "$page") in
    *": \"$name - "*) ;;
    *) echo "$page: lexgrog finds no name"; failed=1 ;;
  esac
done
commands=$("$gpumem" --help | sed '/^Options:/,$d' | grep -c '^  [a-z]')
[ "$commands" -gt 15 ] && [ "$pages" -gt "$commands" ] || { echo "$pages pages for $commands commands"; failed=1; }
exit "$failed"
