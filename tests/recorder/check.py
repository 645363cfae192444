"""Holds recordings to PyTorch itself. It needs PyTorch 2.1 or later, which continuous integration has not; run it by hand:

    python3 tests/recorder/check.py [PART...]

Parts: `peaks` (live peak against PyTorch's MemTracker), `ranks` (of 8 pretended ranks, against FSDPMemTracker), `scaled`
(from two sizes, against a recording at a third), `torchvision` (both of these, for its nets), `time`.
The last line says how many checks failed; the exit code is 1 if any did.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import os
import pathlib
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / "src" / "python")]
sys.dont_write_bytecode = True
os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"  # PyTorch's trackers round to 512 bytes without it.

import torch  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes  # noqa: E402
from torch.utils._pytree import tree_map  # noqa: E402

import gpumem  # noqa: E402
import programs  # noqa: E402
from gpumem.record.conversions import Conversions  # noqa: E402
from gpumem.record.expressions import value_of  # noqa: E402
from gpumem.record.gradient_sums import GradientSums  # noqa: E402
from gpumem.record.kernels import install_kernels  # noqa: E402
from gpumem.record.pretended_cuda import pretended_gpu  # noqa: E402
from gpumem.record.recorder import recording, stays_real  # noqa: E402
from gpumem.record.run import Allocate, Free, Run  # noqa: E402
from gpumem.record.storages import tensors_in  # noqa: E402
from gpumem.record.writer import in_order  # noqa: E402

MIB = 1 << 20
BF16, FP16 = torch.bfloat16, torch.float16
Program = Callable[..., Callable[[], None]]


def llama(**options: Any) -> Program:
    return functools.partial(programs.llama, **options)


PROGRAMS: dict[str, tuple[Program, tuple[int, ...]]] = {
    "mlp, dropout": (programs.mlp, (64,)),
    "resnet18": (programs.resnet18, (8,)),
    "resnet18, autocast fp16": (programs.resnet18_autocast, (8,)),
    "resnet18, channels last, autocast": (programs.resnet18_channels_last, (8,)),
    "resnet50": (programs.resnet50, (8,)),
    "gpt": (programs.gpt, (4, 256)),
    "gpt, bf16": (programs.gpt_bf16, (4, 256)),
    "llama fp32, foreach": (llama(foreach=True), (2, 2048)),
    "llama fp32, fused": (llama(fused=True), (2, 2048)),
    "llama bf16": (llama(dtype=BF16), (2, 2048)),
    "llama bf16, checkpointing": (llama(dtype=BF16, checkpointing=True), (2, 2048)),
    "llama, autocast bf16": (llama(autocast=BF16), (2, 2048)),
    "llama bf16, LoRA": (llama(dtype=BF16, lora=True), (2, 2048)),
    "llama bf16, LoRA, checkpointing": (llama(dtype=BF16, lora=True, checkpointing=True), (2, 2048)),
}
#: With the batch.
TORCHVISION = (
    "alexnet vgg11_bn resnet18/adamw resnet50/autocast squeezenet1_1 densenet121 inception_v3 googlenet "
    "shufflenet_v2_x0_5 mobilenet_v2 mobilenet_v2/autocast mobilenet_v3_small resnext50_32x4d wide_resnet50_2 mnasnet0_5 "
    "efficientnet_b0 efficientnet_b0/adamw efficientnet_v2_s regnet_y_400mf regnet_x_400mf vit_b_16 vit_b_16/autocast "
    "vit_b_32/adamw convnext_tiny convnext_tiny/autocast swin_t swin_t/adamw swin_v2_t maxvit_t fcn_resnet50 "
    "deeplabv3_resnet50 lraspp_mobilenet_v3_large r3d_18 mc3_18 r2plus1d_18 s3d mvit_v2_s swin3d_t"
).split()
failures: list[str] = []


def row(ok: bool, name: str, text: str) -> None:
    print(f"{'ok  ' if ok else 'FAIL'} {name:36} {text}", flush=True)
    if not ok:
        failures.append(name)


def recorded(program: Program, sizes: tuple[int, ...], sums: bool = True) -> Run:
    """sums: gradients are added in place, as autograd does and no tracker sees."""
    with recording() as recorder:
        if not sums:
            recorder.sums.in_place = lambda *_arguments, **_options: None
        step = program(*sizes)
        for _ in range(2):
            recorder.steps.next_step()
            step()
    return recorder.run


def bytes_of(event: Allocate) -> int:
    size = event.item
    for each in event.shape:
        size *= each
    return size


def live_peak(run: Run) -> int:
    """Of what is alive at a time, in the tensors' own bytes."""
    live: dict[int, int] = {}
    now = peak = 0
    for event in run.events:
        if isinstance(event, Allocate):
            live[event.number] = bytes_of(event)
            now += live[event.number]
        elif isinstance(event, Free):
            now -= live.pop(event.number)
        peak = max(peak, now)
    return peak


class NoHook:
    def remove(self) -> None:
        pass


def of_what_learns(register: Callable[..., Any]) -> Callable[..., Any]:
    """MemTracker asks for hooks of frozen parameters too, which have none."""
    return lambda tensor, hook: register(tensor, hook) if tensor.requires_grad else NoHook()


class Values(TorchDispatchMode):
    """Small tensors of the CPU are real, as for the recorder; a gradient scaler is told that there was no overflow."""

    def __init__(self, fakes: FakeTensorMode) -> None:
        super().__init__()
        self.fakes = fakes

    def faked(self, value: Any) -> Any:
        is_real = isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor)
        return self.fakes.fake_tensor_converter.from_real_tensor(self.fakes, value) if is_real else value

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        inputs = tensors_in((args, kwargs))
        if stays_real(func, args, kwargs, inputs):
            with _disable_current_modes():
                return func(*args, **kwargs)
        if not any(isinstance(each, FakeTensor) for each in inputs):
            args = tree_map(self.faked, args)
        return 0.0 if func is torch.ops.aten._local_scalar_dense.default else func(*args, **kwargs)


def tracked_peak(program: Program, sizes: tuple[int, ...], sharded: bool = False) -> int:
    """The same by PyTorch's trackers, which know nothing of gpumem's recorder. sharded: with FSDP2, whose tracker wants
    the model when it exists; what is made before is found in its parameters."""
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed._tools.mem_tracker import MemTracker

    with pretended_gpu((8, 0)) as replaced:
        install_kernels(replaced)
        Conversions().install(replaced)
        for name in ("register_hook", "register_post_accumulate_grad_hook"):
            replaced.set(torch.Tensor, name, of_what_learns(getattr(torch.Tensor, name)))
        # The tracker's hooks on a module's inputs keep nodes of autograd alive, and what these hold, where a frozen model
        # is recomputed; they only tell the forward from the backward, which the total does without.
        modules = importlib.import_module("torch.distributed._tools.mod_tracker")
        replaced.set(modules, "register_multi_grad_hook", lambda *_arguments, **_options: NoHook())
        if sharded:  # A mesh has values, which fake tensors have not.
            mesh = torch.distributed.device_mesh.init_device_mesh("cuda", (8,))
            replaced.set(torch.distributed.device_mesh, "init_device_mesh", lambda *_: mesh)
        with FakeTensorMode(allow_non_fake_inputs=True) as fakes, contextlib.ExitStack() as stack:
            GradientSums().learn_counts(replaced)  # Gives autograd what it asks for.
            stack.enter_context(Values(fakes))
            if sharded:
                step = program(*sizes)
                parts = inspect.getclosurevars(step).nonlocals
                tracker = stack.enter_context(FSDPMemTracker(parts["model"], parts["optimizer"]))
            else:
                tracker = stack.enter_context(MemTracker())
                step = program(*sizes)
            for _ in range(2):
                step()
                tracker.reset_mod_stats()
        of_devices = tracker.get_tracker_snapshot("peak")
        return max(parts["Total"] for device, parts in of_devices.items() if device.type == "cuda")


def of_torchvision() -> dict[str, tuple[Program, tuple[int, ...]]]:
    return {name: (functools.partial(programs.torchvision_model, name=name), (4,)) for name in TORCHVISION}


def check_peaks(chosen: dict[str, tuple[Program, tuple[int, ...]]] = PROGRAMS) -> None:
    for name, (program, sizes) in chosen.items():
        start = time.process_time()
        in_place = live_peak(recorded(program, sizes))
        seconds = time.process_time() - start
        compare(name, live_peak(recorded(program, sizes, sums=False)), in_place, tracked_peak(program, sizes), seconds)


def compare(name: str, ours: int, in_place: int, theirs: int, seconds: float) -> None:
    text = f"{ours / MIB:10.2f} MiB, tracker {theirs / MIB:10.2f} MiB: {ours / theirs - 1:+.3%} ({seconds:.1f} s)"
    if abs(in_place / ours - 1) > 0.001:
        text += f"; sums in place: {in_place / MIB:.2f} MiB"
    row(abs(ours / theirs - 1) <= 0.001, name, text)


def check_ranks() -> None:
    """Rank 0 of 8, against the tracker that PyTorch has for FSDP2; DDP against one GPU and its buckets."""
    for name, program in {
        "fsdp2 x8": programs.fsdp,
        "fsdp2 x8, checkpointing": functools.partial(programs.fsdp, checkpointing=True),
        "fsdp2 x8, no resharding": functools.partial(programs.fsdp, reshard=False),
    }.items():
        with gpumem.record.pretend_world(8):
            start = time.process_time()
            in_place = live_peak(recorded(program, (2, 2048)))
            seconds = time.process_time() - start
            ours = live_peak(recorded(program, (2, 2048), sums=False))
            compare(name, ours, in_place, tracked_peak(program, (2, 2048), sharded=True), seconds)
    alone = live_peak(recorded(llama(foreach=True), (2, 2048)))
    with gpumem.record.pretend_world(8):
        run = recorded(programs.ddp, (2, 2048))
    parameters = sum(4 * functools.reduce(int.__mul__, each.form.shape) for each in run.parameters)
    extra = live_peak(run) - alone - parameters
    row(abs(extra) < MIB, "ddp x8", f"{live_peak(run) / MIB:.2f} MiB: one GPU, buckets and {extra} bytes")
    with gpumem.record.pretend_world(8):
        run = recorded(programs.tensor_parallel, (2, 2048))
    split = sum(each.form.shape[0] * (each.form.shape + (1,))[1] for each in run.parameters)
    row(run.world_size == 8, "tensor parallel x8", f"{live_peak(run) / MIB:.2f} MiB; {2 * split / MIB:.0f} MiB of parameters")


def allocations(text: str, point: tuple[int, ...]) -> Iterator[int]:
    """Bytes of every allocation and -1 of every release, at these sizes."""
    data = json.loads(text)
    dims = [value_of(tuple(each), point) for each in data["dims"]]
    sizes = []
    for item, axes in data["sizes"]:
        size = item
        for axis in axes:
            size *= dims[axis]
        sizes.append(size)
    events, place = data["events"], 0
    lengths = {0: 5, 1: 2, 2: 2, 3: 3, 4: 2, 5: 3}
    while place < len(events):
        if events[place] == 0:
            yield sizes[events[place + 1]]
        elif events[place] == 1:
            yield -events[place + 1]
        place += lengths[events[place]]


def check_scaled(chosen: dict[str, tuple[Program, tuple[int, ...]]] = PROGRAMS) -> None:
    """Recorded once more, far away: what the expressions give there must be the same to the byte."""
    for name, (program, sizes) in chosen.items():
        start = time.process_time()
        text = gpumem.record.step(program, *sizes)
        seconds = time.process_time() - start
        far = (5 * sizes[0] + 2, *(2 * each for each in sizes[1:]))
        given = list(allocations(text, far))
        run = recorded(program, far)
        seen, made = [], 0
        for event in in_order(run.events):
            if isinstance(event, Allocate):
                made += 1
                seen.append(bytes_of(event))
            elif isinstance(event, Free):
                seen.append(-(made - event.number))
        packed = len(text) / 1024
        row(given == seen, name, f"at {far}: {len(seen)} allocations and releases; {packed:.0f} KiB, {seconds:.1f} s")


def check_time() -> None:
    start = time.process_time()
    gpumem.record.step(programs.resnet50, 8)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    row(True, "resnet50", f"{time.process_time() - start:.1f} s for two batch sizes and a check; {memory} MiB in all")


def check_torchvision() -> None:
    check_peaks(of_torchvision())
    check_scaled(of_torchvision())


PARTS = {
    "time": check_time,
    "peaks": check_peaks,
    "ranks": check_ranks,
    "scaled": check_scaled,
    "torchvision": check_torchvision,
}


def main() -> int:
    for part in sys.argv[1:] or PARTS:
        print(f"== {part} (PyTorch {torch.__version__})")
        PARTS[part]()
    print(f"{len(failures)} failed" + "".join(f"\n  {name}" for name in failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
