"""What every part raises."""

from __future__ import annotations


class ExportError(Exception):
    """What was asked for cannot be exported; the text says why."""
