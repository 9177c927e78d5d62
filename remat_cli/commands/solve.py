"""`remat solve`: a plan that fits the budget at the least extra time, with a proof of how good it is.

Invariant: a plan file on disk is always legal and whole; while a solver still searches it holds the best plan so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from remat_cli.actions.interrupts import Deadline, listening
from remat_cli.commands import methods, options
from remat_cli.commands.helping import MethodOption
from remat_cli.errors import RematError
from solvers.clock import Clock
from solvers.registry import DEFAULT


@click.command(cls=options.GroupedCommand)
@click.argument("model", type=options.FILE, required=False)
@options.budget
@methods.one_or_all
@options.runtime
@options.costs
@click.option(
    "--minimize",
    type=click.Choice(["cost", "peak"]),
    default="cost",
    show_default=True,
    help="Least time, or least memory.",
)
@click.option("--max-overhead", type=options.SHARE, help="The most extra time, with --minimize peak.")
@click.option("--lp", "lp_bound", is_flag=True, help="Print only the linear relaxation's bound.")
@click.option(
    "--reorder/--no-reorder",
    default=None,
    cls=MethodOption,
    owners=("milp",),
    help="Whether another order may be taken.",
)
@click.option("--list", "list_methods", is_flag=True, help="List the methods and what they can do.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values, with --method all.")
@click.option("--certificate", type=options.FILE, help="Write a proof of the bounds, for `remat check`.")
@methods.own_options
@options.optimize
@options.in_place
@options.pieces
@options.dims
@options.time_limit
@options.work_limit
@options.gap
@options.seed
@options.force
@options.output
@options.as_json
@options.quiet
@options.verbose
def command(model: Path | None, **parsed: Any) -> None:
    """Find the fastest plan of MODEL within a memory budget.

    MODEL is a .onnx or .problem.json file; by default that of the *.costs.yaml.

    \b
    remat solve train.onnx --budget 70%
    """
    given = settled(parsed)
    if given["list_methods"]:
        methods.list_methods(given["as_json"])
        return
    from remat_cli.commands import solve_answer

    clock = options.clock_of(given)
    deadline = None  # each method has all the time
    if given["method"] != methods.ALL:
        deadline = Deadline(clock, lambda halted: _tell_nothing_yet(given, clock, halted), searching=False)
    with deadline or nullcontext():
        asked = solve_answer.asked_of(model, given, clock)
        with listening() as interrupts:
            clock = clock.unless(interrupts)
            asked = replace(asked, limits=solve_answer.limits_of(given, clock))
            if deadline is not None:
                deadline.clock = clock
            if deadline is None or given["lp_bound"]:
                if deadline is not None:
                    deadline.search_begins()
                (solve_answer.tell_relaxation if given["lp_bound"] else solve_answer.compare)(asked, given)
                return
            solve_answer.solve(asked, given, deadline)


def settled(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """What click has parsed, with those flags together as `own` that only some methods have, by their options' names;
    --reorder without a method means the one that has an order."""
    given = dict(parsed)
    own = {name: value for name in methods.options_told() if (value := given.pop(name, None)) is not None}
    method = given["method"] or (DEFAULT if given["reorder"] is None else "milp")
    return {**given, "method": method, "own": own}


def _tell_nothing_yet(given: Mapping[str, Any], clock: Clock, halted: bool) -> RematError:
    stopped = "interrupt" if halted else "time"
    said = {"status": "unknown", "method": given["method"], "plan": None, "stopped": stopped}
    return options.tell_no_plan(halted, clock, said if given["as_json"] else None)
