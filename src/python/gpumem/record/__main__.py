"""python3 -m gpumem.record [OPTIONS] SCRIPT ARGS...: records a training script of which no line is changed."""

from __future__ import annotations

import sys

from .launcher import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
