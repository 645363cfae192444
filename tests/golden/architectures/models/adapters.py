"""LoRA adapters in plain PyTorch as PEFT 0.14 calls them (tuners/lora/layer.py, bnb.py), and four-bit linear layers as
bitsandbytes 0.45 calls them (nn/modules.py, autograd/_functions.py), with kernels that only take the memory."""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BLOCK = 64


def make_whole(weight: Tensor, scales: Tensor, shape: tuple[int, int], dtype: torch.dtype) -> Tensor:
    """functional.dequantize_4bit: the weight in one kernel; nested scales are made whole first."""
    if scales.dtype == torch.uint8:
        scales = torch.empty(scales.numel(), dtype=torch.float32, device=scales.device)
    return torch.empty(shape, dtype=dtype, device=weight.device)


class MatMul4Bit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, scales: Tensor, shape: tuple[int, int], bias: Optional[Tensor]) -> Tensor:
        output = F.linear(a, make_whole(b, scales, shape, a.dtype), bias)
        ctx.save_for_backward(b)
        ctx.scales, ctx.shape = scales, shape
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Optional[Tensor], ...]:
        (b,) = ctx.saved_tensors
        grad = torch.matmul(grad_output, make_whole(b, ctx.scales, ctx.shape, grad_output.dtype))
        return grad, None, None, None, None


class Linear4bit(nn.Module):
    def __init__(self, base: nn.Linear, nested: bool) -> None:
        super().__init__()
        self.shape = (base.out_features, base.in_features)
        count = base.in_features * base.out_features
        self.weight = nn.Parameter(torch.zeros((count + 1) // 2, dtype=torch.uint8), requires_grad=False)
        scales = (count + BLOCK - 1) // BLOCK
        self.scales = torch.zeros(scales, dtype=torch.uint8 if nested else torch.float32, device="cuda")
        self.held = [torch.zeros(16, device="cuda")]
        if nested:
            self.held += [torch.zeros((scales + 255) // 256, device="cuda"), torch.zeros(1, device="cuda")]
        self.bias = base.bias
        self.compute_dtype = torch.float32

    def forward(self, x: Tensor) -> Tensor:
        inp_dtype = x.dtype
        x = x.to(self.compute_dtype)
        return MatMul4Bit.apply(x, self.weight, self.scales, self.shape, self.bias).to(inp_dtype)


class Adapter(nn.Module):
    """What PEFT's layers share."""

    def __init__(self, base: nn.Module, sides: tuple[int, int], rank: int, dropout: float) -> None:
        super().__init__()
        self.base_layer = base
        self.lora_A = nn.Linear(sides[0], rank, bias=False)
        self.lora_B = nn.Linear(rank, sides[1], bias=False)
        self.dropout = nn.Dropout(dropout) if dropout > 0.0 else nn.Identity()
        self.scaling = 2.0

    def update(self, x: Tensor) -> Tensor:
        return self.lora_B(self.lora_A(self.dropout(x))) * self.scaling


class LoraLinear(Adapter):
    def forward(self, x: Tensor) -> Tensor:
        result = self.base_layer(x)
        torch_result_dtype = result.dtype
        x = x.to(self.lora_A.weight.dtype)
        result = result + self.update(x)
        result = result.to(torch_result_dtype)
        return result


class LoraEmbedding(nn.Module):
    def __init__(self, base: nn.Embedding, rank: int) -> None:
        super().__init__()
        self.base_layer = base
        self.lora_embedding_A = nn.ParameterDict({"default": torch.zeros(rank, base.num_embeddings)})
        self.lora_embedding_B = nn.ParameterDict({"default": torch.zeros(base.embedding_dim, rank)})
        self.scaling = 2.0

    def forward(self, x: Tensor) -> Tensor:
        result = self.base_layer(x)
        torch_result_dtype = result.dtype
        embedding_A = self.lora_embedding_A["default"].T
        embedding_B = self.lora_embedding_B["default"].T
        after_A = F.embedding(x, embedding_A)
        result = result + (after_A @ embedding_B) * self.scaling
        result = result.to(torch_result_dtype)
        return result


class LoraLinear4bit(Adapter):
    def forward(self, x: Tensor) -> Tensor:
        result = self.base_layer(x)
        result = result.clone()
        requires_conversion = not torch.is_autocast_enabled()
        if requires_conversion:
            expected_dtype = result.dtype
            x = x.to(self.lora_A.weight.dtype)
        output = self.update(x)
        if requires_conversion:
            output = output.to(expected_dtype)
        result = result + output
        return result


def adapt(model: nn.Module, run: dict[str, Any], dtype: torch.dtype, compute: torch.dtype) -> None:
    """Freezes and quantises the model, and puts adapters in. `run` has the options by gpumem's names."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    targets = run["lora_targets"].split("+")
    adapter_type = {"fp32": torch.float32, "bf16": torch.bfloat16}[run["lora_dtype"]]
    linears = [each for each in model.named_modules() if isinstance(each[1], nn.Linear)]
    for name, linear in linears:
        parent = model.get_submodule(name.rpartition(".")[0])
        leaf = name.rpartition(".")[2]
        base, sides = linear, (linear.in_features, linear.out_features)
        quantised = run["quantize"] != "none" and leaf != "lm_head"
        if quantised:
            base = Linear4bit(linear, run["quantize"] == "nf4-double").to("cuda")
            base.compute_dtype = compute
        if leaf in targets or ("all-linear" in targets and leaf != "lm_head"):
            made = LoraLinear4bit if quantised else LoraLinear
            adapter = made(base, sides, run["lora"], run["lora_dropout"])
            adapter.lora_A.to("cuda", adapter_type)
            adapter.lora_B.to("cuda", adapter_type)
            base = adapter
        setattr(parent, leaf, base)
    tables = [each for each in model.named_modules() if isinstance(each[1], nn.Embedding)]
    for name, table in tables:
        leaf = name.rpartition(".")[2]
        if leaf in targets:
            made = LoraEmbedding(table, run["lora"])
            made.lora_embedding_A.to("cuda", adapter_type)
            made.lora_embedding_B.to("cuda", adapter_type)
            setattr(model.get_submodule(name.rpartition(".")[0]), leaf, made)


def require_input_gradients(embedding: nn.Module) -> None:
    """transformers' enable_input_require_grads()."""
    embedding.register_forward_hook(lambda module, inputs, output: output.requires_grad_(True))
