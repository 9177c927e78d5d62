"""A training step at any size of one dimension: each size is a Subject of its own, costed for it.

A forward model is differentiated anew for each size. Invariant: a size that was made once is not made again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import onnx

from profiles.costs import Costs, over_batches
from remat_cli.actions.differentiating import differentiate
from remat_cli.actions.profiling import ProfileQuestion, Steps, profile
from remat_cli.actions.whole_graph import batch_dim
from remat_cli.errors import BadInput, Usage
from remat_cli.gradient.training import Options
from remat_cli.ingest import ingest
from remat_cli.model.in_place import InPlace
from remat_cli.model.sessions import STRICT, Session
from remat_cli.onnx_graph.load import load_with_tensors
from remat_cli.planning.loading import load_subject
from remat_cli.planning.subjects.subject import Subject
from solvers.clock import FOREVER_SECONDS

MEASURING_SECONDS = 45.0  # seconds, at most, for a size
BACKWARD_SHARE = 1 / 3  # of the ops of a training step, at least

At = Callable[[int], Subject]  # the step at a size; BadInput or Usage where there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedStep:
    """`dim`: the dimension that changes; by default the batch. `dims`: the others. `estimate`: a device from paper.

    `measure`: sizes at which ops are measured, and a line drawn through what they take; else a cost file's lines are
    used, if it has any. `here`: whether it is this machine's costs that count, so that ops may be measured at the size
    that comes out; by default where nothing else says what they cost. `forward`: whether the model has no backward
    pass yet; by default that is seen. `options`: how it then gets one. `in_place`: outputs written over inputs.
    """

    dim: str | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    costs: Path | Costs | None = None
    estimate: str | None = None
    measure: tuple[int, ...] = ()
    here: bool | None = None
    forward: bool | None = None
    options: Options = field(default_factory=Options)
    session: Session = STRICT
    in_place: InPlace = None

    def check(self) -> None:
        if sum((self.costs is not None, self.estimate is not None, bool(self.measure))) > 1:
            raise Usage("--costs, --estimate and --profile each say what the ops cost; leave all but one out")
        if self.here and (self.costs is not None or self.estimate is not None):
            raise Usage("--measure takes what ops cost on this machine; leave out --costs and --estimate")

    @property
    def measurable(self) -> bool:
        return self.here is not False and self.costs is None and self.estimate is None


@dataclass(frozen=True, slots=True)
class Scaled:
    """`dim`: what the size is the size of; `forward`: whether it is differentiated for each size.

    `measured`: the same step, with ops measured at these sizes, for so many seconds; None where they are not to be.
    """

    dim: str
    forward: bool
    at: At
    measured: Callable[[Sequence[int], float], At] | None


def scale_step(model: Path | onnx.ModelProto, step: SizedStep, steps: Steps | None = None) -> Scaled:
    """`steps`: which op is being measured, where somebody reads it."""
    step.check()
    dim = batch_dim(model, step.dim, step.dims)
    forward = _is_forward(model, {**step.dims, dim: 2}) if step.forward is None else step.forward
    if forward and step.costs is not None:
        raise Usage(
            "a cost file is for a training graph; of a forward model ops are measured (--profile 1,8) or estimated"
        )
    own = Sizes(model, replace(step, dim=dim), dim, forward)
    if step.measure:
        own = own.measured(step.measure, steps)

    def measured(sizes: Sequence[int], seconds: float) -> At:
        return own.measured(sizes, steps, seconds).at

    return Scaled(dim, forward, own.at, measured if step.measurable else None)


def _is_forward(model: Path | onnx.ModelProto, dims: Mapping[str, int]) -> bool:
    """A model is a training step if much of it is no part of the way to a loss."""
    graph = ingest(model, dims)
    return sum(op.backward for op in graph.ops) < BACKWARD_SHARE * len(graph.ops)


class Sizes:
    """The step at each size that was asked for so far. `profiled`: what its ops took at the sizes measured."""

    def __init__(
        self,
        model: Path | onnx.ModelProto,
        step: SizedStep,
        dim: str,
        forward: bool,
        profiled: Mapping[int, Costs] = MappingProxyType({}),
    ) -> None:
        self.model, self.step, self.dim, self.forward, self.profiled = model, step, dim, forward, profiled
        self.made: dict[int, Subject] = {}
        self.fits = over_batches(profiled, dim) if profiled else None

    def measured(self, sizes: Sequence[int], steps: Steps | None, seconds: float = FOREVER_SECONDS) -> Sizes:
        """The same step with its ops measured at these sizes too."""
        found = dict(self.profiled)
        wanted = [size for size in sizes if size not in found]
        for size in wanted:
            model, dims = self._training(size)
            asked = ProfileQuestion(dims=dims, seconds=min(MEASURING_SECONDS, seconds / len(wanted)))
            found[size] = profile(model, asked, steps).costs
        if len({frozenset(costs.ops) for costs in found.values()}) > 1:
            raise BadInput(f"the step has other ops at {self.dim} {min(found)} than at larger ones; measure at others")
        return Sizes(self.model, self.step, self.dim, self.forward, found)

    def at(self, size: int) -> Subject:
        if size not in self.made:
            self.made[size] = self._subject(size)
        return self.made[size]

    def _training(self, size: int) -> tuple[Path | onnx.ModelProto, dict[str, int]]:
        """The training graph of that size, and which of its dimensions are still to be bound."""
        dims = {**self.step.dims, self.dim: size}
        if not self.forward:
            return self.model, dims
        binding = replace(self.step.options.binding, dims=dims)
        return differentiate(load_with_tensors(self.model), replace(self.step.options, binding=binding)), {}

    def _subject(self, size: int) -> Subject:
        model, dims = self._training(size)
        costs, session = self._costs(model, dims, size), self.step.session
        found = load_subject(model, costs, dims, session, in_place=self.step.in_place)
        if self.forward and isinstance(self.model, Path):  # what its files are to be called after
            return replace(found, source=replace(found.source, path=self.model))
        return found

    def _costs(self, model: Path | onnx.ModelProto, dims: Mapping[str, int], size: int) -> Path | Costs | None:
        if self.fits is not None:
            return _complete(self.fits.at_batch(size), _estimate(model, dims, "cpu"))
        return self.step.costs if self.step.estimate is None else _estimate(model, dims, self.step.estimate)


def _estimate(model: Path | onnx.ModelProto, dims: Mapping[str, int], where: str) -> Costs:
    return profile(model, ProfileQuestion(estimate=where, cached=False, dims=dims)).costs


def _complete(fitted: Costs, estimates: Costs) -> Costs:
    """The costs of the very model that the estimates are of: some sizes have an op that others do not."""
    known = {name: cost for name, cost in fitted.ops.items() if name in estimates.ops}
    return replace(
        fitted, model=estimates.model, sha256=estimates.sha256, dims=estimates.dims, ops={**estimates.ops, **known}
    )
