"""Adds up the gradients of several batches: the step itself does it where it takes sums, otherwise this module.

Invariant: the sums that the step adds to stay in the same memory until other sums are loaded, and are zero before the
first batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from remat_cli.errors import BadInput
from remat_cli.model.step_parts import Parts, sum_of
from remat_cli.training.failing import small_of
from remat_cli.training.state import State, describe_names, fitting, zeros


class Sums:
    """The sums of gradients since the last update. `kinds`: the types of the step's inputs."""

    def __init__(self, parts: Parts, kinds: Mapping[str, onnx.TypeProto.Tensor]) -> None:
        self._parameters, self._kinds = parts.parameters, kinds
        self._inside = bool(parts.sums)
        self._held = self._nothing()

    def _nothing(self) -> State:
        return {name: zeros(self._kinds[name]) for name in self._parameters} if self._inside else {}

    def feeds(self) -> State:
        """The sums as inputs of the step, by its own names; empty where the step takes none."""
        return {sum_of(name): total for name, total in self._held.items()} if self._inside else {}

    def take(self, found: Mapping[str, Any], alone: bool) -> None:
        """Take the sums or add the gradients of a run. `alone`: its batch is the only one of the update."""
        if self._inside:
            self._held = {name: found[f"{sum_of(name)}_new"] for name in self._parameters}
            return
        for name in self._parameters:
            gradient = np.asarray(found[f"{name}_grad"])
            if name in self._held:
                self._held[name] += gradient
            else:
                self._held[name] = gradient if alone else gradient.copy()

    def finite(self) -> bool:
        return all(bool(np.isfinite(total).all()) for total in self._held.values())

    def mean(self, count: int) -> State:
        """The mean gradients for an update: the sums themselves, divided."""
        for total in self._held.values() if count > 1 else ():
            total /= count
        return {f"{name}_grad": total for name, total in self._held.items()}

    def begin(self) -> None:
        """Set the sums to zero: the next batch is the first of an update."""
        if self._inside:
            for total in self._held.values():
                total.fill(0)
        else:
            self._held = {}

    def small(self) -> State:
        """Copies of what a step may write over before it is known to run."""
        return small_of(self._held) if self._inside else {}

    def put_back(self, small: State) -> None:
        self._held |= small

    def written(self, amid: bool) -> State:
        """The sums for a checkpoint. `amid`: an update has some of its batches, and not all."""
        return self._held if amid else {}

    def read(self, held: Mapping[str, np.ndarray]) -> State:
        """Those of a checkpoint, as `load` takes them."""
        if others := sorted(set(held) - set(self._parameters)):
            raise BadInput(f"the checkpoint holds sums of other gradients: {describe_names(others[:3])}")
        return {name: fitting(name, total, self._kinds[name]) for name, total in held.items()}

    def load(self, read: State) -> None:
        self._held = self._nothing() | read
