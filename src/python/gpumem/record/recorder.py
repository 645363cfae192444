"""Records one run: every operator on the pretended GPU, every storage with birth and death.

The recorder is a dispatch mode above FakeTensorMode, so it sees the operators of aten and not what their shape functions
make. Small tensors of the CPU are real, so that schedules, index tables and data loaders work; large ones, and all on
"cuda", are fake.
"""

from __future__ import annotations

import gc
import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from .compiled import Compiled
from .conversions import Conversions
from .cuda_graphs import Graphs
from .errors import record_error
from .gradient_sums import GradientSums
from .invented import Invented, asks
from .kernels import follow_traces, install_kernels, refuse_flex_attention
from .known_values import KnownValues
from .legacy_types import replace_legacy, without_generator
from .loaders import follow_processes, load_in_process
from .modules import Modules, precision_of
from .older_torch import OlderTorch
from .operators import is_factory, is_view, largest_size, rules_of, small_extra
from .places import line_of, users_line
from .pickles import install_pickles
from .possible_values import follow_exchange
from .pretended_cuda import InferenceMode, pretended_gpu
from .repeats import Repeats
from .run import Begin, Call, Category, End, Mark, Marked, Parameter, Phase, Run, Warning, Workspace
from .settings import Settings
from .shape_rules import install_stand_ins, is_said
from .shortcuts import ShapeCache, overwrite, overwrites, view_of
from .sparse import called, install_sparse, is_sparse, makes_sparse, parts_of
from .steps import Steps, name_of
from .storages import Storages, form_of, local, tensors_in
from .world import follow_groups

_SMALL = 1 << 16  # Elements of a tensor of the CPU that is real.
_MOST_EVENTS = 20_000_000
_OPERATORS_A_COLLECTION = 500
_LONGEST_TURN = 1.0  # Seconds; an operator that waits for the other thread lets it pass.
_PLAIN = tuple(
    kind for kind in (FakeTensor, torch.Tensor, nn.Parameter, getattr(nn, "Buffer", None)) if kind is not None
)


_DEVICE_OF = torch.ops.prim.device.default
_IS_PINNED = torch.ops.aten.is_pinned.default
_one_at_a_time = threading.Lock()


def stays_real(func: Any, args: Any, kwargs: Any, inputs: list[torch.Tensor]) -> bool:
    """Tensors of the CPU that hold values go on holding them."""
    device = kwargs.get("device")
    if device is not None and torch.device(device).type != "cpu":
        return False
    if any(isinstance(each, FakeTensor) or each.device.type != "cpu" for each in inputs):
        return False
    return bool(inputs) or largest_size(args) <= _SMALL or not is_factory(func)


class Recorder(TorchDispatchMode):  # type: ignore[misc]
    """The dispatch mode. most_steps: see Steps."""

    def __init__(self, fakes: FakeTensorMode, capability: tuple[int, int], most_steps: int | None) -> None:
        super().__init__()
        self.run = Run(torch=torch.__version__.split("+")[0], capability=capability)
        self.storages = Storages(self.run.events)
        self.known = KnownValues()
        self.repeats = Repeats(
            self.storages, self.known, self.run.calls, lambda: self.invented.asked, lambda: self.steps.where
        )
        self.modules = Modules(lambda: self.steps.forward_begins(), self._module_runs, self.repeats.forward)
        self.conversions = Conversions()
        made = self.conversions.optimizers
        self.steps = Steps(self._mark, self._before_optimizer, self._after_optimizer, made, most_steps)
        self.sums = GradientSums()
        self.invented = Invented(self.warn, self.known)
        self.settings = Settings()
        self.older = OlderTorch()
        self.graphs = Graphs(self.settings.captured, self.storages, self.steps)
        self.compiled = Compiled(self.modules, self.warn, self._fused, self.settings.compiles, self.graphs, Recorder)
        self._fakes = fakes
        self.shapes = ShapeCache(fakes)
        self._main, self._turn = threading.get_ident(), threading.RLock()
        self._operators = 0
        self._collected = 0  # The step before which cycles were last looked for.
        self._autocast = ""
        self._gradients: dict[int, int] = {}  # By the parameter's id: the allocation of its last gradient.

    # ------------------------------------------------------------------------------- around the run

    def begin(self) -> None:
        self.modules.follow()
        self.steps.follow()
        self.steps.mark(Mark.CONSTRUCTION, 0)

    def end(self) -> None:
        self.modules.stop()
        self.steps.stop()
        if self.steps.without_optimizer and not self.steps.optimizers:
            self.warn("rule", "the program has no optimizer of torch.optim: a step is a forward and its backward", "")
        if self.older.said():
            self.warn("rule", self.older.said(), "")
        self._describe_model()
        self.run.settings = {**self.older.setting(), **self.settings.seen()}
        self.run.events = list(self.run.events)  # What dies from now on is not of the run.
        self.run.categories = dict(self.storages.categories)

    def say_steps(self, wanted: int) -> None:
        """The program has ended by itself."""
        made = self.steps.made
        if made < wanted:
            text = f"the program ended after {made} of {wanted} training steps"
            later = "; later ones begin with the optimizer's states" if made == 1 else ""
            self.warn("rule", text + later, "")

    def warn(self, kind: str, text: str, where: str) -> None:
        warning = Warning(kind, text, where)
        self.run.warnings[warning] = self.run.warnings.get(warning, 0) + 1

    def _module_runs(self, module: nn.Module, name: str) -> None:
        if not self._autocast and torch.is_autocast_enabled():
            self._autocast = str(torch.get_autocast_gpu_dtype()).removeprefix("torch.")
        if isinstance(module, nn.RNNBase):
            kind = type(module).__name__
            self.warn("rule", f"{name}: cuDNN's {kind} is recorded as the operators that it is made of", "")

    def _mark(self, mark: Mark, step: int) -> None:
        if mark == Mark.FORWARD and step > self._collected:
            self._collected = step
            gc.collect()  # Cycles of construction or of the step before.
        self.run.events.append(Marked(mark, step, len(self.run.calls)))

    def _before_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        self.storages.categorise(parameters, Category.PARAMETER)
        self.storages.categorise((each.grad for each in parameters), Category.GRADIENT)
        for each in parameters:
            self._gradients[id(each)] = self.storages.number_of(each.grad)

    def _after_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        self.storages.categorise(tensors_in(dict(optimizer.state)), Category.OPTIMIZER_STATE)

    def _describe_model(self) -> None:
        parameters = list(self.modules.parameters())
        for root in self.modules.roots:
            self.storages.categorise(root.buffers(), Category.BUFFER)
        self.storages.categorise((each for _, each in parameters), Category.PARAMETER)
        self.run.parameters = [
            Parameter(
                name,
                form_of(local(each)),
                each.requires_grad,
                self.storages.number_of(each),
                self._gradients.get(id(each), -1),
            )
            for name, each in parameters
        ]
        self.run.precision = precision_of(parameters, self._autocast)
        kinds = {name_of(each) for each in self.steps.optimizers}
        self.run.optimizer = kinds.pop() if len(kinds) == 1 else ""
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            self.run.world_size, self.run.rank = torch.distributed.get_world_size(), torch.distributed.get_rank()

    # ---------------------------------------------------------------------------------- an operator

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        taken = self._turn.acquire(timeout=_LONGEST_TURN)  # Backward has a thread for the GPU's nodes and one for the CPU's.
        try:
            return self._dispatched(func, types, args, kwargs or {})
        finally:
            if taken:
                self._turn.release()

    def _dispatched(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is _DEVICE_OF:  # Asked by C++, and often.
            return args[0].fake_device if isinstance(args[0], FakeTensor) else func(*args, **kwargs)
        if func is _IS_PINNED:  # By DistributedDataParallel, of what it asked to be pinned.
            return True
        if any(kind not in _PLAIN for kind in types):
            return NotImplemented  # A DTensor, for example: its parts come here.
        if torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not self._fakes:
            return func(*args, **kwargs)  # DTensor works out shapes in a mode of its own.
        inputs = tensors_in((args, kwargs))
        if "pin_memory" in kwargs:  # DistributedDataParallel asks for it, and there is no driver.
            kwargs = {name: value for name, value in kwargs.items() if name != "pin_memory"}
        if stays_real(func, args, kwargs, inputs):
            with _disable_current_modes():
                out = func(*args, **kwargs)
                self.invented.asked += asks(func, args)
                self.known.ran_on_cpu(func, args, kwargs, inputs, out)
            return out
        kwargs = without_generator(kwargs)
        if func.namespace in ("c10d", "_c10d_functional"):
            handled, result = self._collective(func, args, kwargs, inputs)
            if handled:
                return result
        worked_out = None if is_view(func) else self.known.run(func, args, kwargs, inputs)
        if inputs and (any(map(_is_result, inputs)) or not any(isinstance(each, FakeTensor) for each in inputs)):
            args, kwargs = pytree.tree_map(self._fake, (args, kwargs))
            inputs = tensors_in((args, kwargs))
        out = self._operator(func, args, kwargs, inputs)
        self.known.made(worked_out, out)
        self.invented.follow(func, args, kwargs, out)
        return out

    def _fake(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor) and value.device.type == "cpu":
            if _is_result(value):
                with _disable_current_modes():
                    value = value.detach()
            return self._fakes.fake_tensor_converter.from_real_tensor(self._fakes, value)
        return value

    def _operator(self, func: Any, args: Any, kwargs: Any, inputs: list[torch.Tensor]) -> Any:
        self.older.settle()
        self._collect_garbage()
        if self.steps.now in (Mark.FORWARD, Mark.CONSTRUCTION) and torch._C._current_graph_task_id() != -1:
            self.steps.backward_begins()
        if is_view(func) and not kwargs:
            view = view_of(self._fakes, func, args, inputs)
            if view is not None:
                return view
        if makes_sparse(func) or any(map(is_sparse, inputs)):
            return self._sparse(func, args, kwargs, inputs)
        known, value = self.invented.answer(func, args, kwargs, inputs)
        if known:
            self._made(func, args, inputs, value)
            return value
        args, indices = self.invented.without_masks(func, args)
        self._made(torch.ops.aten.nonzero.default, args, inputs, indices)
        summed = self.sums.in_place(func, args, kwargs, recomputes=self._recomputes())
        if summed is not None:
            self._note(torch.ops.aten.add_.Tensor, args, inputs, [summed])
            return summed
        if overwrites(func) and overwrite(self._fakes, func, args, kwargs, inputs):
            out = None
        else:
            out = self.shapes.out_of(func, args, kwargs, inputs, self.invented.called)
        if is_view(func):
            return out
        outputs = [each for each in tensors_in(out) if each.device.type == "cuda"]
        if outputs or any(each.device.type == "cuda" for each in inputs):
            self._written(func, args, inputs, out, outputs)
            self.older.called(func, inputs, out)
        return out

    def _fused(self, name: str, tensors: list[torch.Tensor]) -> None:
        """Notes a kernel that a compiler wrote: it allocates nothing."""
        if self.steps.now in (Mark.FORWARD, Mark.CONSTRUCTION) and torch._C._current_graph_task_id() != -1:
            self.steps.backward_begins()
        forms = tuple(form_of(each) for each in tensors)
        phase = self._phase()
        module = self.modules.of_backward() if phase == Phase.BACKWARD else self.modules.of_forward()
        self.run.calls.append(Call(f"inductor::{name}", module, phase, self._thread(), forms, (), ()))

    def _sparse(self, func: Any, args: Any, kwargs: Any, inputs: list[torch.Tensor]) -> Any:
        """An operator on sparse tensors: the parts of its result are watched."""
        out, meanwhile = called(func, args, kwargs)
        made = [each for each in (*parts_of(tensors_in(out)), *meanwhile) if each.device.type == "cuda"]
        if made and not is_view(func):
            forms = tuple(form_of(each) for each in parts_of(inputs))
            phase, name = self._phase(), func.name().split(".")[0].replace("::", "::sparse ")
            module = self.modules.of_backward() if phase == Phase.BACKWARD else self.modules.of_forward()
            self.run.calls.append(Call(name, module, phase, self._thread(), forms, tuple(map(form_of, made)), ()))
            for each in made:
                self.storages.watch(each, len(self.run.calls) - 1, self._category(phase, parts_of(inputs)))
        return out

    def _made(self, func: Any, args: Any, inputs: list[torch.Tensor], made: Any) -> None:
        """Notes tensors on the GPU that replace an operator's result."""
        on_gpu = [each for each in tensors_in(made) if each.device.type == "cuda"]
        if on_gpu:
            self._written(func, args, inputs, made, on_gpu)

    def _written(self, func: Any, args: Any, inputs: list[torch.Tensor], out: Any, outputs: list[torch.Tensor]) -> None:
        """Notes the call, and its events in the order in which a kernel has them."""
        call = self._note(func, args, inputs, outputs)
        events = self.run.events
        rules = rules_of(func, self.run.calls[call])
        category = self._category(self.run.calls[call].phase, inputs)
        if rules.copies:
            events.append(Begin(call))
        if rules.parts == (1, 2):  # A convolution's backward: each gradient with its workspace.
            for place, gradient in enumerate(out):
                if gradient is not None and gradient.numel():
                    self.storages.watch(gradient, call, category)
                    if place < 2:
                        events.append(Workspace(call, place + 1))
        else:
            for each in outputs:
                self.storages.watch(each, call, category)
            events.extend(Workspace(call, part) for part in rules.parts)
        if rules.copies:
            events.append(End(call))
        if len(events) > _MOST_EVENTS:
            raise record_error(
                f"{_MOST_EVENTS:,} events without an end",
                "record two training steps only (with gpumem.record.step, or around two steps of the loop)",
                users_line(),
            )

    def _note(self, func: Any, args: Any, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> int:
        """The number of the call, which is written down."""
        phase = self._phase()
        again = phase == Phase.RECOMPUTATION
        module = self.modules.of_backward() if phase == Phase.BACKWARD else self.modules.of_forward(again)
        name = func.name()
        if func._overloadname == "out":  # A compiled product has its buffer; it is the product all the same.
            given = {id(each) for each in outputs}
            name, inputs = name.removesuffix(".out"), [each for each in inputs if id(each) not in given]
        call = Call(
            name,
            module,
            phase,
            self._thread(),
            tuple(form_of(each) for each in inputs),
            tuple(form_of(each) for each in outputs),
            small_extra(func, args),
        )
        if func.namespace not in ("aten", "prims", "c10d", "_c10d_functional", "fsdp", "torchvision"):
            self.warn("rule", f"no rule is known for {func.name()}: what it takes inside is not counted", users_line())
        self.run.calls.append(call)
        return len(self.run.calls) - 1

    def _thread(self) -> int:
        return int(threading.get_ident() != self._main)

    def _recomputes(self) -> bool:
        return self.modules.inside or torch.is_grad_enabled()

    def _phase(self) -> Phase:
        if self.steps.now == Mark.OPTIMIZER:
            return Phase.OPTIMIZER
        if torch._C._current_graph_task_id() != -1:
            return Phase.RECOMPUTATION if self._recomputes() else Phase.BACKWARD
        marks = {Mark.CONSTRUCTION: Phase.CONSTRUCTION, Mark.FORWARD: Phase.FORWARD}
        return marks.get(self.steps.now, Phase.OTHER)

    def _category(self, phase: Phase, inputs: list[torch.Tensor]) -> Category:
        """What an allocation is for, as far as its phase tells; parameters, gradients and states are known later."""
        if phase in (Phase.FORWARD, Phase.RECOMPUTATION):
            return Category.ACTIVATION
        if phase == Phase.BACKWARD:
            return Category.ACTIVATION_GRADIENT
        on_gpu = [each for each in inputs if each.device.type == "cuda"]
        loads = all(self.storages.category_of(each) == Category.INPUT for each in on_gpu)
        may_load = phase == Phase.CONSTRUCTION or self.steps.now == Mark.BETWEEN
        return Category.INPUT if may_load and loads else Category.TEMPORARY

    def _collective(self, func: Any, args: Any, kwargs: Any, inputs: list[torch.Tensor]) -> tuple[bool, Any]:
        """Collectives work in place here: they return their arguments, and a Work from the same call on nothing."""
        if func.name() == "_c10d_functional::wait_tensor":
            return True, args[0]
        if func.namespace != "c10d":
            return False, None
        with _disable_current_modes():
            nothing = torch.empty(0, device="cpu")
            empty = pytree.tree_map(lambda each: nothing if isinstance(each, torch.Tensor) else each, (args, kwargs))
            result = func(*empty[0], **empty[1])
        follow_exchange(func, args, None)
        forms = tuple(form_of(each) for each in inputs if each.device.type == "cuda")
        self.run.calls.append(Call(func.name(), self.modules.of_now(), Phase.COMMUNICATION, 0, forms, (), ()))
        return True, (args[0], result[-1]) if isinstance(result, (tuple, list)) else result

    def _collect_garbage(self) -> None:
        """Cycles die at the same operators in every run; Python's own times differ from run to run."""
        self._operators += 1
        if self._operators % _OPERATORS_A_COLLECTION == 0:
            gc.collect(1)


def _is_result(tensor: torch.Tensor) -> bool:
    """A real tensor of autograd's, of which FakeTensorMode makes no fake one."""
    return not isinstance(tensor, FakeTensor) and tensor.requires_grad and not tensor.is_leaf


@contextmanager
def _own_garbage_times() -> Iterator[None]:
    """What was there before is not looked at again: PyTorch by itself has some 300,000 objects."""
    enabled = gc.isenabled()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if enabled:
            gc.enable()


@contextmanager
def recording(capability: tuple[int, int] = (8, 0), most_steps: int | None = None) -> Iterator[Recorder]:
    """What runs inside is recorded; afterwards `.run` of what is yielded holds it."""
    if not _one_at_a_time.acquire(blocking=False):
        raise record_error("a recording runs already in this process", "record one after the other", users_line())
    try:
        with _recording(capability, most_steps) as recorder:
            yield recorder
    finally:
        _one_at_a_time.release()


def import_what_each_run_needs() -> None:
    """FakeTensorMode imports most of PyTorch's compiler, which takes as long as a step of a small model."""
    with suppress(ImportError):  # Not there before PyTorch 2.1.
        importlib.import_module("torch._dynamo.config")


@contextmanager
def _recording(capability: tuple[int, int], most_steps: int | None) -> Iterator[Recorder]:
    fakes = FakeTensorMode(allow_non_fake_inputs=True)
    with pretended_gpu(capability) as replaced, _own_garbage_times():
        install_kernels(replaced)
        refuse_flex_attention(Recorder)
        recorder = Recorder(fakes, capability, most_steps)
        follow_traces(replaced, recorder.warn)
        recorder.conversions.install(replaced)
        recorder.invented.install(replaced)
        load_in_process(replaced)
        follow_processes(replaced, recorder.warn)
        replace_legacy(replaced)
        follow_groups(replaced)
        install_pickles(replaced, recorder.known)
        install_stand_ins(replaced)
        install_sparse(replaced, recorder.known.of)
        recorder.settings.install(replaced)
        recorder.older.install(replaced)
        recorder.graphs.install(replaced)
        recorder.compiled.install(replaced)
        replaced.set(torch._C, "_InferenceMode", InferenceMode)
        resize = torch.UntypedStorage.resize_

        def resize_(storage: Any, size: int) -> Any:
            resize(storage, size)
            recorder.storages.resized(storage)
            return storage

        replaced.set(torch.UntypedStorage, "resize_", resize_)
        with fakes:
            recorder.sums.learn_counts(replaced)
            with recorder:
                try:
                    recorder.begin()
                    yield recorder
                except RuntimeError as error:
                    explained = _explained(error)
                    if explained is error:
                        say_invented(error, recorder.run)
                        raise
                    raise explained from error
                except Exception as error:
                    say_invented(error, recorder.run)
                    raise
                finally:
                    recorder.end()


def invented_lines(run: Run) -> str:
    """Where values were invented, and what to say about them; empty where none were."""
    lines = dict.fromkeys(each.where for each in run.warnings if each.kind in ("value", "size") and each.where)
    if not lines:
        return ""
    places = ", ".join(list(lines)[:12]) + (f" and {len(lines) - 12} more" if len(lines) > 12 else "")
    return f"values were invented at: {places}; say --assume LINE=VALUE (or gpumem.record.assume) if another one is right"


def say_invented(error: BaseException, run: Run) -> None:
    """A program that went astray may have done so for a value that it would not have had."""
    text = invented_lines(run)
    add_note = getattr(error, "add_note", None)
    if text and add_note is not None and text not in getattr(error, "__notes__", ()):
        add_note(f"gpumem: {text}")


def _explained(error: RuntimeError) -> Exception:
    """An error that comes of there being no values, with the user's line and the way round it; others as they are."""
    if not any(each in str(error) for each in ("data pointer", "data_ptr", "data is not allocated")):
        return error
    return record_error(
        "a function outside of PyTorch's dispatcher reads a tensor's memory, which a recording does not have",
        "make it an operator with a fake implementation (torch.library.custom_op and register_fake), or record with "
        "PyTorch's own operators in its place",
        line_of(error),
    )
