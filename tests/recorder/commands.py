"""Programs that `python3 -m gpumem.record` runs, as cases of values.py, which puts the package's folder first in sys.path."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

_SCRIPT = """
import sys, torch
sys.path.insert(1, sys.path[0] + "/site-packages")
import drawing
assert drawing.sample_images() == 7, "a package's function of the same name runs"
def sample_images(): raise SystemExit("samples need a GPU")
class Trainer:
    def evaluate(self): raise SystemExit("so does this")
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
sample_images(); Trainer().evaluate()
for step in range(9):
    y = model(torch.empty(4, 8).cuda()).sum()
    assert y.item() == VALUE
    y.backward(); optimizer.step(); optimizer.zero_grad()
"""


_OF_A_PACKAGE = """
import os, sys
os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
import torch
from net import net
def sample(): raise SystemExit("samples need a GPU")
assert __name__ == "__main__" and sys.argv[0].endswith("train.py") and sys.argv[1] == "--batch"
model = net()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
sample()
for step in range(9):
    model(torch.empty(int(sys.argv[2]), 8).cuda()).sum().backward()
    optimizer.step(); optimizer.zero_grad()
"""


def without_optimizer() -> None:
    """pytorch/examples' language model: p.data.add_(p.grad). And a data set as rows of a batch each, which is as large at any."""
    text = """
import torch, sys
size = int(sys.argv[2])
data = torch.zeros(60_000 // size, size).cuda()
model = torch.nn.Linear(8, 8).cuda()
for step in range(90000):
    model.zero_grad()
    (model(torch.empty(size, 8).cuda()).sum() + data[step].sum()).backward()
    for p in model.parameters(): p.data.add_(p.grad, alpha=-0.1)
"""
    with tempfile.TemporaryDirectory() as folder:
        script, output = pathlib.Path(folder, "train.py"), pathlib.Path(folder, "run.json")
        script.write_text(text)
        command = [sys.executable, "-m", "gpumem.record", "-o", str(output), "--batch-arg", "batch", str(script), "--batch", "7"]
        done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": sys.path[0], "PATH": "/usr/bin:/bin"})
        assert done.returncode == 0, done.stderr
        assert "recorded at 7, 14, 10" in done.stdout and "no optimizer of torch.optim" in done.stderr, done.stdout


def command_line() -> None:
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "train.py")
        script.write_text(_SCRIPT.replace("VALUE", "5.0"))
        package = pathlib.Path(folder, "site-packages")
        package.mkdir()
        (package / "drawing.py").write_text("def sample_images(): return 7\n")

        def run(*options: str) -> tuple[int, str]:
            command = [sys.executable, "-m", "gpumem.record", "-o", f"{folder}/run.json", *options, str(script)]
            path = {"PYTHONPATH": sys.path[0], "PATH": "/usr/bin:/bin"}
            done = subprocess.run(command, capture_output=True, text=True, env=path)
            return done.returncode, done.stderr

        skips = ("--skip", "sample_images", "--skip", "Trainer.evaluate")
        code, text = run(*skips)
        assert code == 4 and "values were invented at: train.py:14; say --assume" in text, text
        code, text = run(*skips, "--assume", "train.py:14=5")
        assert code == 0 and "as was said" in text, text
        assert run("--assume", "train.py:14=5")[0] == 4
        code, text = run(*skips, "--skip", "nowhere", "--assume", "item=5")
        assert code == 4 and "no function nowhere" in text, text
        assert "nothing is known of 'nonsense'" in run("--assume", "nonsense=5")[1]


def leaves_early() -> None:
    """A script that ends by sys.exit(0) has made fewer steps as well."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "train.py")
        script.write_text("import sys, torch\ntorch.nn.Linear(8, 8).cuda()(torch.empty(4, 8).cuda())\nsys.exit(0)\n")
        command = [sys.executable, "-m", "gpumem.record", "-o", f"{folder}/run.json", str(script)]
        path = {"PYTHONPATH": sys.path[0], "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, capture_output=True, text=True, env=path)
        assert done.returncode == 0 and "ended after 0 of 2 training steps" in done.stderr, done.stderr
        pathlib.Path(folder, "requirements.txt").write_text("numpy\ntorch==1.9.1\n")
        done = subprocess.run(command, capture_output=True, text=True, env=path)
        assert "--torch-version 1.9 records" in done.stderr, done.stderr
        noted = json.loads(pathlib.Path(folder, "run.json").read_text())["warnings"]
        assert any(kind == "rule" and "requirements.txt asks for torch==1.9" in text for kind, text, *_ in noted), noted


def starts_processes() -> None:
    """I-JEPA's main.py starts a process for each GPU, which trains there."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "train.py")
        script.write_text(
            "import multiprocessing, torch\n"
            "def work(rank):\n    assert rank == 0\n    net = torch.nn.Linear(8, 8).cuda()\n"
            "    made = torch.optim.SGD(net.parameters(), 0.1)\n"
            "    for _ in range(9):\n        net(torch.ones(2, 8).cuda()).sum().backward(); made.step()\n"
            "if __name__ == '__main__':\n    kind = multiprocessing.get_context('fork').Process\n"
            "    all = [kind(target=work, args=(rank,)) for rank in range(2)]\n"
            "    for one in all: one.start()\n    for one in all: one.join()\n"
        )
        command = [sys.executable, "-m", "gpumem.record", "-o", f"{folder}/run.json", str(script)]
        path = {"PYTHONPATH": sys.path[0], "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, capture_output=True, text=True, env=path)
        assert done.returncode == 0 and "it runs again, as the first of them" in done.stderr, done.stderr
        assert "train.py:11: work() is recorded" in done.stderr and "of 2 training steps" not in done.stderr, done.stderr


def a_module() -> None:
    """python3 -m scripts.train, which finds its package in the folder where it runs; PyTorch 2.9's name of the allocator's settings."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (
            ("net.py", "import torch\ndef net(): return torch.nn.Linear(8, 8).cuda()\n"),
            ("scripts/train.py", _OF_A_PACKAGE),
        ):
            pathlib.Path(folder, name).parent.mkdir(exist_ok=True)
            pathlib.Path(folder, name).write_text(text)
        environment = {"PYTHONPATH": sys.path[0], "PATH": "/usr/bin:/bin"}

        def run(*words: str) -> Any:
            command = [sys.executable, "-m", "gpumem.record", "-o", "run.json", *words]
            return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)

        done = run("--skip", "sample", "--batch-arg", "batch", "-m", "scripts.train", "--batch", "7")
        assert done.returncode == 0 and "recorded at 7, 14, 10" in done.stdout, done.stderr
        assert '"alloc_conf":"expandable_segments:True"' in pathlib.Path(folder, "run.json").read_text()
        assert "there is no module scripts.nothing here" in run("-m", "scripts.nothing").stderr
        assert "-m and a module's name" in run("scripts.train").stderr


CASES: dict[str, Callable[[], Any]] = {
    "a script that starts processes": starts_processes,
    "without an optimizer": without_optimizer,
    "command line": command_line,
    "a script that leaves early": leaves_early,
    "a module": a_module,
}
