"""The training programs that the checks and goldens record. Each function has the form that gpumem.record.step() takes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

Step = Callable[[], None]


# ------------------------------------------------------------------------------------------- nets


class Bottleneck(nn.Module):
    """ResNet's block of three convolutions (or two, narrow ones)."""

    def __init__(self, inputs: int, width: int, stride: int, deep: bool) -> None:
        super().__init__()
        outputs = 4 * width if deep else width
        sizes = [(inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1)]
        if not deep:
            sizes = [(inputs, width, 3, stride), (width, outputs, 3, 1)]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(i, o, kernel, step, kernel // 2, bias=False) for i, o, kernel, step in sizes
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(o) for _, o, _, _ in sizes)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.shortcut is None else self.shortcut(x)
        for convolution, norm in zip(self.convolutions, self.norms):
            x = norm(convolution(x))
            if norm is not self.norms[-1]:
                x = self.relu(x)
        x += identity
        return self.relu(x)


class ResNet(nn.Module):
    def __init__(self, blocks: tuple[int, ...], deep: bool, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        layers: list[nn.Module] = []
        channels = 64
        for stage, count in enumerate(blocks):
            for block in range(count):
                width = 64 << stage
                layers.append(Bottleneck(channels, width, 2 if stage and not block else 1, deep))
                channels = 4 * width if deep else width
        self.layers = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.pool(self.layers(self.stem(x))).flatten(1))


class GPTBlock(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        widen, narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.mlp = nn.Sequential(widen, nn.GELU(), narrow, nn.Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        parts = self.c_attn(self.ln_1(x)).split(width, 2)
        q, k, v = (each.view(batch, tokens, self.heads, -1).transpose(1, 2) for each in parts)
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        x = x + self.c_proj(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """As nanoGPT: the embedding is the head's weight."""

    def __init__(self, layers: int = 4, width: int = 256, heads: int = 8, vocabulary: int = 8192) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
        self.blocks = nn.ModuleList(GPTBlock(width, heads, 0.1) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


def _rotated(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


class LlamaAttention(nn.Module):
    def __init__(self, width: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.size = width // heads
        self.q_proj, self.o_proj = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k_proj, self.v_proj = (nn.Linear(width, kv_heads * self.size, bias=False) for _ in range(2))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        projections = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (each(x).view(batch, tokens, -1, self.size).transpose(1, 2) for each in projections)
        q = q * cos + _rotated(q) * sin
        k = k * cos + _rotated(k) * sin
        repeat = q.shape[1] // k.shape[1]
        if repeat > 1:
            k, v = (
                z[:, :, None].expand(-1, -1, repeat, -1, -1).reshape(batch, -1, tokens, self.size) for z in (k, v)
            )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, tokens, -1))


class LlamaMLP(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaBlock(nn.Module):
    def __init__(self, width: int, heads: int, kv_heads: int, hidden: int) -> None:
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(width), RMSNorm(width)
        self.self_attn, self.mlp = LlamaAttention(width, heads, kv_heads), LlamaMLP(width, hidden)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(
        self,
        layers: int = 8,
        width: int = 2048,
        heads: int = 16,
        kv_heads: int = 4,
        hidden: int = 5632,
        vocabulary: int = 32000,
        checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.checkpointing, self.size = checkpointing, width // heads
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaBlock(width, heads, kv_heads, hidden) for _ in range(layers))
        self.norm = RMSNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x, device = self.embed(tokens), tokens.device
        steps = 1.0 / (500000 ** (torch.arange(0, self.size, 2, device=device).float() / self.size))
        angles = torch.outer(torch.arange(tokens.shape[1], device=device).float(), steps)
        both = torch.cat((angles, angles), -1)
        cos, sin = both.cos().to(x.dtype), both.sin().to(x.dtype)
        for layer in self.layers:
            if self.checkpointing:
                x = checkpoint(layer, x, cos, sin, use_reentrant=False)
            else:
                x = layer(x, cos, sin)
        return self.lm_head(self.norm(x))


class LoRA(nn.Module):
    """PEFT's adapter of a frozen linear layer."""

    def __init__(self, base: nn.Linear, rank: int = 16) -> None:
        super().__init__()
        self.base = base
        self.a = nn.Linear(base.in_features, rank, bias=False)
        self.b = nn.Linear(rank, base.out_features, bias=False)
        self.dropout = nn.Dropout(0.05)

    def forward(self, x: Tensor) -> Tensor:
        low = self.b(self.a(self.dropout(x.to(self.a.weight.dtype))))
        return self.base(x) + low.to(x.dtype) * 2.0


def add_lora(model: Llama) -> None:
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for block in model.layers:
        for parent in (block.self_attn, block.mlp):
            for name, child in list(parent.named_children()):
                setattr(parent, name, LoRA(child).to("cuda"))
    if model.checkpointing:  # Else nothing that a checkpoint gets learns.
        model.embed.register_forward_hook(lambda _module, _inputs, output: output.requires_grad_(True))


# --------------------------------------------------------------------------------------- programs


def mlp(batch: int) -> Step:
    """A perceptron with dropout, Adam, gradients set to None before the forward."""
    sizes = (784, 1024, 1024)
    layers = [nn.Sequential(nn.Linear(i, o), nn.ReLU(), nn.Dropout(0.2)) for i, o in zip(sizes, sizes[1:])]
    model = nn.Sequential(*layers, nn.Linear(1024, 10)).to("cuda")
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        inputs = torch.randn(batch, 784).to("cuda")
        labels = torch.randint(0, 10, (batch,)).to("cuda")
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step


def images(model: nn.Module, batch: int, size: int = 224, autocast: torch.dtype | None = None) -> Step:
    """SGD with momentum, as torchvision's references train; autocast with a gradient scaler for float16."""
    model = model.to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cuda", enabled=autocast == torch.float16)
    casts = autocast is not None

    def step() -> None:
        inputs = torch.empty(batch, 3, size, size, device="cuda")
        labels = torch.zeros(batch, dtype=torch.int64, device="cuda")
        with torch.autocast("cuda", dtype=autocast or torch.bfloat16, enabled=casts):
            loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


def resnet18(batch: int) -> Step:
    return images(ResNet((2, 2, 2, 2), deep=False), batch)


def resnet50(batch: int) -> Step:
    return images(ResNet((3, 4, 6, 3), deep=True), batch)


def resnet18_channels_last(batch: int) -> Step:
    model = ResNet((2, 2, 2, 2), deep=False).to(memory_format=torch.channels_last)
    step = images(model, batch, autocast=torch.float16)
    return step


def resnet18_autocast(batch: int) -> Step:
    return images(ResNet((2, 2, 2, 2), deep=False), batch, autocast=torch.float16)


def language(
    model: nn.Module,
    batch: int,
    tokens: int,
    vocabulary: int,
    autocast: torch.dtype | None = None,
    **adamw: Any,
) -> Step:
    """AdamW over the parameters that learn."""
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-4, **adamw)

    def step() -> None:
        text = torch.randint(0, vocabulary, (batch, tokens), device="cuda")
        context = torch.autocast("cuda", dtype=autocast) if autocast else contextlib.nullcontext()
        with context:
            loss = F.cross_entropy(model(text).float().flatten(0, 1), text.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def gpt(batch: int, tokens: int = 256) -> Step:
    return language(GPT().to("cuda"), batch, tokens, 8192)


def gpt_bf16(batch: int, tokens: int = 256) -> Step:
    return language(GPT().to("cuda", torch.bfloat16), batch, tokens, 8192)


def llama(
    batch: int,
    tokens: int = 2048,
    *,
    dtype: torch.dtype = torch.float32,
    lora: bool = False,
    checkpointing: bool = False,
    autocast: torch.dtype | None = None,
    **adamw: Any,
) -> Step:
    model = Llama(checkpointing=checkpointing).to("cuda", dtype)
    if lora:
        add_lora(model)
    return language(model, batch, tokens, 32000, autocast, **adamw)


def lora(batch: int, tokens: int = 1024) -> Step:
    """A small Llama in bf16 with adapters and checkpoints."""
    model = Llama(layers=2, width=512, heads=8, kv_heads=2, hidden=1408, checkpointing=True).to("cuda", torch.bfloat16)
    add_lora(model)
    return language(model, batch, tokens, 32000)


def torchvision_model(batch: int, *, name: str) -> Step:
    """A net of torchvision, with SGD; "name/autocast" under autocast to float16, "name/adamw" with AdamW."""
    import torchvision

    name, _, how = name.partition("/")
    backbone = {"weights_backbone": None} if name.startswith(("fcn", "deeplab", "lraspp")) else {}
    model = torchvision.models.get_model(name, weights=None, **backbone).to("cuda")
    video = name in ("r3d_18", "mc3_18", "r2plus1d_18", "s3d", "mvit_v2_s", "swin3d_t")
    side = 299 if name == "inception_v3" else 112 if video and name[0] in "rms" and name[-1] == "8" else 224
    shape = (batch, 3, 16, side, side) if video else (batch, 3, side, side)
    if how == "adamw":
        optimizer: torch.optim.Optimizer = torch.optim.AdamW(model.parameters())
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def total(value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return value.float().mean()
        return sum(total(each) for each in (value.values() if isinstance(value, dict) else value))

    def step() -> None:
        inputs = torch.empty(shape, device="cuda")
        with torch.autocast("cuda", dtype=torch.float16, enabled=how == "autocast"):
            loss = total(model(inputs))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


# ---------------------------------------------------------------------------------- on several GPUs


def fsdp(batch: int, tokens: int = 2048, *, checkpointing: bool = False, reshard: bool = True) -> Step:
    """FSDP2 over 8 ranks: float32 shards, bfloat16 in the forward and backward, gradients summed in float32."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh("cuda", (8,))
    model = Llama(checkpointing=checkpointing).to("cuda")
    types = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for part in (*model.layers, model):
        fully_shard(part, mesh=mesh, mp_policy=types, reshard_after_forward=reshard)
    return language(model, batch, tokens, 32000, foreach=True)


def ddp(batch: int, tokens: int = 2048) -> Step:
    """DistributedDataParallel over 8 ranks."""
    torch.distributed.init_process_group("nccl")
    model = nn.parallel.DistributedDataParallel(Llama().to("cuda"), device_ids=[0])
    return language(model, batch, tokens, 32000, foreach=True)


def tensor_parallel(batch: int, tokens: int = 2048) -> Step:
    """Attention and MLPs over 8 ranks, in Megatron's way; embedding and head whole."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cuda", (8,))
    model = Llama(kv_heads=8).to("cuda", torch.bfloat16)
    by_columns = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
    by_rows = ("self_attn.o_proj", "mlp.down_proj")
    for layer in model.layers:
        plan: dict[str, Any] = {name: ColwiseParallel() for name in by_columns}
        plan.update({name: RowwiseParallel() for name in by_rows})
        parallelize_module(layer, mesh, plan)
    return language(model, batch, tokens, 32000, foreach=False)
