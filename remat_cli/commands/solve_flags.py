"""What the command line of `remat solve` says, as a record, and the question and limits that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remat_cli.commands import methods
from remat_cli.model.quantities import Budget
from remat_cli.model.sessions import REMAT
from solvers.registry import DEFAULT

if TYPE_CHECKING:
    from remat_cli.actions.questions import Question
    from solvers.clock import Clock
    from solvers.problem import Limits

ALL = "all"  # stands for every method


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveFlags:
    """A field a flag, as click has parsed it. `own`: the flags that only some methods have, by their options' names."""

    budget: Budget | None
    method: str
    runtime: str
    costs: Path | None
    minimize: str
    max_overhead: float | None
    lp_bound: bool
    reorder: bool | None
    list_methods: bool
    as_csv: bool
    certificate: Path | None
    known: tuple[Path, ...]
    optimize: str | None
    in_place: tuple[str, ...]
    held_twice: bool
    pieces: str | None
    largest_value: int | None
    dims: tuple[tuple[str, int], ...]
    time_limit: float
    work_limit: int | None
    gap: float
    seed: int
    force: bool
    output: Path | None
    as_json: bool
    quiet: bool
    verbose: int
    own: Mapping[str, Any]

    @classmethod
    def of(cls, *, method: str | None, reorder: bool | None, **parsed: Any) -> SolveFlags:
        """The record of what click has parsed; --reorder without a method means the one that has an order."""
        own = {name: value for name in methods.options_told() if (value := parsed.pop(name, None)) is not None}
        method = method or (DEFAULT if reorder is None else "milp")
        return cls(method=method, reorder=reorder, own=own, **parsed)

    @property
    def every_method(self) -> bool:
        return self.method == ALL


def question_of(flags: SolveFlags) -> Question:
    """What the command line asks, checked."""
    from remat_cli.actions.questions import ONLY_PEAK, Question, kind_named
    from remat_cli.errors import Usage
    from remat_cli.formats import planfile

    every = flags.every_method
    if flags.as_csv and not every:
        raise Usage("--csv prints the table of --method all; with one method there is --json")
    if flags.every_method and flags.own:
        raise Usage("options of one method mean nothing to --method all")
    if flags.certificate and (every or flags.lp_bound):
        raise Usage("--certificate goes with one method and its plan; leave out --lp and --method all")
    if flags.minimize == "peak" and (every or flags.lp_bound):
        raise Usage(ONLY_PEAK)
    question = Question(
        budget=flags.budget,
        method=DEFAULT if every else flags.method,
        minimize=flags.minimize,
        max_overhead=flags.max_overhead,
        known=tuple(planfile.read(path) for path in flags.known),
        reorder=flags.reorder,
        options=dict(flags.own),
        session=kind_named(flags.runtime),
    )
    question.check()
    return question


def name_of(flags: SolveFlags) -> str:
    """What a plan's file is called by default after its model: the budget, and what else is not the usual."""
    least = flags.minimize == "peak"
    most = f"-{100 * flags.max_overhead:.10g}%" if flags.max_overhead is not None else ""
    said = (
        *(f"{name}{size}" for name, size in flags.dims),
        f"least{most}" if least else str(flags.budget) if flags.budget else "",
        flags.runtime if flags.runtime != REMAT else "",
        flags.method if flags.method != DEFAULT or not (least or flags.budget) else "",
    )
    return ".".join(part for part in said if part)


def limits_of(flags: SolveFlags, clock: Clock) -> Limits:
    """What the command line says of how long, how well and how loud."""
    from solvers.problem import Limits

    return Limits(clock, flags.gap, flags.seed, verbose=flags.verbose >= 2)
