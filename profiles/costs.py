"""The cost of each op of a model, at one batch size or at several; `costfile.py` reads and writes it.

Invariant: a cost that is marked as pinned was set by hand and is never overwritten.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from profiles.totals import Totals

ABSURD_NS = 10**15  # eleven days for one op


class BadCosts(ValueError):
    """A cost file that cannot be used; says where and why."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Over batch sizes: the points measured, and the line base + slope * batch through them, for time and workspace."""

    points: Mapping[int, tuple[int, int]]  # batch -> (ns, workspace)
    time: tuple[float, float]
    workspace: tuple[float, float]

    def at(self, batch: int) -> tuple[int, int]:
        """Time and workspace at any batch size; at a measured one, the measured figures."""
        if batch in self.points:
            return self.points[batch]
        (base, slope), (held, growth) = self.time, self.workspace
        return max(0, round(base + slope * batch)), max(0, round(held + growth * batch))


@dataclass(frozen=True, slots=True)
class OpCost:
    """`ns` is the cost that counts; `alone` is what the op took by itself, before scaling to the whole graph."""

    ns: int
    workspace: int = 0
    how: str = "measured"
    alone: int | None = None
    spread: float | None = None
    runs: int | None = None
    note: str = ""
    pinned: bool = False
    fit: Fit | None = None

    def at_batch(self, batch: int) -> OpCost:
        if self.pinned or not self.fit:
            return self
        ns, workspace = self.fit.at(batch)
        return replace(self, ns=ns, workspace=workspace)


@dataclass(frozen=True, slots=True, repr=False)
class Costs:
    """`model`, `device` and `whole` are as in the file: the model, the device, and the whole graph's own figures.

    `kernels`: the ops of the graph that default sessions make of the model, where that differs from the file's.
    """

    model: str
    sha256: str
    dims: Mapping[str, int]
    device: Mapping[str, Any]
    ops: Mapping[str, OpCost]
    whole: Totals = field(default_factory=Totals)
    date: str = ""
    unit: str = "ns"
    batch: str = ""  # the dimension that the ops' fits are functions of
    kernels: Mapping[str, OpCost] = field(default_factory=dict)

    def __repr__(self) -> str:
        total = sum(cost.ns for cost in self.ops.values())
        where = self.device.get("name") or self.device.get("kind") or "a device"
        return f"<costs of {self.model}: {len(self.ops)} ops, {total:,} {self.unit} in all, on {where}>"

    def table(self, by_default: bool = False) -> dict[str, tuple[int, int]]:
        """Time and workspace by op name, for schedules; with `by_default`, those of the kernels of default sessions."""
        costs = self.kernels if by_default else self.ops
        return {name: (cost.ns, cost.workspace) for name, cost in costs.items()}

    def at_batch(self, batch: int) -> Costs:
        """The costs at another batch size, through each op's fit; ops without one keep their figures."""
        ops, kernels = (
            {name: cost.at_batch(batch) for name, cost in costs.items()} for costs in (self.ops, self.kernels)
        )
        dims = {**self.dims, self.batch: batch} if self.batch else self.dims
        return replace(self, ops=ops, kernels=kernels, dims=dims)

    def for_dims(self, dims: Mapping[str, int]) -> Costs:
        """The costs with these dimensions bound: as they are, or through the fits. Raises BadCosts where neither."""
        if dims.items() <= self.dims.items():
            return self
        if self.batch and {**dims, self.batch: 0} == {**self.dims, self.batch: 0} and self.batch in dims:
            return self.at_batch(dims[self.batch])
        bound = ", ".join(f"{name}={size}" for name, size in self.dims.items()) or "none"
        raise BadCosts(f"the costs are for other dimensions ({bound}); run `remat profile` again with these --dim")

    def keeping_pins(self, earlier: Costs) -> Costs:
        """These costs, with the figures that were pinned by hand in an earlier file for the same model."""
        ops, kernels = (
            {**own, **{name: cost for name, cost in others.items() if cost.pinned and name in own}}
            for own, others in ((self.ops, earlier.ops), (self.kernels, earlier.kernels))
        )
        return replace(self, ops=ops, kernels=kernels)

    @property
    def kind(self) -> str:
        """The kind of device whose kernels were costed; estimates share memory as a CPU's kernels do."""
        return "cuda" if self.device.get("kind") == "cuda" else "cpu"

    @property
    def estimated(self) -> frozenset[str]:
        """The ops that were not run alone: what their kernels work in was not seen."""
        return frozenset(name for name, cost in self.ops.items() if cost.how in ("estimated", "inside"))

    @property
    def measured(self) -> bool:
        """Whether kernels were run for the costs, so that their workspace is known."""
        return any(cost.how == "measured" for cost in self.ops.values())

    @property
    def launch(self) -> int:
        """The cost of the cheapest kernel, where it is known: a rewritten graph has some more kernels."""
        return _plausible(self.whole.launch)

    @property
    def session_bytes(self) -> int:
        """The device memory that a session takes beside its tensors, where it is known."""
        return _plausible(self.whole.session_bytes)

    @property
    def probe(self) -> int:
        """The time of the op that is timed with every profile, where it is known."""
        return _plausible(self.whole.probe)

    @property
    def threads(self) -> int:
        """The threads of the sessions that the costs are for; 0 where the costs are estimates."""
        found = self.device.get("threads", 0)
        return found if isinstance(found, int) and found > 0 else 0

    @property
    def total(self) -> int:
        return sum(cost.ns for cost in self.ops.values())


def _plausible(ns: int | None) -> int:
    return ns if ns is not None and 0 <= ns <= ABSURD_NS else 0


def rounded(number: float, digits: int = 4) -> int:
    """The number with so many significant digits: more would only be noise in version control."""
    if number <= 0:
        return 0
    step: int = 10 ** max(0, math.floor(math.log10(number)) + 1 - digits)
    return round(number / step) * step


def fit_line(points: Mapping[int, float]) -> tuple[float, float]:
    """Least squares base + slope * batch, neither negative: no op gets cheaper as the batch grows."""
    count = len(points)
    mean_x, mean_y = sum(points) / count, sum(points.values()) / count
    square = sum((x - mean_x) ** 2 for x in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points.items()) / square if square else 0.0
    if slope < 0:
        return mean_y, 0.0
    base = mean_y - slope * mean_x
    if base < 0:
        return 0.0, sum(x * y for x, y in points.items()) / sum(x * x for x in points)
    return base, slope


def over_batches(costs: Mapping[int, Costs], batch: str) -> Costs:
    """Costs at several batch sizes as one: the largest's, each op with its points and the line through them."""
    largest = costs[max(costs)]
    ops = _fitted({size: one.ops for size, one in costs.items()}, largest.ops)
    kernels = _fitted({size: one.kernels for size, one in costs.items()}, largest.kernels)
    return replace(largest, ops=ops, kernels=kernels, batch=batch)


def _fitted(costs: Mapping[int, Mapping[str, OpCost]], largest: Mapping[str, OpCost]) -> dict[str, OpCost]:
    """The costs at the largest size, each op with its points; an op that some size does not have keeps its figures."""
    found = dict(largest)
    for name, cost in largest.items():
        if cost.how == "view" or not all(name in ops for ops in costs.values()):
            continue
        points = {size: (ops[name].ns, ops[name].workspace) for size, ops in sorted(costs.items())}
        time = fit_line({size: ns for size, (ns, _) in points.items()})
        workspace = fit_line({size: held for size, (_, held) in points.items()})
        found[name] = replace(cost, fit=Fit(points, _tidy(time), _tidy(workspace)))
    return found


def _tidy(line: tuple[float, float]) -> tuple[float, float]:
    return float(f"{line[0]:.5g}"), float(f"{line[1]:.5g}")
