"""The memory of tensors, measured while ops run: every storage that an op makes is watched until it is freed.

Invariant: it knows nothing of plans. It counts the live bytes after each op, while the op's arguments are still alive.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from remat_cli.torch.private import StorageWeakRef, identity_of
from remat_cli.torch.reading import plain_tensors_of


class Meter:
    """`peak` is the highest count of live bytes after an op, since the meter was made."""

    def __init__(self, given: Iterable[Any] = ()) -> None:
        self.alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self.most = 0  # an upper bound of the live bytes: some may be freed already
        self.peak = 0
        self.watch(tuple(given))

    def watch(self, value: Any) -> None:
        """Count these storages from now on, for as long as they live, at the size that they have now."""
        for tensor in plain_tensors_of(value):
            storage = tensor.untyped_storage()
            key, size = identity_of(storage), storage.nbytes()
            reference, known = self.alive.get(key, (None, 0))
            if reference is None or reference.expired():
                reference, known = StorageWeakRef(storage), 0
            self.alive[key] = reference, size
            self.most += size - known

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether the storage of a plain tensor is watched."""
        known = self.alive.get(identity_of(tensor.untyped_storage()))
        return known is not None and not known[0].expired()

    def part(self, value: Any) -> int:
        """The bytes of these tensors as far as they are watched."""
        storages = {
            identity_of(x.untyped_storage()): x.untyped_storage() for x in plain_tensors_of(value) if self.knows(x)
        }
        return sum(storage.nbytes() for storage in storages.values())

    def count(self) -> int:
        """The bytes that are alive now."""
        self.alive = {key: pair for key, pair in self.alive.items() if not pair[0].expired()}
        self.most = sum(size for _, size in self.alive.values())
        return self.most

    def made(self, value: Any, workspace: int = 0) -> None:
        """Watch the result of an op and update the peak. `workspace`: what the op held besides while it ran."""
        self.watch(value)
        if self.most + workspace > self.peak:
            self.peak = max(self.peak, self.count() + workspace)
