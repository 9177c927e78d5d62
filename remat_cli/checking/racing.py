"""Times two models in alternation, so that other work on this machine slows both alike; also each kernel in them.

Invariant: a figure is of undisturbed runs, or it says how much threads waited for a processor. A trace makes kernels
slower, so no run is timed while one is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from profiles import device as devices
from profiles.probe import probe
from profiles.running import events
from profiles.stopwatch import Waiting, lap, works_alone
from profiles.whole import by_name, undisturbed

LEAST_ROUNDS = 8  # rounds of two models in alternation; the first does not count
TRACED_ROUNDS = (6, 30)  # a trace has a kilobyte for each kernel that ran

Runs = Sequence[Callable[[], object]]


@dataclass(frozen=True, slots=True)
class RaceTimes:
    """ns of a run of either model. `waited`: the share of the time that threads waited for a processor, where no run
    was undisturbed. `probe`: ns of the op that is timed with every profile."""

    times: tuple[int, int]
    waited: float
    probe: int


def race(runs: Runs, kind: str, threads: int, seconds: float) -> RaceTimes:
    """Run the models in alternation for so many seconds; `kind`: of the device, `threads`: of the sessions."""
    device = devices.find(kind, threads or None)
    alone = works_alone(device)
    probes = [probe(device).ns] if kind == "cpu" else []
    rounds: list[list[tuple[int, float]]] = []
    end = monotonic() + seconds
    while len(rounds) < LEAST_ROUNDS or monotonic() < end:
        rounds.append([_lap(once, alone) for once in runs])
    if kind == "cpu":
        probes.append(probe(device).ns)
    own, other = (undisturbed(laps) for laps in zip(*rounds[1:], strict=True))
    return RaceTimes((own.ns, other.ns), max(own.waited, other.waited), min(probes, default=0))


def _lap(once: Callable[[], object], alone: bool) -> tuple[int, float]:
    waiting = Waiting()
    took = lap(once, alone)
    return took, 0.0 if alone else waiting.share()


def inside(sessions: Sequence[Any], runs: Runs, seconds: float) -> tuple[dict[str, int], ...]:
    """ns of each kernel by its op's name, in traced sessions whose runs alternate."""
    end, least, most = monotonic() + seconds, *TRACED_ROUNDS
    for turn in range(most):
        if turn >= least and monotonic() > end:
            break
        for once in runs:
            once()
    return tuple(by_name(events(session)) for session in sessions)
