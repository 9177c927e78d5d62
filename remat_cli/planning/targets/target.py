"""The decisions of a kind of session: the graph to plan, the model of a plan and its footprint, repairs, witnesses.

Invariant: what a target `counts` is what the budget is for: inputs, weights and all that the rewriting adds are part of
it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import onnx

from profiles.costs import Costs
from profiles.survey import Ops
from profiles.totals import Totals
from remat_cli.checking import outside
from remat_cli.checking.trying import Peaks
from remat_cli.model.graph import Graph
from remat_cli.model.in_place import narrow
from remat_cli.model.problem_of import Named
from remat_cli.model.proved import Promise
from remat_cli.model.sessions import Session
from remat_cli.notes.kinds import PlanNote
from remat_cli.onnx_graph.attributes import said_in
from remat_cli.planning.subjects.optimized import written_out
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate, Footprint
from remat_cli.rewrite import Rewritten, additions, original, rewrite
from remat_cli.runtime.optimized import SAYS
from solvers.clock import Clock
from solvers.orders.bounds import peak_bound
from solvers.placement.growing import grown
from solvers.placement.lives import Lives
from solvers.placement.memory import MemoryModel
from solvers.placement.placed import Placement
from solvers.plan import Plan
from solvers.problem import Node, Problem


@dataclass(frozen=True, slots=True)
class View:
    """The graph to plan. `kernels`: the original's, where results must come from the same ones."""

    graph: Graph
    kernels: object | None = None
    optimized: bool = False


class Target(ABC):
    """A kind of session with its allocator. `unit`: the allocator hands out multiples of that many bytes.

    `online`: it places values as requests come, so that there is no table of places. `plans_file`: the file's own ops
    may have a plan where the graph that it makes of the file has none.
    """

    session: Session
    unit = 1
    plans_file = False
    online = True
    differs = PlanNote.DIFFERS  # the note where the original's measured memory differs from the prediction

    # The subject.

    def view(self, graph: Graph, may_optimize: bool, costs: Costs | None) -> View:
        """The graph whose ops are planned; an optimized one only where `may_optimize` allows it."""
        made = written_out(graph) if may_optimize and _others_may_run(graph, costs) else None
        return View(graph) if made is None else View(made, optimized=True)

    def named(self, view: View, named: Named) -> Named:
        """The problem with what such a session makes of its values."""
        return named

    def why_apart(self, view: View, costs: Costs | None) -> str | None:
        """Why no output may come in the place of an input in such a session; None where some may."""
        if costs is not None and costs.kind != "cpu":
            return f"the costs are of {costs.kind}, where the session copies what it is given"
        if costs is not None and costs.whole.unlike:
            return "the model does not run as foretold, so that another order than the plan's may run"
        return None if as_written(view.graph) else narrow(view.graph)

    def unlike(self, whole: Totals) -> Peaks | None:
        """The measured memory of the original, for a model whose plans must be tried; None if they need not be."""
        return None if whole.unlike is None or whole.peak is None else (whole.peak, whole.peak)

    def unchecked(self, view: View) -> bool:
        """Whether it is unknown which kernels such a session runs of the original, though results depend on them."""
        return False

    def new_kernels(self, graph: Graph) -> Ops:
        """The kernels that such a session makes of the graph's ops, of those that are no ops of it."""
        return Ops({})

    # The model.

    def rewrite(self, subject: Subject, plan: Plan, budget: int | None = None) -> Rewritten:
        """The model that runs the plan in such a session; with a budget, made as tight as that asks."""
        return rewrite(graph_of(subject), subject.problem, plan, subject.launch)

    def rewrite_surely(
        self, subject: Subject, plan: Plan, hiding: int = 0, first: Rewritten | None = None
    ) -> Rewritten:
        """The same, seen to run the original's kernels where results depend on it. `first`: that model, if it was made
        already; `hiding`: how much of it is hidden from the runtime's planner."""
        return first or self.rewrite(subject, plan)

    def original(self, graph: Graph, problem: Problem) -> Rewritten:
        """The model as it is, in the order of its file, for such a session."""
        return original(graph, problem)

    def runs_before(
        self, outputs: Collection[str], graph: Graph, model: onnx.ModelProto, order: Sequence[str]
    ) -> frozenset[str]:
        """The ops that have all run before the first of these outputs is made. `order`: of the ops, by the plan."""
        makers = {op.name for op in graph.ops if not set(outputs).isdisjoint(op.writes)}
        first = next((place for place, name in enumerate(order) if name in makers), len(order))
        return frozenset(order[:first]).difference(order[first:])

    # The search.

    def forms(self, subject: Subject) -> tuple[Subject, ...]:
        """What orders are searched for in: the subject, and what stands in for it where that leads to no plan."""
        return (subject,)

    # The footprint.

    def aside(self, subject: Subject) -> int:
        """Bytes that kernels take beside the allocator. Memory once used there stays, so every plan takes the same."""
        return 0 if subject.graph is None else subject.named.aside

    def reserve(self, problem: Problem) -> int:
        """Bytes that the rewriting may add to the needs of a plan; room for them is left from the start."""
        return additions(problem)

    def in_units(self, problem: Problem) -> Problem:
        """The problem with every size as the allocator takes it."""
        return in_units(problem, self.unit)

    def searched(self, subject: Subject) -> Problem:
        """The problem of which orders are searched for: with every size as the allocator takes it."""
        return self.in_units(subject.problem)

    def place(self, candidate: Candidate, budget: int | None = None, clock: Clock | None = None) -> Candidate:
        """The candidate with its model for such a session and the model's footprint; with a budget, as tightly as that
        asks."""
        subject = candidate.subject
        foretold = None if budget is None else self.foretold_within(budget)
        model = candidate.model or self.rewrite(subject, candidate.plan, foretold)
        return replace(candidate, model=model, footprint=self.footprint(model, self.aside(subject), budget, clock))

    def place_as_recorded(self, candidate: Candidate, placement: Placement) -> Candidate:
        """The candidate with the places that a plan file gives, if they are sound; without places if not."""
        model = self.rewrite(candidate.subject, candidate.plan)
        footprint = self.as_recorded(model, self.aside(candidate.subject), placement)
        return candidate if footprint is None else replace(candidate, model=model, footprint=footprint)

    @abstractmethod
    def footprint(
        self, model: Rewritten, aside: int, budget: int | None = None, clock: Clock | None = None
    ) -> Footprint:
        """The footprint of the model in such a session. With a budget, it only needs to tell whether that is kept."""

    def as_recorded(self, model: Rewritten, aside: int, placement: Placement) -> Footprint | None:
        """The footprint with the places of a plan file, where such a session has places and these are sound."""
        return None

    def counted(self, promise: Promise) -> int:
        """The figure that the budget is held against: live bytes too, as writing adds constants that lie outside."""
        assert promise.arena is not None
        return max(promise.arena, promise.live or 0)

    def held(self, live: int, promise: Promise | None) -> int:
        """The least budget that a plan keeps to: what is live, and what is counted of its model, if that is known."""
        return live if promise is None or promise.arena is None else max(live, self.counted(promise))

    def held_by(self, candidate: Candidate) -> int:
        """The same of a candidate."""
        return self.held(candidate.peak, candidate.promise if candidate.footprint else None)

    def added(self, candidate: Candidate) -> int:
        """Bytes that the model of an order holds beyond what repairs count of the order, as far as that is known."""
        return 0

    def foretold_within(self, budget: int) -> int:
        """The most bytes that may be foretold for a plan, so that what is counted keeps to the budget."""
        return budget

    def with_peaks(self, promise: Promise, peaks: Peaks) -> Promise:
        """The promise with measured bytes in place of predicted ones."""
        first, _ = peaks
        return replace(promise, strict=first, live=first, arena=max(first, promise.arena or first))

    def as_seen(self, subject: Subject, footprint: Footprint) -> Footprint:
        """The original's footprint, with its measured bytes where those differ from the prediction."""
        peaks = subject.behaviour.peaks
        return replace(footprint, promise=self.with_peaks(footprint.promise, peaks)) if peaks else footprint

    # The repairs.

    @abstractmethod
    def memory(self, problem: Problem, room: int) -> MemoryModel:
        """What an order needs in such a session, in a room of so many bytes beside inputs and weights."""

    # The witnesses.

    def tries_plans(self, subject: Subject) -> bool:
        """Whether predictions are known to be off, so that a plan counts only once its model was run."""
        return subject.behaviour.peaks is not None

    def bears_witness(self, subject: Subject) -> bool:
        """Whether a plan must be witnessed before it is given: by its kernels, or by a run."""
        return subject.behaviour.kernels is not None or self.tries_plans(subject)

    def has_own_graph(self, subject: Subject) -> bool:
        """Whether the file's own ops are planned too, where the graph that is run has no plan."""
        return subject.behaviour.by_file is not None

    def held_at_the_end(self, subject: Subject) -> int:
        """The bytes that any model of the graph holds when a run ends: those outside of the arena, and the outputs."""
        assert subject.graph is not None
        problem = subject.problem
        return outside(subject.graph) + sum(problem.sizes[value] for value in set(problem.outputs))

    def held_in_any_case(self, subject: Subject) -> int:
        """Inputs and weights, which no plan gets below: as the budget counts them, or as any session holds them."""
        assert subject.graph is not None
        foretold = not self.tries_plans(subject)
        return subject.problem.resident + self.aside(subject) if foretold else outside(subject.graph)

    def needed_at_least(self, subject: Subject) -> int:
        """What every plan holds because each op needs that much for itself, as far as predictions can be relied on."""
        if self.tries_plans(subject):
            return self.held_at_the_end(subject)
        if subject.graph is None:
            return peak_bound(subject.problem).peak
        graphs = (subject, subject.own) if self.has_own_graph(subject) else (subject,)
        problems = [form.problem for graph in graphs for form in self.forms(graph)]
        return min(peak_bound(self.in_units(problem)).peak for problem in problems) + self.aside(subject)

    # The question.

    def shares_of_all(self, subject: Subject) -> bool:
        """Whether a budget in percent is a share of all that the original holds, and not of its live bytes."""
        return self.tries_plans(subject)


def graph_of(subject: Subject) -> Graph:
    assert subject.graph is not None
    return subject.graph


def as_written(graph: Graph) -> bool:
    """Whether onnxruntime itself wrote the file, with all that it adds to others."""
    return SAYS in said_in(graph.model)


def in_units(problem: Problem, unit: int) -> Problem:
    """The problem with every size as an allocator takes it."""

    def whole(size: int) -> int:
        return -(-size // unit) * unit

    def node(old: Node) -> Node:
        early = tuple(whole(size) for size in old.early)
        return replace(old, early=early, workspace=sum(early) or whole(old.workspace))

    nodes = tuple(node(old) if old.workspace or old.early else old for old in problem.nodes)
    return replace(problem, nodes=nodes, sizes=tuple(map(whole, problem.sizes)))


def arena_if_uncapped(resident: int, lifetimes: Lives) -> int:
    """The bytes that the runtime's own arena holds in the strict session."""
    return resident + grown(lifetimes)


def _others_may_run(graph: Graph, costs: Costs | None) -> bool:
    """Whether other ops may run than the graph's: it was measured to hold more than its ops account for, or nobody
    measured it, and it has values that a CPU lacks kernels for."""
    if costs is None:
        return narrow(graph) is not None
    whole = costs.whole
    return costs.kind == "cpu" and whole.unlike is not None and (whole.peak or 0) > (whole.predicted_peak or 0)
