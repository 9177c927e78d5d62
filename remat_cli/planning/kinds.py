"""The target of each kind of session: one table."""

from __future__ import annotations

from remat_cli.model.proved import Promise
from remat_cli.model.sessions import Session
from remat_cli.planning.stock.target import StockTarget
from remat_cli.planning.targets.planned import PlannedTarget
from remat_cli.planning.targets.target import Target

TARGETS: dict[str, Target] = {target.session.runtime: target for target in (PlannedTarget(), StockTarget())}


def target_of(session: Session) -> Target:
    return TARGETS[session.runtime]


def held(peak: int, session: Session | None, promise: Promise | None) -> int:
    """The least budget that a plan keeps to, in a session where there is a model."""
    return peak if session is None else target_of(session).held(peak, promise)
