"""Plans that are known already, as candidates: a larger budget never leads to a dearer plan than theirs.

Invariant: a known plan stands in only if it is cheaper than what was found, and holds no more than the budget itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from remat_cli.errors import BadInput
from remat_cli.formats import planfile
from remat_cli.planning.fitting import Question, promised
from remat_cli.planning.pipeline import Answer
from remat_cli.planning.record import known_order
from solvers.plan import IllegalOrder
from solvers.problem import Result, Status
from solvers.schedule import Schedule, evaluate
from solvers.simulate import IllegalPlan


def cheaper_known(asked: Question, found: Answer, paths: Sequence[Path]) -> Answer:
    """The answer found, or the cheapest of these plans that fits and costs less; files that hold none are passed."""
    for path, order in _orders(asked, paths):
        other = _as_answer(asked, found, order, path)
        if other is not None and (not found.found or _cost(other) < _cost(found)):
            found = other
    return found


def _orders(asked: Question, paths: Sequence[Path]) -> Iterator[tuple[Path, tuple[int, ...]]]:
    for path in paths:
        try:
            if path.is_file() and planfile.read(path).model.sha256 == asked.subject.source.sha256:
                yield path, known_order(path, asked.subject)
        except BadInput:
            continue


def _as_answer(asked: Question, found: Answer, order: tuple[int, ...], path: Path) -> Answer | None:
    try:
        plan, outcome = evaluate(asked.subject.problem, order)
    except (IllegalOrder, IllegalPlan):
        return None
    if outcome.peak > asked.budget:
        return None
    bound = found.schedule.result.bound if found.found else None
    close = bound is not None and outcome.cost <= (1 + asked.limits.gap) * bound
    result = Result(Status.OPTIMAL if close else Status.FEASIBLE, order, bound)
    other = replace(found, schedule=Schedule(result, plan, outcome), made_by=path.name, subject=asked.subject)
    if asked.subject.graph is None:
        return other
    other = promised(other, asked.session)
    return other if asked.fits(other) else None


def _cost(answer: Answer) -> int:
    assert answer.schedule.outcome is not None
    return answer.schedule.outcome.cost
