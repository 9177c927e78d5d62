"""Answers as the store keeps them: the order that was found and what was proved, in numbers.

Invariant: an answer from the store is lowered and simulated anew. So an entry can be wrong about what was proved, but
never about what its plan costs and needs. An entry whose figures do not hold is Damaged. `comes_back` tells whether an
answer is the same in every field when it is read back; only such answers are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from remat_cli.formats.declared import declared
from remat_cli.model.proved import Promise
from remat_cli.model.sessions import Session
from remat_cli.planning.kinds import target_of
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate, Footprint
from remat_cli.planning.targets.target import in_units
from remat_cli.results.store import Damaged
from solvers.placement.pattern import outputs_apart
from solvers.placement.placed import Placement
from solvers.plan import IllegalOrder
from solvers.problem import Limits, Problem, Result, Status
from solvers.registry import METHODS
from solvers.schedule import Schedule, evaluate
from solvers.simulate import IllegalPlan

NOT_KEPT = frozenset(  # fields of an answer that the question gives, or that follow from other fields
    ("candidate", "limits", "session", "asked", "said", "whole", "cached")
)


# the sizes by which an order that fits no budget was simulated
REACHED: dict[str, Callable[[Problem, int], Problem]] = {
    "live": lambda problem, unit: problem,
    "held": in_units,
    "held later": lambda problem, unit: outputs_apart(in_units(problem, unit)),
}


def as_entry(found: Answer, asked: Subject, seconds: float) -> dict[str, Any]:
    """The answer in JSON. `asked`: the subject it is an answer about; `seconds`: the time limit."""
    outcome = found.schedule.outcome
    return {
        **{field.name: getattr(found, field.name) for field in fields(found) if field.name not in NOT_KEPT},
        "made_by": found.made_by,
        "promise": found.promise and asdict(found.promise),
        "placement": found.placement and asdict(found.placement),
        "limit": seconds,
        "result": {**asdict(found.schedule.result), "status": found.status.value},
        "simulated": [outcome.peak, outcome.cost] if outcome else None,
        "reached": _sizes_of(found),
        "for_session": found.session is not None,
        "apart": found.subject.problem.inner != asked.problem.inner,
    }


def _sizes_of(found: Answer) -> str:
    """The name of the sizes by which the answer's own outcome was simulated."""
    order, outcome = found.schedule.result.order, found.schedule.outcome
    if not found.found and order is not None and found.session is not None:
        for name, sizes in REACHED.items():
            if evaluate(sizes(found.subject.problem, _unit(found.session)), order)[1] == outcome:
                return name
    return "live"


def _unit(session: Session) -> int:
    return target_of(session).unit


def comes_back(found: Answer, entry: Mapping[str, Any], asked: Subject, session: Session) -> bool:
    """Whether the entry, once read back from the disk, gives this very answer."""
    try:
        again = from_entry(json.loads(json.dumps(entry)), asked, session, found.limits)
    except Damaged:
        return False
    return replace(again, cached=found.cached) == found


def covers(entry: Mapping[str, Any], seconds: float) -> bool:
    """Whether the entry answers a question with this time limit: it was proved, or its search had as much time."""
    try:
        return is_proved(Status(entry["result"]["status"]), entry["method"]) or bool(entry["limit"] >= seconds)
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged("it says no answer") from error


def is_proved(status: Status, method: str) -> bool:
    """Whether more time cannot change the status. A method that keeps to the model's order proves its best for that
    order."""
    return status in (Status.OPTIMAL, Status.INFEASIBLE) or (
        status is Status.ORDER_OPTIMAL and not METHODS[method].own_order
    )


def from_entry(entry: Mapping[str, Any], subject: Subject, session: Session, limits: Limits) -> Answer:
    """The answer in the entry. Raises Damaged where the entry does not answer a question about this subject."""
    try:
        problem = subject.problem
        if entry["apart"]:
            subject = subject.solving(replace(problem, inner=frozenset()))
        result: Result = declared(Result, entry["result"])
        sized = REACHED[entry["reached"]](subject.problem, _unit(session))
        plan, outcome = (None, None) if result.order is None else evaluate(sized, result.order)
        own = {field.name: entry[field.name] for field in fields(Answer) if field.name not in NOT_KEPT}
        schedule = Schedule(result, plan, outcome)
        promise, places = entry["promise"], declared(Placement | None, entry["placement"])
        footprint = promise and Footprint(Promise(**promise), places)
        answer = Answer(
            candidate=Candidate(subject, schedule, entry["made_by"], footprint=footprint),
            limits=limits,
            session=session if entry["for_session"] else None,
            cached=True,
            **own,
        )
        simulated = [outcome.peak, outcome.cost] if outcome else None
    except (KeyError, TypeError, ValueError, IndexError, IllegalOrder, IllegalPlan) as error:
        raise Damaged(f"it says no answer ({error})") from error
    if entry["simulated"] != simulated or (answer.found and (outcome is None or outcome.peak > answer.budget)):
        raise Damaged("its plan is not what it says")
    return answer
