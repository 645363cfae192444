"""Builds a job's model: its module, and what one sample of its input is. Units: elements, bytes."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from typing import Any, Callable, Iterator

import torch
from torch import nn

from . import diffusion, language, nets, published, vision_language
from .jobs import Job, Spec


class Unavailable(Exception):
    """The job's model cannot be built here: a package is missing, or too old for it."""


@dataclasses.dataclass(frozen=True)
class Maker:
    """Draws the tensors of a batch. Numbers have the type of what they are for."""

    batch: int
    device: torch.device
    dtype: torch.dtype

    def numbers(self, *shape: int, single: bool = False) -> torch.Tensor:
        return torch.randn(shape, device=self.device, dtype=torch.float32 if single else self.dtype)

    def shares(self, *shape: int) -> torch.Tensor:
        return torch.rand(shape, device=self.device, dtype=self.dtype)

    def ones(self, *shape: int) -> torch.Tensor:
        return torch.ones(shape, device=self.device, dtype=self.dtype)

    def whole(self, below: int, *shape: int) -> torch.Tensor:
        return torch.randint(below, shape, device=self.device)

    def places(self, count: int) -> torch.Tensor:
        return torch.arange(count, device=self.device)

    def given(self, values: list) -> torch.Tensor:
        return torch.tensor(values, device=self.device)


@dataclasses.dataclass
class Model:
    """A module with the shape of one sample of its input (without the batch)."""

    module: nn.Module
    sample: tuple[int, ...]
    vocabulary: int = 0
    """0: the input is numbers and not token ids."""
    label_per_token: bool = False
    call: Callable[[nn.Module, torch.Tensor], object] | None = None
    """How the module gives logits; None: when called with only the input."""
    enable_checkpointing: Callable[[], object] | None = None
    computes_loss: bool = False
    """The module is given the labels, and its answer has the loss."""
    adapters: bool = False
    """What is trained came after the rest, in float32 whatever the rest has, as PEFT does it."""
    frozen_half: bool = False
    """What is frozen is in bfloat16, under autocast too."""
    drawn: Callable[[Maker], tuple[object, torch.Tensor]] | None = None
    """Makes a batch of several tensors: what the module is called with, and labels or a target."""

    def batch(self, size: int, device: torch.device, dtype: torch.dtype, loss: str) -> tuple[Any, torch.Tensor]:
        if self.drawn:
            return self.drawn(Maker(size, device, torch.bfloat16 if self.frozen_half else dtype))
        return self.inputs(size, device, dtype), self.labels(size, device, loss, dtype)

    def outputs(self, inputs: torch.Tensor) -> object:
        return self.call(self.module, inputs) if self.call else self.module(inputs)

    def inputs(self, batch: int, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
        shape = (batch, *self.sample)
        if self.vocabulary:
            return torch.randint(self.vocabulary, shape, device=device)
        return torch.randn(shape, device=device, dtype=dtype)

    def labels(self, batch: int, device: torch.device, loss: str, dtype: torch.dtype) -> torch.Tensor:
        """Class ids; shares for binary cross entropy. Their values are of no account."""
        if loss == "bce-with-logits":
            return torch.rand((batch, 1), device=device, dtype=dtype)
        shape = (batch, *self.sample) if self.label_per_token else (batch,)
        return torch.randint(2, shape, device=device)


def built(job: Job) -> Model:
    """The job's model in training mode; parameters without storage (device "meta"), buffers on the CPU. Raises
    Unavailable."""
    build = BUILDERS[job.family]
    try:
        with without_storage():
            model = build(job.model)
    except (NotImplementedError, RuntimeError):  # It computes with its parameters' values.
        model = build(job.model)
    model.module.train()
    return model


# ------------------------------------------------------------------------------------------------ families


def mlp(spec: Spec) -> Model:
    return Model(nets.mlp(spec), (spec["inputs"],))


def cnn(spec: Spec) -> Model:
    return Model(nets.cnn(spec), (spec["channels"], spec["side"], spec["side"]))


def transformer(spec: Spec) -> Model:
    module = nets.Transformer(spec)

    def checkpoint() -> None:
        module.checkpointing = True

    return Model(module, (spec["sequence"],), spec["vocabulary"], enable_checkpointing=checkpoint)


def vision(spec: Spec) -> Model:
    models = package("torchvision.models")
    name = spec["name"]
    # They take seconds, and no weight is ever read.
    quick = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    side = spec.get("side") or (299 if name == "inception_v3" else 256 if name.startswith("swin_v2") else 224)
    module = known(models, name)(weights=None, num_classes=spec["classes"], **quick)
    return Model(module, (3, side, side))


def timm(spec: Spec) -> Model:
    package_timm = package("timm")
    if not package_timm.is_model(spec["name"]):
        raise Unavailable(f"timm {package_timm.__version__} has no {spec['name']}")
    module = package_timm.create_model(spec["name"], pretrained=False, num_classes=spec["classes"])
    sample = tuple(module.default_cfg.get("input_size", (3, 224, 224)))
    if "side" in spec:
        sample = (3, spec["side"], spec["side"])
    checkpoint = getattr(module, "set_grad_checkpointing", None)
    return Model(module, sample, enable_checkpointing=checkpoint)


def hugging_face(spec: Spec) -> Model:
    transformers = package("transformers")
    # A causal model is called as programs call it: it computes its loss, and keeps keys and values unless told not to.
    causal = spec["model"].endswith(("ForCausalLM", "LMHeadModel")) and not spec["decoder"]
    config = known(transformers, spec["config"])(**spec["arguments"], **spec["more"], use_cache=causal)
    module = known(transformers, spec["model"])(config)
    supported = getattr(module, "supports_gradient_checkpointing", False)
    checkpoint = module.gradient_checkpointing_enable if supported else None
    if "sequence" not in spec:
        sample = (3, config.image_size, config.image_size)
        return Model(module, sample, call=logits_of_pixels, enable_checkpointing=checkpoint)
    return Model(
        module,
        (spec["sequence"],),
        vocabulary=config.vocab_size,
        label_per_token="SequenceClassification" not in spec["model"],
        call=logits_of_both_sides if spec["decoder"] else with_loss if causal else logits_of_tokens,
        enable_checkpointing=checkpoint,
        computes_loss=causal,
    )


def language_model(spec: Spec) -> Model:
    transformers = package("transformers")
    if spec["lora"]:
        package("peft")
    if spec["name"] in published.WITH_FLA and not spec.get("small"):
        package("fla")
    known(transformers, language.MODELS[spec["name"]].model)
    module = language.module_of(spec, transformers)

    def call(module: nn.Module, x: torch.Tensor, labels: torch.Tensor | None = None) -> object:
        # A mask that hides nothing is dropped by transformers; the last token is padding here.
        mask = {}
        if spec["padding"]:
            mask["attention_mask"] = torch.ones_like(x)
            mask["attention_mask"][:, -1] = 0
        return module(input_ids=x, labels=labels, **mask)

    def checkpoint() -> None:
        module.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    # Gemma 3n has fewer words in its second table than in its first.
    words = getattr(module.config, "vocab_size_per_layer_input", None) or module.config.vocab_size
    return Model(
        module, (spec["sequence"],), words, True, call, checkpoint, computes_loss=True, adapters=bool(spec["lora"])
    )


def denoiser(spec: Spec) -> Model:
    package_diffusers = package("diffusers")
    about = diffusion.MODELS[spec["name"]]
    module = known(package_diffusers, about.kind)(**diffusion.fields_of(spec))
    if spec["lora"]:
        peft = package("peft")
        module.requires_grad_(False)
        # What add_adapter() of most of its classes does.
        adapters = peft.LoraConfig(r=spec["lora"], lora_alpha=spec["lora"], target_modules=list(about.targets))
        peft.inject_adapter_in_model(adapters, module)

    def drawn(make: Maker) -> tuple[object, torch.Tensor]:
        inputs, shape = about.batch(make, diffusion.sample_of(spec, make.batch), module.config)
        return inputs, make.numbers(*shape)

    def call(module: nn.Module, inputs: Spec) -> torch.Tensor:
        prediction = module(**inputs, return_dict=False)[0]
        channels = module.config.get("in_channels")
        twice = module.config.get("out_channels") == 2 * (channels or 1)  # PixArt's variance is not trained
        return prediction.chunk(2, 1)[0] if channels and twice else prediction

    return Model(
        module,
        (*spec["image"], spec["frames"]),
        call=call,
        enable_checkpointing=module.enable_gradient_checkpointing,
        adapters=bool(spec["lora"]),
        frozen_half=bool(spec["lora"]),
        drawn=drawn,
    )


def vision_language_model(spec: Spec) -> Model:
    transformers = package("transformers")
    if spec["lora"]:
        package("peft")
    known(transformers, vision_language.MODELS[spec["name"]].model)
    module = vision_language.module_of(spec, transformers)
    words = vision_language.fields_of(spec)["text_config"]["vocab_size"]

    def drawn(make: Maker) -> tuple[object, torch.Tensor]:
        inputs = vision_language.batch_of(make, spec)
        return inputs, inputs["input_ids"].clone()

    def call(module: nn.Module, inputs: Spec, labels: torch.Tensor | None = None) -> object:
        return module(**inputs, labels=labels)

    def checkpoint() -> None:
        module.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})

    return Model(
        module,
        (vision_language.tokens_of(spec),),
        words,
        True,
        call,
        checkpoint,
        computes_loss=True,
        adapters=bool(spec["lora"]),
        frozen_half=bool(spec["lora"]),
        drawn=drawn,
    )


def logits_of_pixels(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return module(pixel_values=x).logits


def with_loss(module: nn.Module, x: torch.Tensor, labels: torch.Tensor | None = None) -> object:
    return module(input_ids=x, labels=labels)


def logits_of_tokens(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return module(input_ids=x).logits


def logits_of_both_sides(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """An encoder and decoder are given the same tokens."""
    return module(input_ids=x, decoder_input_ids=x).logits


def checkpoint(model: Model) -> bool:
    """Turns activation checkpointing on; False for a model that has none."""
    if model.enable_checkpointing is None:
        return False
    try:
        model.enable_checkpointing()
    except (AssertionError, NotImplementedError, ValueError):  # timm and transformers refuse by these.
        return False
    return True


BUILDERS: dict[str, Callable[[Spec], Model]] = {
    "mlp": mlp,
    "cnn": cnn,
    "transformer": transformer,
    "vision": vision,
    "timm": timm,
    "hf": hugging_face,
    "llm": language_model,
    "newest": language_model,
    "delta": language_model,
    "diffusion": denoiser,
    "vlm": vision_language_model,
}


def package(name: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Unavailable(f"{name} cannot be imported: {error}") from error


def known(module, name: str):
    """Raises Unavailable where a package is too old for a name."""
    if not hasattr(module, name):
        raise Unavailable(f"{module.__name__} has no {name}")
    return getattr(module, name)


# ------------------------------------------------------------------------------------------------ storage


@contextlib.contextmanager
def without_storage() -> Iterator[None]:
    """Parameters that are registered within have no storage: a model of any size is made at once, and what
    initialises it costs nothing. Buffers keep their values, which models compute with."""
    register = nn.Module.register_parameter

    def register_on_meta(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        # One that is on meta already is shared with another module, and must stay so.
        if parameter is not None and not parameter.is_meta:
            parameter = nn.Parameter(torch.empty_like(parameter, device="meta"), parameter.requires_grad)
        register(module, name, parameter)

    nn.Module.register_parameter = register_on_meta
    try:
        yield
    finally:
        nn.Module.register_parameter = register


def place(
    module: nn.Module, device: torch.device, dtype: torch.dtype | None = None, adapters: bool = False
) -> None:
    """Gives the model storage on the device, in the order in which module.to(device) does: children first, each
    module's parameters before its buffers; then values that keep training finite. dtype: of floating-point tensors.
    adapters: what is trained comes after all that is frozen, and stays float32."""
    placed: dict[int, torch.Tensor] = {}

    def moved(tensor: torch.Tensor, like: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        if id(tensor) not in placed:
            placed[id(tensor)] = like(tensor)
        return placed[id(tensor)]

    def wanted(tensor: torch.Tensor) -> torch.dtype:
        return dtype if dtype is not None and tensor.is_floating_point() else tensor.dtype

    def stored(buffer: torch.Tensor) -> torch.Tensor:
        # What a model makes of its parameters has no storage either.
        return torch.zeros_like(buffer, device="cpu") if buffer.is_meta else buffer

    def fresh(parameter: torch.Tensor) -> torch.Tensor:
        kept = adapters and parameter.requires_grad
        storage = torch.empty_like(parameter, device=device, dtype=torch.float32 if kept else wanted(parameter))
        return nn.Parameter(storage, parameter.requires_grad)

    def visit(part: nn.Module, trained: tuple[bool, ...]) -> None:
        for child in part.children():
            visit(child, trained)
        for name, parameter in part._parameters.items():
            if parameter is not None and parameter.requires_grad in trained:
                part._parameters[name] = moved(parameter, fresh)
        for name, buffer in part._buffers.items():
            if buffer is not None and trained[0] is False:
                part._buffers[name] = moved(buffer, lambda b: stored(b).to(device, wanted(b)))

    for trained in ((False,), (True,)) if adapters else ((False, True),):
        visit(module, trained)
    initialise(module)


@torch.no_grad()
def initialise(module: nn.Module) -> None:
    """Random matrices that keep their input's variance, ones and zeros elsewhere: values stay finite in half precision.
    In place: it allocates nothing."""
    for name, parameter in module.named_parameters():
        if parameter.dim() > 1:
            parameter.normal_(0.0, (parameter.shape[0] / parameter.numel()) ** 0.5)
        else:
            parameter.fill_(0.0 if name.endswith("bias") else 1.0)
