"""What a kind of session decides: the graph to plan, the model of a plan and its footprint, repairs, witnesses.

Invariant: what a target `counts` is what the budget is for, inputs, weights and all that the rewriting added among it.
Nothing outside of this folder asks which kind of session it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from profiles.totals import Totals
from remat_cli.checking import outside
from remat_cli.checking.trying import Peaks
from remat_cli.model.graph import Graph
from remat_cli.model.problem_of import Named, as_it_stands
from remat_cli.model.promise import Promise
from remat_cli.model.sessions import Session
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.subjects.default_graph import written_out
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Footprint
from remat_cli.rewrite import Rewritten, additions
from remat_cli.rewrite.kernels import Numbered
from remat_cli.rewrite.predict import Prediction
from solvers.clock import Clock
from solvers.placement.growing import grown
from solvers.placement.largest import Placement
from solvers.placement.lifetimes import requests
from solvers.problem import Node, Problem
from solvers.schedule import baseline

if TYPE_CHECKING:
    from remat_cli.planning.search.request import PlanRequest

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class View:
    """The graph to plan. `kernels`: what the original runs, where results are held to that."""

    graph: Graph
    kernels: Numbered | None = None
    optimized: bool = False


class Target(ABC):
    """A kind of session with its allocator. `unit`: what it hands out comes in multiples of that many bytes.

    `online`: it places values as requests come, so that there is no table of places.
    """

    session: Session
    unit = 1
    online = True
    differs = PlanNote.DIFFERS  # what is said where the original holds something else than is predicted

    # the subject

    def view(self, graph: Graph, may_optimize: bool, whole: Totals | None) -> View:
        """The graph whose ops are planned; it may be an optimized one only if that is allowed.

        `whole`: what a profile saw of it. Where it held more than its ops account for, others may have run.
        """
        strange = whole is not None and whole.unlike and (whole.peak or 0) > (whole.predicted_peak or 0)
        made = written_out(graph) if may_optimize and strange else None
        return View(graph) if made is None else View(made, optimized=True)

    def named(self, view: View, named: Named) -> Named:
        """The problem with what such a session makes of its values."""
        return named

    def unlike(self, whole: Totals) -> Peaks | None:
        """What the profile saw the original hold, of a model whose plans must be tried; None if they need not be."""
        return None if whole.unlike is None or whole.peak is None else (whole.peak, whole.peak)

    def unchecked(self, view: View) -> bool:
        """Whether it is not known which kernels such a session runs of the original, though results hang on that."""
        return False

    # the footprint

    def aside(self, subject: Subject) -> int:
        """Bytes that kernels take beside the allocator: what it ever used stays, so each plan takes as many."""
        return 0 if subject.graph is None else subject.named.aside

    def reserve(self, problem: Problem) -> int:
        """Bytes that the rewriting may add to what a plan needs, for which room is left from the start."""
        return additions(self.session, problem)

    def in_units(self, problem: Problem) -> Problem:
        return in_units(problem, self.unit)

    @abstractmethod
    def footprint(
        self, model: Rewritten, aside: int, budget: int | None = None, clock: Clock | None = None
    ) -> Footprint:
        """What such a session holds for the model; with a budget, whether that is kept is all that is asked."""

    def as_recorded(self, model: Rewritten, aside: int, placement: Placement) -> Footprint | None:
        """The footprint with the places of a plan file, where such a session has places and these are sound."""
        return None

    def counted(self, promise: Promise) -> int:
        """The figure that the budget is held against."""
        assert promise.arena is not None
        return promise.arena

    def needed(self, promise: Promise, budget: int) -> int:
        """The least budget that a plan made for `budget` keeps to."""
        return self.counted(promise)

    def with_peaks(self, promise: Promise, peaks: Peaks) -> Promise:
        """The promise with what such a session was seen to hold in place of what was foretold."""
        first, _ = peaks
        return replace(promise, strict=first, live=first, arena=max(first, promise.arena or first))

    def as_seen(self, subject: Subject, footprint: Footprint) -> Footprint:
        """The original's footprint, with what it was seen to hold where that is not as predicted."""
        peaks = subject.behaviour.peaks
        return replace(footprint, promise=self.with_peaks(footprint.promise, peaks)) if peaks else footprint

    # the repairs

    @abstractmethod
    def settle(self, problem: Problem, order: Sequence[int], room: int, seed: int, clock: Clock) -> Order | None:
        """The same computes in an order that the allocator has room for."""

    @abstractmethod
    def arrange(self, problem: Problem, order: Sequence[int], room: int, seed: int, clock: Clock) -> Order | None:
        """The cheapest order that the allocator has room for, whose computes may be others."""

    @abstractmethod
    def walk(self, problem: Problem, live: int, room: int, seed: int, clock: Clock) -> Order | None:
        """An order from walks that evict, made afresh for the allocator."""

    # the witnesses

    def tries_plans(self, subject: Subject) -> bool:
        """Whether predictions are known to be off, so that a plan counts only once its model was seen to run."""
        return subject.behaviour.peaks is not None

    def bears_witness(self, subject: Subject) -> bool:
        """Whether a plan must be witnessed before it is given: by its kernels, or by a run."""
        return subject.behaviour.kernels is not None or self.tries_plans(subject)

    def graphs(self, subject: Subject) -> tuple[Subject, ...]:
        """The subjects to plan, one after the other until one has a plan: the graph that is run, then the file's."""
        return (subject,) if subject.behaviour.by_file is None else (subject, subject.own)

    def seldom_asks_again(self, subject: Subject) -> bool:
        """Whether predictions are of the kernels that run, so that the first search may take nearly all the time."""
        return subject.behaviour.optimized

    def readings(self, request: PlanRequest) -> tuple[PlanRequest, ...]:
        """The ways in which such a session's memory can be reckoned with, the strictest first."""
        return (request,)

    def ways(self, request: PlanRequest) -> Iterator[PlanRequest]:
        """Each reading, for as much less as the original holds more than is predicted, and then for as much more as it
        holds less."""
        for reading in self.readings(request):
            unknown = max(0, -self._less_held(reading))
            if unknown and request.budget - unknown > request.subject.problem.resident:
                yield replace(reading, budget=request.budget - unknown)
            yield self.foreseen(reading)

    def foreseen(self, request: PlanRequest) -> PlanRequest:
        """The request with a larger budget where the original holds less than is predicted, as what is fused is not."""
        return replace(request, budget=request.budget + max(0, self._less_held(request)))

    def _less_held(self, request: PlanRequest) -> int:
        """How much less the original was seen to hold than is predicted, where its plans can be expected to do so too.

        Of kernels that run as they stand, a plan is predicted better than the original's own order.
        """
        subject = request.subject
        if subject.behaviour.peaks is None or subject.behaviour.optimized:
            return 0
        before = as_it_stands(request.in_units(subject.as_given.problem))
        return baseline(before)[1].peak - max(subject.behaviour.peaks)

    def held_by_original(self, subject: Subject) -> int:
        """What the original was seen to hold."""
        assert subject.behaviour.peaks is not None
        return max(subject.behaviour.peaks)

    def held_at_the_end(self, subject: Subject) -> int:
        """What any model of the graph holds when a run ends: what is outside of the arena, and the outputs."""
        assert subject.graph is not None
        problem = subject.problem
        return outside(subject.graph) + sum(problem.sizes[value] for value in set(problem.outputs))

    def held_in_any_case(self, subject: Subject) -> int:
        """Inputs and weights, which no plan gets below: as the budget counts them, or as any session holds them."""
        assert subject.graph is not None
        foretold = not (self.session.robust or self.tries_plans(subject))
        return subject.problem.resident + self.aside(subject) if foretold else outside(subject.graph)

    # what is asked

    def shares_of_all(self, subject: Subject) -> bool:
        """Whether a budget in percent is of what the original holds, not of what is live in it."""
        return self.tries_plans(subject)


def in_units(problem: Problem, unit: int) -> Problem:
    """The problem with every size as an allocator takes it."""

    def whole(size: int) -> int:
        return -(-size // unit) * unit

    def node(old: Node) -> Node:
        early = tuple(whole(size) for size in old.early)
        return replace(old, early=early, workspace=sum(early) or whole(old.workspace))

    nodes = tuple(node(old) if old.workspace or old.early else old for old in problem.nodes)
    return replace(problem, nodes=nodes, sizes=tuple(map(whole, problem.sizes)))


def arena_if_uncapped(prediction: Prediction) -> int:
    """What the runtime's own arena holds in the strict session."""
    lifetimes = requests(prediction.problem, prediction.strict).lifetimes
    return prediction.problem.resident + grown((life.start, life.end, life.bytes) for life in lifetimes)
