"""Draws random training jobs. Needs no PyTorch: job i of a series depends only on the seed and on i, so that work can
be resumed, and split over machines.

Ranges of the GPUMemNet papers (as in the data sets of itu-rad/GPUMemNet; architectures: see nets.py):

  mlp          4-4,096 inputs, 1-1,024 outputs (no more than inputs), 2-12 linear layers with 0-11 batch norms and
               dropouts, batch 4-1,024
  cnn          1 or 3 channels, even sides of 8-224, 2-22,000 classes, 16-512 base filters of 3 (as often as not), 5
               or 7, depth 1-29, batch 2-62
  transformer  50,000-1,000,000 words, 128, 256, 512 or 1,024 tokens, embeddings of 128-2,048, 2-16 heads, 2-4 times as
               wide a feed-forward, 9-157 linear layers (a packed projection counts as one; the classifier as well),
               batch 1-128
  vision, timm published models of torchvision and of timm, by name, batch 1-128
  hf           HuggingFace's classes with drawn configurations, batch 1-64
  llm          published language models, whole or with LoRA, batch 1-32 (see language.py)
  newest       those of 2025 and 2026 in turn, cut in depth (see published.py); only where --only names it
  delta        those of them with gated delta nets, for whose kernels flash-linear-attention must be there; likewise
  diffusion    published denoisers of images and videos, batch 1-8 (see diffusion.py); likewise
  vlm          published models that read images and text, batch 1-8 (see vision_language.py); likewise

What spans orders of magnitude is drawn evenly half of the time, and evenly in its logarithm the other half. A job whose
step would need more than MOST_WORK floating-point operations is drawn again: it would fill the time of many others.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import math
import random
import types
from typing import Any, Callable

from . import diffusion, language, vision_language

Spec = dict[str, Any]

EDITION = "t"
"""Begins the names of jobs. What draws other jobs for the same seed takes a new one."""

MOST_WORK = 1e14
"""Floating-point operations of one step's forward and backward."""

ACTIVATIONS = ("elu", "gelu", "leaky_relu", "mish", "prelu", "relu", "selu", "silu", "softplus", "tanh", "identity")
MLP_SHAPES = ("pyramid", "uniform", "bottleneck", "gradual")
CNN_SHAPES = (*MLP_SHAPES, "hourglass", "residual", "dense")
OPTIMIZERS = ("adam", "adam", "adam", "adamw", "adamw", "adamw", "sgd", "sgd-momentum", "rmsprop", "adagrad")
HAVE_FUSED_FORM = ("adam", "adamw")
PRECISIONS = ("fp32", "fp32", "fp32", "fp32", "fp32-strict", "amp-fp16", "amp-bf16", "bf16")

VISION = (
    "alexnet convnext_base convnext_large convnext_small convnext_tiny densenet121 densenet161 densenet169 "
    "densenet201 efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4 efficientnet_b5 "
    "efficientnet_b6 efficientnet_b7 efficientnet_v2_l efficientnet_v2_m efficientnet_v2_s googlenet inception_v3 "
    "maxvit_t mnasnet0_5 mnasnet0_75 mnasnet1_0 mnasnet1_3 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small "
    "regnet_x_16gf regnet_x_1_6gf regnet_x_32gf regnet_x_3_2gf regnet_x_400mf regnet_x_800mf regnet_x_8gf "
    "regnet_y_16gf regnet_y_1_6gf regnet_y_32gf regnet_y_3_2gf regnet_y_400mf regnet_y_800mf regnet_y_8gf resnet101 "
    "resnet152 resnet18 resnet34 resnet50 resnext101_32x8d resnext101_64x4d resnext50_32x4d shufflenet_v2_x0_5 "
    "shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0 squeezenet1_0 squeezenet1_1 swin_b swin_s swin_t "
    "swin_v2_b swin_v2_s swin_v2_t vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn vit_b_16 vit_b_32 "
    "vit_l_16 vit_l_32 wide_resnet101_2 wide_resnet50_2"
).split()

TIMM = (
    "beit_base_patch16_224 cait_xxs24_224 caformer_s18 coat_lite_tiny coatnet_0_224 convit_tiny convmixer_768_32 "
    "convformer_s18 convnext_atto convnext_femto convnext_nano convnext_tiny convnextv2_atto convnextv2_nano "
    "convnextv2_tiny cs3darknet_m cspdarknet53 cspresnet50 cspresnext50 deit_base_patch16_224 deit_small_patch16_224 "
    "deit_tiny_patch16_224 deit3_small_patch16_224 densenet121 densenetblur121d dla34 dla60 dla102 dm_nfnet_f0 dpn68 "
    "dpn92 eca_nfnet_l0 ecaresnet50d edgenext_small edgenext_x_small efficientformer_l1 efficientformerv2_s0 "
    "efficientnet_b0 efficientnet_b2 efficientnet_el efficientnet_es efficientnet_lite0 efficientnetv2_rw_s "
    "eva02_tiny_patch14_224 fastvit_t8 fbnetc_100 focalnet_tiny_srf gcresnet50t gernet_s gernet_m ghostnet_100 "
    "hardcorenas_a hgnet_tiny hrnet_w18 hrnet_w18_small inception_next_tiny inception_resnet_v2 inception_v4 "
    "lcnet_050 lcnet_100 legacy_seresnet50 levit_128 levit_256 maxvit_tiny_tf_224 mixer_b16_224 mixer_s32_224 "
    "mixnet_s mixnet_m mnasnet_100 mobilenetv2_100 mobilenetv3_large_100 mobilenetv3_small_100 mobilenetv4_conv_small "
    "mobileone_s0 mobilevit_s mobilevit_xs mobilevitv2_100 nest_tiny nfnet_l0 pit_s_224 pit_ti_224 poolformer_s12 "
    "poolformerv2_s12 pvt_v2_b0 pvt_v2_b2 regnetx_008 regnetx_032 regnety_008 regnety_032 regnetz_b16 repvgg_a2 "
    "repvgg_b0 res2net50_26w_4s res2next50 resmlp_12_224 resmlp_24_224 resnest14d resnest50d resnet18 resnet26d "
    "resnet34 resnet50 resnet50d resnet101 resnetaa50 resnetblur50 resnetrs50 resnetv2_50 resnext50_32x4d rexnet_100 "
    "seresnet50 seresnext50_32x4d selecsls42b semnasnet_100 sequencer2d_s skresnet18 skresnext50_32x4d spnasnet_100 "
    "swin_small_patch4_window7_224 swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 tf_efficientnetv2_b0 "
    "tiny_vit_5m_224 tinynet_a tnt_s_patch16_224 tresnet_m twins_pcpvt_small twins_svt_small vgg16_bn visformer_small "
    "vit_base_patch16_224 vit_base_patch32_224 vit_large_patch16_224 vit_small_patch16_224 vit_small_patch32_224 "
    "vit_tiny_patch16_224 volo_d1_224 wide_resnet50_2 xception41 xception65 xcit_nano_12_p16_224 xcit_tiny_12_p8_224"
).split()

WIDTH, LAYERS, HEADS, INNER, KEYS = "width", "layers", "heads", "inner", "keys"
"""What a HuggingFace configuration calls by names of its own."""


@dataclasses.dataclass(frozen=True)
class HuggingFaceClass:
    """A class of transformers, and what its configuration calls a layer's sizes."""

    config: str
    model: str
    names: dict[str, str]
    tokens: bool = True
    decoder: bool = False
    more: Spec = dataclasses.field(default_factory=dict)
    """What else the configuration needs."""


_BERT = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
}
HUGGING_FACE = (
    HuggingFaceClass("BertConfig", "BertForMaskedLM", _BERT),
    HuggingFaceClass("BertConfig", "BertForSequenceClassification", _BERT),
    # Its positions begin after the padding's.
    HuggingFaceClass("RobertaConfig", "RobertaForSequenceClassification", _BERT, more={"max_position_embeddings": 514}),
    HuggingFaceClass(
        "DistilBertConfig",
        "DistilBertForMaskedLM",
        {"dim": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": INNER},
    ),
    HuggingFaceClass("GPT2Config", "GPT2LMHeadModel", {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS}),
    HuggingFaceClass("GPTNeoXConfig", "GPTNeoXForCausalLM", _BERT),
    HuggingFaceClass(
        "XLNetConfig",
        "XLNetForSequenceClassification",
        {"d_model": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "d_inner": INNER},
    ),
    HuggingFaceClass(
        "OPTConfig",
        "OPTForCausalLM",
        {
            "hidden_size": WIDTH,
            "word_embed_proj_dim": WIDTH,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "ffn_dim": INNER,
        },
    ),
    HuggingFaceClass("LlamaConfig", "LlamaForCausalLM", _BERT),
    HuggingFaceClass("Qwen2Config", "Qwen2ForCausalLM", {**_BERT, "num_key_value_heads": HEADS}),
    HuggingFaceClass(
        "T5Config",
        "T5ForConditionalGeneration",
        {"d_model": WIDTH, "num_layers": LAYERS, "num_heads": HEADS, "d_ff": INNER, "d_kv": KEYS},
        decoder=True,
    ),
    HuggingFaceClass("ViTConfig", "ViTForImageClassification", _BERT, tokens=False),
)


@dataclasses.dataclass(frozen=True)
class Job:
    """One training job. `model` is what the family's builder needs; batch in samples."""

    name: str
    family: str
    model: Spec
    batch_size: int
    loss: str = "cross-entropy"
    optimizer: str = "adam"
    fused: bool = False
    precision: str = "fp32"
    accumulation: int = 1
    checkpointing: bool = False
    steps: int = 3
    counters: bool = False
    """Whether the job runs on for a while, so that the driver's counters can be read."""

    def to_json(self) -> Spec:
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(fields: Spec) -> Job:
        return Job(**fields)


def spread(draw: random.Random, low: int, high: int) -> int:
    """Evenly half of the time, evenly in its logarithm the other half."""
    if draw.random() < 0.5:
        return draw.randint(low, high)
    return round(math.exp(draw.uniform(math.log(low), math.log(high))))


def dropout(draw: random.Random) -> float:
    return draw.randint(10, 50) / 100 if draw.random() < 0.5 else 0.0


def draw_mlp(draw: random.Random) -> tuple[Spec, int]:
    inputs = spread(draw, 4, 4096)
    shape = draw.choice(MLP_SHAPES)
    spec = {
        "inputs": inputs,
        "outputs": spread(draw, 1, min(inputs, 1024)),
        "shape": shape,
        # A bottleneck has one layer more.
        "depth": draw.randint(1, 10 if shape == "bottleneck" else 11),
        "activation": draw.choice(ACTIVATIONS),
        "dropout": dropout(draw),
        "batch_norm": draw.random() < 0.5,
    }
    return spec, spread(draw, 4, 1024)


def draw_cnn(draw: random.Random) -> tuple[Spec, int]:
    shape = draw.choice(CNN_SHAPES)
    least_depth = {"dense": 4, "residual": 2}.get(shape, 1)  # that leaves a convolution
    side = 2 * draw.randint(4, 112)
    depth = draw.randint(least_depth, 29)
    # As many halvings over the depth as take the image to 7, or one each five groups.
    halvings = max(1, math.floor(math.log2(max(1, side // 7))))
    spec = {
        "channels": draw.choice((1, 3)),
        "side": side,
        "classes": spread(draw, 2, 22000),
        "shape": shape,
        "depth": depth,
        "base_filters": spread(draw, 16, 512),
        "kernel": draw.choice((3, 3, 5, 7)),
        "pooling_interval": draw.choice((5, math.ceil(depth / halvings))),
        "activation": draw.choice(ACTIVATIONS[:-1]),
        "dropout": dropout(draw),
        "batch_norm": draw.random() < 0.5,
    }
    return spec, spread(draw, 2, 62)


def draw_transformer(draw: random.Random) -> tuple[Spec, int]:
    embedding = 64 * spread(draw, 2, 32)
    packed = draw.random() < 0.5
    spec = {
        "vocabulary": spread(draw, 50_000, 1_000_000),
        "sequence": draw.choice((128, 256, 512, 1024)),
        "embedding": embedding,
        "heads": draw.choice([heads for heads in (2, 4, 8, 12, 16) if embedding % heads == 0]),
        "feed_forward": draw.randint(2 * embedding, 4 * embedding),
        "packed": packed,
        # With the classifier 9 to 157 linear layers of four an encoder layer, or 13 to 157 of six.
        "layers": spread(draw, 2, 39 if packed else 26),
        "classes": spread(draw, 2, 1000),
        "activation": draw.choice(("relu", "gelu")),
        "dropout": dropout(draw),
    }
    return spec, spread(draw, 1, 128)


def draw_vision(draw: random.Random) -> tuple[Spec, int]:
    return {"name": draw.choice(VISION), "classes": draw.choice((10, 100, 1000, 1000))}, spread(draw, 1, 128)


def draw_timm(draw: random.Random) -> tuple[Spec, int]:
    return {"name": draw.choice(TIMM), "classes": draw.choice((10, 100, 1000, 1000))}, spread(draw, 1, 128)


def draw_hugging_face(draw: random.Random) -> tuple[Spec, int]:
    chosen = draw.choice(HUGGING_FACE)
    heads = draw.choice((4, 8, 12, 16))
    sizes = {HEADS: heads, KEYS: 64, WIDTH: 64 * heads, LAYERS: draw.choice((2, 4, 6, 8, 12, 16, 24))}
    sizes[INNER] = draw.choice((2, 3, 4, 4)) * sizes[WIDTH]
    arguments = {name: sizes[size] for name, size in chosen.names.items()}
    spec = {
        "config": chosen.config,
        "model": chosen.model,
        "arguments": arguments,
        "more": chosen.more,
        "decoder": chosen.decoder,
    }
    if chosen.tokens:
        spec["sequence"] = draw.choice((64, 128, 256, 512))
    return spec, spread(draw, 1, 64)


@dataclasses.dataclass(frozen=True)
class Family:
    """weight: how often the family is drawn, against the others'."""

    draw: Callable[..., tuple[Spec, int]]
    weight: int
    checkpoints: bool = False
    """Whether its models have repeated blocks that activation checkpointing wraps."""
    published: types.ModuleType | None = None
    """Where its models, of published sizes, are: what draws their training, and says their summary and cells."""
    in_turn: tuple[str, ...] = ()
    """Its models, which come one after the other, so that few jobs have seen all."""
    usual: bool = True
    """Whether it is drawn where no families are named."""

    def drawn(self, draw: random.Random, turn: int | None) -> tuple[Spec, int]:
        """turn: which of the family's jobs this is, where that is known."""
        if not self.in_turn:
            return self.draw(draw)
        turn = draw.randrange(len(self.in_turn)) if turn is None else turn
        return self.draw(draw, self.in_turn[turn % len(self.in_turn)])


FAMILIES: dict[str, Family] = {
    "mlp": Family(draw_mlp, 2),
    "cnn": Family(draw_cnn, 4),
    "transformer": Family(draw_transformer, 4, checkpoints=True),
    "vision": Family(draw_vision, 3),
    "timm": Family(draw_timm, 3, checkpoints=True),
    "hf": Family(draw_hugging_face, 3, checkpoints=True),
    "llm": Family(language.draw_language_model, 4, checkpoints=True, published=language),
    "newest": Family(
        language.draw_newest, 4, checkpoints=True, published=language, in_turn=language.NEWEST_WITHOUT_FLA, usual=False
    ),
    "delta": Family(
        language.draw_newest, 1, checkpoints=True, published=language, in_turn=language.WITH_FLA, usual=False
    ),
    "diffusion": Family(
        diffusion.draw_denoiser, 4, checkpoints=True, published=diffusion, in_turn=tuple(diffusion.MODELS), usual=False
    ),
    "vlm": Family(
        vision_language.draw_model, 4, checkpoints=True, published=vision_language,
        in_turn=tuple(vision_language.MODELS), usual=False,
    ),
}  # fmt: skip
USUAL = tuple(name for name, family in FAMILIES.items() if family.usual)


# ------------------------------------------------------------------------------------------------ work of a step


def cnn_channels(spec: Spec, block: int) -> int:
    """Output channels of a chain's block, or of a residual pair."""
    base, depth, shape = spec["base_filters"], spec["depth"], spec["shape"]
    if shape in ("pyramid", "residual"):
        return grown(base, block, depth)
    if shape == "gradual":
        return grown(base, block, 2 * depth)
    if shape == "bottleneck":
        return 2 * base if block == 0 else grown(base, block - 1, max(depth - 1, 1))
    if shape == "hourglass":
        rising = depth // 2
        if block < rising:
            return grown(base, block, rising)
        return max(grown(base, depth - block - 1, depth - rising), base)
    return base


def grown(base: int, step: int, steps: int) -> int:
    """floor(base (2048 / base)^(step / steps)), at most 2048; a whole number may come out a rounding short."""
    return min(int(base * (2048 / base) ** (step / steps) + 1e-9), 2048)


def cnn_work(spec: Spec) -> float:
    """Multiplications and additions of one sample's forward pass, of convolutions only; shrinking is left out."""
    kernel, pixels, channels = spec["kernel"] ** 2, spec["side"] ** 2, spec["channels"]
    if spec["shape"] == "dense":
        groups = spec["depth"] // 4
        return 2 * kernel * pixels * groups * 4 * 32 * (channels + 64 * groups)
    work = 0.0
    for block in range(spec["depth"]):
        out = cnn_channels(spec, block // 2 if spec["shape"] == "residual" else block)
        work += 2 * kernel * pixels * channels * out
        channels = out
    return work


def transformer_work(spec: Spec) -> float:
    """As cnn_work(), for matrix products."""
    width, tokens = spec["embedding"], spec["sequence"]
    layer = 2 * tokens * (4 * width**2 + 2 * width * spec["feed_forward"]) + 4 * tokens**2 * width
    return spec["layers"] * layer


def step_work(family: str, spec: Spec, batch: int) -> float:
    """Floating-point operations of a step's forward and backward, roughly; 0 where no job comes near the limit."""
    of_sample = {"cnn": cnn_work, "transformer": transformer_work}.get(family)
    return 3 * batch * of_sample(spec) if of_sample else 0.0


# ------------------------------------------------------------------------------------------------ series


@dataclasses.dataclass(frozen=True)
class Series:
    """A sequence of jobs without end. Names begin with edition and seed; then with the families, if not all."""

    seed: int
    families: tuple[str, ...] = USUAL

    @functools.cached_property
    def prefix(self) -> str:
        some = "" if self.families == USUAL else "-" + "-".join(self.families)
        return f"{EDITION}{self.seed}{some}"

    def job(self, index: int) -> Job:
        """Job `index`; from 0."""
        draw = random.Random(f"{self.prefix}:{index}")
        turn = None
        if all(FAMILIES[name].in_turn for name in self.families):
            turn, place = divmod(index, len(self.families))
            family = self.families[place]
        else:
            weights = [FAMILIES[name].weight for name in self.families]
            family = draw.choices(self.families, weights)[0]
        spec, batch = FAMILIES[family].drawn(draw, turn)
        while step_work(family, spec, batch) > MOST_WORK:
            spec, batch = FAMILIES[family].drawn(draw, turn)
        return self._with_training(draw, f"{self.prefix}-{index:05d}", family, spec, batch)

    @staticmethod
    def _with_training(draw: random.Random, name: str, family: str, spec: Spec, batch: int) -> Job:
        optimizer = draw.choice(OPTIMIZERS)
        job = Job(
            name=name,
            family=family,
            model=spec,
            batch_size=batch,
            loss="bce-with-logits" if spec.get("outputs") == 1 else "cross-entropy",
            optimizer=optimizer,
            fused=draw.random() < 0.2 and optimizer in HAVE_FUSED_FORM,
            precision=draw.choice(PRECISIONS),
            accumulation=draw.choice((1,) * 9 + (4,)),
            checkpointing=draw.random() < 0.15 and FAMILIES[family].checkpoints,
            counters=draw.random() < 0.25,
        )
        published = FAMILIES[family].published
        return dataclasses.replace(job, **published.draw_training(draw, spec)) if published else job


PACKAGES = {"vision": "torchvision", "timm": "timm", "hf": "transformers", "llm": "transformers",
            "newest": "transformers", "delta": "fla", "diffusion": "diffusers", "vlm": "transformers"}  # fmt: skip
"""What a family's models come from."""


def available_families() -> tuple[str, ...]:
    """Those whose package is installed; nothing is imported."""
    return tuple(name for name in FAMILIES if name not in PACKAGES or importlib.util.find_spec(PACKAGES[name]))


def families_of(text: str) -> tuple[str, ...]:
    """ "cnn,mlp" as ("mlp", "cnn"): in the order of FAMILIES. Raises ValueError, naming what is unknown."""
    asked = [name for name in text.split(",") if name]
    unknown = [name for name in asked if name not in FAMILIES]
    if unknown:
        raise ValueError(f"unknown family {unknown[0]!r}; choose of {','.join(FAMILIES)}")
    return tuple(name for name in FAMILIES if name in (asked or USUAL))


def shrunk(job: Job) -> Job:
    """The job with sizes that a CPU computes in no time, for dry runs: all code is gone through, nothing measured."""
    published = FAMILIES[job.family].published
    if published:
        return dataclasses.replace(job, model=published.small(job.model), batch_size=2)
    most: dict[str, int] = {
        "inputs": 64, "outputs": 64, "side": 16, "classes": 10, "depth": 4, "base_filters": 16, "vocabulary": 100,
        "sequence": 8, "layers": 2, "feed_forward": 64, "embedding": 48,
    }  # fmt: skip
    spec = {key: min(value, most[key]) if key in most else value for key, value in job.model.items()}
    if "embedding" in spec:
        spec["heads"] = min(spec["heads"], 4)
    if "name" in spec:
        spec["name"] = "squeezenet1_1" if job.family == "vision" else "resnet18"
        spec["side"] = 64
    if "arguments" in spec:
        sizes = {WIDTH: 64, HEADS: 4, KEYS: 16, LAYERS: 2, INNER: 64}
        names = next(one.names for one in HUGGING_FACE if one.model == spec["model"])
        spec["arguments"] = {name: sizes[size] for name, size in names.items()}
        spec["arguments"]["vocab_size" if "sequence" in spec else "image_size"] = 100 if "sequence" in spec else 32
    return dataclasses.replace(job, model=spec, batch_size=2, accumulation=min(job.accumulation, 2))
