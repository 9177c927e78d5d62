"""The report on each compiled graph: its planned memory and time, its measured memory, and its recomputations.

Invariant: `measured` is what a meter saw while the graph ran, and None before that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import fx

from remat_cli.formats import problemfile
from remat_cli.model.problem_of import Named
from remat_cli.model.proved import PlanProof, overhead_of
from remat_cli.torch.backend import Backend
from remat_cli.torch.inductor import PARTITIONER, InductorPartitioner
from remat_cli.torch.lowering import Lowered
from remat_cli.torch.named import named as by_name
from remat_cli.torch.named import remat
from remat_cli.torch.partition import Partitioner, PlannedJoint
from remat_cli.torch.private import behind
from remat_cli.torch.skipped import told
from remat_cli.units import show_bytes
from solvers.schedule import baseline

BETWEEN = "what runs in eager between the graphs is in no figure, and in no budget"
SERVED = (
    "no graph was planned: torch's own cache served code that was compiled within this budget before, and its figures"
    " are not known here. With torch._functorch.config.enable_autograd_cache = False the graph is planned again"
)
ROOT = re.compile(r"^L\['\w+'\]\.?")  # the name of the compiled module within torch.compile


@dataclass(frozen=True, slots=True)
class GraphReport:
    """One graph, in bytes and nanoseconds. `before`: the peak without recomputation. `written`: that of the step as
    written, where parts of it are under `torch.utils.checkpoint`. `why`: the reason why it has no plan. `again`:
    recomputations by module."""

    predicted: int | None
    measured: int | None
    before: int | None = None
    budget: int | None = None
    least_peak_bound: int | None = None
    cost: int | None = None
    cost_before: int | None = None
    bound: float | None = None
    again: tuple[tuple[str, int], ...] = ()
    why: str = ""
    written: int | None = None

    @property
    def overhead(self) -> float | None:
        if self.cost is None or self.cost_before is None:
            return None
        return overhead_of(self.cost, self.cost_before)

    @property
    def gap(self) -> float | None:
        return None if self.cost is None else PlanProof(self.cost, self.bound).gap

    def __str__(self) -> str:
        measured = "not measured" if self.measured is None else f"measured {show_bytes(self.measured)}"
        if self.predicted is None or self.before is None or self.budget is None:
            return f"torch's own partition: {self.why}; {measured}"
        text = f"peak {show_bytes(self.predicted)}, {measured}; without recomputation {show_bytes(self.before)}"
        text += "" if self.written is None else f", as written {show_bytes(self.written)}"
        text += f"; budget {show_bytes(self.budget)}\ntime {self.overhead:+.2%}"
        if self.gap is not None:
            text += f", within {self.gap:.2%} of the least possible"
        lines = [f"  {count} x {name}" for name, count in self.again]
        return "\n".join([text, f"computed again: {sum(count for _, count in self.again)} ops", *lines])


@dataclass(frozen=True, slots=True)
class Report:
    """The reports of all graphs that one backend or partitioner compiled, in that order. `left`: what torch.compile
    left to eager, of any module of the process. `served`: whether there is none because torch's own cache had the code.
    `outside`: by how much what ran in eager made the step hold more than its graphs, if it did.
    """

    graphs: tuple[GraphReport, ...]
    left: tuple[str, ...] = ()
    served: bool = False
    outside: str = ""

    def __str__(self) -> str:
        graphs = [f"graph {place}: {graph}" for place, graph in enumerate(self.graphs)]
        if not graphs:
            graphs = [SERVED if self.served else "no graph was compiled: no budget holds"]
        elif len(graphs) > 1:
            graphs.append(BETWEEN)
        return "\n\n".join([*graphs, *self.left, *filter(None, [self.outside])])


def report(compiled: Any) -> Report:
    """The report of a compiled module or function, of the backend, or of a partitioner."""
    found = _told(compiled)
    plans = _plans(found)
    if isinstance(found, Backend):
        graphs = tuple(_of(plan, found.step.meter.peak or None) for plan in plans)
        return Report(graphs, told(found), outside=found.step.outside)
    served = not plans and isinstance(found, InductorPartitioner) and found.looked_up
    return Report(tuple(_of(plan, None) for plan in plans), served=served)


def save_joint(compiled: Any, path: Path | str, graph: int = 0) -> None:
    """A graph's scheduling problem as a file that `remat sweep`, `solve` and `show` take: `NAME.joint.json`."""
    plan = _plans(_told(compiled))[graph]
    if plan.lowered is None:
        raise ValueError(f"graph {graph} has no problem to save: {plan.why}")
    problemfile.write(named(plan.lowered), Path(path))


Source = Backend | InductorPartitioner | Partitioner


def _told(compiled: Any) -> Source:
    return compiled if isinstance(compiled, (Backend, InductorPartitioner, Partitioner)) else _behind(compiled)


def _plans(source: Source) -> list[PlannedJoint]:
    return source.plans if isinstance(source, Partitioner) else source.partitioner.plans


def _behind(compiled: Any) -> Backend | InductorPartitioner:
    """The backend that torch.compile was given for this, or the partitioner among the options for Inductor."""
    for found in behind(compiled):
        if isinstance(found, Backend):
            return found
        if getattr(found, "compiler_fn", None) is remat:
            return by_name(found.kwargs.get("options"))
        given = getattr(found, "config", None)
        if isinstance(given, dict) and isinstance(given.get(PARTITIONER), InductorPartitioner):
            return given[PARTITIONER]
    raise ValueError("this was not compiled with remat_cli.torch: with a partitioner in Inductor's config, give that")


def _of(plan: PlannedJoint, measured: int | None) -> GraphReport:
    if plan.lowered is None or plan.found is None:
        return GraphReport(None, measured, why=plan.why)
    found, told = plan.found, plan.told
    kept = plan.lowered.checkpointed
    written = None if kept is None else told.written if told else baseline(kept.problem)[1].peak
    return GraphReport(
        predicted=told.peak if told else found.outcome.peak,
        measured=measured,
        before=told.whole if told else found.before.peak,
        budget=told.budget if told else found.budget,
        least_peak_bound=found.least_peak_bound,
        cost=found.outcome.cost,
        cost_before=found.before.cost,
        bound=found.bound,
        written=written,
        again=tuple(_again(plan.lowered, found.order).most_common()),
    )


def _again(lowered: Lowered, order: Sequence[int]) -> Counter[str]:
    """The number of recomputations of each module's ops."""
    extra: Counter[str] = Counter()
    for op, count in Counter(lowered.ops[index] for index in order).items():
        if op is not None and count > 1:
            extra[module_of(op)] += count - 1
    return extra


def module_of(op: fx.Node) -> str:
    """The name of the module that an op was called in, as `named_modules` has it; its function, outside of all."""
    stack = op.meta.get("nn_module_stack") or {}
    path = [str(place) for place, _ in stack.values()]
    return ROOT.sub("", path[-1]) if path else str(op.target)


def named(lowered: Lowered) -> Named:
    """The problem with the names of the graph's nodes."""
    names: list[str] = []
    seen: set[fx.Node | None] = set()
    for op in lowered.ops:
        name = "boundary" if op is None else op.name
        names.append(f"{name}.again" if op in seen else name)
        seen.add(op)
    values = [""] * len(lowered.problem.sizes)
    for name, node in zip(names, lowered.problem.nodes, strict=True):
        for place, value in enumerate(node.writes):
            values[value] = name if len(node.writes) == 1 else f"{name}.{place}"
    return Named(lowered.problem, tuple(names), tuple(values))
