"""Tries the installed Python package, where there is no PyTorch.

  try_python.py VERSION SUMMARY
"""

import importlib.util
import sys

import gpumem

version, summary = sys.argv[1:]
assert gpumem.__version__ == version, gpumem.__version__
need = gpumem.estimate(summary, batch_size=32, gpu="a100-40gb")
assert need.fits and 3 << 30 < need.expected_bytes < 5 << 30, need
assert gpumem.fit(summary).batch_size > 32
# The library carries the trained models.
assert gpumem.estimate(summary, batch_size=32, estimator="gpumemnet-transformer").bins

assert importlib.util.find_spec("torch") is None, "this system was to have no PyTorch"
print(f"gpumem {version} in {gpumem.__path__[0]}: {need}".splitlines()[0])
