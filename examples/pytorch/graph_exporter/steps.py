"""One fx node as a chain of ops."""

from __future__ import annotations


class Steps:
    """A chain of ops that together make one fx node's tensor."""

    def __init__(self, exporter, node, source):
        self.exporter, self.node, self.source = exporter, node, source
        self.steps = []

    def then(self, op, attributes, more_inputs=()):
        self.steps.append((op, attributes, list(more_inputs)))

    def finish(self):
        current = self.source
        if not self.steps:
            self.exporter.alias(self.node, current)
        for at, (op, attributes, more) in enumerate(self.steps):
            last = at + 1 == len(self.steps)
            current = self.exporter.add(self.node, op, [current, *more], attributes, last=last)
