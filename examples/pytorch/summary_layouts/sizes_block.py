"""The block of totals and sizes with which torchsummary and torchinfo end."""

from __future__ import annotations


def totals_lines(total, trainable):
    return [
        f"Total params: {total:,}",
        f"Trainable params: {trainable:,}",
        f"Non-trainable params: {total - trainable:,}",
    ]


def sizes_lines(inputs, outputs, parameters):
    return [
        f"Input size (MB): {inputs:.2f}",
        f"Forward/backward pass size (MB): {outputs:.2f}",
        f"Params size (MB): {parameters:.2f}",
        f"Estimated Total Size (MB): {inputs + outputs + parameters:.2f}",
    ]
