"""What `remat solve` does: load, ask, write the plan, say what came of it.

Invariant: a plan file on disk is always legal and whole; while a solver still searches it holds the best plan so far.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from remat_cli.actions.interrupts import listening
from remat_cli.errors import BadInput, Infeasible, NoPlan, Usage
from remat_cli.formats.files import check_apart
from remat_cli.model.sessions import Session, kind_of
from remat_cli.planning import record
from remat_cli.planning.fitting import Question, fitted
from remat_cli.planning.fusing import as_fused
from remat_cli.planning.holding import ALLOCATORS
from remat_cli.planning.known import cheaper_known
from remat_cli.planning.loading import load_subject
from remat_cli.planning.pipeline import Answer, answer, find_solver
from remat_cli.planning.subject import Subject
from remat_cli.planning.untouched import fitting_already, held_as_it_is
from remat_cli.saying import report
from remat_cli.saying.units import Budget
from solvers.clock import Clock
from solvers.problem import Limits, Progress, Result, Solver, Status
from solvers.reductions.views import contract
from solvers.registry import METHODS
from solvers.schedule import Schedule, evaluate
from solvers.simulate import Outcome

WRITE_EVERY = 1.0  # seconds between writes of an improving plan
BUDGETLESS = {"min-cut"}  # methods that have an answer of their own when no budget is given


@dataclass(frozen=True, slots=True)
class Settings:
    """The command line, parsed. `own`: options that only one method has."""

    budget: Budget | None
    method: str
    costs: Path | None
    minimize: str
    max_overhead: float | None
    lp_bound: bool
    known: tuple[Path, ...]
    as_csv: bool
    dims: tuple[tuple[str, int], ...]
    time_limit: float
    gap: float
    seed: int
    threads: int
    output: Path | None
    as_json: bool
    quiet: bool
    verbose: int
    reorder: bool | None
    session: str
    allocator: str | None
    own: Mapping[str, Any] = field(default_factory=dict)


def run(model: Path | None, settings: Settings) -> None:
    """Solve and write; raises what the exit code should be for."""
    with listening() as interrupts:
        _run(model, settings, Clock(settings.time_limit, interrupts))
    if interrupts.asked:
        raise KeyboardInterrupt


def _run(model: Path | None, settings: Settings, clock: Clock) -> None:
    if settings.method not in (*METHODS, "all"):
        raise Usage(f"there is no method '{settings.method}'; the methods are {', '.join(METHODS)}, or all")
    if settings.minimize == "cost" and settings.method not in BUDGETLESS and settings.budget is None:
        raise Usage("say how much memory there is: --budget 16GB, or --budget 75% of the peak")
    _check_together(settings)
    session = _session(settings)
    subject = load_subject(model, settings.costs, dict(settings.dims), session)
    if settings.own.get("fusion") == "runtime":
        subject = as_fused(subject)
    plain = subject.before()
    budget = _budget(subject, plain, settings, session)
    if settings.lp_bound:
        _print_relaxation(subject, budget, settings, clock)
        return
    if settings.method == "all":
        _compare(subject, budget, settings, clock)
        return
    destination = settings.output or subject.beside(".plan.json")
    check_apart(destination, subject.path, *settings.known)
    if not destination.parent.is_dir():
        raise BadInput(f"cannot write {destination}: the folder {destination.parent} does not exist")
    limits = _limits(settings, clock)
    searching = settings.minimize == "cost" and "candidates" in METHODS[settings.method].options
    found = fitting_already(subject, budget, settings.method, limits, session) if searching else None
    if found is None:
        asked = Question(
            subject, budget, settings.method, _solver(subject, settings), limits, session, _order(settings)
        )
        found = _search(asked, plain, destination, settings)
        if searching:
            found = cheaper_known(asked, found, (*settings.known, destination))
    if settings.budget is None and found.found:
        found = replace(found, budget=_needed(found))
    _tell(found, destination, settings)


def _check_together(settings: Settings) -> None:
    """Refuse options that would be without effect."""
    if settings.as_csv and settings.method != "all":
        raise Usage("--csv prints the table of --method all; with one method there is --json")
    if settings.minimize == "cost" and settings.max_overhead is not None:
        raise Usage(
            "--max-overhead bounds the time that --minimize peak may take; with a --budget the time is made least"
        )
    if settings.minimize == "peak" and (
        settings.method != "milp" or settings.own or settings.known or settings.lp_bound
    ):
        raise Usage("--minimize peak has a method of its own; leave out --method, --from, --lp and methods' options")


def _budget(subject: Subject, plain: Outcome, settings: Settings, session: Session) -> int:
    """In bytes; without one, the peak of the plain order, or for a method that needs none, what is never exceeded.

    100% is what the model holds as it is, which with an allocator's rounding may be more than what is live.
    """
    if settings.budget:
        asked = settings.budget.bytes(plain.peak)
        whole = settings.budget.relative and settings.budget.amount >= 1
        return max(asked, held_as_it_is(subject, session)) if whole else asked
    if settings.method not in BUDGETLESS:
        return held_as_it_is(subject, session)
    problem = subject.problem
    return 2 * (problem.resident + sum(problem.sizes) + sum(node.workspace for node in problem.nodes))


def _needed(found: Answer) -> int:
    """What a plan that was made for no budget needs, which is then its budget."""
    assert found.schedule.outcome is not None
    counted = ALLOCATORS[found.session.allocator].counted(found.promise) if found.session and found.promise else 0
    return max(found.schedule.outcome.peak, counted)


def _solver(subject: Subject, settings: Settings) -> Solver:
    options = dict(settings.own)
    if settings.method == "min-cut" and settings.budget is None and "objective" not in options:
        options["paper"] = True
    if settings.minimize == "peak":
        from solvers.exact.least_peak import minimize_peak

        return partial(minimize_peak, max_overhead=settings.max_overhead)
    if settings.known:
        smaller = contract(subject.problem)
        orders = [record.known_order(path, subject) for path in settings.known]
        options["candidates"] = tuple(smaller.shrink(order) for order in orders)
    return find_solver(settings.method, options)


def _session(settings: Settings) -> Session:
    """What the plan is to be made for."""
    kind = kind_of(settings.session, settings.allocator)
    if kind is None:
        raise Usage(f"--allocator {settings.allocator}: the {settings.session} session has an allocator of its own")
    return kind


def _order(settings: Settings) -> bool | None:
    """Whether to reorder the first computes; None: if need be."""
    if settings.reorder is None and (settings.method != "milp" or settings.minimize == "peak"):
        return False
    return settings.reorder


def _search(asked: Question, plain: Outcome, destination: Path, settings: Settings) -> Answer:
    """Run the solver; write each better plan as it comes, at most once a second."""
    show = _progress(plain.cost, settings)
    subject, budget, limits, clock = asked.subject, asked.budget, asked.limits, asked.limits.clock
    written = [0.0]

    def hear(progress: Progress) -> None:
        if show:
            show(progress)
        if progress.order is not None and clock.elapsed() - written[0] > WRITE_EVERY:
            plan, outcome = evaluate(subject.problem, progress.order)
            if outcome.peak > budget:
                return
            result = Result(Status.FEASIBLE, progress.order, progress.bound, ("the search was still going on",))
            so_far = Schedule(result, plan, outcome)
            answer = Answer(subject, asked.method, budget, plain, so_far, clock.elapsed(), limits, asked.session)
            record.write(destination, answer)
            written[0] = clock.elapsed()

    try:
        return fitted(replace(asked, limits=replace(limits, report=hear)))
    finally:
        if show:
            show.end()


def _limits(settings: Settings, clock: Clock) -> Limits:
    """What the command line says of how long, how well and how loud."""
    return Limits(clock, settings.gap, settings.seed, settings.threads, verbose=settings.verbose >= 2)


def _progress(baseline_cost: int, settings: Settings) -> report.ProgressLine | None:
    """Where progress goes: one line of the terminal, or with -v a line for each step, wherever stderr leads."""
    if settings.quiet or not (settings.verbose or sys.stderr.isatty()):
        return None
    return report.ProgressLine(baseline_cost, kept=settings.verbose > 0)


def _tell(found: Answer, destination: Path, settings: Settings) -> None:
    """Write the plan and say what came of it; raise where there is none."""
    if found.found:
        record.write(destination, found)
    if settings.as_json:
        click.echo(json.dumps(report.as_object(found, str(destination) if found.found else None)))
    if not found.found:
        raise (Infeasible if found.status is Status.INFEASIBLE else NoPlan)(report.why_not(found))
    if settings.quiet or settings.as_json:
        return
    if found.untouched:
        click.echo(report.as_it_is(found))
        click.echo(f"wrote {destination}")
        return
    click.echo(report.summary(found))
    for note in (*found.subject.notes, *found.schedule.result.notes):
        click.echo(f"note: {note}")
    if settings.minimize == "peak" and (least := report.least_peak_bound(found)):
        click.echo(f"note: {least}")
    click.echo(f"wrote {destination}")


def _compare(subject: Subject, budget: int, settings: Settings, clock: Clock) -> None:
    """Every method on the same question, as a table."""
    if settings.own:
        raise Usage("options of one method mean nothing to --method all")
    answers = []
    for name in METHODS:
        if clock.stopped():
            break
        if sys.stderr.isatty() and not settings.quiet:
            click.echo(f"\r\033[K{name} ...", err=True, nl=False)
        limits = _limits(settings, Clock(settings.time_limit, clock.stopped))  # each has all the time there is
        answers.append(answer(subject, budget, name, find_solver(name, {}), limits))
    if sys.stderr.isatty() and not settings.quiet:
        click.echo("\r\033[K", err=True, nl=False)
    if settings.as_json:
        click.echo(json.dumps({"budget": budget, "methods": [report.as_object(found, None) for found in answers]}))
    else:
        click.echo(report.comparison(answers, as_csv=settings.as_csv))
    if not any(found.found for found in answers):
        proved = any(found.status is Status.INFEASIBLE for found in answers)
        raise (Infeasible if proved else NoPlan)(f"no method found a plan within {budget} bytes")


def _print_relaxation(subject: Subject, budget: int, settings: Settings, clock: Clock) -> None:
    """The bound of the linear relaxation, and how far from the optimum it is (Checkmate, Appendix A)."""
    from solvers.baselines.relaxation import relaxation_bound

    smaller = contract(subject.problem)
    limits = _limits(settings, clock)
    bound = relaxation_bound(smaller.problem, budget, limits, no_stages=bool(settings.own.get("no_stages")))
    if bound is None:
        raise Infeasible(f"the linear relaxation already has no solution within {budget} bytes")
    best = answer(subject, budget, "milp", find_solver("milp", {}), limits)
    ratio = None
    if best.found and best.schedule.outcome:
        ratio = best.schedule.outcome.cost / max(bound + smaller.fixed_cost, 1)
    result = {"budget": budget, "lp_bound": bound + smaller.fixed_cost, "integrality_gap": ratio}
    if settings.as_json:
        click.echo(json.dumps(result))
        return
    click.echo(f"LP bound {result['lp_bound']:.6g}" + (f", integrality gap {ratio:.4g}" if ratio else ""))


def list_methods(as_json: bool = False) -> str:
    """The registry as a table, with the columns of Checkmate's Table 1, or as JSON."""
    if as_json:
        return json.dumps(
            {name: {k: v for k, v in asdict(method).items() if k != "place"} for name, method in METHODS.items()}
        )
    rows = [["method", "general", "cost", "memory", "proof", "2000 nodes", "what it does"]]
    for name, method in METHODS.items():
        marks = (method.general, method.cost_aware, method.memory_aware, method.proof)
        rows.append([name, *("yes" if mark else "-" for mark in marks), method.typical, method.says])
    return report.table(rows, left=(0, 6))
