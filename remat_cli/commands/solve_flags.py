"""What the flags of `remat solve` ask: the question, its limits, and what its plan's file is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from remat_cli.commands import methods
from remat_cli.errors import Usage
from remat_cli.model.sessions import STRICT
from solvers.clock import Clock
from solvers.problem import Limits
from solvers.registry import DEFAULT

if TYPE_CHECKING:
    from remat_cli.actions.questions import Question

ALL = "all"  # stands for every method


def settled(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """What click has parsed, with those flags together as `own` that only some methods have, by their options' names;
    --reorder without a method means the one that has an order."""
    given = dict(parsed)
    own = {name: value for name in methods.options_told() if (value := given.pop(name, None)) is not None}
    method = given["method"] or (DEFAULT if given["reorder"] is None else "milp")
    return {**given, "method": method, "own": own}


def question_of(given: Mapping[str, Any]) -> Question:
    """What the command line asks, checked."""
    from remat_cli.actions.questions import ONLY_PEAK, Question
    from remat_cli.formats import planfile

    every, peak = given["method"] == ALL, given["minimize"] == "peak"
    if given["as_csv"] and not every:
        raise Usage("--csv prints the table of --method all; with one method there is --json")
    if every and given["own"]:
        raise Usage("options of one method mean nothing to --method all")
    if given["certificate"] and (every or given["lp_bound"]):
        raise Usage("--certificate goes with one method and its plan; leave out --lp and --method all")
    if peak and (every or given["lp_bound"]):
        raise Usage(ONLY_PEAK)
    question = Question(
        budget=given["budget"],
        method=DEFAULT if every else given["method"],
        minimize=given["minimize"],
        max_overhead=given["max_overhead"],
        known=tuple(planfile.read(path) for path in given["known"]),
        reorder=given["reorder"],
        options=dict(given["own"]),
        session=given["session"],
    )
    question.check()
    return question


def name_of(given: Mapping[str, Any]) -> str:
    """What a plan's file is called by default after its model: the budget, and what else is not the usual."""
    least, most = given["minimize"] == "peak", given["max_overhead"]
    said_most = "" if most is None else f"-{100 * most:.10g}%"
    said = (
        *(f"{name}{size}" for name, size in given["dims"]),
        f"least{said_most}" if least else str(given["budget"]) if given["budget"] else "",
        given["session"].runtime if given["session"] != STRICT else "",
        given["method"] if given["method"] != DEFAULT or not (least or given["budget"]) else "",
    )
    return ".".join(part for part in said if part)


def limits_of(given: Mapping[str, Any], clock: Clock) -> Limits:
    """What the command line says of how long, how well and how loud."""
    return Limits(clock, given["gap"], given["seed"], verbose=given["verbose"] >= 2)
