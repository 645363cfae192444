"""Operators on fake tensors that need none of FakeTensorMode's cache: views, and what writes into its own tensors. They are
half of what a step calls, and to look one up there takes longer than to run it on the meta device.

It is what FakeTensorMode.dispatch does with them in the end (in_kernel_invocation_manager, from_meta_and_device).
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, in_kernel_invocation_manager


def view_of(fakes: FakeTensorMode, func: Any, args: Any, inputs: list[torch.Tensor]) -> FakeTensor | None:
    """The view that func makes of its one tensor; None: it is not that plain."""
    if len(inputs) != 1 or type(inputs[0]) is not FakeTensor or args[0] is not inputs[0]:
        return None
    with in_kernel_invocation_manager(fakes):
        made = func(*args)
    return FakeTensor(fakes, made, inputs[0].fake_device) if type(made) is torch.Tensor else None


@functools.cache
def overwrites(func: Any) -> bool:
    """A foreach operator that writes into the tensors of its first argument and returns nothing."""
    return bool(func._schema.name.startswith("aten::_foreach_")) and not func._schema.returns


def overwrite(fakes: FakeTensorMode, func: Any, args: Any, kwargs: Any, inputs: list[torch.Tensor]) -> bool:
    """Runs it; False: it was not run, as not all of its tensors are fake ones of one device."""
    devices = {each.fake_device if type(each) is FakeTensor else None for each in inputs}
    if len(devices) != 1 or None in devices:
        return False
    with in_kernel_invocation_manager(fakes):
        func(*args, **kwargs)
    return True
