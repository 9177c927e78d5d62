"""Answers as the store keeps them: the order that was found and what was proved, in numbers.

Invariant: what is brought back is lowered and simulated anew: an entry can be wrong about what was proved, never about
what its plan costs and needs, and one that does not bear out what it says is Damaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from remat_cli.model.promise import Promise
from remat_cli.model.sessions import Session
from remat_cli.planning.pipeline import Answer
from remat_cli.planning.subject import Subject
from remat_cli.results.store import Damaged
from solvers.placement.largest import Placement
from solvers.plan import IllegalOrder
from solvers.problem import Grounds, Limits, Result, Status
from solvers.registry import METHODS
from solvers.schedule import Schedule, evaluate
from solvers.simulate import IllegalPlan


def as_entry(found: Answer, asked: Subject, seconds: float) -> dict[str, Any]:
    """The answer in JSON. `asked`: the subject it is an answer about; `seconds`: the time it was given."""
    outcome = found.schedule.outcome
    result = {field.name: getattr(found.schedule.result, field.name) for field in fields(found.schedule.result)}
    return {
        "limit": seconds,
        "budget": found.budget,
        "method": found.method,
        "result": {**result, "status": found.status.value, "grounds": [asdict(where) for where in result["grounds"]]},
        "simulated": [outcome.peak, outcome.cost] if outcome and found.found else None,
        "seconds": found.seconds,
        "promise": asdict(found.promise) if found.promise else None,
        "placement": asdict(found.placement) if found.placement else None,
        "made_by": found.made_by,
        "cut": found.cut,
        "apart": found.subject.problem.inner != asked.problem.inner,
    }


def covers(entry: Mapping[str, Any], seconds: float) -> bool:
    """Whether more time, or so much, would not lead to another answer: it was proved, or had as much."""
    try:
        return is_proved(Status(entry["result"]["status"]), entry["method"]) or bool(entry["limit"] >= seconds)
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged("it says no answer") from error


def is_proved(status: Status, method: str) -> bool:
    """Whether more time cannot change it: a method that keeps to the model's order has no better than that order's."""
    return status in (Status.OPTIMAL, Status.INFEASIBLE) or (
        status is Status.ORDER_OPTIMAL and not METHODS[method].own_order
    )


def from_entry(entry: Mapping[str, Any], subject: Subject, session: Session, limits: Limits) -> Answer:
    """The answer again. Raises Damaged where it is none to a question about this subject."""
    try:
        problem = subject.problem
        if entry["apart"]:
            subject = subject.solving(replace(problem, inner=frozenset()))
        result = _result(entry["result"])
        plan, outcome = (None, None) if result.order is None else evaluate(subject.problem, result.order)
        answer = Answer(
            subject,
            entry["method"],
            entry["budget"],
            subject.before(),
            Schedule(result, plan, outcome),
            float(entry["seconds"]),
            limits,
            None if entry["promise"] is None else session,
            None if entry["promise"] is None else Promise(**entry["promise"]),
            None if entry["placement"] is None else _placement(entry["placement"]),
            entry["made_by"],
            cut=entry["cut"],
            cached=True,
        )
        simulated = [outcome.peak, outcome.cost] if outcome and answer.found else None
    except (KeyError, TypeError, ValueError, IndexError, IllegalOrder, IllegalPlan) as error:
        raise Damaged(f"it says no answer ({error})") from error
    if entry["simulated"] != simulated or (answer.found and (outcome is None or outcome.peak > answer.budget)):
        raise Damaged("its plan is not what it says")
    return answer


def _result(said: Mapping[str, Any]) -> Result:
    grounds = tuple(Grounds(**_tuples(where)) for where in said.get("grounds", ()))
    return Result(**{**_tuples(said), "status": Status(said["status"]), "grounds": grounds})


def _tuples(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _tuple(value) for name, value in said.items()}


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _placement(said: Mapping[str, Any]) -> Placement:
    return Placement(**{**said, "allocations": tuple((size, offset) for size, offset in said["allocations"])})
