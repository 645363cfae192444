"""torch.einsum: what torch.einsum makes of it, permuted tensors and one product of matrices."""

from __future__ import annotations

from .calls import handles, refuse


@handles("equation left right", "einsum")
def einsum(exporter, node, arguments, _):
    operands = [arguments.named.get("left"), arguments.named.get("right"), *arguments.rest]
    if isinstance(operands[0], (list, tuple)):
        operands = [*operands[0], *operands[1:]]
    operands = [operand for operand in operands if operand is not None]
    left, _, result = arguments["equation"].replace(" ", "").partition("->")
    letters = left.split(",")
    plain = all(len(set(each)) == len(each) for each in letters) and "." not in left
    if len(operands) != 2 or len(letters) != 2 or not result or not plain:
        refuse(node, "is an einsum of other than two tensors, each axis named once")
    Product(exporter, node, operands, letters, result).add()


class Product:
    """One product: of each tensor the axes of the batch, those that stay and those that are summed over."""

    def __init__(self, exporter, node, operands, letters, result):
        self.exporter, self.node, self.operands = exporter, node, operands
        self.letters, self.result = letters, result
        one, other = letters
        self.batch = [axis for axis in one if axis in other and axis in result]
        self.summed = [axis for axis in one if axis in other and axis not in result]
        self.rows = [axis for axis in one if axis not in other]
        self.columns = [axis for axis in other if axis not in one]
        alone = set(self.rows + self.columns) - set(result)
        if alone or not self.summed:
            refuse(node, "is an einsum that sums one tensor alone, or none")
        self.dims = {}
        for axes, operand in zip(letters, operands):
            self.dims.update(zip(axes, exporter.dims(operand)))

    def add(self):
        left = self.matrices(0, [self.batch, self.rows, self.summed])
        right = self.matrices(1, [self.batch, self.summed, self.columns])
        groups = [group for group in (self.batch, self.rows, self.columns) if group]
        order = [axis for group in groups for axis in group]
        steps = [("matmul", {}, [right])]
        if not self.rows:
            steps.append(("squeeze", {"dim": -2}, []))
        if not self.columns:
            steps.append(("squeeze", {"dim": -1}, []))
        for at in range(len(groups) - 1, -1, -1):
            if len(groups[at]) > 1:
                steps.append(("unflatten", {"dim": at, "sizes": self.sizes(groups[at])}, []))
        if order != list(self.result):
            steps.append(("permute", {"dims": [order.index(axis) for axis in self.result]}, []))
        self.chain(left, steps, last=True)

    def matrices(self, which, groups):
        """A tensor as matrices: its axes in groups, each one axis; a group of none is one of size 1."""
        order = [axis for group in groups for axis in group]
        steps = []
        if order != list(self.letters[which]):
            dims = [self.letters[which].index(axis) for axis in order]
            steps.append(("permute", {"dims": dims}, []))
        end = len(order)
        for group in reversed(groups):
            if len(group) > 1:
                attributes = {"start_dim": end - len(group), "end_dim": end - 1}
                steps.append(("flatten", attributes, []))
            end -= len(group)
        if not groups[1] or not groups[2]:
            steps.append(("unsqueeze", {"dim": -1 if not groups[2] else -2}, []))
        return self.chain(self.operands[which], steps, last=False)

    def sizes(self, group):
        if sum(not self.dims[axis].fixed for axis in group) > 1:
            refuse(self.node, "is an einsum with two open sizes side by side")
        return [self.dims[axis].size if self.dims[axis].fixed else -1 for axis in group]

    def chain(self, current, steps, last):
        for at, (op, attributes, more) in enumerate(steps):
            ends = last and at + 1 == len(steps)
            current = self.exporter.add(self.node, op, [current, *more], attributes, last=ends)
        return current
