"""The project's own exporters (examples/pytorch), which this tool writes models' graphs with."""

from __future__ import annotations

import pathlib
import sys

_SCRIPTS = pathlib.Path(__file__).resolve().parents[3] / "examples" / "pytorch"

if not (_SCRIPTS / "export_graph.py").exists():
    sys.exit(f"measure.py: {_SCRIPTS}/export_graph.py is missing: run measure.py from a checkout of the whole project")
sys.path.insert(0, str(_SCRIPTS))

from export_graph import ExportError, export_graph, scaled_dot_product_attention  # noqa: E402

__all__ = ["ExportError", "export_graph", "scaled_dot_product_attention"]
