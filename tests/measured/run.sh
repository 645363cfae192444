#!/usr/bin/env bash
# Tests bench/measured/measure.py where there is no GPU: dry runs on the CPU, and what needs no PyTorch.
#   tests/measured/run.sh [GPUMEM]   GPUMEM: the program that must be able to read the tables; without it that is skipped
# Exit code 77 (skipped) where no Python has PyTorch.
set -euo pipefail
if [ $# -gt 0 ]; then
  GPUMEM=$(realpath "$1")
  export GPUMEM
fi
cd "$(dirname "$0")"
for python in python3 /usr/bin/python3; do
  if "$python" -c "import torch" 2>/dev/null; then
    export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
    exec "$python" -m unittest discover --pattern '*_test.py' --start-directory .
  fi
done
echo "no Python with PyTorch is installed: skipped" >&2
exit 77
