"""What the rules that write ops out see of the tracer that asks them.

Invariant: `trace.Tracer` is one, which the type checker sees where it hands itself over.
"""

from __future__ import annotations

from typing import Protocol

import onnx

from remat_cli.gradient.tape import Tape
from remat_cli.gradient.tensor import Tensor
from remat_cli.onnx_graph.sequences import SequenceWriter


class TracerLike(Protocol):
    """`known`: each name of the model with its value on the tape. `lost`: names of unknown values. `statistics`: the
    updated value of each running statistic; `sample_variance`: whether variances are of samples."""

    tape: Tape
    known: dict[str, Tensor]
    lost: set[str]
    freeze_bn: bool
    sample_variance: bool
    statistics: dict[str, Tensor]
    sequences: SequenceWriter

    def trace(self, node: onnx.NodeProto, opset: int) -> None: ...

    def alias(self, name: str) -> str: ...
