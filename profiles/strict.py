"""The strict session, spelled once: for what is timed, for what is verified, for the user's program and for the README.

Invariant: nodes run one after another in the file's order, each with a kernel of its own; every value is freed right
after its last reader, and no weight is held twice. So what is timed alone is what runs in the whole graph.
"""

from __future__ import annotations

import inspect
from textwrap import dedent
from typing import Any


def strict_options() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_mem_reuse = options.enable_mem_pattern = False
    options.add_session_config_entry("session.disable_prepacking", "1")  # else constant weights are held twice
    options.add_session_config_entry("session.disable_quant_qdq", "1")  # else each reader has its own DequantizeLinear
    return options


def in_python() -> str:
    """The lines of `strict_options`, for a program of the user's own."""
    body = inspect.getsource(strict_options).partition("import onnxruntime\n\n")[2]
    return dedent(body.rpartition("    return")[0]).rstrip()
