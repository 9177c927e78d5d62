"""What a rewritten model is predicted to need: the figures that a plan promises and `verify` measures.

Invariant: each figure is of one model in one kind of session; None where it was not worked out.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    """Bytes, inputs and weights among them; and nanoseconds.

    `strict`, `default`: the live bytes in either session, the latter only where the model is made for it. `time`: the
    plan's cost, and that of the small kernels that the rewritten model has besides. `later`: what runs after the first
    hold in the default session, of a model that was tried there; `live` is then as measured, too. `later_foretold`: the
    same as it is reckoned with. `hiding`: how much is hidden from its planner, lest buffers wait (`Prediction.idle`).

    Of the session that the plan is made for: `live` is what it holds at once, `arena` what its allocator must hold for
    that, `block` the part of it whose places are planned, `default_arena` what the runtime's own arena would hold.
    """

    strict: int | None
    default: int | None = None
    arena: int | None = None
    time: int | None = None
    live: int | None = None
    block: int | None = None
    default_arena: int | None = None
    later: int | None = None
    later_foretold: int | None = None
    hiding: int | None = None
