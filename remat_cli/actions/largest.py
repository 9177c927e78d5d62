"""What `max-batch` does, on values: the largest size of a training step that fits a budget and a time.

A size that fits has a plan; one that does not has a proof, that nothing fits the budget or that whatever does takes too
long. Between the two lies what is not known, which is halved until it is gone or time is up. Where the machine at hand
is the one that counts, ops are then measured at the size that came out, and it is looked for again from there.

Invariant: that a size fits is the word of a plan for that very size, never of a line through others; that it does not
is a proof, and "unknown" where there is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remat_cli.actions.scaling import At
from remat_cli.actions.size_hunt import BASELINES as BASELINES
from remat_cli.actions.size_hunt import SizeHunt
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


def find_largest(
    at: At,
    asked: SizeQuestion,
    limits: Limits,
    memory: Memory | None = None,
    measured: Measured | None = None,
    doing: Callable[[str], None] = lambda _: None,
    keep: Callable[[Largest], None] = lambda _: None,
) -> Largest:
    """The largest size found; Infeasible or NoPlan where not even the least fits. `measured`: for this very machine."""
    asked.check()
    hunt = SizeHunt(at, asked, limits.share(ON_PAPER_SHARE) if measured else limits, memory, doing, keep)
    hunt.note = NOT_MEASURED if measured else None
    hunt.run()
    if hunt.best is None or hunt.best.plan is None:
        raise hunt.nothing()
    return (hunt if measured is None else _confirmed(hunt, measured, limits)).so_far()


def _confirmed(found: SizeHunt, measured: Measured, limits: Limits) -> SizeHunt:
    """Go on from where the hunt ended, with ops measured there, until it ends where they were; else it stands."""
    hunt, sizes = found, set[int]()
    while (best := hunt.best) is not None and best.size not in sizes:
        if limits.clock.over():
            return found
        sizes |= {best.size, max(1, best.size // 2) if best.size > 1 else 2}
        at = measured(sorted(size * hunt.asked.step for size in sizes), limits.clock.left() * MEASURING_SHARE)
        hunt = SizeHunt(at, hunt.asked, limits, hunt.memory, hunt.doing, hunt.keep, hunt.reached, hint=best.plan)
        hunt.around(best.size)
    return found if hunt.best is None else hunt
