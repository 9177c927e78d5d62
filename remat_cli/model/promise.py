"""The predicted needs of a rewritten model: the figures that a plan promises and `verify` measures.

Invariant: each figure is of one model in one kind of session; None where it was not computed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    """Bytes, inputs and weights included; and nanoseconds.

    `strict`, `default`: the live bytes in either session; `default` only where the model is made for that session.
    `time`: the plan's cost with that of the small kernels that rewriting adds. `later`: the measured bytes of later
    runs, where the model was tried in a default session; `live` is then measured too. `later_foretold`: their predicted
    bytes. `hiding`: how much is hidden from that session's planner, so that no buffers wait (`Prediction.idle`).

    The others are of the session that the plan is made for. `live`: its live bytes. `arena`: what its allocator must
    hold for those. `block`: the part of it whose places are planned. `default_arena`: what the runtime's own arena
    would hold. `itself`: what the session holds before any run, beside all else: see `model/session_bytes.py`.
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
    itself: int | None = None
