"""What a plan promises, as `verify` measures it; what it adds to the time of the model as it is, and what is proved of
its cost: how far it is from the least.

Invariant: each figure of a promise is of one model in one kind of session; None where it was not computed. Every face
that says how much a plan adds, or how near it is to the best one, asks here, and says of which schedules that holds.
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


@dataclass(frozen=True, slots=True)
class PlanProof:
    """`bound`: the cost that no schedule goes below that first computes the ops in the plan's order;
    `bound_any_order`: the same of every schedule."""

    cost: int
    bound: float | None = None
    bound_any_order: float | None = None

    @property
    def gap(self) -> float | None:
        """How far the cost is from the bound for the plan's order, as a share of it."""
        return _gap(self.cost, self.bound)

    @property
    def gap_any_order(self) -> float | None:
        """How far the cost is from the bound for all orders, as a share of it."""
        return _gap(self.cost, self.bound_any_order)

    @property
    def closer_in_order(self) -> float | None:
        """The gap in the plan's order, where that says more than the gap over all orders does."""
        every, own = self.gap_any_order, self.gap
        return own if own is not None and (every is None or own < every) else None


def time_of(promise: Promise | None, cost: int) -> int:
    """The predicted time of a step: the plan's cost with that of the ops that rewriting adds, as far as known."""
    return (promise and promise.time) or cost


def overhead_of(time: float, before: int) -> float:
    """The share of the time of the model as it is, `before`, that is added to it."""
    return time / max(before, 1) - 1


def _gap(cost: int, bound: float | None) -> float | None:
    return None if bound is None else max(0.0, (cost - bound) / max(bound, 1))
