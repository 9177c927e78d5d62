"""A forward pass whose backward pass is to come: graphs of one step wait for one another, as microbatches do.

Invariant: it holds nothing itself. A run whose backward pass never comes, as a look at shapes or a validation, is over
once nobody holds what it saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remat_cli.torch.private import StorageWeakRef, identity_of
from remat_cli.torch.reading import plain_tensors_of


class Run:
    """`place`: its number among the runs of the step that is observed."""

    def __init__(self, graph: int, arguments: Sequence[Any], place: int | None) -> None:
        self.graph, self.place = graph, place
        self.given = _identities(arguments)
        self.saved: dict[int, StorageWeakRef] = {}

    def end(self, saved: Sequence[Any]) -> None:
        """The forward pass made these for its backward pass; weights and inputs among them live without it."""
        storages = (tensor.untyped_storage() for tensor in plain_tensors_of(saved))
        self.saved = {identity_of(s): StorageWeakRef(s) for s in storages if identity_of(s) not in self.given}

    @property
    def over(self) -> bool:
        return bool(self.saved) and all(reference.expired() for reference in self.saved.values())

    def saved_any(self, arguments: Sequence[Any]) -> bool:
        """Whether a backward pass that is given these is that of this run."""
        return not self.saved.keys().isdisjoint(_identities(arguments))


def _identities(values: Sequence[Any]) -> set[int]:
    return {identity_of(tensor.untyped_storage()) for tensor in plain_tensors_of(values)}
