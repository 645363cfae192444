"""Which tensors operators keep for backward: in an older PyTorch, and in a recording that pretends it.

    python3 tests/recorder/older.py              with PyTorch 2.1 or later: recordings against tests/golden/older_kept.json
    python3 tests/recorder/older.py --measure    with any: what this PyTorch keeps on a CPU, as JSON
"""

from __future__ import annotations

import json
import pathlib
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "src" / "python")]
sys.dont_write_bytecode = True

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

ROWS, COLUMNS = 2048, 4096  # 32 MiB: so large that the memory of a process tells how many there are.

#: Of a tensor that nothing else keeps.
CASES = {
    "softmax": lambda y: y.softmax(1),
    "log_softmax": lambda y: F.log_softmax(y, 1),
    "cross entropy": lambda y: F.cross_entropy(y, torch.zeros(ROWS, dtype=torch.long, device=y.device)),
    "attention": lambda y: torch.mm(y.softmax(1), torch.zeros(COLUMNS, 8, device=y.device, requires_grad=True)),
    "relu": F.relu,
    "relu by keyword": lambda y: torch.relu(input=y),
    "relu, then scaled": lambda y: F.relu(y) * 2,
    "relu, then squared": lambda y: nn.ReLU()(y) ** 2,
    "relu in place": lambda y: F.relu(y * 1.5, inplace=True),
    "relu6": F.relu6,
    "relu6 in place": lambda y: nn.ReLU6(inplace=True)(y * 1.5),
    "hardtanh in place": lambda y: F.hardtanh(y * 1.5, inplace=True),
    "leaky relu in place": lambda y: F.leaky_relu(y * 1.5, inplace=True),
    "gelu": F.gelu,
    "sigmoid": torch.sigmoid,
}


def forward(name, x):
    """The result, of which the tensors that it keeps are counted, and one of 32 MiB that is the operator's input."""
    return CASES[name](x * 1.0)


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


def measured(name) -> int:
    """Tensors that there are after forward, besides the leaf."""
    x = torch.rand(ROWS, COLUMNS, requires_grad=True)
    forward(name, x)  # What libraries allocate once.
    before = resident()
    result = forward(name, x)
    count = round((resident() - before) / (4 * ROWS * COLUMNS))
    del result
    return count


def recorded(name, version) -> int:
    """The same, of a recording; and nothing is left once backward has run."""
    import gpumem
    from gpumem.record.recorder import recording
    from gpumem.record.run import Allocate, Free

    large = 4 * ROWS * COLUMNS

    def count(events) -> int:
        there = set()
        for event in events:
            if isinstance(event, Allocate) and event.item * torch.Size(event.shape).numel() == large:
                there.add(event.number)
            elif isinstance(event, Free):
                there.discard(event.number)
        return len(there)

    with gpumem.record.pretend_torch(version), recording() as recorder:
        x = torch.rand(ROWS, COLUMNS, device="cuda", requires_grad=True)
        result = forward(name, x)
        torch.empty(1, device="cuda")  # A result has its node when the next operator runs.
        kept = count(recorder.run.events) - 1
        result.sum().backward()
        del result
        x.grad = None
        torch.empty(1, device="cuda")
        left = count(recorder.run.events) - 1
    assert left == 0, f"{name}: {left} tensors are left"
    assert any(f"PyTorch {version}" in warning.text for warning in recorder.run.warnings)
    return kept


class _Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x).sum()


def gradients_after_zero_grad(version) -> bool:
    """Whether zero_grad() leaves gradients."""
    import gpumem
    from gpumem.record.recorder import recording

    with gpumem.record.pretend_torch(version), recording():
        net = _Net().cuda()
        optimizer = torch.optim.AdamW(net.parameters())
        net(torch.ones(2, 8, device="cuda")).backward()
        optimizer.step()
        optimizer.zero_grad()
        of_optimizer = net.layer.weight.grad is not None
        net.zero_grad()
        assert of_optimizer == (net.layer.weight.grad is not None)
        net.zero_grad(set_to_none=True)
        assert net.layer.weight.grad is None
    return of_optimizer


def refused(version) -> bool:
    import gpumem

    try:
        with gpumem.record.pretend_torch(version):
            return False
    except gpumem.RecordError as error:
        return any(part in str(error) for part in ("1.7", "1.13", torch.__version__))


def warnings_of(version) -> list[str]:
    import gpumem
    from gpumem.record.recorder import recording

    with gpumem.record.pretend_torch(version), recording() as recorder:
        _Net().cuda()(torch.ones(2, 8, device="cuda")).backward()
    return [warning.text for warning in recorder.run.warnings]


def is_told() -> bool:
    """A program that asks for the version goes the older way, on which StyleGAN3 calls an operator that is gone since."""
    import gpumem
    from gpumem.record.recorder import recording

    own, by_name = torch.__version__, torch._C._jit_get_operation
    with gpumem.record.pretend_torch("1.12", tell=True):  # Also programs that are imported before the recording begins.
        assert torch.__version__ == "1.12.0" and torch._C._jit_get_operation is by_name
    with gpumem.record.pretend_torch("1.9", tell=True), recording():
        x, gradient = torch.ones(2, 6, 8, 8, device="cuda"), torch.ones(2, 4, 8, 8, device="cuda")
        operator = torch._C._jit_get_operation("aten::cudnn_convolution_backward_weight")
        weight = operator((4, 3, 3, 3), gradient, x, (1, 1), (1, 1), (1, 1), 2, False, False, True)
        image, grid = torch.ones(2, 3, 8, 8, device="cuda"), torch.ones(2, 8, 8, 2, device="cuda")
        of_image, of_grid = torch._C._jit_get_operation("aten::grid_sampler_2d_backward")(image, image, grid, 0, 0, False)
        assert of_image.shape == image.shape and of_grid.shape == grid.shape and torch.ops.aten.mul.Tensor(image, 2) is not None
        assert not hasattr(torch.ops.aten, "there_is_none") and torch.ops.aten.special_zeta is not None
        told = torch.__version__ == "1.9.0" and torch.__version__ < (1, 11) and weight.shape == (4, 3, 3, 3)
    with gpumem.record.pretend_torch("1.9"), recording():
        return told and torch.__version__ == own and torch._C._jit_get_operation is by_name


def main() -> int:
    if "--measure" in sys.argv:
        print(json.dumps({name: measured(name) for name in CASES}, indent=1))
        return 0
    failed = 0
    own = tuple(map(int, torch.__version__.split(".")[:2]))
    for version, expected in json.loads((SOURCE / "tests" / "golden" / "older_kept.json").read_text()).items():
        if tuple(map(int, version.split("."))) > own:
            print(f"skip {version}: PyTorch {torch.__version__} is older")
            continue
        found = {name: recorded(name, version) for name in expected}
        for name in expected:
            right = found[name] == expected[name]
            failed += not right
            print(f"{'ok  ' if right else 'FAIL'} {version} {name:22} keeps {found[name]}, measured {expected[name]}")
        failed += recorded("relu by keyword", version) != expected["relu"]
    for version, kept in (("1.7", True), ("1.13.1", True), ("2.0", False)):
        failed += gradients_after_zero_grad(version) != kept
    failed += sum(not refused(version) for version in ("1.6", "0.4", "two", "1", "9.9", "99.0"))
    failed += not is_told()
    for version, part in (("1.13", "as PyTorch 1.13 keeps them"), ("2.0", "nothing of PyTorch 2.0 that is known differs")):
        failed += not any(part in text for text in warnings_of(version))
    print(f"{failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
