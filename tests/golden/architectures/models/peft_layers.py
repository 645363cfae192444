"""PEFT's adapters in plain PyTorch, each with the calls that PEFT 0.20 makes in its forward (tuners/*/layer.py), written from
what these call: which tensors are cast, which functions keep what, and which names last until forward returns."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PeftLinear(nn.Module):
    """A frozen linear layer with an adapter; `kind` tells which functions a subclass calls."""

    def __init__(self, base: nn.Linear, rank: int, options: dict[str, str], shared: dict[str, Tensor]) -> None:
        super().__init__()
        self.base_layer = base
        self.rank = rank
        self.options = options
        self.sides = (base.in_features, base.out_features)
        self.make(*self.sides, shared)

    def new(self, *sizes: int) -> nn.Parameter:
        return nn.Parameter(torch.zeros(*sizes, device="cuda"))

    def make(self, inner: int, outer: int, shared: dict[str, Tensor]) -> None:
        raise NotImplementedError


class Dora(PeftLinear):
    def make(self, inner: int, outer: int, shared: dict[str, Tensor]) -> None:
        self.a = self.new(self.rank, inner)
        self.b = self.new(outer, self.rank)
        self.magnitude = self.new(outer)

    def directed(self, x: Tensor, result: Tensor) -> Tensor:
        unit = torch.eye(self.sides[0], device=x.device, dtype=self.a.dtype)
        lora_weight = F.linear(F.linear(unit, self.a), self.b).T
        del unit
        lora_weight = lora_weight.to(x.dtype)
        magnitude = self.magnitude
        weight = self.base_layer.weight.to(x.dtype)
        whole = weight + 2.0 * lora_weight.detach()
        norm = torch.linalg.norm(whole, dim=1).to(whole.dtype)
        del whole
        norm = norm.detach()
        share = (magnitude / norm).view(1, -1)
        update = F.linear(F.linear(x, self.a), self.b)
        return (share - 1) * result + share * update * 2.0

    def forward(self, x: Tensor) -> Tensor:
        result = self.base_layer(x)
        kept = result.dtype
        x = x.to(self.a.dtype)
        result = result + self.directed(x, result)
        return result.to(kept)


class Vera(PeftLinear):
    def make(self, inner: int, outer: int, shared: dict[str, Tensor]) -> None:
        if "a" not in shared:
            shared["a"] = torch.zeros(self.rank, shared["widest_in"], device="cuda")
            shared["b"] = torch.zeros(shared["widest_out"], self.rank, device="cuda")
        self.shared = shared
        self.lambda_b = self.new(outer)
        self.lambda_d = self.new(self.rank)

    def forward(self, x: Tensor) -> Tensor:
        result = self.base_layer(x)
        kept = result.dtype
        a = self.shared["a"][:, : self.sides[0]]
        b = self.shared["b"][: self.sides[1], :]
        x = x.to(self.lambda_d.dtype)
        result = result + self.lambda_b * F.linear(self.lambda_d * F.linear(x, a), b)
        return result.to(kept)


class Ia3(PeftLinear):
    def make(self, inner: int, outer: int, shared: dict[str, Tensor]) -> None:
        self.feeds = self.options["leaf"] == "down_proj"
        self.scaling = self.new(*((1, inner) if self.feeds else (outer, 1)))

    def forward(self, x: Tensor) -> Tensor:
        kept = x.dtype
        scaling = 1 * self.scaling.flatten()
        if self.feeds:
            x = x.to(self.scaling.dtype)
            between = (x * scaling).to(kept)
            return self.base_layer(between)
        result = self.base_layer(x)
        kept = result.dtype
        result = (result * scaling).to(kept)
        return result


class Product(torch.autograd.Function):
    """(w1a @ w1b) * (w2a @ w2b) * scale, of which only the factors are kept."""

    @staticmethod
    def forward(ctx: Any, w1a: Tensor, w1b: Tensor, w2a: Tensor, w2b: Tensor) -> Tensor:
        ctx.save_for_backward(w1a, w1b, w2a, w2b)
        return (w1a @ w1b) * (w2a @ w2b) * 2.0

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        w1a, w1b, w2a, w2b = ctx.saved_tensors
        grad = grad * 2.0
        part = grad * (w2a @ w2b)
        first, second = part @ w1b.T, w1a.T @ part
        part = grad * (w1a @ w1b)
        return first, second, part @ w2b.T, w2a.T @ part


class Loha(PeftLinear):
    def make(self, inner: int, outer: int, shared: dict[str, Tensor]) -> None:
        self.w1a, self.w1b = self.new(outer, self.rank), self.new(self.rank, inner)
        self.w2a, self.w2b = self.new(outer, self.rank), self.new(self.rank, inner)

    def update(self, x: Tensor) -> Tensor:
        delta = Product.apply(self.w1a, self.w1b, self.w2a, self.w2b)
        return F.linear(x.to(delta.dtype), delta)

    def forward(self, x: Tensor) -> Tensor:
        result = self.base_layer(x)
        result = result + self.update(x)
        return result.to(x.dtype)


class Lokr(PeftLinear):
    def make(self, inner: int, outer: int, shared: dict[str, Tensor]) -> None:
        factor = int(self.options["decompose_factor"])
        self.w1 = self.new(factor, factor)
        self.w2a, self.w2b = self.new(outer // factor, self.rank), self.new(self.rank, inner // factor)

    def update(self, x: Tensor) -> Tensor:
        delta = torch.kron(self.w1, self.w2a @ self.w2b) * 2.0
        return F.linear(x.to(delta.dtype), delta)

    def forward(self, x: Tensor) -> Tensor:
        result = self.base_layer(x)
        result = result + self.update(x)
        return result.to(x.dtype)


class Oft(PeftLinear):
    TERMS = 5

    def make(self, inner: int, outer: int, shared: dict[str, Tensor]) -> None:
        self.size = int(self.options["oft_block_size"])
        self.blocks = inner // self.size
        self.angles = self.new(self.blocks, self.size * (self.size - 1) // 2)
        rows, columns = torch.triu_indices(self.size, self.size, 1, device="cuda")
        self.rows, self.columns = rows.clone(), columns.clone()

    def matrices(self) -> Tensor:
        skew = torch.zeros(self.blocks, self.size, self.size, device="cuda", dtype=self.angles.dtype)
        skew[:, self.rows, self.columns] = self.angles
        skew = skew - skew.transpose(-2, -1)
        turn = torch.eye(self.size, device="cuda", dtype=self.angles.dtype).repeat(self.blocks, 1, 1)
        turn.add_(skew, alpha=2.0)
        square = torch.bmm(skew, skew)
        turn.add_(square, alpha=2.0)
        power = square
        for _ in range(3, self.TERMS - 1):
            power = torch.bmm(power, skew)
            turn.add_(power, alpha=2.0)
        power = torch.bmm(power, skew)
        turn.add_(power)
        return turn

    def turned(self, x: Tensor, kept: torch.dtype) -> Tensor:
        turn = self.matrices()
        parts = x.reshape(*x.shape[:-1], self.blocks, self.size)
        turned = torch.einsum("...rk,rkc->...rc", parts, turn)
        return turned.reshape(x.shape)

    def forward(self, x: Tensor) -> Tensor:
        kept = x.dtype
        x = x.to(self.angles.dtype)
        x = self.turned(x, kept)
        return self.base_layer(x.to(kept))


class Hira(PeftLinear):
    def make(self, inner: int, outer: int, shared: dict[str, Tensor]) -> None:
        self.a, self.b = self.new(self.rank, inner), self.new(outer, self.rank)

    def forward(self, x: Tensor) -> Tensor:
        result = self.base_layer(x)
        kept = result.dtype
        product = torch.mm(self.a.T, self.b.T)
        x = x.to(self.a.dtype)
        update = F.linear(x, self.base_layer.weight * product.T)
        result = result + update
        return result.to(kept)


class Fourierft(PeftLinear):
    def make(self, inner: int, outer: int, shared: dict[str, Tensor]) -> None:
        count = int(self.options["n_frequency"])
        self.spectrum = self.new(count)
        self.places = torch.zeros(2, count, dtype=torch.int64)

    def matrix(self) -> Tensor:
        places = self.places.to("cuda")
        dense = torch.zeros(self.sides[1], self.sides[0], device="cuda")
        dense[places[0, :], places[1, :]] = self.spectrum.float()
        return torch.fft.ifft2(dense).real * 150.0

    def forward(self, x: Tensor) -> Tensor:
        kept = x.dtype
        result = self.base_layer(x)
        delta = self.matrix()
        x = x.to(delta.dtype)
        result = result + F.linear(x, delta)
        return result.to(kept)


class Miss(PeftLinear):
    def make(self, inner: int, outer: int, shared: dict[str, Tensor]) -> None:
        self.block = self.new(self.rank, outer)

    def forward(self, x: Tensor) -> Tensor:
        kept = x.dtype
        result = self.base_layer(x)
        x = x.to(self.block.dtype)
        result = result + torch.sum(x.reshape(*x.shape[:-1], x.size(-1) // self.rank, self.rank), dim=-2) @ self.block
        return result.to(kept)


class Deft(PeftLinear):
    def make(self, inner: int, outer: int, shared: dict[str, Tensor]) -> None:
        self.p, self.r = self.new(outer, self.rank), self.new(self.rank, inner)

    def forward(self, x: Tensor) -> Tensor:
        kept = x.dtype
        base = self.base_layer(x)
        result = base.to(torch.float32)
        product = result
        x = x.to(torch.float32)
        right = torch.relu(self.p)
        correction = product @ right @ self.p.transpose(0, 1)
        result = result - correction
        r = self.r * 4.0
        result = result + F.linear(x, r) @ self.p.transpose(0, 1)
        return result.to(kept)


class Road(PeftLinear):
    GROUP = 64

    def make(self, inner: int, outer: int, shared: dict[str, Tensor]) -> None:
        self.theta, self.alpha = self.new(outer), self.new(outer)

    def turned(self, x: Tensor) -> Tensor:
        cosine, sine = self.theta.cos(), self.theta.sin()
        first, second = self.alpha * cosine, self.alpha * sine
        grouped = x.reshape(-1, 2, self.GROUP // 2)
        one, two = grouped[:, 0, :], grouped[:, 1, :]
        half = torch.stack((-two, one), dim=1).reshape(x.shape)
        return x * first + half * second

    def forward(self, x: Tensor) -> Tensor:
        result = self.base_layer(x)
        kept = result.dtype
        result = result.to(self.theta.dtype)
        result = self.turned(result)
        return result.to(kept)


METHODS: dict[str, type[PeftLinear]] = {
    "dora": Dora,
    "vera": Vera,
    "ia3": Ia3,
    "loha": Loha,
    "lokr": Lokr,
    "oft": Oft,
    "hira": Hira,
    "fourierft": Fourierft,
    "miss": Miss,
    "deft": Deft,
    "road": Road,
}


def adapt_by_peft(model: nn.Module, run: dict[str, Any]) -> None:
    """Freezes the model and puts the method's layers in. `run` has the options by gpumem's names."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    targets = run["lora_targets"].split("+")
    options = dict(one.split("=") for one in run["peft_options"].split(",") if one)
    found = [each for each in model.named_modules() if each[0].rpartition(".")[2] in targets]
    shared: dict[str, Any] = {
        "widest_in": max(each.in_features for _, each in found),
        "widest_out": max(each.out_features for _, each in found),
    }
    for name, linear in found:
        leaf = name.rpartition(".")[2]
        made = METHODS[run["peft"]](linear, run["lora"] or 0, {**options, "leaf": leaf}, shared)
        setattr(model.get_submodule(name.rpartition(".")[0]), leaf, made)
