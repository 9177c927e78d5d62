"""What a rewritten model is predicted to need: the figures that a plan promises and `verify` measures.

Invariant: each figure is of one model in one kind of session; None where it was not worked out.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    """The predicted peak in each session type; None where it was not worked out (no ONNX model, say).

    `arena`: a budget under which the strict session runs even if its arena is capped there, a hard cap: more than the
    peak, since free memory in pieces is not as good as in one. `time`: the plan's cost, and that of the small kernels
    that the rewritten model has besides.
    """

    strict: int | None
    default: int | None = None
    arena: int | None = None
    time: int | None = None
