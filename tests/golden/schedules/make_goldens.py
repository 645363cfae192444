"""Writes golden.txt next to this file: the orders of PyTorch's own pipeline schedules.

    python3 tests/golden/schedules/make_goldens.py

It needs PyTorch 2.6, and neither a GPU nor processes. One line is one rank: the schedule, ranks, stages of a rank,
micro-batches, the rank, and its order: F, B, I or W (forward, backward, of inputs, of weights), the number of the stage
among the rank's own, a dot and the micro-batch.
"""

from __future__ import annotations

import pathlib
from typing import Any

from torch.distributed.pipelining import schedules
from torch.distributed.pipelining.stage import _PipelineStageBase

HERE = pathlib.Path(__file__).resolve().parent
NAMES = {
    "interleaved-1f1b": schedules.ScheduleInterleaved1F1B,
    "looped-bfs": schedules.ScheduleLoopedBFS,
    "interleaved-zero-bubble": schedules.ScheduleInterleavedZeroBubble,
    "zbv-zero-bubble": schedules.ScheduleZBVZeroBubble,
}
# Ranks, stages of a rank, micro-batches.
SIZES = ((2, 2, 4), (4, 2, 8), (4, 3, 12), (3, 2, 4), (4, 2, 10), (8, 2, 16))


class Stage(_PipelineStageBase):
    """A stage without a model, in a group without processes."""

    def __init__(self, index: int, rank: int, ranks: int, stages: int) -> None:
        self.stage_index = index
        self.group_rank = rank
        self.group_size = ranks
        self.num_stages = stages
        self.has_backward = True
        self.stage_index_to_group_rank = {}

    def _create_grad_recv_info(self, act_send_info: Any) -> Any:
        raise NotImplementedError

    def _prepare_forward_infra(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def order_of(name: str, ranks: int, each: int, micro_batches: int, rank: int) -> str:
    stages = ranks * each
    mirrored = name == "zbv-zero-bubble"
    own = [rank, stages - 1 - rank] if mirrored else list(range(rank, stages, ranks))
    parts = [Stage(index, rank, ranks, stages) for index in own]
    schedule = NAMES[name](parts, micro_batches, loss_fn=lambda output, target: output)
    actions = [action for action in schedule.pipeline_order[rank] if action is not None]
    return " ".join(
        f"{action.computation_type}{own.index(action.stage_index)}.{action.microbatch_index}" for action in actions)


def main() -> None:
    lines = []
    for name in NAMES:
        for ranks, each, micro_batches in SIZES:
            if name == "zbv-zero-bubble" and each != 2:
                continue
            if name != "zbv-zero-bubble" and name != "looped-bfs":
                rounds = max(1, micro_batches // ranks)
                if micro_batches % rounds != 0:
                    continue
            for rank in range(ranks):
                order = order_of(name, ranks, each, micro_batches, rank)
                lines.append(f"{name} {ranks} {each} {micro_batches} {rank} {order}")
    (HERE / "golden.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
