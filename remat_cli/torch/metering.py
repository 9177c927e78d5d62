"""What tensors hold, measured while ops run: every storage that an op makes is watched until it is gone.

Invariant: knows nothing of plans. It counts what is alive after each op, while the op's arguments still are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from remat_cli.torch.reading import tensors_of


class Meter(TorchDispatchMode):
    """Use it as a context; `peak` is the most that was alive at once since it was made."""

    def __init__(self, given: Iterable[Any] = ()) -> None:
        super().__init__()
        self.alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self.most = 0  # what can be alive at most, of which some may be gone
        self.peak = 0
        self.watch(tuple(given))

    def watch(self, value: Any) -> None:
        """From now on these storages count, for as long as they live."""
        for tensor in tensors_of(value):
            storage = tensor.untyped_storage()
            known = self.alive.get(storage._cdata)
            if known is None or known[0].expired():
                self.alive[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
                self.most += storage.nbytes()

    def count(self) -> int:
        """The bytes that are alive now."""
        self.alive = {key: pair for key, pair in self.alive.items() if not pair[0].expired()}
        self.most = sum(size for _, size in self.alive.values())
        return self.most

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.watch(result)
        if self.most > self.peak:
            self.peak = max(self.peak, self.count())
        return result
