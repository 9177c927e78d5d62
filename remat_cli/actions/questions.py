"""What is asked of a subject: what is to be least, within what, by which method, and in which kind of session.

Invariant: what a question cannot mean is a Usage when it is checked, before any search begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from remat_cli.arguments import as_word
from remat_cli.errors import Usage, meant
from remat_cli.formats.planfile import PlanFile
from remat_cli.model.quantities import Budget
from remat_cli.model.sessions import KINDS, REMAT, RUNTIME_OF, RUNTIMES, STOCK, STRICT, Session
from remat_cli.planning.search.answer import Answer, check_options
from solvers.problem import Enough, Limits
from solvers.registry import DEFAULT, METHODS

ONLY_PEAK = "--minimize peak has a method of its own; leave out --method, --from, --lp and methods' options"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a subject. `options`: what only its method can be told. `known`: plans to beat.

    `pieces`: how ops were to be cut before this is asked, in words.
    `earlier`: plans that a search must not come out dearer than, if they fit. `stands`: the one that it begins with, if
    it fits, since it stands where the new one is to go. `starts`: others that it begins with, whether or not they can
    be placed. `enough`: what is as good as the best.
    `whole`: the answer with whole ops, where these are in pieces; the better of both is given.
    """

    budget: Budget | None = None
    method: str = DEFAULT
    minimize: str = "cost"
    max_overhead: float | None = None
    known: tuple[PlanFile, ...] = ()
    earlier: tuple[PlanFile, ...] = ()
    stands: PlanFile | None = None
    starts: tuple[PlanFile, ...] = ()
    enough: Enough | None = None
    session: Session = STRICT
    reorder: bool | None = None
    pieces: str = ""
    whole: Answer | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse what has no meaning, or would be without effect."""
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise Usage(f"there is no method '{as_word(self.method)}'; {meant(as_word(self.method), METHODS)}")
        if self.reorder is not None and METHODS[self.method].own_order:
            raise Usage(f"'{self.method}' finds the order itself; --reorder and --no-reorder go with --method milp")
        if not isinstance(self.minimize, str) or self.minimize not in ("cost", "peak"):
            raise Usage(f"--minimize is cost or peak, not '{as_word(self.minimize)}'")
        if self.minimize == "cost" and self.budget is None and METHODS[self.method].needs_budget:
            raise Usage(
                "say how much memory there is, as 16GB, or 75% of the peak: --budget 75%, or in Python budget='75%'"
            )
        if self.minimize == "cost" and self.max_overhead is not None:
            raise Usage(
                "--max-overhead bounds the time that --minimize peak may take; with a --budget the time is made least"
            )
        if self.minimize == "peak" and (self.method not in (DEFAULT, "milp") or self.options or self.known):
            raise Usage(ONLY_PEAK)
        check_options(self.method, self.options)

    def besides(self) -> dict[str, Any]:
        """What the question says besides the budget, the method and the session, where it is not the usual."""
        said = {
            "minimize": None if self.minimize == "cost" else self.minimize,
            "budget": "none" if self.budget is None else None,
            "max_overhead": self.max_overhead,
            "reorder": self.reorder,
            "pieces": self.pieces or None,
            "options": {name: str(value) for name, value in self.options.items() if value is not None} or None,
        }
        return {name: value for name, value in said.items() if value is not None}

    def allows(self, found: Answer) -> bool:
        """Whether the plan takes no longer than may be, but for a nanosecond of rounding."""
        return self.max_overhead is None or found.time <= found.baseline.cost * (1 + self.max_overhead) + 1

    def worth(self, found: Answer) -> tuple[int, int]:
        """What is to be least, and then the other."""
        return (found.cost, found.budget) if self.minimize == "cost" else (found.budget, found.cost)

    def in_json(self, limits: Limits) -> dict[str, Any]:
        """All of it that goes into an answer, in JSON; not the plan that the answer is held against at the end,
        nor the time it may take."""
        return {
            "budget": str(self.budget.amount) + "x" * self.budget.relative if self.budget else None,
            "method": self.method,
            "minimize": self.minimize,
            "max_overhead": self.max_overhead,
            "known": [plan.program for plan in self.known],
            "session": self.session.name,
            "reorder": self.reorder,
            "options": dict(self.options),
            "enough": asdict(self.enough) if self.enough else None,
            "gap": limits.gap,
            "seed": limits.seed,
            **({} if limits.clock.most is None else {"work": limits.clock.most}),
        }


def kind_named(runtime: str, session: str | None = None) -> Session:
    """The kind of session of this runtime. `session`: the name that the runtime had before, if that was given."""
    if isinstance(session, str) and session in RUNTIME_OF:
        return KINDS[RUNTIME_OF[session]]
    if session is not None:
        raise Usage(f"there is no session {as_word(session)!r}; say runtime={REMAT!r} or runtime={STOCK!r}")
    if not isinstance(runtime, str) or runtime not in KINDS:
        raise Usage(f"there is no runtime {as_word(runtime)!r}; {meant(as_word(runtime), RUNTIMES)}")
    return KINDS[runtime]
