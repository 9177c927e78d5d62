"""The allocator that knows the plan (`places.c`), with its Python interface, and weights that are read where they lie
in a file: the kernel lets go of them, and reads them again, as it has room.

Invariant: a Plan's C side lives as long as memory that its runs handed out may still be in use, and weights stay
mapped, only read, for as long as the session may read them.
"""

from __future__ import annotations

import ctypes
import weakref
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from remat_cli.formats.weights import StoredWeight, Weights
from remat_cli.runtime.learning import Events
from remat_cli.runtime.table import PlacesTable

MISSING = (
    "the allocator that places values where the plan says is for Linux alone. The session keeps onnxruntime's own"
    " arena, which may hold more than the plan's budget"
)
CUDA = ("libcudart.so.13", "libcudart.so.12", "libcudart.so")


class MappedWeights:
    """The file's memory, and what sessions take of it."""

    def __init__(self, weights: Weights) -> None:
        import numpy as np

        self.kept = weights.kept
        self.memory = np.memmap(weights.file, np.uint8, "r")
        self.values = [(one.name, self._value(one)) for one in weights.stored]

    def _value(self, one: StoredWeight) -> Any:
        import onnxruntime

        part = self.memory[one.offset : one.offset + one.bytes].view(f"u{one.width}").reshape(one.shape)
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(part, one.kind)

    def add_to(self, options: Any) -> None:
        """Have a session with these options read them here."""
        for name, value in self.values:
            options.add_initializer(name, value)


def library() -> Path | None:
    """The compiled allocator, for SessionOptions.register_custom_ops_library; None on systems other than Linux."""
    return next((path for path in sorted(Path(__file__).parent.glob("_placed*.so"))), None)


@dataclass(frozen=True, slots=True)
class Missed:
    """Requests that were not planned, or whose place was taken: they got memory of their own."""

    requests: int
    bytes: int

    def __add__(self, other: Missed) -> Missed:
        return Missed(self.requests + other.requests, self.bytes + other.bytes)


class Placed:
    """The places of one model's runs. Without places, its runs are traced. `weights`: what they may let go of."""

    def __init__(
        self, table: PlacesTable | None = None, on_device: bool = False, weights: MappedWeights | None = None
    ) -> None:
        self.lib = _load()
        if table is None:
            self.handle = self.lib.remat_plan(None, None, 0, 0, int(on_device))
        else:
            sizes, offsets = table.sizes.buffer_info()[0], table.offsets.buffer_info()[0]
            self.handle = self.lib.remat_plan(sizes, offsets, len(table.sizes), table.block, int(on_device))
        if not self.handle:
            raise MemoryError("no memory for the plan's table")
        weakref.finalize(self, self.lib.remat_close, self.handle)
        if weights is not None:
            memory = weights.memory
            self.lib.remat_weights(self.handle, memory.ctypes.data, memory.nbytes, weights.kept)
        self.seen: Events | None = None  # of a run that was not as planned

    @contextmanager
    def run(self) -> Iterator[None]:
        """A context around a run, on its thread."""
        run = self.lib.remat_begin(self.handle)
        try:
            yield
        finally:
            count = self.lib.remat_end()
            if count:
                self.seen = self._events(run, count)

    def _events(self, run: int, count: int) -> Events:
        seen = Events(array("q", bytes(8 * count)), array("Q", bytes(8 * count)))
        self.lib.remat_events(run, seen.sizes.buffer_info()[0], seen.addresses.buffer_info()[0])
        return seen

    @property
    def missed(self) -> Missed:
        count, size = ctypes.c_int64(), ctypes.c_int64()
        self.lib.remat_missed(self.handle, ctypes.byref(count), ctypes.byref(size))
        return Missed(count.value, size.value)


def external() -> dict[str, str]:
    """CUDA provider options that let the allocator hand out the device's memory. They have not been run on CUDA yet."""
    lib = _load()
    if not any(lib.remat_cuda(name.encode()) for name in CUDA):
        raise FileNotFoundError(f"no CUDA runtime library found ({', '.join(CUDA)})")
    functions = {"alloc": "remat_device_alloc", "free": "remat_device_free", "empty_cache": "remat_device_empty_cache"}
    return {
        f"gpu_external_{key}": str(ctypes.cast(lib[name], ctypes.c_void_p).value) for key, name in functions.items()
    }


@cache
def _load() -> Any:
    path = library()
    if path is None:
        raise FileNotFoundError(MISSING)
    found = ctypes.CDLL(str(path))
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    found.remat_plan.restype, found.remat_plan.argtypes = pointer, (pointer, pointer, size, size, ctypes.c_int)
    found.remat_begin.restype, found.remat_begin.argtypes = pointer, (pointer,)
    found.remat_end.restype, found.remat_end.argtypes = size, ()
    found.remat_weights.restype, found.remat_weights.argtypes = None, (pointer, pointer, size, size)
    found.remat_close.restype, found.remat_close.argtypes = None, (pointer,)
    found.remat_events.restype, found.remat_events.argtypes = None, (pointer, pointer, pointer)
    found.remat_missed.restype, found.remat_missed.argtypes = None, (pointer, pointer, pointer)
    found.remat_cuda.restype, found.remat_cuda.argtypes = ctypes.c_int, (ctypes.c_char_p,)
    return found
