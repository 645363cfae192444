"""Writes golden.json next to this file: what PyTorch holds in training steps of small language models under other loops,
other forms of the loss and other kinds of checkpointing than tests/golden/architectures has.

    python3 tests/golden/training_steps/make_goldens.py

It needs PyTorch 2.6, and no GPU. Each run has the options as gpumem names them, and the most bytes that live tensors hold
in two steps with AdamW. Kernels of Liger are written in PyTorch here: they keep, make and overwrite the same tensors.
"""

from __future__ import annotations

import contextlib
import functools
import json
import pathlib
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any, Optional

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "src" / "python"), str(HERE.parent / "architectures")]
sys.dont_write_bytecode = True

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from configs import CONFIGS  # noqa: E402
from gpumem.record.recorder import recording  # noqa: E402
from make_goldens import PRECISIONS, batch_of, live_peak  # noqa: E402
from models import BUILDERS, layers  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.utils import checkpoint as checkpoints  # noqa: E402

SIZES = (4, 128)
ATTENTION = F.scaled_dot_product_attention


def saved_operations() -> Any:
    """torchtitan's policy: attention, and the first, third, ... product of a block."""
    products = {False: 0, True: 0}
    always = (
        torch.ops.aten._scaled_dot_product_flash_attention.default,
        torch.ops.aten._scaled_dot_product_efficient_attention.default,
    )

    def policy(context: Any, operator: Any, *_: Any, **__: Any) -> Any:
        saves = operator in always
        if operator == torch.ops.aten.mm.default:
            products[context.is_recompute] += 1
            saves = products[context.is_recompute] % 2 == 1
        kinds = checkpoints.CheckpointPolicy
        return kinds.MUST_SAVE if saves else kinds.PREFER_RECOMPUTE

    return checkpoints.create_selective_checkpoint_contexts(policy)


def checkpointed_blocks(kind: str) -> Callable[..., Tensor]:
    name, _, number = kind.partition(":")
    count = int(number or 1) if name in ("full", "every") else 1

    def run_blocks(self: Any, hidden_states: Tensor, cache: Any, *arguments: Any) -> Tensor:
        for index, layer in enumerate(self.layers):
            wrapped = {"full": index < count or not number, "every": (index + 1) % count == 0, "selective-op": True}
            if not wrapped.get(name, False):
                hidden_states = layer(hidden_states, None, *arguments)
                continue
            contexts = {"context_fn": saved_operations} if name == "selective-op" else {}
            hidden_states = checkpoints.checkpoint(
                layer.__call__, hidden_states, None, *arguments, use_reentrant=False, **contexts
            )
        return hidden_states

    return run_blocks


def checkpoint_modules(model: nn.Module, names: list[str]) -> None:
    """Each module of these names in every block is one call of torch.utils.checkpoint."""
    for block in model.model.layers:
        for name in names:
            module = getattr(block, name)
            module.forward = functools.partial(checkpoints.checkpoint, module.forward, use_reentrant=False)


def attention_again(*arguments: Any, **options: Any) -> Tensor:
    return checkpoints.checkpoint(functools.partial(ATTENTION, **options), *arguments, use_reentrant=False)


class FusedCrossEntropy(torch.autograd.Function):
    """liger_kernel.ops.cross_entropy: a kernel leaves the gradient in the logits' place."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor) -> Tensor:
        losses = torch.zeros(logits.shape[0], dtype=torch.float32, device=logits.device)
        ctx.log_sums = torch.zeros_like(losses)
        ctx.save_for_backward(logits.detach())
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (logits,) = ctx.saved_tensors
        return logits, None


class FusedLinearCrossEntropy(torch.autograd.Function):
    """liger_kernel.ops.fused_linear_cross_entropy: forward makes the gradients, chunk by chunk."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        rows, width = hidden.shape
        vocabulary = weight.shape[0]
        chunks = -(-vocabulary // width)
        chunk = 1 << (-(-rows // chunks) - 1).bit_length()
        grad_weight, grad_hidden = torch.zeros_like(weight), torch.zeros_like(hidden)
        losses = torch.zeros(rows, dtype=torch.float32, device=hidden.device)
        for begin in range(0, rows, chunk):
            part = hidden[begin : begin + chunk]
            logits = part @ weight.t()
            grad_hidden[begin : begin + chunk] = logits @ weight
            torch.addmm(input=grad_weight, mat1=logits.t(), mat2=part, out=grad_weight)
        ctx.save_for_backward(grad_hidden.detach(), grad_weight.detach())
        return losses.sum()

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx: Any, gradient: Tensor) -> Any:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden, grad_weight, None


def with_fused_loss(self: Any, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> layers.Outputs:
    """lce_forward of Liger's patched models."""
    hidden_states, cache = self.model(input_ids)
    shifted = hidden_states[..., :-1, :].contiguous()
    truth = labels[..., 1:].contiguous()
    shifted = shifted.view(-1, shifted.shape[-1])
    loss = FusedLinearCrossEntropy.apply(shifted, self.lm_head.weight, truth.view(-1))
    return layers.Outputs(loss=loss, past_key_values=cache)


def with_fused_cross_entropy(logits: Tensor, labels: Tensor, vocabulary: int) -> Tensor:
    logits = logits.float()
    shift_logits = logits[..., :-1, :].contiguous()
    shift_labels = labels[..., 1:].contiguous()
    shift_logits = shift_logits.view(-1, vocabulary)
    shift_labels = shift_labels.view(-1)
    loss = FusedCrossEntropy.apply(shift_logits, shift_labels)
    return loss


class LitgptAttention(nn.Module):
    """CausalSelfAttention of litgpt 0.4: one projection, whose values are read in place."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.heads = config["num_attention_heads"]
        self.groups = config.get("num_key_value_heads", self.heads)
        self.head_size = width // self.heads
        packed = (self.heads + 2 * self.groups) * self.head_size
        bias = config["model_type"] == "qwen2" or config.get("use_qkv_bias", False)
        self.attn = nn.Linear(width, packed, bias=bias)
        self.proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, cache: Any, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, width = x.size()
        qkv = self.attn(x)
        each = self.heads // self.groups
        qkv = qkv.view(batch, length, self.groups, each + 2, self.head_size)
        qkv = qkv.permute(0, 2, 3, 1, 4)
        q, k, v = qkv.split((each, 1, 1), dim=2)
        if self.groups != self.heads:
            k = k.expand(batch, self.groups, each, length, self.head_size)
            v = v.expand(batch, self.groups, each, length, self.head_size)
        q = q.reshape(batch, -1, length, self.head_size)
        k = k.reshape(batch, -1, length, self.head_size)
        v = v.reshape(batch, -1, length, self.head_size)
        turned = cos.shape[-1]
        q = torch.cat((litgpt_rope(q[..., :turned], cos, sin), q[..., turned:]), dim=-1)
        k = torch.cat((litgpt_rope(k[..., :turned], cos, sin), k[..., turned:]), dim=-1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(batch, length, width)
        return self.proj(y)


def litgpt_rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.size(-1) // 2
    rotated = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    roped = (x * cos.unsqueeze(1)) + (rotated * sin.unsqueeze(1))
    return roped.to(dtype=x.dtype)


def in_chunks(program: Program, batch: list[Tensor], positions: int) -> tuple[Tensor, list[Tensor]]:
    """litgpt's and torchtune's: all chunks' logits, then the loss of each. Fabric hands litgpt's out in float32."""
    hidden_states, _ = program.model.model(batch[0])
    logits = [program.model.lm_head(part) for part in hidden_states.split(positions, dim=1)]
    del hidden_states
    if program.loop == "litgpt":
        logits = [part.float() for part in logits]
    program.outputs = None  # logits = model(...): the name takes these
    upcasts = program.loop == "torchtune"
    truth = torch.zeros_like(batch[2]).split(positions, dim=1)
    losses = []
    for part, labels in zip(logits, truth):
        rows = part.reshape(-1, part.shape[-1])
        losses.append(F.cross_entropy(rows.float() if upcasts else rows, labels.reshape(-1), reduction="sum"))
    return torch.stack(losses).sum(), logits


def built(config: dict[str, Any], options: dict[str, str]) -> nn.Module:
    model = BUILDERS[config["model_type"]](config).to("cuda", PRECISIONS[options["precision"]][0])
    kind = options.get("checkpointing", "none")
    loop = options.get("loop", "script")
    if kind != "none" or loop in ("torchtune", "litgpt"):
        model.model.checkpointing = True  # no cache
        model.model.run_blocks = types.MethodType(checkpointed_blocks(kind), model.model)
    if kind.startswith("selective:"):
        checkpoint_modules(model, kind.removeprefix("selective:").split("+"))
    if loop == "litgpt":
        for block in model.model.layers:
            block.self_attn = LitgptAttention(config).to("cuda", PRECISIONS[options["precision"]][0])
        model.lm_head.weight = nn.Parameter(torch.empty_like(model.lm_head.weight))  # never tied
    if options.get("loss") == "fused":
        model.forward = types.MethodType(with_fused_loss, model)
    return model


class Program:
    """Training steps as a loop makes them."""

    def __init__(self, config: dict[str, Any], options: dict[str, str]) -> None:
        self.config, self.options = config, options
        self.dtype, self.autocast = PRECISIONS[options["precision"]]
        self.loop = options.get("loop", "script")
        self.model = built(config, options)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.outputs: Any = None
        self.loss: Optional[Tensor] = None

    def outputs_of(self, batch: list[Tensor]) -> tuple[Tensor, Any]:
        context = torch.autocast("cuda", dtype=self.autocast) if self.autocast else contextlib.nullcontext()
        with context:
            name, _, number = self.options.get("loss", "standard").partition(":")
            if name == "chunked":
                return in_chunks(self, batch, int(number))
            outputs = self.model(*batch)
        return outputs.loss, outputs

    def loss_of(self, batch: list[Tensor]) -> Tensor:
        """A function whose names end before backward."""
        loss, outputs = self.outputs_of(batch)
        return loss

    def step(self) -> None:
        batch = batch_of(self.config, self.dtype, *SIZES)
        if self.loop == "script":
            self.optimizer.zero_grad()
        if self.loop in ("script", "litgpt"):
            self.loss, self.outputs = self.outputs_of(batch)
            self.loss.backward()
            self.optimizer.step()
        else:
            loss = self.loss_of(batch)
            if self.loop == "lightning":
                self.optimizer.zero_grad()
            loss.backward()
            self.loss = loss.detach()
            del loss
            self.optimizer.step()
        if self.loop in ("hf-trainer", "torchtune", "litgpt"):
            self.optimizer.zero_grad()


def measure(config: dict[str, Any], options: dict[str, str]) -> int:
    kind = options.get("checkpointing")
    again = attention_again if kind == "selective-attention" else ATTENTION
    usual = layers.causal_lm_loss
    layers.F = types.SimpleNamespace(**{**vars(F), "scaled_dot_product_attention": again})
    if options.get("loss") == "fused-ce":
        layers.causal_lm_loss = with_fused_cross_entropy
    try:
        with recording() as recorder:
            program = Program(config, options)
            for _ in range(2):
                recorder.steps.next_step()
                program.step()
        return live_peak(recorder.run)
    finally:
        layers.F, layers.causal_lm_loss = F, usual


CHOICES = (
    *({"loop": loop} for loop in ("script", "hf-trainer", "lightning")),
    *({"loop": loop, "checkpointing": "full"} for loop in ("hf-trainer", "lightning")),
    *({"checkpointing": kind} for kind in ("full:2", "every:2", "selective-op", "selective-attention")),
    *({"checkpointing": f"selective:{modules}"} for modules in ("mlp", "self_attn", "input_layernorm+mlp")),
    *({"loop": loop, "loss": "chunked:32"} for loop in ("torchtune", "litgpt")),
    {"loop": "torchtune", "loss": "chunked:48", "checkpointing": "full"},
    *({"loop": "hf-trainer", "loss": loss, "checkpointing": kind} for loss in ("fused", "fused-ce") for kind in ("none", "full")),
)


def main() -> None:
    warnings.simplefilter("ignore")
    golden = []
    for name in ("llama", "qwen2", "stablelm"):
        config = {**CONFIGS[name], "vocab_size": 4096}
        runs = []
        for precision in PRECISIONS:
            for choice in CHOICES:
                options = {"precision": precision, "batch_size": str(SIZES[0]), "seq_length": str(SIZES[1]), **choice}
                runs.append({"options": options, "peak_bytes": measure(config, options)})
                print(name, options, runs[-1]["peak_bytes"], flush=True)
        golden.append({"config": config, "runs": runs})
    (HERE / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
