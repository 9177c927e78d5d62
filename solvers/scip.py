"""Linear and mixed-integer programs, solved by SCIP: the only module that imports pyscipopt.

Invariant: `Answer.bound` is what SCIP proved less its tolerances, also when time runs out or somebody stops it; it
holds for programs whose columns lie between 0 and 1 or thereabouts. Nothing is printed, unless `verbose`, and then on
stderr.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import monotonic, thread_time

from pyscipopt import LP, SCIP_HEURTIMING, SCIP_LPPARAM, SCIP_PARAMSETTING, SCIP_RESULT, SCIP_STAGE, Heur, Model
from pyscipopt.scip import Expr, ExprCons, Term

from solvers.clock import ITERATION_MOVES, Clock
from solvers.problem import Status

INFINITY = math.inf
_PATIENCE = 0.5  # seconds to wait for an interrupted solve
_DUAL_TOLERANCE = 1e-7  # of a reduced cost: numerics/dualfeastol
_EPSILON = 1e-9  # of numbers that SCIP takes for equal: numerics/epsilon
_ITERATION_LIMITS = "lp/iterlim", "lp/rootiterlim"  # of each linear program
_EMPHASES = {
    "aggressive": SCIP_PARAMSETTING.AGGRESSIVE,
    "fast": SCIP_PARAMSETTING.FAST,
    "off": SCIP_PARAMSETTING.OFF,
}


@dataclass(slots=True)
class Program:
    """Minimise `offset + sum(cost * x)` subject to rows `low <= sum(coefficient * x) <= high`."""

    costs: list[float] = field(default_factory=list)
    lows: list[float] = field(default_factory=list)
    highs: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)  # must be an integer
    rows: list[tuple[list[int], list[float], float, float]] = field(default_factory=list)
    offset: float = 0.0

    def variable(self, cost: float = 0.0, low: float = 0.0, high: float = 1.0, whole: bool = True) -> int:
        self.costs.append(cost)
        self.lows.append(low)
        self.highs.append(high)
        self.whole.append(whole)
        return len(self.costs) - 1

    def row(
        self, columns: Sequence[int], coefficients: Sequence[float], low: float = -INFINITY, high: float = INFINITY
    ) -> None:
        """Columns may repeat; their coefficients add up."""
        self.rows.append((list(columns), list(coefficients), low, high))


@dataclass(frozen=True, slots=True)
class Settings:
    clock: Clock = field(default_factory=Clock)
    gap: float = 0.0
    seed: int = 0
    nodes: int | None = None  # of the search tree
    iterations: int | None = None  # of the simplex method, after which it pauses
    enough: float | None = None  # stop once the bound has come this far
    emphasis: str = ""  # "" or "aggressive" or "fast" or "off": how hard its own heuristics try
    memory_mb: int = 1500
    verbose: bool = False
    parameters: dict[str, float | int | bool | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    """OPTIMAL: within the gap asked for. `values` is one number for each variable."""

    status: Status
    values: list[float] | None
    cost: float | None
    bound: float  # -inf if nothing is proved
    nodes: int
    seconds: float  # on a processor, of all solves so far that came to an end
    work: int = 0  # iterations of the simplex method: time spent, in a measure that does not depend on the machine


_LOOKS = SCIP_HEURTIMING.BEFORENODE | SCIP_HEURTIMING.DURINGLPLOOP | SCIP_HEURTIMING.AFTERLPNODE


class _Pauses(Heur):  # type: ignore[misc]  # pyscipopt has no types
    """Holds a solve between two linear programs, where it has made as many iterations as may be: it goes on from just
    there. SCIP calls it as a heuristic, in the solve's own thread."""

    def __init__(self) -> None:
        self.stopped, self._go = threading.Event(), threading.Event()
        self.most: int | None = None
        self.paused = self._left = False
        self.seconds = self._before = 0.0

    def optimize(self, model: Model) -> None:
        self._before = self.seconds
        model.optimizeNogil()
        self._stop()

    def heurexec(self, heurtiming: int, nodeinfeasible: bool) -> dict[str, object]:
        while self.most is not None and self.model.getNLPIterations() >= self.most and not self._left:
            self.paused = True
            self._stop()
            self._go.wait()
            self._go.clear()
        if self._left:
            self.model.interruptSolve()
        return {"result": SCIP_RESULT.DIDNOTRUN}

    def _stop(self) -> None:
        self.seconds = self._before + thread_time()  # all that this thread has done
        self.stopped.set()

    def go_on(self) -> None:
        self.paused = False
        self.stopped.clear()
        self._go.set()

    def leave(self) -> None:
        """Nobody waits for it any more."""
        self._left = True
        self._go.set()


class Solving:
    """A solve that runs in a thread of its own, outside Python's lock, so that compiled code can run beside it.

    One that has paused, or came to its limit of nodes, can go on from there.
    """

    def __init__(
        self, program: Program, settings: Settings, starts: Sequence[Sequence[float]] = (), relaxed: bool = False
    ) -> None:
        self._clock = settings.clock
        self.iterations = self.nodes = 0  # of the simplex method and of the tree so far
        self._pauses = _Pauses()
        weakref.finalize(self, self._pauses.leave).atexit = False
        self._model, self._variables = _build(program, settings, relaxed)
        if settings.iterations is not None:
            self._model.includeHeur(self._pauses, "pauses", "", "P", priority=1 << 28, timingmask=_LOOKS)
        for start in starts:
            self._model.addSol(self._solution(start))
        self._start(self._clock.left(), settings.iterations)

    @property
    def seconds(self) -> float:
        return self._pauses.seconds

    @property
    def paused(self) -> bool:
        """Whether it has yet to come to its limit of nodes."""
        return self._pauses.paused

    def go_on(
        self,
        clock: Clock,
        nodes: int,
        enough: float | None,
        starts: Sequence[Sequence[float]] = (),
        iterations: int | None = None,
    ) -> None:
        """Search on, up to so many nodes in all, or to the next pause; `starts`: solutions found since. What has paused
        comes to the nodes that it was told of before."""
        self._clock = clock
        if self._pauses.paused:
            self._pauses.most = None if iterations is None else self.iterations + iterations
            self._pauses.go_on()
            return
        if not self._pauses.stopped.is_set():  # still where `wait` left it: two threads in one model prove anything
            return
        self._thread.join()
        if self._model.getStage() == SCIP_STAGE.SOLVED:  # nothing is left to search
            return
        for start in starts:
            self._model.trySol(self._solution(start))
        self._model.setParam("limits/totalnodes", nodes)
        if enough is not None:
            self._model.setParam("limits/dual", enough)
        self._start(self._model.getSolvingTime() + clock.left(), iterations)

    def _start(self, until: float, iterations: int | None) -> None:
        self._model.setParam("limits/time", max(0.01, until))
        self._pauses.most = None if iterations is None else self.iterations + iterations
        self._pauses.stopped.clear()
        self._thread = threading.Thread(target=self._pauses.optimize, args=(self._model,), daemon=True)
        self._thread.start()

    def _solution(self, values: Sequence[float]) -> object:
        solution = self._model.createOrigSol()
        for variable, value in zip(self._variables, values, strict=True):
            if value:
                self._model.setSolVal(solution, variable, value)
        return solution

    def running(self) -> bool:
        runs = not self._pauses.stopped.is_set()
        if runs and self._model.getStage() == SCIP_STAGE.SOLVING:
            self._clock.work.see(ITERATION_MOVES * (self._model.getNLPIterations() - self.iterations))
        return runs

    def wait(self) -> ProgramAnswer:
        """The answer, as soon as there is one, or what there is when the clock interrupts."""
        while self.running() and not self._clock.interrupts():
            self._pauses.stopped.wait(0.02)
        self._clock.work.see(0)
        until = monotonic() + _PATIENCE
        while not self._pauses.stopped.is_set() and monotonic() < until:
            if self._model.getStage() in (SCIP_STAGE.PRESOLVING, SCIP_STAGE.SOLVING):  # elsewhere SCIP will not hear it
                self._model.interruptSolve()
            self._pauses.stopped.wait(0.02)
        if (
            not self._pauses.stopped.is_set()
        ):  # deep in a linear program, which does not look up; it dies with the process
            return ProgramAnswer(Status.UNKNOWN, None, None, -INFINITY, self.nodes, self.seconds, self.iterations)
        return self._answer()

    def _answer(self) -> ProgramAnswer:
        model, status = self._model, self._model.getStatus()
        self.iterations, self.nodes = model.getNLPIterations(), model.getNTotalNodes()
        values = None
        if model.getNSols() > 0:
            best = model.getBestSol()
            values = [model.getSolVal(best, variable) for variable in self._variables]
        solved = status in ("optimal", "gaplimit")
        ended = Status.OPTIMAL if solved else Status.FEASIBLE if values is not None else Status.UNKNOWN
        return ProgramAnswer(
            status=Status.INFEASIBLE if status == "infeasible" else ended,
            values=values,
            cost=None if values is None else model.getObjVal(),
            bound=_safe(_finite(model, model.getDualbound()), len(self._variables)),
            nodes=self.nodes,
            work=self.iterations,
            seconds=self.seconds,
        )


def solve(
    program: Program,
    settings: Settings,
    starts: Sequence[Sequence[float]] = (),
    relaxed: bool = False,
) -> ProgramAnswer:
    """Solve the program, or with `relaxed` its linear relaxation; `starts` are solutions known beforehand.

    Where work is limited this takes what is left of it at most: not one linear program goes on for longer, and a
    program that it takes more to pose is left.
    """
    clock = settings.clock
    clock.spend(columns=len(program.costs))
    if clock.worn():
        return ProgramAnswer(Status.UNKNOWN, None, None, -INFINITY, 0, 0.0)
    size = len(program.costs) + len(program.rows)
    most = clock.linear_iterations(size) if relaxed else clock.iterations()
    if most is not None:
        limits = dict.fromkeys(_ITERATION_LIMITS, most)
        settings = replace(settings, iterations=most, parameters={**settings.parameters, **limits})
    answer = Solving(program, settings, starts, relaxed).wait()
    clock.spend(linear=(answer.work, size)) if relaxed else clock.spend(iterations=answer.work)
    return answer


def _finite(model: Model, bound: float) -> float:
    if model.isInfinity(abs(bound)):
        return math.copysign(math.inf, bound)
    return float(bound)


def _safe(bound: float, columns: int) -> float:
    """SCIP's bound less what its tolerances may have added: reduced costs a little below zero, comparisons."""
    return bound - _DUAL_TOLERANCE * columns - _EPSILON * abs(bound) if math.isfinite(bound) else bound


def _build(program: Program, settings: Settings, relaxed: bool) -> tuple[Model, list[object]]:
    model = Model()
    model.hideOutput()
    if settings.verbose:
        model.setLogfile("/dev/stderr")  # never on stdout, which is for answers
    if settings.emphasis:
        model.setHeuristics(_EMPHASES[settings.emphasis])
    for name, value in _parameters(settings).items():
        model.setParam(name, value)
    kinds = zip(program.costs, program.lows, program.highs, program.whole, strict=True)
    variables = [
        model.addVar(
            vtype="C" if relaxed or not whole else "B" if (low, high) == (0.0, 1.0) else "I",
            lb=None if low == -INFINITY else low,
            ub=None if high == INFINITY else high,
            obj=cost,
        )
        for cost, low, high, whole in kinds
    ]
    terms = [Term(variable) for variable in variables]
    for columns, coefficients, low, high in program.rows:
        sums: dict[Term, float] = {}
        for column, coefficient in zip(columns, coefficients, strict=True):
            sums[terms[column]] = sums.get(terms[column], 0.0) + coefficient
        if not sums:
            if not low <= 0.0 <= high:
                nothing = model.addVar(lb=0.0, ub=0.0)
                model.addCons(nothing >= 1.0)
            continue
        model.addCons(ExprCons(Expr(sums), None if low == -INFINITY else low, None if high == INFINITY else high))
    model.addObjoffset(program.offset)
    return model, variables


def _parameters(settings: Settings) -> dict[str, float | int | bool | str]:
    found: dict[str, float | int | bool | str] = {
        "limits/gap": settings.gap,
        "limits/memory": float(settings.memory_mb),
        "randomization/randomseedshift": settings.seed,
        "misc/catchctrlc": False,
        "timing/clocktype": 2,  # wall clock: other threads are at work
        "parallel/maxnthreads": 1,
        "lp/threads": 1,
    }
    if settings.enough is not None:
        found["limits/dual"] = settings.enough
    if settings.nodes is not None:
        found["limits/totalnodes"] = settings.nodes
    return {**found, **settings.parameters}


def version() -> str:
    """SCIP's own, whatever the version of its Python package."""
    scip = Model()
    return f"{scip.getMajorVersion()}.{scip.getMinorVersion()}.{scip.getTechVersion()}"


class Linear:
    """A linear program that is solved again and again: rows are added, columns between 0 and 1 are fixed and let go.

    Nothing it answers is safe from rounding.
    """

    def __init__(self, costs: Sequence[float], most: int | None = None) -> None:
        """`most`: iterations of one solve; one that would take more has no answer."""
        self._lp = LP()
        self.iterations = 0  # of the last solve
        if most is not None:
            self._lp.setIntParam(SCIP_LPPARAM.LPITLIM, most)
        count = len(costs)
        self._lp.addCols([[] for _ in costs], list(costs), [0.0] * count, [1.0] * count)
        self._count = count

    def add_rows(self, rows: Sequence[list[tuple[int, float]]], lows: Sequence[float]) -> None:
        """Each as (column, coefficient); its sum is to be at least `low`."""
        if rows:
            self._lp.addRows(list(rows), list(lows), [self._lp.infinity()] * len(rows))

    def bound(self, column: int, low: float, high: float) -> None:
        self._lp.chgBound(column, low, high)

    def solve(self) -> tuple[float, list[float], list[float]]:
        """Cost, values and each row's weight; without a solution, an infinite cost and the weights that show it."""
        if not self._count:
            return 0.0, [], []
        cost = self._lp.solve()
        self.iterations = self._lp.getNIterations()
        if self._lp.isOptimal():
            return cost, self._lp.getPrimal(), self._lp.getDual()
        ray = self._lp.getDualRay()
        return (INFINITY, [], ray) if ray is not None else (-INFINITY, [], [])
