"""Writes megatron_bridge_recipes.inc: what each recipe of NVIDIA-NeMo/Megatron-Bridge sets that changes memory.

    python3 megatron_bridge_recipes.py PATH_OF_A_CHECKOUT COMMIT > megatron_bridge_recipes.inc

Every recipe is a Python function. It is called, with classes in place of PyTorch, Megatron-Core and transformers that
only note what they are given. So the table has what the source sets, and nothing is read by hand. What a recipe leaves
to Megatron-Bridge's defaults is in megatron_bridge.cpp.
"""
import copy
import dataclasses
import importlib
import importlib.abc
import importlib.util
import inspect
import os
import re
import sys
import types

PACKAGES = ("megatron.bridge.recipes", "megatron.bridge.perf_recipes")
REAL = PACKAGES + ("megatron.bridge.training.mixed_precision",)
# Fields that recipes read before they write them.
READ_FIRST = {"seq_length": 4096, "num_layers": 32, "num_moe_experts": 8, "mtp_num_layers": 1, "vocab_size": 256000,
              "tensor_model_parallel_size": 1, "context_parallel_size": 1, "pipeline_model_parallel_size": 1,
              "make_vocab_size_divisible_by": 128, "rotary_base": 1e4, "csa_compress_ratios": [0] * 33}
# Not language models, and models of sound.
LEFT_OUT = re.compile(r"^(wan|flux|qwen2_audio|vanilla_gpt|gpt3_175b)_")


class Noted:
    """An object that keeps what is set on it."""

    def __init__(self, kind, args=(), fields=None):
        self.__dict__.update(kind=kind, args=args, fields=dict(fields or {}))

    def __getattr__(self, key):
        if key.startswith("__"):
            raise AttributeError(key)
        if key in self.fields:
            return self.fields[key]
        return READ_FIRST[key] if self.kind == "provider" and key in READ_FIRST else Unset(self, key)

    def __setattr__(self, key, value):
        self.fields[key] = value

    def __len__(self):
        return 0

    def __bool__(self):
        return True

    def __deepcopy__(self, memo):
        return Noted(self.kind, self.args, copy.deepcopy(self.fields, memo))


class Unset:
    """A field that nobody set, or a function that is not known."""

    def __init__(self, owner=None, name="", *_, **__):
        self.__dict__.update(owner=owner, name=name)

    def __call__(self, *args, **fields):
        if self.name in ("to_megatron_provider", "get_model_config"):
            return Noted("provider", self.owner.args)
        if self.name == "to_text_provider":
            return self.owner
        return args[1] if self.name == "get" and len(args) > 1 else Noted(self.name, args, fields)

    def __getattr__(self, key):
        if key.startswith("__"):
            raise AttributeError(key)
        return Unset(self, key)

    def __setattr__(self, key, value):
        if isinstance(self.owner, Noted):
            self.owner.fields.setdefault(self.name, Noted(self.name)).fields[key] = value

    def __bool__(self):
        return False

    __len__ = __int__ = lambda self: 0
    __float__ = lambda self: 0.0
    __iter__ = lambda self: iter(())
    __eq__ = lambda self, other: other is None
    __hash__ = lambda self: hash(self.name)
    __gt__ = __lt__ = __ge__ = lambda self, other: False
    __or__ = __ror__ = lambda self, other: other
    __getitem__ = __deepcopy__ = lambda self, _: self
    __mro_entries__ = lambda self, bases: ()


class NotedClass(type):
    def __getattr__(cls, key):
        if key.startswith("__"):
            raise AttributeError(key)
        if key in ("from_hf_pretrained", "from_hf_config"):
            return lambda *args, **fields: Noted("bridge", args, fields)
        return Unset(cls, key)


class NotedModule(types.ModuleType):
    def __getattr__(self, key):
        if key.startswith("__"):
            raise AttributeError(key)
        if self.__name__ == "torch" and key in ("float32", "bfloat16", "float16", "uint8"):
            return {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}.get(key, key)
        made = NotedClass(key, (), {"__new__": lambda cls, *args, **fields: Noted(key, args, fields)})
        setattr(self, key, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Recipes are the checkout's own; what they import is not looked for."""

    def __init__(self, source):
        self.source = source

    def find_spec(self, name, path=None, target=None):
        if not any(name == real or name.startswith(real + ".") for real in REAL):
            known = name.split(".")[0] in sys.stdlib_module_names
            return None if known else importlib.util.spec_from_loader(name, self, is_package=True)
        place = os.path.join(self.source, *name.split("."))
        if os.path.isdir(place):
            init = os.path.join(place, "__init__.py")
            return importlib.util.spec_from_file_location(name, init, submodule_search_locations=[place])
        return importlib.util.spec_from_file_location(name, place + ".py")

    def create_module(self, spec):
        return NotedModule(spec.name)

    def exec_module(self, module):
        module.__path__ = []


def modules_of(source, package):
    for folder, _, files in sorted(os.walk(os.path.join(source, *package.split(".")))):
        for file in sorted(files):
            if file.endswith(".py"):
                name = os.path.relpath(os.path.join(folder, file), source)[:-3].replace(os.sep, ".")
                yield name.removesuffix(".__init__")


def recipes_of(source):
    """(name, function) of every recipe; where both packages have a name, the benchmark's counts."""
    found = {}
    for package in PACKAGES:
        for module in modules_of(source, package):
            try:
                members = vars(importlib.import_module(module))
            except TypeError:  # a data set's class that inherits from PyTorch's
                continue
            for name, value in list(members.items()):
                if name.endswith("_config") and name[0] != "_" and inspect.isfunction(value):
                    if value.__module__.startswith(PACKAGES) and ".utils." not in value.__module__:
                        found[name] = value
    return sorted(found.items())


def fields_of(value):
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {key: plain(one) for key, one in vars(value).items()}
    return {key: plain(one) for key, one in value.fields.items()} if isinstance(value, Noted) else {}


def plain(value):
    if isinstance(value, (Noted, Unset)) or dataclasses.is_dataclass(value):
        return None
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


# The short forms are those of run_recipe.py; the value behind each key is what is not written.
MODEL = {"tensor_model_parallel_size": ("-tp", 1), "pipeline_model_parallel_size": ("-pp", 1),
         "virtual_pipeline_model_parallel_size": ("-vp", None), "context_parallel_size": ("-cp", 1),
         "expert_model_parallel_size": ("-ep", 1), "expert_tensor_parallel_size": ("-etp", None)}
KEPT = {"sequence_parallel": False, "num_layers_in_first_pipeline_stage": None,
        "num_layers_in_last_pipeline_stage": None, "account_for_embedding_in_pipeline_split": False,
        "account_for_loss_in_pipeline_split": False, "cpu_offloading": False, "moe_paged_stash": False,
        "cross_entropy_loss_fusion": True, "cross_entropy_fusion_impl": "native", "mtp_num_layers": None, "mtp_use_repeated_layer": False,
        "moe_router_force_load_balancing": False, "moe_expert_capacity_factor": None,
        "moe_pad_expert_input_to_capacity": False, "freeze_language_model": False, "freeze_vision_model": False,
        "freeze_vision_projection": False}
# Sizes, where the recipe says them itself.
SIZES = ("hybrid_layer_pattern", "mtp_hybrid_override_pattern", "num_layers", "hidden_size", "ffn_hidden_size",
         "num_attention_heads", "num_query_groups", "kv_channels", "mamba_num_heads", "mamba_state_dim",
         "mamba_head_dim", "mamba_num_groups", "num_moe_experts", "moe_ffn_hidden_size", "moe_router_topk",
         "moe_shared_expert_intermediate_size", "vocab_size")


def layout_of(layout):
    """A list of stages as Megatron's short form has it."""
    letters = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}
    if isinstance(layout, list):
        return "|".join("".join(letters[one] for one in stage) for stage in layout)
    return layout


def word(key, value):
    if isinstance(value, list):
        value = "[" + ",".join(str(one) for one in value) + "]"
    return f"{key}={str(value).lower() if isinstance(value, bool) else value}"


def model_words(model):
    words = [f"{short} {model[key]}" for key, (short, usual) in MODEL.items() if model.get(key, usual) != usual]
    words += [word("model." + key, model[key]) for key, usual in KEPT.items() if model.get(key) not in (None, usual)]
    if model.get("pipeline_model_parallel_layout"):
        words.append("model.pipeline_model_parallel_layout=" + layout_of(model["pipeline_model_parallel_layout"]))
    if model.get("recompute_granularity"):
        words += [word("model." + key, model[key])
                  for key in ("recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules")
                  if model.get(key) and (key != "recompute_modules" or model["recompute_granularity"] == "selective")]
    if model.get("fine_grained_activation_offloading") and model.get("offload_modules"):
        words.append(word("model.offload_modules", model["offload_modules"]))
    if model.get("cuda_graph_impl") not in (None, "none"):
        words.append("model.cuda_graph_impl=" + model["cuda_graph_impl"])
    return words


def size_words(model):
    return [word("model." + key, model[key]) for key in SIZES if model.get(key) is not None]


def precision_words(config):
    if isinstance(config, str):
        return [] if config == "bf16_mixed" else ["mixed_precision=" + config]
    fields = fields_of(config)
    usual = {"bf16": True, "grad_reduce_in_fp32": True, "fp8": None, "fp4": None, "fp8_param_gather": False,
             "fp4_param_gather": False, "first_last_layers_bf16": False, "num_layers_at_start_in_bf16": 0}
    if not fields.get("first_last_layers_bf16"):
        del usual["num_layers_at_start_in_bf16"]
    words = [word("mixed_precision." + key, fields[key]) for key, value in usual.items()
             if fields.get(key, value) != value]
    if fields.get("fp8"):
        words.append("mixed_precision.fp8_recipe=" + fields["fp8_recipe"])
    return words


def training_words(config):
    train, ddp, optimizer = (fields_of(config[key]) for key in ("train", "ddp", "optimizer"))
    words = [f"-mb {train['micro_batch_size']}", f"-gb {train['global_batch_size']}"]
    sharded = ddp.get("use_distributed_optimizer") or optimizer.get("use_distributed_optimizer")
    if not sharded:
        words.append("ddp.use_distributed_optimizer=false")
    if ddp.get("use_megatron_fsdp"):
        words += ["ddp.use_megatron_fsdp=true",
                  "ddp.data_parallel_sharding_strategy=" + str(ddp.get("data_parallel_sharding_strategy", "no_shard"))]
    for key, usual in (("num_distributed_optimizer_instances", 1), ("outer_dp_sharding_strategy", "no_shard")):
        if ddp.get(key, usual) != usual:
            words.append(word("ddp." + key, ddp[key]))
    if optimizer.get("optimizer", "adam") != "adam":
        words.append("optimizer.optimizer=" + optimizer["optimizer"])
    if optimizer.get("use_precision_aware_optimizer"):
        words.append("optimizer.use_precision_aware_optimizer=true")
        words += [word("optimizer." + key, optimizer[key])
                  for key in ("main_grads_dtype", "main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype")
                  if optimizer.get(key, "fp32") != "fp32"]
    if optimizer.get("optimizer_cpu_offload"):
        words.append("optimizer.optimizer_cpu_offload=true")
    return words


def data_words(config):
    data = fields_of(config["dataset"])
    model = fields_of(config["model"])
    words = [f"-sl {data.get('seq_length', model.get('seq_length', 4096))}"]
    kind = config["dataset"].kind if isinstance(config["dataset"], Noted) else ""
    packed = data.get("enable_offline_packing") or data.get("enable_in_batch_packing") or data.get("packing_buffer_size")
    if kind != "GPTDatasetConfig" and not packed and not data.get("pad_to_max_length"):
        words.append("dataset.pad_to_max_length=false")
    if kind == "MockVLMSFTDatasetConfig":  # the defaults of its class (data/builders/mock_vlm_sft.py)
        words.append(f"dataset.num_images={data.get('num_images', 1)}")
        words.append(word("dataset.image_size", data.get("image_size", [256, 256])))
    return words


def peft_words(peft):
    if not isinstance(peft, Noted):
        return []
    fields = fields_of(peft)
    words = ["peft.scheme=" + peft.kind.lower().removeprefix("vlm"), f"peft.dim={fields.get('dim', 32)}"]
    if fields.get("target_modules"):
        words.append(word("peft.target_modules", fields["target_modules"]))
    return words


def row_of(function):
    config = function().fields
    model = config["model"]
    fields = fields_of(model)
    original = fields.get("hf_model_id") or (model.args[0] if model.args and isinstance(model.args[0], str) else "")
    if not original and isinstance(config.get("tokenizer"), Noted):
        original = fields_of(config["tokenizer"]).get("tokenizer_model") or ""
    words = model_words(fields) + data_words(config) + training_words(config)
    words += precision_words(config.get("mixed_precision") or "bf16_mixed") + peft_words(config.get("peft"))
    sizes = size_words(fields) if model.kind == "HybridModelProvider" else []
    return original, " ".join(words), " ".join(sizes)


def main(source, commit):
    sys.dont_write_bytecode = True
    source = os.path.join(source, "src")
    sys.meta_path.insert(0, Finder(source))
    recipes = recipes_of(source)
    print(f"// Recipes of NVIDIA-NeMo/Megatron-Bridge at {commit}.")
    print("// Made by megatron_bridge_recipes.py: name, model (of an alias the recipe), settings; behind them, by models,")
    print("// the sizes that recipes say themselves.")
    sizes_of, rows = {}, {}
    for name, function in recipes:
        if LEFT_OUT.match(name) or function.__name__ != name:
            continue
        try:
            original, words, sizes = row_of(function)
        except (NotImplementedError, TypeError):  # what only says that there is no such recipe; a helper of recipes
            continue
        if sizes and (not original or sizes_of.setdefault(original, sizes) != sizes):
            words += " " + sizes
        rows[name] = (original, words)
    for name, function in recipes:
        if name in rows:
            print('{"%s", "%s", "%s"},' % (name, *rows[name]))
        elif function.__name__ in rows:
            print(f'{{"{name}", "{function.__name__}", ""}},')
    for original, sizes in sorted(sizes_of.items()):
        print(f'{{"{original}", "", "{sizes}"}},')


if __name__ == "__main__":
    main(*sys.argv[1:])
