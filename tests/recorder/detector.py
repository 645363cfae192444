"""The program of the golden `detector`, whose warnings name lines: in a file of its own, so that the lines stay.

It goes the ways of torchvision's and mmdetection's two-stage detectors: proposals of several levels, suppressed level by level,
labelled, sampled and pooled from the level that their size asks for. Two ranks synchronise its norms.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torchvision
from torch import Tensor, nn

Step = Callable[[], None]
LEVELS, BEST, SAMPLED, CLASSES = 3, 200, 64, 5


def proposals(scores: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Boxes of all levels, and the numbers of their levels."""
    picked = [torch.topk(each.flatten(), BEST).indices for each in scores]
    levels = torch.cat([torch.full((BEST,), level, device="cuda") for level in range(LEVELS)])
    boxes = torch.cat([each.unsqueeze(1).float().expand(-1, 4) for each in picked])
    kept = []
    for level in torch.unique(levels):
        of_level = torch.where(levels == level)[0]
        kept.append(of_level[torchvision.ops.nms(boxes[of_level], boxes[of_level, 0], 0.7)])
    return boxes[torch.cat(kept)], levels


def sampled(overlaps: Tensor) -> Tensor:
    """Which boxes are trained on: a quarter is foreground."""
    foreground, background = torch.where(overlaps >= 0.5)[0], torch.where(overlaps < 0.5)[0]
    marks = torch.zeros_like(overlaps, dtype=torch.uint8)
    marks[foreground[: SAMPLED // 4]] = 1
    marks[background[: SAMPLED - SAMPLED // 4]] = 1
    return torch.where(marks)[0]


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU())
        self.scores = nn.Conv2d(16, 3, 1)
        self.head = nn.Linear(16 * 49, CLASSES)

    def forward(self, images: Tensor, truths: Tensor) -> Tensor:
        features = [self.body(images)]
        for _ in range(1, LEVELS):
            features.append(torch.max_pool2d(features[-1], 2))
        boxes, _ = proposals([self.scores(each) for each in features])
        overlaps = torchvision.ops.box_iou(boxes, truths).amax(1)
        rois = boxes[sampled(overlaps)]
        numbered = torch.cat([rois.new_full((len(rois), 1), 0), rois], dim=1)
        assert numbered[:, 0].long().unique().numel() <= len(images)
        sizes = (rois[:, 2] - rois[:, 0]).log2().long()
        loss = self.scores(features[0]).sum() * 0
        for level in range(LEVELS):
            of_level = torch.nonzero(sizes == level).squeeze(1)
            pooled = torchvision.ops.roi_align(features[level], numbered[of_level], 7)
            loss = loss + self.head(pooled.flatten(1)).sum()
        assert not torch.isnan(loss).any() and torch.all(overlaps >= 0)
        return loss


def detector(batch: int) -> Step:
    torch.backends.cudnn.benchmark = True
    model: nn.Module = nn.SyncBatchNorm.convert_sync_batchnorm(Detector()).cuda()
    model = nn.parallel.DistributedDataParallel(model, device_ids=[0], find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        loss = model(torch.empty(batch, 3, 128, 128, device="cuda"), torch.empty(6, 4, device="cuda"))
        loss.backward()
        optimizer.step()
        print(f"{loss:.2f}")

    return step
