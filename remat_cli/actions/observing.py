"""The original, run once in the strict session and held against what is reckoned with: does the model do as foretold?

Invariant: what is said of an op was read off the runtime's own trace, kernel by kernel; what ops with subgraphs work
in is taken from there, as nothing else tells. Nothing here believes the cost file's workspace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from profiles.costs import Costs
from profiles.totals import NEAR_SHARE
from remat_cli.checking import in_all, outside
from remat_cli.checking.metered import Kernel
from remat_cli.checking.processes import Bench
from remat_cli.checking.trying import Peaks, in_file, peaks
from remat_cli.model.graph import Graph, Op
from remat_cli.model.problem_of import as_it_stands, problem_of
from remat_cli.model.sessions import STRICT
from remat_cli.onnx_graph.walk import has_subgraph
from remat_cli.units import show_bytes
from solvers.clock import Clock
from solvers.problem import Problem
from solvers.schedule import baseline

PATIENCE_SECONDS = 60.0  # seconds for a run, beside
SLOWER_TIMES = 100  # times what was foretold
ELSEWHERE = "the model holds at its peak what is reckoned with, but where a plan has its peak it may hold more"
WORDS = 200  # of what the runtime says


@dataclass(frozen=True, slots=True)
class Observed:
    """`peak`, `predicted`: of the original in the strict session; `peak` of its file as it is, functions and all.
    `inside`: what ops with subgraphs work in.

    `unlike`: the first op at which the runtime does not do as foretold, where the peak is another. `by_default`: what
    the original holds under default options, if it runs there. `not_run`: why nothing of this is known.
    """

    peak: int = 0
    predicted: int = 0
    unlike: str = ""
    inside: Mapping[str, int] = field(default_factory=dict)
    by_default: Peaks | None = None
    not_run: str = ""
    endless: bool = False  # it does not run because it did not end in time

    def into(self, costs: Costs) -> Costs:
        """The costs with what was seen; a pinned op keeps its own."""
        if self.not_run:
            return replace(costs, whole=replace(costs.whole, not_run=self.not_run))
        seen = {name: size for name, size in self.inside.items() if not costs.ops[name].pinned}
        ops = {name: replace(cost, workspace=seen.get(name, cost.workspace)) for name, cost in costs.ops.items()}
        by_default = None if self.by_default is None else (self.by_default[0], self.by_default[1])
        whole = replace(costs.whole, peak=self.peak, predicted_peak=self.predicted, default_peaks=by_default)
        return replace(costs, ops=ops, whole=replace(whole, unlike=self.unlike or None))


def observe(graph: Graph, costs: Costs, feeds: Mapping[str, Any], threads: int, clock: Clock) -> Observed:
    """What runs of the model in processes of their own show, as far as there is time for them."""
    timeout = PATIENCE_SECONDS + SLOWER_TIMES * sum(cost.ns for cost in costs.ops.values()) / 1e9
    bench = Bench(feeds, "cpu", timeout, threads, clock=clock)
    with TemporaryDirectory(prefix="remat-") as folder, bench:
        path = _file(graph, Path(folder))
        reply = bench.run(in_file(graph.model, graph.path, Path(folder)) if graph.expanded else path, STRICT)
        own = in_all(graph, bench.run(path, STRICT)).first if graph.expanded else None
        if not reply.kernels:
            why = " ".join((reply.refused or reply.failed or "no kernel was seen to run").split())
            return Observed(not_run=why[:WORDS], endless=reply.endless)
        by_default = None if clock.over() else peaks(graph, path, feeds, threads, min(timeout, clock.left()))
    problem = as_it_stands(problem_of(graph, costs.table()).problem)
    found = replace(_hold_against(graph, problem, reply.kernels), by_default=by_default)
    return _observe_functions(found, own) if own else found


def _observe_functions(found: Observed, own: int) -> Observed:
    """Of a model with functions: what its file holds, whose functions the runtime writes out in an order of its own.
    Rewritten models have none, so that plans hold what is reckoned with all the same."""
    if abs(own - found.peak) <= NEAR_SHARE * found.peak or found.unlike:
        return found
    return replace(found, peak=own)


def _file(graph: Graph, folder: Path) -> Path:
    """The user's own file, or one of the model in memory."""
    if graph.path.is_file() and not graph.dims:
        return graph.path
    return in_file(graph.model, graph.path, folder)


def _hold_against(graph: Graph, problem: Problem, kernels: Sequence[Kernel]) -> Observed:
    """Each kernel's memory beside what is reckoned with; what lies outside of the arena is added to it."""
    bare = replace(problem, nodes=tuple(replace(node, workspace=0, early=()) for node in problem.nodes))
    expected = dict(zip((op.name for op in graph.ops), baseline(bare)[1].memory, strict=True))
    runs, off = list(_of_ops(graph, kernels)), outside(graph)
    by_data = [(run.op.name, run.most) for run in runs if run.op and _cannot_be_alone(graph, run.op)]
    inside = {name: max(0, most + off - expected[name]) for name, most in by_data}
    nodes = zip(graph.ops, problem.nodes, strict=True)
    problem = replace(problem, nodes=tuple(replace(n, workspace=inside.get(op.name, n.workspace)) for op, n in nodes))
    reckoned = baseline(problem)[1]
    predicted, peak = reckoned.peak, max(run.most for run in runs) + off
    near, unlike = NEAR_SHARE * predicted, ""
    if abs(peak - predicted) > near:
        stray = next(_strays(runs, expected, off, near), "no op alone accounts for it")
        unlike = f"the model holds {show_bytes(peak)} where {show_bytes(predicted)} are reckoned with: {stray}"
    else:
        most = dict(zip((op.name for op in graph.ops), reckoned.memory, strict=True))
        odd = next(chain(_other_kernels(runs, expected), _fuller(runs, most, off, near)), "")
        unlike = f"{ELSEWHERE}: {odd}" if odd else ""
    return Observed(peak, predicted, unlike, inside)


@dataclass(frozen=True, slots=True)
class _Run:
    """A kernel as it ran: `most` in its course, what ran inside of it included. `op`: None, if the model has it not."""

    op: Op | None
    kernel: Kernel
    after: int
    most: int


def _of_ops(graph: Graph, kernels: Sequence[Kernel]) -> Iterator[_Run]:
    """Kernels of subgraphs end before the op that holds them; what else is not the model's stands for itself."""
    ops = {op.name: op for op in graph.ops}
    waiting: list[_Run] = []
    for kernel in kernels:
        op = ops.get(kernel.name)
        run = _Run(op, kernel, kernel.after, kernel.most)
        if op is None:
            waiting.append(run)
            continue
        if has_subgraph(op.node):
            run = replace(run, most=max(run.most, *(inner.most for inner in waiting), 0))
        else:
            yield from waiting
        waiting = []
        yield run
    yield from waiting


def _cannot_be_alone(graph: Graph, op: Op) -> bool:
    """Whether what an op works in hangs on the data it is given, so that nothing tells of it when it is timed alone."""
    return has_subgraph(op.node) or any(name.rpartition(":")[0] in op.writes for name in graph.dims)


def _other_kernels(runs: Sequence[_Run], expected: Mapping[str, int]) -> Iterator[str]:
    """What runs is not what the model says: copies of it will not be either."""
    ran = {run.op.name for run in runs if run.op}
    if gone := [name for name in expected if name not in ran]:
        yield f"onnxruntime has no kernel {gone[0]!r}, but others in its place; --optimize disabled has those profiled"
    for run in runs:
        if run.op is None:
            yield f"onnxruntime runs a {run.kernel.op_type} of its own, {run.kernel.name!r}"


def _fuller(runs: Sequence[_Run], most: Mapping[str, int], off: int, near: float) -> Iterator[str]:
    """Ops in whose course more is held than is reckoned with."""
    for run in runs:
        if run.op and run.most + off - most[run.op.name] > near:
            held, foretold = show_bytes(run.most + off), show_bytes(most[run.op.name])
            yield f"in {run.op.op_type} {run.op.name!r} {held} are held, and {foretold} were expected"


def _strays(runs: Sequence[_Run], expected: Mapping[str, int], off: int, near: float) -> Iterator[str]:
    """Where the runtime does otherwise than foretold, the likeliest cause first."""
    yield from _other_kernels(runs, expected)
    ran = [run.op.name for run in runs if run.op]
    for name, meant in zip(ran, expected, strict=False):
        if name != meant:
            yield f"onnxruntime runs {name!r} where {meant!r} was expected"
    for run in runs:
        if run.op and abs(run.after + off - expected[run.op.name]) > near:
            held, foretold = show_bytes(run.after + off), show_bytes(expected[run.op.name])
            yield f"after {run.op.op_type} {run.op.name!r} {held} are held, and {foretold} were expected"
    if runs:
        most = max(runs, key=lambda run: run.most)
        yield f"{most.kernel.op_type} {most.kernel.name!r} works in more than was measured of it alone"
