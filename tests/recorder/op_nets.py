"""Small nets, each around one operation that the exporter of graphs knows, for tests/golden/operations: the memory of the
graph's step is held to that of the recorded step.

    python3 tests/recorder/op_nets.py FOLDER       # writes NAME.graph.json and NAME.recording.json.gz; PyTorch 2.6
"""

from __future__ import annotations

import gzip
import pathlib
import sys
import warnings
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src" / "python"), str(ROOT / "examples" / "pytorch")]
sys.dont_write_bytecode = True

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from export_graph import export_graph  # noqa: E402
from gpumem.record import record  # noqa: E402
from torch import Tensor, nn  # noqa: E402

BATCH, CHANNELS, SIZE = 16, 16, 64


class Net(nn.Module):
    """A convolution, the operation, an activation that keeps its input, and a head."""

    def __init__(self, operation: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.operation = operation
        self.stem = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.weight = nn.Parameter(torch.ones(CHANNELS))
        self.bias = nn.Parameter(torch.zeros(CHANNELS))
        self.kernel = nn.Parameter(torch.ones(CHANNELS, CHANNELS, 3, 3))
        self.matrix = nn.Parameter(torch.ones(SIZE, SIZE))
        self.head = nn.LazyLinear(5)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(F.gelu(self.operation(self, self.stem(images))).flatten(1))


def standardised(net: Net, x: Tensor) -> Tensor:
    """timm's ScaledStdConv2d."""
    kernel = F.batch_norm(
        net.kernel.reshape(1, CHANNELS, -1), None, None, weight=(net.weight * 0.1).view(-1), training=True, momentum=0.0
    )
    return F.conv2d(x, kernel.reshape_as(net.kernel), net.bias, 1, 1)


def response(net: Net, x: Tensor) -> Tensor:
    """timm's GlobalResponseNorm."""
    norm = x.norm(p=2, dim=(2, 3), keepdim=True)
    scaled = norm / (norm.mean(dim=1, keepdim=True) + 1e-6)
    return x + torch.addcmul(net.bias.view(1, -1, 1, 1), net.weight.view(1, -1, 1, 1), x * scaled)


def grouped_deviation(net: Net, x: Tensor) -> Tensor:
    """timm's EvoNorm2dS0."""
    parts = x.reshape(x.shape[0], 4, 4, SIZE, SIZE)
    deviation = parts.float().var(dim=(2, 3, 4), unbiased=False, keepdim=True).add(1e-5).sqrt()
    return x * (x * net.weight.view(1, -1, 1, 1)).sigmoid() / deviation.expand(parts.shape).reshape(x.shape)


def ignored(net: Net, x: Tensor) -> Tensor:
    """An in-place operation whose result nobody takes."""
    y = F.conv2d(x, net.kernel, None, 1, 1)
    y.mul_(net.weight.view(1, -1, 1, 1))
    return x + y


def heads_as_batch(net: Net, x: Tensor) -> Tensor:
    """Heads that join the batch axis: botnet's and mobilevit's."""
    heads = x.reshape(x.shape[0] * 4, CHANNELS // 4, SIZE, SIZE).transpose(2, 3)
    return (heads @ heads.transpose(2, 3).softmax(-1)).reshape(x.shape[0], CHANNELS, SIZE, SIZE)


OPERATIONS: dict[str, Callable[[Net, Tensor], Tensor]] = {
    "standardised_convolution": standardised,
    "computed_linear": lambda net, x: F.linear(x, net.matrix * 2, net.matrix.sum(0)),
    "response_norm": response,
    "variance": grouped_deviation,
    "largest": lambda net, x: x * x.amax(dim=1, keepdim=True),
    "values_of_max": lambda net, x: x + x.max(dim=1, keepdim=True)[0],
    "clamp": lambda net, x: x.clamp(-1, 1),
    "repeat": lambda net, x: x.repeat(1, 2, 1, 1),
    "tile_of_a_parameter": lambda net, x: x * net.matrix.tile(CHANNELS, 1, 1)[:, :SIZE],
    "unfold": lambda net, x: F.unfold(x, 3, padding=1),
    "fold": lambda net, x: F.fold(F.unfold(x, 2, stride=2), (SIZE, SIZE), 2, stride=2),
    "sliding_window": lambda net, x: x.unfold(2, 8, 8).unfold(3, 8, 8).reshape(x.shape[0], CHANNELS, 64, 64),
    "einsum": lambda net, x: torch.einsum("bchw,wk->bchk", x, net.matrix),
    "einsum_of_batches": lambda net, x: torch.einsum("bchw,bcgw->bchg", x, x),
    "broadcast_product": lambda net, x: x @ x.mean(1, keepdim=True),
    "negative_padding": lambda net, x: F.pad(x, (-2, 3, -1, 0)),
    "reflection": lambda net, x: F.pad(x, (1, 2, 1, 2), mode="reflect"),
    "normalize": lambda net, x: F.normalize(x, dim=1),
    "group_norm": lambda net, x: F.group_norm(x, 4, net.weight, net.bias),
    "softmax_of_permuted": lambda net, x: (x.permute(0, 2, 3, 1).softmax(-1)).permute(0, 3, 1, 2) * x,
    "ignored_result": ignored,
    "heads_as_batch": heads_as_batch,
}


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name, operation in OPERATIONS.items():
        torch.manual_seed(0)
        net = Net(operation)
        images = torch.zeros(BATCH, 3, SIZE, SIZE)
        net(images)  # The head learns its size.
        (folder / f"{name}.graph.json").write_text(export_graph(net, [images], name))
        text = record.module(net, [images], BATCH, scale=False, title=name)
        (folder / f"{name}.recording.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        print(name)


if __name__ == "__main__":
    main()
