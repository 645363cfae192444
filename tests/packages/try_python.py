"""Tries the installed Python package, where there is no PyTorch.

  try_python.py VERSION SUMMARY [ESTIMATE]     ESTIMATE: what the command line prints of batch 32 on an a100-40gb
"""

import importlib.util
import pathlib
import sys

import gpumem

version, summary, *printed = sys.argv[1:]
assert gpumem.__version__ == version, gpumem.__version__
need = gpumem.estimate(summary, batch_size=32, gpu="a100-40gb")
assert need.fits and 3 << 30 < need.expected_bytes < 5 << 30, need
for path in printed:
    assert str(need) == pathlib.Path(path).read_text(), need
assert gpumem.fit(summary).batch_size > 32
# The library carries the trained models.
assert gpumem.estimate(summary, batch_size=32, estimator="gpumemnet-transformer").bins

plan = gpumem.plan(summary, global_batch=64, gpus=2)
assert plan.gpus == 2, plan
assert importlib.util.find_spec("torch") is None, "this system was to have no PyTorch"
print(f"gpumem {version} in {gpumem.__path__[0]}: {need}".splitlines()[0])
