"""The kernels that default sessions make of a model's ops, measured beside the ops themselves.

Invariant: a kernel has a name here that no op has; those that the model has as ops are not measured twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from profiles import records, survey
from profiles.cache import Cache
from profiles.costs import OpCost
from profiles.device import Device
from profiles.signature import OpSignature
from profiles.survey import Ops
from remat_cli.model.graph import Graph
from remat_cli.model.signatures import ops_of
from remat_cli.planning.subjects.optimized import optimized_graph

PREFIX = "by default: "  # of kernels' names


def new_kernels(graph: Graph) -> Ops:
    """The ops of the graph that default sessions make of the model, of those that it does not have itself."""
    made = optimized_graph(graph)
    if made is None:
        return Ops({})
    ops, own = ops_of(made), ops_of(graph).signatures
    new = {name: one for name, one in ops.signatures.items() if name not in own or _other(own[name], one)}
    return Ops(new, ops.free.intersection(new), ops.light.intersection(new))


def _other(one: OpSignature, other: OpSignature) -> bool:
    """Whether they are different kernels; optimizers spell defaults of attributes out."""
    return replace(one, attributes=(), opset=0) != replace(other, attributes=(), opset=0)


def join_kernels(ops: Ops, kernels: Ops) -> Ops:
    """Kernels under names that no op has."""
    named = {f"{PREFIX}{name}": one for name, one in kernels.signatures.items()}
    free, light = ({f"{PREFIX}{name}" for name in names} for names in (kernels.free, kernels.light))
    return Ops({**ops.signatures, **named}, ops.free | free, ops.light | light)


def costs_of_kernels(
    kernels: Ops, ops: Ops, alone: Mapping[str, OpCost], device: Device, cache: Cache
) -> dict[str, OpCost]:
    """What they take, scaled as the model's own ops are; those that were not measured as these were off paper."""
    record, both = records.recall(ops, cache, alone), join_kernels(ops, kernels)
    calibration = records.calibration_of(record) if record else None
    inside = record["inside"] if record else {}
    found = survey.scaled(both, survey.alone(both, cache, device), calibration, inside)
    return {name: found[f"{PREFIX}{name}"] for name in kernels.signatures}
