#!/usr/bin/env bash
# Every estimator on every table of measured runs: builds gpumem_accuracy, unpacks what is in bench/measured, makes the
# summaries of xMem's models if a table needs them, and runs it. From anywhere:
#   bench/accuracy/run.sh [TABLES...] [-o DIR] [--readme README.md [--check]]
# Its own folder is build/accuracy. PROGRAM names a gpumem_accuracy that is built already, SUMMARIES a folder with the
# summaries of xMem's models.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$root/build/accuracy
mkdir -p "$work"
program=${PROGRAM:-$root/build/bench/bench/accuracy/gpumem_accuracy}
if [ -z "${PROGRAM:-}" ]; then
  {
    cmake --preset bench -S "$root"
    cmake --build "$root/build/bench" --parallel "$(nproc)" --target gpumem_accuracy
  } >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }
fi

measured=$work/measured
rm -rf "$measured"
for packed in "$root"/bench/measured/*/runs.csv.gz "$root"/bench/measured/*/packed/runs.csv.gz; do
  [ -e "$packed" ] || continue
  name=$(realpath --relative-to "$root/bench/measured" "$packed")
  python3 "$root/bench/measured/measure.py" unpack "$(dirname "$packed")" --out "$measured/${name%%/*}" >&2
done

summaries=${SUMMARIES:-$work/xmem_summaries}
for argument in "$@"; do
  if [ -f "$argument" ] && head -1 "$argument" | grep -q ground_truth_peak_bytes && [ ! -d "$summaries" ]; then
    "$root/bench/accuracy/xmem_summaries.sh" "$work/xmem_summaries.part" >&2
    mv "$work/xmem_summaries.part" "$summaries"
  fi
done
exec "$program" --measured "$measured" --summaries "$summaries" "$@"
