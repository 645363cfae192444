"""Writes the goldens next to this file: one small model of each architecture, on every road to gpumem.

    PYTHONPATH=TRANSFORMERS/src python3 tests/golden/roads/make_goldens.py [NAME...]
    PYTHONPATH=TRANSFORMERS/src:TORCHINFO python3 tests/golden/roads/make_goldens.py --tables [NAME...]

It needs PyTorch 2.6, transformers (4.52.4 made these) and no GPU. Each golden is one model of transformers: its
config.json, print(model), its exported graph where the exporter can say what it computes, and recordings of two training
steps with AdamW at each precision, with and without checkpointing, and with a mask, where they can be recorded.
With --tables it adds what torchinfo (1.8.0) prints of the same batch to the goldens that are there.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import pathlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT / "src" / "python"), str(ROOT / "examples" / "pytorch"), str(HERE.parent / "architectures")]
sys.dont_write_bytecode = True

import torch  # noqa: E402
import transformers  # noqa: E402
from configs import CONFIGS  # noqa: E402
from export_graph import export_graph  # noqa: E402
from gpumem.record import record  # noqa: E402
from torch import Tensor, nn  # noqa: E402

#: The precisions as gpumem names them: the type of the weights, and autocast's.
PRECISIONS: dict[str, tuple[torch.dtype, Any]] = {
    "fp32": (torch.float32, None),
    "amp-bf16": (torch.float32, torch.bfloat16),
    "bf16": (torch.bfloat16, None),
}
BATCH, TOKENS = 8, 384
#: Not in that release, or with routing that needs values.
UNKNOWN = ("smollm3", "olmo3", "granitemoe", "t5_gated")
#: They compute with every mask that they are given, also with one of ones.
ALWAYS_MASKED = ("xlnet", "deberta-v2")
#: Checkpointing turns the cache off in all other classes, as "graph_without_cache" has it.
ALWAYS_CACHED = ("gpt_bigcode",)
#: Two blocks: what more of them hold is alike.
LAYERS = {"num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2}
#: What a tree does not print has the published value here: the width of a head, and whether the head is tied.
CHANGES: dict[str, dict[str, Any]] = {
    "gptj": {"hidden_size": 512, "num_attention_heads": 2, "rotary_dim": 64, "intermediate_size": 2048, "hidden_act": "gelu_new", "n_positions": 2048},
    "starcoder2": {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "hidden_size": 512,
        "residual_dropout": 0.0,
        "embedding_dropout": 0.0,
    },
    "gpt_neo": {"num_attention_heads": 4},
    "bloom": {"n_head": 4, "hidden_dropout": 0.0},
    "mpt": {"n_heads": 2},
    "deberta": {"num_attention_heads": 4},
    "xlnet": {"n_head": 4, "d_head": 64},
    "xlnet_lm": {"n_head": 4, "d_head": 64},
    "electra": {"num_attention_heads": 4},
    "falcon": {"num_attention_heads": 4},
    "falcon_grouped": {"hidden_size": 512, "num_attention_heads": 8},
    "falcon_alibi": {"num_attention_heads": 4},
    "swin": {"image_size": 224, "embed_dim": 96},
    "albert": {"num_hidden_layers": 12},
    "olmo": {"hidden_size": 512, "num_attention_heads": 4, "tie_word_embeddings": True},
    "qwen3": {"tie_word_embeddings": True},
    "stablelm_parallel": {"num_key_value_heads": 8},
    "modernbert": {"num_hidden_layers": 3},
    "deepseek": {"num_key_value_heads": 8, "first_k_dense_replace": 4},
}


def config_of(name: str) -> dict[str, Any]:
    config = CONFIGS[name]
    return {**config, **{key: LAYERS[key] for key in LAYERS if key in config}, **CHANGES.get(name, {})}


def class_of(config: dict[str, Any]) -> type[nn.Module]:
    """The class that the config names, else that of its type with the usual head."""
    if config["model_type"] == "clip":
        return transformers.CLIPModel
    if "architectures" in config:
        return getattr(transformers, config["architectures"][0])
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    return getattr(transformers, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[config["model_type"]])


def model_of(config: dict[str, Any]) -> nn.Module:
    fields = {key: value for key, value in config.items() if key != "model_type"}
    full = transformers.AutoConfig.for_model(config["model_type"], **fields)
    for part in (full, getattr(full, "text_config", full)):
        for token in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"):  # of a small vocabulary
            number = getattr(part, token, None)
            if isinstance(number, list) or (number or 0) >= getattr(part, "vocab_size", 1):
                setattr(part, token, 0)
    if full.is_encoder_decoder:
        full.pad_token_id = full.decoder_start_token_id = 0
    return class_of(config)._from_config(full, attn_implementation=None).train()


def batch_of(config: dict[str, Any], dtype: torch.dtype, device: str) -> dict[str, Tensor]:
    """What a collator gives: the names are those of the model's forward()."""

    def ids() -> Tensor:
        return torch.zeros(BATCH, TOKENS, dtype=torch.int64, device=device)

    def pixels(side: int) -> Tensor:
        return torch.zeros(BATCH, 3, side, side, dtype=dtype, device=device)

    if "image_size" in config:
        return {"pixel_values": pixels(config["image_size"]), "labels": torch.zeros(BATCH, dtype=torch.int64, device=device)}
    if "vision_config" in config:
        return {"input_ids": ids(), "attention_mask": ids(), "pixel_values": pixels(config["vision_config"]["image_size"])}
    if "num_mel_bins" in config:
        frames = 2 * config["max_source_positions"]
        features = torch.zeros(BATCH, config["num_mel_bins"], frames, dtype=dtype, device=device)
        return {"input_features": features, "labels": ids()}
    labels = ids()
    if config.get("architectures", [""])[0].endswith("ForSequenceClassification"):
        labels = torch.zeros(BATCH, dtype=torch.int64, device=device)
    tokens = {"input_ids": ids(), "attention_mask": ids()}
    if config["model_type"] == "xlnet":  # its tokenizer gives both
        tokens["token_type_ids"] = ids()
    return {**tokens, "labels": labels}


def arguments_of(config: dict[str, Any], batch: dict[str, Tensor], padding: bool) -> dict[str, Any]:
    """transformers drops a mask of ones where it can read it; a recording has no values, so it is not passed."""
    masked = padding or config["model_type"] in ALWAYS_MASKED
    given: dict[str, Any] = {name: each for name, each in batch.items() if masked or name != "attention_mask"}
    return {**given, "return_loss": True} if config["model_type"] == "clip" else given


def program(config: dict[str, Any], precision: str, checkpointing: bool, padding: bool) -> Callable[[], None]:
    """The training loop of a plain script: the batch and the outputs keep their names until the next step."""
    dtype, autocast = PRECISIONS[precision]
    model = model_of(config).to("cuda", dtype)
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    outputs = None

    def step() -> None:
        nonlocal outputs
        batch = batch_of(config, dtype, "cuda")
        optimizer.zero_grad()
        context = torch.autocast("cuda", dtype=autocast) if autocast else contextlib.nullcontext()
        with context:
            outputs = model(**arguments_of(config, batch, padding))
        outputs.loss.backward()
        optimizer.step()

    return step


def recorded(config: dict[str, Any], precision: str, checkpointing: bool, padding: bool) -> dict[str, Any]:
    text = record.step(
        lambda _: program(config, precision, checkpointing, padding), BATCH, scale=False, title=config["model_type"]
    )
    return {
        "precision": precision,
        "activation_checkpointing": checkpointing,
        "padding": padding,
        "recording": text,
    }


def tensors_of(cache: Any) -> list[Any]:
    """Of a DynamicCache, or of the tuples and lists that GPT-2 and GPTBigCode return in its place."""
    if isinstance(cache, (tuple, list)):
        return [tensor for each in cache for tensor in tensors_of(each)]
    if hasattr(cache, "key_cache"):
        return [*cache.key_cache, *cache.value_cache]
    return [] if cache is None else [cache]


class Trained(nn.Module):
    """A model whose inputs come by position, as an exported graph's do, and which gives logits and loss."""

    def __init__(self, config: dict[str, Any], cache: bool) -> None:
        super().__init__()
        self.config = config
        self.model = model_of(config)
        self.model.config.use_cache = cache
        self.names = [name for name in batch_of(config, torch.float32, "meta") if name != "attention_mask"]

    def forward(self, first: Tensor, second: Tensor) -> tuple[Tensor, ...]:
        given = dict(zip(self.names, (first, second)))
        outputs = self.model(**arguments_of(self.config, given, padding=True))
        return (outputs.loss, outputs.logits, *tensors_of(getattr(outputs, "past_key_values", None)))


def graph_of(config: dict[str, Any], cache: bool) -> str:
    examples = [each for name, each in batch_of(config, torch.float32, "cpu").items() if name != "attention_mask"]
    return export_graph(Trained(config, cache), examples, config["model_type"])


def golden_of(config: dict[str, Any]) -> dict[str, Any]:
    named = {**config, "architectures": [class_of(config).__name__]}
    golden: dict[str, Any] = {"config": named, "batch_size": BATCH}
    if "image_size" not in config:
        golden["sequence_length"] = TOKENS
    golden["tree"] = str(model_of(config))
    try:
        golden["graph"] = graph_of(config, cache=True)
        golden["graph_without_cache"] = graph_of(config, cache=config["model_type"] in ALWAYS_CACHED)
    except Exception as error:  # Whatever the model's own code raises.
        print("  no graph:", str(error)[:300], flush=True)
    golden["runs"] = []
    ways = [(precision, again, False) for precision in PRECISIONS for again in (False, True)]
    for way in [*ways, ("bf16", False, True)]:
        try:
            golden["runs"].append(recorded(config, *way))
        except Exception as error:  # Whatever the model's own code raises.
            print("  no recording:", way, str(error)[:300], flush=True)
    return golden


def write(name: str, golden: dict[str, Any]) -> None:
    path = HERE / f"{name}.json.gz"
    path.write_bytes(gzip.compress(json.dumps(golden, indent=1).encode(), 9, mtime=0))
    print(name, path.stat().st_size, len(golden["runs"]), "graph" in golden, "table" in golden, flush=True)


def add_table(name: str) -> None:
    from torchinfo import summary

    config = config_of(name)
    batch = {key: each for key, each in batch_of(config, torch.float32, "cpu").items() if key != "attention_mask"}
    golden = json.loads(gzip.decompress((HERE / f"{name}.json.gz").read_bytes()))
    golden["table"] = str(summary(model_of(config), input_data=batch, depth=10, verbose=0, device="cpu"))
    write(name, golden)


def main() -> None:
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    if sys.argv[1:2] == ["--tables"]:
        for name in sys.argv[2:] or [each for each in CONFIGS if each not in UNKNOWN]:
            add_table(name)
        return
    for name in sys.argv[1:] or [each for each in CONFIGS if each not in UNKNOWN]:
        write(name, golden_of(config_of(name)))


if __name__ == "__main__":
    main()
