"""What `max-batch` does, on values: the largest size of a training step that fits a budget and a time.

A size that fits has a plan; one that does not has a proof, that nothing fits the budget or that whatever does takes too
long. Between the two lies what is not known, which is halved until it is gone or time is up. Where the machine at hand
is the one that counts, ops are then measured at the size that came out, and it is looked for again from there.

Invariant: that a size fits is the word of a plan for that very size, never of a line through others; that it does not
is a proof, and "unknown" where there is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from remat_cli.actions.scaling import At
from remat_cli.actions.size_hunt import BASELINES as BASELINES
from remat_cli.actions.size_hunt import SizeHunt, with_note
from remat_cli.actions.size_hunt import SizeQuestion as SizeQuestion
from remat_cli.notes.kinds import PlanNote
from remat_cli.notes.words import sentence
from remat_cli.plans.sizes import Largest
from remat_cli.results.memory import Memory
from solvers.notes import Note
from solvers.problem import Limits

ON_PAPER_SHARE = 0.6  # of the time, if the ops are measured after that
MEASURING_SHARE = 0.5  # of what is left, for measuring
NOT_MEASURED = sentence(Note(PlanNote.NOT_MEASURED))

Measured = Callable[[Sequence[int], float], At]  # the step with ops measured at these sizes, in so many seconds


@dataclass(frozen=True, slots=True)
class Listeners:
    """Who hears of a search: `report` what is being tried, `keep` the largest known while it still goes on."""

    report: Callable[[str], None] = lambda _: None
    keep: Callable[[Largest], None] = lambda _: None


def find_largest(
    at: At,
    asked: SizeQuestion,
    limits: Limits,
    memory: Memory | None = None,
    measured: Measured | None = None,
    heard: Listeners = Listeners(),
) -> Largest:
    """The largest size found; Infeasible or NoPlan where not even the least fits. `measured`: for this very machine."""
    asked.check()
    keep, hunt = heard.keep, SizeHunt(at, asked, limits.share(ON_PAPER_SHARE) if measured else limits, memory)
    hunt.report = heard.report
    reached = hunt.baselines()
    hunt.keep = lambda: keep(_so_far(hunt, reached, NOT_MEASURED if measured else None))
    hunt.search(max((size for size in reached.values() if size), default=hunt.as_it_stands))
    if hunt.best is None or hunt.best.plan is None:
        raise hunt.nothing()
    if measured is None:
        return _so_far(hunt, reached)
    return _so_far(_confirm(hunt, measured, limits, lambda found: keep(_so_far(found, reached))), reached)


def _so_far(hunt: SizeHunt, reached: Mapping[str, int | None], note: str | None = None) -> Largest:
    """What a hunt has come to; `note`: what is to be said of its plan."""
    asked, best, beyond = hunt.asked, hunt.best, hunt.impossible
    assert best is not None
    assert best.plan is not None
    return Largest(
        best.size * asked.step,
        best.plan if note is None else with_note(best.plan, note),
        replace(hunt.after(), size=(best.size + 1) * asked.step),
        beyond and replace(beyond, size=beyond.size * asked.step),
        {name: None if size is None else size * asked.step for name, size in reached.items()},
        hunt.budget,
    )


def _confirm(found: SizeHunt, measured: Measured, limits: Limits, keep: Callable[[SizeHunt], None]) -> SizeHunt:
    """Go on from where the hunt ended, with ops measured there, until it ends where they were; else it stands."""
    hunt, sizes = found, set[int]()
    while (best := hunt.best) is not None and best.size not in sizes:
        if limits.clock.over():
            return found.noted(NOT_MEASURED)
        sizes |= {best.size, max(1, best.size // 2) if best.size > 1 else 2}
        at = measured(sorted(size * hunt.asked.step for size in sizes), limits.clock.left() * MEASURING_SHARE)
        earlier, hunt = hunt, SizeHunt(at, hunt.asked, limits, hunt.memory, best.plan)
        hunt.report = earlier.report
        hunt.keep = partial(keep, hunt)
        hunt.around(best.size)
    return found.noted(NOT_MEASURED) if hunt.best is None else hunt
