"""The points of a curve: what each method needs and costs at each budget, and what points imply for each other.

Invariant: a larger budget is never dearer than a smaller one, because the smaller budget's plan keeps to both. A bound
for every order holds at every smaller budget. What is proved impossible is impossible at every smaller budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from remat_cli.formats.planfile import PlanFile
from remat_cli.model.proved import PlanProof
from remat_cli.model.sessions import kind_of
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.kinds import held
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.proofs import least_needed
from remat_cli.planning.subjects.in_pieces import scheduled_by
from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans.keeping import plan_file
from remat_cli.plans.notebook import overhead_by_budget, shown
from remat_cli.plans.planned import Planned
from remat_cli.units import show_bytes
from solvers.notes import Note
from solvers.options import Orders, options_of
from solvers.problem import Status
from solvers.registry import METHODS
from solvers.simulate import Outcome


@dataclass(frozen=True, slots=True)
class Ran:
    """The time of a step, in ns, and the bytes that its process held, as measured in a run."""

    ns: int
    held: int | None

    @property
    def per_second(self) -> float:
        return 1e9 / max(self.ns, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One method at one budget. Bytes and nanoseconds.

    `bound`: the cost that no schedule of the class named in `notes` goes below. `bound_any_order`: the cost that no
    schedule at all goes below. `least_peak`: the least peak the method reached, where that is over the budget.
    `made_by`: the method that made the plan.
    """

    budget: int
    method: str
    status: Status
    plan: PlanFile | None = None
    bound: int | None = None
    bound_any_order: int | None = None
    least_peak: int | None = None
    seconds: float = 0.0
    notes: tuple[Note, ...] = ()
    made_by: str = ""
    cached: bool = False  # whether the answer came from the store
    ran: Ran | None = None  # the figures of a run, if it was measured

    @property
    def found(self) -> bool:
        return self.plan is not None

    @property
    def cost(self) -> int | None:
        return self.plan.cost if self.plan else None

    @property
    def time(self) -> int | None:
        """The cost of the plan, with the ops that rewriting adds."""
        return self.plan.time if self.plan else None

    @property
    def peak(self) -> int | None:
        return self.plan.peak if self.plan else None

    @property
    def overhead(self) -> float | None:
        """The overhead of recomputation and of the ops that rewriting adds."""
        return self.plan.overhead if self.plan else None

    @property
    def proved(self) -> PlanProof | None:
        """What is proved of the plan's cost."""
        return None if self.plan is None else PlanProof(self.plan.cost, self.bound, self.bound_any_order)

    @property
    def gap(self) -> float | None:
        return None if self.proved is None else self.proved.gap


@dataclass(frozen=True, slots=True, repr=False)
class Curve:
    """`whole`: the bytes that the model holds without a plan. `points`: by method, from the largest budget to the
    smallest."""

    subject: Subject
    before: Outcome
    whole: int
    points: tuple[Point, ...]
    least_peak: int | None = None  # the least peak of any plan found
    ran: Ran | None = None  # the model without a plan, if it was measured

    @property
    def knee(self) -> Point | None:
        return knee(self.points)

    def __repr__(self) -> str:
        found = sum(point.found for point in self.points)
        least = "" if self.least_peak is None else f", least peak {show_bytes(self.least_peak)}"
        name, whole = self.subject.path.name, show_bytes(self.whole)
        return f"<curve of {name}: {found} plans at {len(self.points)} points, {whole} as it is{least}>"

    def _repr_html_(self) -> str:
        """For a notebook: a row for each point, and what each plan costs."""
        head = ("budget", "method", "status", "peak", "overhead")
        spots = [(point.budget, point.overhead) for point in self.points if point.overhead is not None]
        return shown(repr(self)[1:-1], [_cells(point) for point in self.points], head, overhead_by_budget(spots))

    def planned(self, point: Point) -> Planned | None:
        """The point's plan with its model, as a program can emit, run or save it."""
        return None if point.plan is None else Planned(point.plan, scheduled_by(point.plan, self.subject))


def _cells(point: Point) -> tuple[str, ...]:
    peak = "-" if point.peak is None else show_bytes(point.peak)
    over = "-" if point.overhead is None else f"{point.overhead:+.2%}"
    return show_bytes(point.budget), point.method, point.status.value, peak, over


def takes_plans(method: str) -> bool:
    """Whether the method looks for the cheapest plan of all, so that plans of other methods help it."""
    return any(entry.kind == Orders for entry in options_of(METHODS[method].options))


def point_of(found: Answer) -> Point:
    return Point(
        budget=found.budget,
        method=found.method,
        status=found.status,
        plan=plan_file(found) if found.found else None,
        bound=found.bound,
        bound_any_order=found.bound_any_order,
        least_peak=None if found.found else least_needed(found),
        seconds=found.seconds,
        notes=found.schedule.result.notes,
        made_by=found.made_by or found.method,
        cached=found.cached,
    )


def known_bound(points: Iterable[Point], budget: int) -> int | None:
    """The cost that no schedule within the budget goes below, by proofs for this budget and for larger ones."""
    return max(
        (p.bound_any_order for p in points if p.budget >= budget and p.bound_any_order is not None), default=None
    )


def known_impossible(points: Iterable[Point], budget: int, method: str) -> Point | None:
    """A point that proves that the method, or any method, finds no plan within the budget."""
    proofs = (p for p in points if p.status is Status.INFEASIBLE and p.budget >= budget)
    return next((p for p in proofs if p.method == method or METHODS[p.method].own_order), None)


def known_plans(points: Iterable[Point], budget: int, method: str) -> list[Point]:
    """Points whose plans keep to the budget, the cheapest first. A method that looks for the cheapest plan takes plans
    of any method; the others take their own."""
    own = [
        p for p in points if p.plan and budget_needed(p.plan) <= budget and (p.method == method or takes_plans(method))
    ]
    return sorted(own, key=lambda p: (p.time or 0, p.peak or 0, p.budget))


def budget_needed(plan: PlanFile) -> int:
    """The least budget that the plan keeps to, which may be much less than the one it was made for."""
    kind = kind_of(plan.session)
    return plan.budget if kind is None else min(plan.budget, held(plan.peak, kind, plan.promises))


def agree(points: Sequence[Point], gap: float) -> tuple[Point, ...]:
    """The same points, each with what the other points found and proved."""
    return tuple(_tell(point, points, gap) for point in points)


def _tell(point: Point, points: Sequence[Point], gap: float) -> Point:
    floor = known_bound(points, point.budget)
    best = next(iter(known_plans(points, point.budget, point.method)), None)
    if best is None or best.plan is None:
        impossible = known_impossible(points, point.budget, point.method)
        return replace(point, status=Status.INFEASIBLE if impossible else point.status, bound_any_order=floor)
    if point.time is not None and best.plan.time >= point.time:
        best = point
    assert best.plan is not None
    own = best.budget == point.budget and best.method == point.method
    bound = max((b for b in (best.bound if own else None, floor) if b is not None), default=None)
    status = best.status if own else Status.FEASIBLE
    if floor is not None and best.plan.cost <= floor * (1 + gap):
        status = Status.OPTIMAL
    return replace(
        point,
        plan=replace(
            best.plan,
            budget=point.budget,
            method=point.method,
            status=status.value,
            bound=bound,
            bound_any_order=floor,
        ),
        status=status,
        bound=bound,
        bound_any_order=floor,
        least_peak=None,
        notes=point.notes if own else (Note(PlanNote.OF_ANOTHER_POINT, (best.made_by, best.budget)),),
        made_by=best.made_by,
    )


def better_whole(point: Point, whole: Point) -> Point:
    """The point of ops in pieces, or that of whole ops at the same budget, where that is cheaper."""
    if whole.time is None or (point.time is not None and point.time <= whole.time):
        return point
    return replace(whole, notes=(*whole.notes, Note(PlanNote.BETTER_WHOLE)))


def envelope(points: Iterable[Point]) -> list[Point]:
    """The cheapest point of each budget, the smallest budget first."""
    cheapest: dict[int, Point] = {}
    for point in points:
        known = cheapest.get(point.budget)
        if point.time is not None and (known is None or known.time is None or point.time < known.time):
            cheapest[point.budget] = point
    return [cheapest[budget] for budget in sorted(cheapest)]


def knee(points: Iterable[Point]) -> Point | None:
    """The knee: the point at which memory times time is least. Below it, time grows faster than memory shrinks.

    At an end of the range nothing is known of what lies beyond, so that there is no knee.
    """
    curve = envelope(points)
    least = min(curve, key=lambda point: point.budget * (point.time or 0), default=None)
    return least if least is not None and least not in (curve[0], curve[-1]) else None
