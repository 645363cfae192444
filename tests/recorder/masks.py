"""The program of the golden `masks`, whose warnings name lines: in a file of its own, so that the lines stay."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Step = Callable[[], None]


def masks(batch: int) -> Step:
    """What has no values in a recording: .item(), an index by a mask, nonzero()."""
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 8)).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        inputs = torch.empty(batch, 32, device="cuda")
        out = model(inputs)
        loss = out[out > 0].sum() + (out * 0.5).nonzero().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()

    return step
