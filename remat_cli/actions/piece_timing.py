"""Pieces timed on this machine, where the ops of the model were.

Invariant: what is measured is kept in the user's cache, as `profile` keeps it, so that nothing is measured twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

from profiles import cache as caches
from profiles import device as devices
from profiles import survey
from profiles.cache import Cache
from profiles.costs import OpCost
from profiles.survey import Ops
from remat_cli.planning.subjects.piece_costs import Timed
from remat_cli.planning.subjects.subject import Subject
from solvers.clock import Clock


def timed_here(whole: Subject, seconds: float, clock: Clock) -> Timed | None:
    """What measures ops in about so many seconds at a time, and none after the clock's end; None where the model's ops
    were not measured here."""
    costs = whole.costed
    if costs is None or not costs.measured or costs.kind != "cpu":
        return None
    device = devices.find("cpu", costs.threads)
    if dict(costs.device) != device.described():
        return None
    cache = Cache(device, caches.folder())

    def timed(ops: Ops) -> Mapping[str, OpCost]:
        if not clock.interrupts():
            survey.measure_missing(ops, device, cache, seconds, lambda _: None, monotonic() + clock.left())
        return survey.alone(ops, cache, device)

    return timed
