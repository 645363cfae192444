"""torch.compile in a recording: the program's own compiler runs, and what it generates is recorded.

Dynamo traces the program, AOTAutograd makes the joint graph, its partitioner chooses what is kept for backward, and Inductor
fuses, plans buffers and writes a Python wrapper. All of this is PyTorch's own. Only kernels are not compiled: a Triton kernel
is a call that writes into buffers that the wrapper has allocated. So a recording has the compiled program's buffers.

What needs a GPU is left out: benchmarks of Inductor (max_autotune, padding of products) choose as they do without it.

Source: torch/_inductor/codegen/wrapper.py (what a wrapper calls), scheduler.py, async_compile.py, compile_fx.py, and
torch/_dynamo/convert_frame.py of PyTorch 2.6.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from .places import users_line
from .pretended_cuda import Replacements
from .storages import tensors_in

if TYPE_CHECKING:
    from .cuda_graphs import Graphs
    from .modules import Modules

_TORCH = str(torch.version.__version__)  # A program may be told of another one as torch.__version__.
_OLDEST = (2, 6)  # The wrapper's functions have other names before.
_Warn = Callable[[str, str, str], None]


def _refusal() -> str:
    """Why this PyTorch does not compile here; empty: it does."""
    release = tuple(int(part) for part in _TORCH.split("+")[0].split(".")[:2])
    if release < _OLDEST:
        return f"PyTorch {_TORCH} is older than 2.6"
    try:
        importlib.import_module("torch._dynamo.eval_frame").check_if_dynamo_supported()
    except Exception as error:  # noqa: B902: whatever keeps Dynamo from running.
        return str(error)
    return ""


class _Kernel:
    """A Triton kernel of Inductor's: it writes into its arguments."""

    def __init__(self, name: str, note: Callable[[str, list[torch.Tensor]], None]) -> None:
        self._name, self._note = name, note

    def run(self, *arguments: Any, **_options: Any) -> None:
        self._note(self._name, tensors_in(arguments))


def _empty_strided(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="cuda")


def _reinterpreted(tensor: torch.Tensor, size: Sequence[int], stride: Sequence[int], offset: int = 0) -> torch.Tensor:
    return tensor.as_strided(tuple(size), tuple(stride), tensor.storage_offset() + offset)


class _NoGuard:
    def __init__(self, *_arguments: object) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_error: object) -> None:
        pass


class Compiled:
    """Stands in for torch.compile. note: takes the name and tensors of a kernel that runs. compiles: is called where the
    program compiles. mode: the recorder's class."""

    def __init__(
        self,
        modules: Modules,
        warn: _Warn,
        note: Callable[[str, list[torch.Tensor]], None],
        compiles: Callable[[], None],
        graphs: Graphs,
        mode: type,
    ) -> None:
        self._mode = mode
        self._modules, self._warn, self._note, self._compiles, self._graphs = modules, warn, note, compiles, graphs
        self._replaced: Replacements | None = None
        self._compile = torch.compile

    def install(self, replaced: Replacements) -> None:
        self._replaced = replaced
        replaced.set(torch, "compile", self._compiled)

    # ------------------------------------------------------------------------------------ what is asked

    def _compiled(self, model: Any = None, *, disable: bool = False, **options: Any) -> Any:
        if model is None:
            return lambda function: self._compiled(function, disable=disable, **options)
        if disable:
            return model
        refusal = _refusal()
        if refusal:
            self._warn("rule", f"torch.compile: the model is recorded uncompiled ({refusal})", users_line())
            return model
        try:
            self._prepare()
        except (AttributeError, ImportError) as error:
            reason = f"the compiler of PyTorch {torch.__version__} is not laid out as gpumem.record knows it: {error}"
            self._warn("rule", f"torch.compile: the model is recorded uncompiled ({reason})", users_line())
            return model
        self._compiles()
        if "max-autotune" in str(options.get("mode") or ""):
            self._warn("rule", "torch.compile: kernels that max-autotune would choose by measuring are the default ones", "")
        made = self._compile(model, **options)
        if isinstance(model, nn.Module):
            made.forward = self._quiet(made.forward, model)
            return made
        owner = getattr(model, "__self__", None)
        return self._quiet(made, owner if isinstance(owner, nn.Module) else None)

    def _uncompiled(self, error: Exception) -> None:
        cause = getattr(error, "inner_exception", None) or error.__cause__ or error
        reason = next((line for line in str(cause).splitlines() if line.strip()), type(cause).__name__)
        self._warn("rule", f"torch.compile: a graph is recorded uncompiled ({reason})", users_line())

    def _quiet(self, function: Callable[..., Any], module: nn.Module | None) -> Callable[..., Any]:
        """Runs without hooks on modules, at which Dynamo would end a graph."""
        modules = self._modules

        def run(*arguments: Any, **named: Any) -> Any:
            with modules.as_one(module):
                return function(*arguments, **named)

        return run

    # ------------------------------------------------------------------------------ PyTorch without a GPU

    def _prepare(self) -> None:
        if self._replaced is None:
            return
        replaced = self._replaced
        dynamo = importlib.import_module("torch._dynamo")
        inductor = importlib.import_module("torch._inductor.compile_fx")
        cache = importlib.import_module("torch._inductor.codecache").PyCodeCache
        properties = importlib.import_module("torch._inductor.runtime.hints").DeviceProperties
        # Its reset() empties pools of CUDA graphs, which only PyTorch for a GPU has. graphs keeps the recording's.
        replaced.set(torch._TorchCompileInductorWrapper, "reset", _keep_graphs)
        for forget in (dynamo.reset, cache.cache_clear, properties.create.cache_clear):  # What another run compiled.
            forget()
            replaced.callback(forget)
        replaced.set(importlib.import_module("torch._dynamo.convert_frame"), "is_in_torch_dispatch_mode", _no)
        _give_own_fakes(replaced, self._uncompiled)
        self._skip_own_frames(replaced)
        self._settle(replaced)
        _run_with_states(replaced, self._mode)
        self._generated(replaced)
        replaced.set(inductor, "cudagraphify", self._graphs.of_inductor())
        self._replaced = None

    def _skip_own_frames(self, replaced: Replacements) -> None:
        rules = importlib.import_module("torch._dynamo.trace_rules")
        package = __name__.rpartition(".")[0]
        rules.add(package)
        folder = rules.SKIP_DIRS[-1]

        def back() -> None:
            rules.SKIP_DIRS.remove(folder)
            rules._recompile_re()

        replaced.callback(back)

    def _settle(self, replaced: Replacements) -> None:
        """No caches of an earlier run, no measuring, no helpers in other processes."""
        inductor = importlib.import_module("torch._inductor.config")
        functorch = importlib.import_module("torch._functorch.config")
        changes = {"fx_graph_cache": False, "compile_threads": 1, "max_autotune": False, "max_autotune_gemm": False}
        replaced.enter_context(inductor.patch(changes))
        replaced.enter_context(functorch.patch({"enable_autograd_cache": False}))

    def _generated(self, replaced: Replacements) -> None:
        """What a wrapper calls, and what Inductor asks of Triton while it writes one."""
        note = self._note

        def triton(_self: object, name: str, *_source: Any, **_options: Any) -> _Kernel:
            return _Kernel(name, note)

        guards = torch._C._dynamo.guards
        replaced.set(importlib.import_module("torch._inductor.scheduler"), "has_triton", lambda: True)
        replaced.set(importlib.import_module("torch._inductor.async_compile").AsyncCompile, "triton", triton)
        replaced.set(importlib.import_module("torch.utils._triton"), "triton_hash_with_backend", lambda: "")
        replaced.set(importlib.import_module("torch._inductor.codecache").CacheBase, "get_system", staticmethod(_system))
        _answer_for_cuda(replaced)
        _load_without_triton(replaced)
        _fold_on_cpu(replaced)
        replaced.set(guards, "_empty_strided_cuda", _empty_strided)
        replaced.set(guards, "_reinterpret_tensor", _reinterpreted)
        replaced.set(torch.cuda, "_DeviceGuard", _NoGuard)
        replaced.set(torch._C, "_cuda_getCurrentRawStream", _raw_stream)


def _no(**_options: object) -> bool:
    return False


def _keep_graphs(_wrapper: object) -> None:
    pass


def _give_own_fakes(replaced: Replacements, failed: Callable[[Exception], None]) -> None:
    """A compiler gets the fake tensors that Dynamo traced with, which are of Dynamo's mode, and not those of the recording."""
    graph: Any = importlib.import_module("torch._dynamo.output_graph").OutputGraph
    call = graph.call_user_compiler

    def inputs(self: Any) -> list[Any]:
        context = self.tracing_context
        return [_of_mode(context, each.example) for each in self.graphargs]

    def compiled(self: Any, module: Any, *rest: Any) -> Any:
        try:
            with _disable_current_modes():
                return call(self, module, *rest)
        except Exception as error:  # noqa: B902: an answer is better than none.
            failed(error)
            return module.forward

    replaced.set(graph, "example_inputs", inputs)
    replaced.set(graph, "call_user_compiler", compiled)


def _of_mode(context: Any, value: Any) -> Any:
    """As process_inputs() of torch/_functorch/aot_autograd.py does with real tensors."""
    if not isinstance(value, FakeTensor):
        return value
    symbols = context.tensor_to_context.get(value)
    source = None if symbols is None else symbols.tensor_source
    with _disable_current_modes():
        return context.fake_mode.from_tensor(value, static_shapes=symbols is None, symbolic_context=symbols, source=source)


def _system() -> dict[str, str]:
    """The key of Inductor's own caches, which are off."""
    return {"hash": "recorded"}


def _raw_stream(_device: object = 0) -> int:
    return 0


def _compute_capability(_device: object = None) -> int:
    major, minor = torch.cuda.get_device_capability()
    return 10 * int(major) + int(minor)


def _answer_for_cuda(replaced: Replacements) -> None:
    """Dynamo's interface to a device took torch.cuda's functions when it was imported."""
    interface: Any = importlib.import_module("torch._dynamo.device_interface").CudaInterface
    names = "current_device set_device device_count is_available current_stream set_stream synchronize is_bf16_supported"
    for name in names.split():
        if name in vars(interface):
            replaced.set(interface, name, staticmethod(getattr(torch.cuda, name)))
    properties = torch.cuda.get_device_properties
    replaced.set(interface, "get_device_properties", staticmethod(properties))
    replaced.set(interface, "get_raw_stream", staticmethod(_raw_stream))
    replaced.set(interface, "get_compute_capability", staticmethod(_compute_capability))
    for name, function in (("current_device", torch.cuda.current_device), ("get_device_properties", properties)):
        replaced.set(interface.Worker, name, staticmethod(function))


def _load_without_triton(replaced: Replacements) -> None:
    """A generated module imports Triton, and uses it in kernels only."""
    cache: Any = importlib.import_module("torch._inductor.codecache").PyCodeCache
    load = cache.load_by_key_path

    def loaded(*arguments: Any, **options: Any) -> Any:
        names = ("triton", "triton.language")
        missing = [name for name in names if name not in sys.modules]
        sys.modules.update({name: types.ModuleType(name) for name in missing})
        if missing:
            sys.modules["triton"].language = sys.modules["triton.language"]  # type: ignore[attr-defined]
        try:
            return load(*arguments, **options)
        finally:
            for name in missing:
                del sys.modules[name]

    replaced.set(cache, "load_by_key_path", staticmethod(loaded))


class _OnCpu(TorchDispatchMode):  # type: ignore[misc]
    """Operators that would run on the GPU run on the CPU."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def moved(leaf: Any) -> Any:
            return torch.device("cpu") if isinstance(leaf, torch.device) and leaf.type == "cuda" else leaf

        args, kwargs = pytree.tree_map(moved, (args, kwargs or {}))
        return func(*args, **kwargs)


def _fold_on_cpu(replaced: Replacements) -> None:
    """Inductor works out constants of one value on the device, with a single element."""
    folder: Any = importlib.import_module("torch._inductor.fx_passes.joint_graph").UniformValueConstantFolder
    deduce = folder._deduce_value

    def deduced(self: Any, *arguments: Any) -> Any:
        with _OnCpu():
            return deduce(self, *arguments)

    replaced.set(folder, "_deduce_value", deduced)


def _run_with_states(replaced: Replacements, mode: type) -> None:
    """A checkpoint that is compiled keeps the state of random numbers, which is of the CPU, and runs its operator."""
    prims = importlib.import_module("torch._prims.rng_prims")

    def saving(recorder: Any, operator: Any, *arguments: Any, **options: Any) -> Any:
        with recorder:
            return torch.cuda.get_rng_state(), operator(*arguments, **options)

    def with_state(recorder: Any, _state: Any, operator: Any, *arguments: Any, **options: Any) -> Any:
        with recorder:
            return operator(*arguments, **options)

    for name, rule in (("run_and_save_rng_state", saving), ("run_with_rng_state", with_state)):
        operator = getattr(prims, name, None)
        if operator is not None:
            operator.python_key_table[mode] = rule
            replaced.callback(operator.python_key_table.pop, mode)
