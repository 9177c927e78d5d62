"""The target of stock sessions: optimizers change the graph, the arena has no cap, and later runs have another layout.

Three things are decided here. The graph that such a session makes of the file is planned. A plan's kernels must be the
original's. A plan is tried before it is given where the original's measured memory differs from the prediction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

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
from remat_cli.model.sessions import DEFAULT
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.stock.graph import default_graph, keeping_bits, new_kernels
from remat_cli.planning.stock.pins import find_ops_behind
from remat_cli.planning.stock.prediction import StockPrediction
from remat_cli.planning.stock.rewriting import Manner, original_by_default, rewrite_robustly
from remat_cli.planning.stock.same_kernels import rewrite_surely
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate, Footprint
from remat_cli.planning.targets.target import Target, View, as_written, graph_of
from remat_cli.rewrite import Rewritten
from solvers.clock import Clock
from solvers.placement.memory import LaterRuns, MemoryModel
from solvers.placement.pattern import outputs_apart
from solvers.plan import Plan
from solvers.problem import Problem

SHAPES_BYTES = 1024  # the constants of guards and hidden shapes, mostly
UNSURE_PART = 100  # one over this is the share of the predicted bytes that is kept as a margin of error


class StockTarget(Target):
    session = DEFAULT
    plans_file = True
    differs = PlanNote.DIFFERS_BY_DEFAULT

    def view(self, graph: Graph, may_optimize: bool, costs: Costs | None) -> View:
        planned, kernels = default_graph(graph, may_optimize)
        return View(planned, kernels, optimized=planned is not graph)

    def named(self, view: View, named: Named) -> Named:
        return keeping_bits(view.graph, named, fused=view.optimized)

    def why_apart(self, view: View, costs: Costs | None) -> str | None:
        """Pins keep updates behind what reads the inputs, in any order; only it must be seen that optimizers leave
        them."""
        if costs is not None and costs.kind != "cpu":
            return super().why_apart(view, costs)
        if view.kernels is None:
            return "it is not known which kernels a default session runs for the model"
        return None if view.optimized or as_written(view.graph) else narrow(view.graph)

    def unlike(self, whole: Totals) -> Peaks | None:
        return whole.default_peaks

    def unchecked(self, view: View) -> bool:
        return view.kernels is None

    def new_kernels(self, graph: Graph) -> Ops:
        return new_kernels(graph)

    def runs_before(
        self, outputs: Collection[str], graph: Graph, model: onnx.ModelProto, order: Sequence[str]
    ) -> frozenset[str]:
        """Whatever the order: those that each of the outputs is made from."""
        return find_ops_behind(model.graph, outputs)

    def reserve(self, problem: Problem) -> int:
        return SHAPES_BYTES

    def rewrite(self, subject: Subject, plan: Plan, budget: int | None = None) -> Rewritten:
        return rewrite_robustly(graph_of(subject), subject.problem, plan, Manner(subject.launch, budget=budget))

    def rewrite_surely(
        self, subject: Subject, plan: Plan, hiding: int = 0, first: Rewritten | None = None
    ) -> Rewritten:
        return rewrite_surely(subject, plan, hiding, first)

    def forms(self, subject: Subject) -> tuple[Subject, ...]:
        """With each kernel that the runtime fuses as one op; then op by op."""
        if not subject.problem.inner:
            return (subject,)
        return subject, subject.solving(replace(subject.problem, inner=frozenset()))

    def original(self, graph: Graph, problem: Problem) -> Rewritten:
        return original_by_default(graph, problem)

    def searched(self, subject: Subject) -> Problem:
        """Where plans are tried, as later runs hold it, with outputs from the beginning: nothing is proved of that."""
        held = super().searched(subject)
        return outputs_apart(held) if self.tries_plans(subject) else held

    def aside(self, subject: Subject) -> int:
        """Zero, because such a session promises nothing for its process beside the arena."""
        return 0

    def footprint(
        self, model: Rewritten, aside: int, budget: int | None = None, clock: Clock | None = None
    ) -> Footprint:
        """What is live in the runtime's own arena can be promised. What that grows to is foretold approximately."""
        prediction, live = model.as_run or model.prediction, model.promise.default
        assert isinstance(prediction, StockPrediction)
        if model.as_run is not None:  # a search knows the other figure alone
            live = max(live or 0, prediction.promise(model.hidden).default or 0)
        assert live is not None
        total = max(live, prediction.grown_by_default(model.hidden))
        later = None if model.prediction.fuses else prediction.later(model.hidden)
        sizes = {"default": live, "live": live, "arena": total, "default_arena": total, "later_foretold": later}
        return Footprint(replace(model.promise, **sizes))

    def counted(self, promise: Promise) -> int:
        """The promised bytes with a margin where they are predicted, and exactly where they are measured."""
        assert promise.live is not None
        if promise.later is not None:
            return max(promise.live, promise.later)
        most = max(promise.live, promise.later_foretold or 0)
        return most + most // UNSURE_PART

    def added(self, candidate: Candidate) -> int:
        """Buffers that wait, and small values between the large ones, make a block higher than the ops alone do."""
        held = None if candidate.footprint is None else candidate.promise.later_foretold
        if held is None or candidate.model is None:
            return 0
        own = LaterRuns(outputs_apart(candidate.subject.problem), 0).height(candidate.order)
        return max(0, held - candidate.model.prediction.problem.resident - own)

    def foretold_within(self, budget: int) -> int:
        return ((budget + 1) * UNSURE_PART - 1) // (UNSURE_PART + 1)

    def with_peaks(self, promise: Promise, peaks: Peaks) -> Promise:
        first, later = peaks
        return replace(promise, default=first, live=first, later=later)

    def memory(self, problem: Problem, room: int) -> MemoryModel:
        return LaterRuns(problem, room)

    def held_in_any_case(self, subject: Subject) -> int:
        return outside(graph_of(subject))

    def shares_of_all(self, subject: Subject) -> bool:
        return True
