"""What print(model) shows, also with each module's parameters."""

from __future__ import annotations

from torch import nn

from .models import DataParallel, count_parameters
from .sizes_block import totals_lines


def module_tree_lines(model, options):
    model = DataParallel(model) if options.data_parallel else model
    return module_tree(model, with_sizes=False, fold=options.fold_repeats)


def module_tree_params_lines(model, options):
    model = DataParallel(model) if options.data_parallel else model
    lines = module_tree(model, with_sizes=True, fold=options.fold_repeats)
    return [*lines, "=" * 71, *totals_lines(*count_parameters(model)), "-" * 71]


def module_tree(module, with_sizes, fold):
    """The lines of print(module), drawn here because print() draws repeats by PyTorch's version."""
    size = f", {count_parameters(module)[0]:,} params" if with_sizes else ""
    if next(module.children(), None) is None:
        # Some leaves, such as torchvision's StochasticDepth, word their line themselves.
        lines = repr(module).split("\n")
    else:
        inner = module.extra_repr().split("\n") if module.extra_repr() else []
        for name, subtree in named_subtrees(module, with_sizes, fold):
            inner += [f"({name}): {subtree[0]}", *subtree[1:]]
        lines = [type(module).__name__ + "(", *("  " + line for line in inner), ")"]
    return [*lines[:-1], lines[-1] + size]


def named_subtrees(module, with_sizes, fold):
    subtrees = [
        (name, module_tree(child, with_sizes, fold)) for name, child in module.named_children()
    ]
    # From 2.0 on PyTorch prints equal neighbours in a ModuleList once, but not in a Sequential.
    return folded(subtrees) if fold and isinstance(module, nn.ModuleList) else subtrees


def folded(subtrees):
    runs = []
    for name, subtree in subtrees:
        if runs and runs[-1][2] == subtree:
            runs[-1][1] = name
        else:
            runs.append([name, name, subtree])
    for first, last, subtree in runs:
        if first == last:
            yield first, subtree
        else:
            count = int(last) - int(first) + 1
            yield f"{first}-{last}", [f"{count} x {subtree[0]}", *subtree[1:]]
