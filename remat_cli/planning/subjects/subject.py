"""The subject of a command: a scheduling problem, and the names of its nodes and values in the user's file.

Invariant: `nodes[i]` names `problem.nodes[i]`, `values[j]` the value of size `problem.sizes[j]`; names are unique.
What is the same for all choices of what is in place is found once (`Costed`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from profiles.costs import Costs
from profiles.kernels import THREADS
from remat_cli.checking.trying import Peaks
from remat_cli.formats.files import stem_of
from remat_cli.formats.planfile import AS_RUN, FILE, CutOps, Source
from remat_cli.model.graph import Graph
from remat_cli.model.problem_of import Named, as_it_stands, problem_of
from solvers.notes import Note
from solvers.plan import Plan
from solvers.problem import Problem
from solvers.schedule import baseline
from solvers.simulate import Outcome

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What is known about how sessions of the target's kind run the model. Only targets read it.

    `kernels`: the kernels that the original runs there; None: no target asks, or the model does not run here.
    `optimized`: the graph is what onnxruntime makes of the file, so that its ops are the kernels that run. `by_file`:
    the same subject by the file's own ops, where the graph is optimized. `peaks`: the measured memory of the original,
    where it differs from the prediction; None: plans need not be tried.
    """

    kernels: object | None = None
    optimized: bool = False
    by_file: Callable[[], Subject] | None = field(default=None, compare=False)
    peaks: Peaks | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """`recast`: makes the subject for another graph of the model, with the costs of its ops; None where there is no
    graph."""

    source: Source  # the file that holds the model
    named: Named
    graph: Graph | None = None  # None for a `*.problem.json`
    dims: Mapping[str, int] = field(default_factory=dict)
    costs: Source | None = None
    notes: tuple[Note, ...] = ()  # what the user should know about the origin of the costs
    # threads of the sessions that the costs are for, because some kernels work in memory of each thread's own
    threads: int = THREADS
    measured: bool = True  # whether kernels were run for the costs, so that their workspace is known
    launch: int = 0  # the cost of the cheapest kernel: a rewritten model has some besides the plan's
    probe: int = 0  # the time in ns of the op that is timed with every profile; 0 where it is not known
    content: bytes | None = None  # the bytes of a model that is in memory only
    given_costs: Costs | None = None  # costs that are in memory only
    behaviour: Behaviour = field(default_factory=Behaviour)
    apart: Subject | None = None  # the same subject without updates in place: it holds both the old and the new values
    whole: Subject | None = None  # the model as it was given, where this subject has ops in pieces
    pieces: CutOps | None = None  # which ops are in pieces, as plan files record it
    costed: Costs | None = field(default=None, compare=False, repr=False)  # the costs of its ops, where they are known
    recast: Callable[[Graph, Costs | None], Subject] | None = field(default=None, compare=False, repr=False)
    _known: dict[Hashable, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def once(self, what: Hashable, find: Callable[[], Found]) -> Found:
        """What is found out of this subject by that name: the second time it is known."""
        if what not in self._known:
            self._known[what] = find()
        found: Found = self._known[what]
        return found

    @property
    def as_given(self) -> Subject:
        """The model in its file: ops whole, and nothing written in place of anything else."""
        whole = self.whole or self
        return whole.apart or whole

    @property
    def own(self) -> Subject:
        """The same subject by the ops of its file, whose bounds hold for every schedule."""
        if self.behaviour.by_file is None:
            return self
        return self.behaviour.by_file().given_as(self.content, self.given_costs)

    def given_as(self, content: bytes | None, costs: Costs | None) -> Subject:
        """The subject of a model, or of costs, that is in memory only; without updates in place it is too."""
        apart = self.apart and self.apart.given_as(content, costs)
        return replace(self, content=content, given_costs=costs, apart=apart)

    @property
    def graph_planned(self) -> str:
        """The name, in plan files, of the graph that the nodes are of."""
        return AS_RUN if self.behaviour.optimized else FILE

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def held_once(self) -> int:
        """Bytes of outputs that are written over inputs."""
        return 0 if self.graph is None else sum(self.graph.values[name].bytes for name in self.graph.in_place)

    @property
    def problem(self) -> Problem:
        return self.named.problem

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.named.nodes

    @property
    def values(self) -> tuple[str, ...]:
        return self.named.values

    def before(self) -> Outcome:
        """The memory and cost of the file without a plan."""
        return self.as_it_is()[1]

    def as_it_is(self) -> tuple[Plan, Outcome]:
        """The file as a plan: every op once, in the file's order."""
        given, rewritten = self.as_given, self.named.rewritten
        return given.once(
            ("as it is", rewritten), lambda: baseline(as_it_stands(given.problem) if rewritten else given.problem)
        )

    def solving(self, problem: Problem) -> Subject:
        """The same subject with another problem."""
        return replace(self, named=replace(self.named, problem=problem))

    @property
    def stem(self) -> str:
        """The stem that output files share."""
        return stem_of(self.path)

    def beside(self, suffix: str) -> Path:
        """`m.onnx` gives `m.plan.json` and so on, in the same folder."""
        return self.path.with_name(self.stem + suffix)


@dataclass(slots=True)
class Costed:
    """The costs of a graph, and what is found once for all that may be in place in it: what each op takes, and the
    problem with nothing in place."""

    costs: Costs | None
    table: dict[str, tuple[int, int]] | None = None
    apart: Named | None = None

    def problem(self, graph: Graph, other: bool) -> Named:
        """The problem of the graph with what is in place in it. `other`: of one that default sessions make."""
        if self.table is None:
            self.table = _table(graph, self.costs, other)
        named = problem_of(graph, self.table, self.costs.kind if self.costs else "cpu", self.apart)
        if self.apart is None and self.costs:
            named = replace(named, aside=named.aside + self.costs.session_bytes)
        self.apart = self.apart if graph.in_place else named
        return named


def _table(graph: Graph, costs: Costs | None, other: bool) -> dict[str, tuple[int, int]]:
    """Time and workspace of each op. `other`: of a graph that default sessions make of the model that was costed."""
    from profiles.roofline import FLOPS
    from profiles.survey import estimated
    from remat_cli.model.signatures import ops_of

    if costs and not other:
        return costs.table()
    known = {**costs.table(), **costs.table(by_default=True)} if costs else {}
    if all(op.name in known for op in graph.ops):
        return known
    paper = estimated(ops_of(graph), FLOPS if costs and costs.unit == FLOPS else "cpu")
    return {name: (cost.ns, cost.workspace) for name, cost in paper.items()} | known
