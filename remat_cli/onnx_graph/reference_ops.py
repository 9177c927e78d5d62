"""Ops of ONNX's reference evaluator that are wrong or very slow there, for `new_ops`."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

ADDING = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


class GatherElements(OpRun):  # type: ignore[misc]
    """The reference's own takes no more than 64 places, and errs where indices are shorter than the data."""

    op_domain = ""

    def _run(self, data: Any, indices: Any, axis: int | None = None) -> tuple[Any]:
        return (data[_places(data, indices, axis or 0)],)


class ScatterElements(OpRun):  # type: ignore[misc]
    """The reference's own takes a second for every few hundred thousand elements."""

    op_domain = ""

    def _run(
        self, data: Any, indices: Any, updates: Any, axis: int | None = None, reduction: str | None = None
    ) -> tuple[Any]:
        found, places = np.copy(data), _places(data, indices, axis or 0)
        if reduction in ADDING:
            ADDING[reduction].at(found, places, updates)
        else:
            found[places] = updates
        return (found,)


def _places(data: Any, indices: Any, axis: int) -> tuple[Any, ...]:
    """Where each index points: along the axis as it says, along the others at its own place."""
    places = list(np.ogrid[tuple(map(slice, indices.shape))])
    places[axis] = np.where(indices < 0, indices + data.shape[axis], indices)
    return tuple(places)


OPS = [GatherElements, ScatterElements]
