"""Checkpoints of a step: the file from which another step continues.

Invariant: a checkpoint of another step is refused before anything of it is taken.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from remat_cli.errors import BadInput, Usage
from remat_cli.formats.files import write_whole
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.training.state import State

VALUE, SUM, COUNTS, SCALE = "value of ", "sum of ", "counts", "loss scale"
LEARNING_RATE, REGIME = "learning rate", "regime"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`state` and `sums` by name; `counts`: batches seen, updates, batches handed to a module. `regime`: how the step
    was told to train. Older files say neither that nor the rate."""

    state: State
    sums: State
    counts: tuple[int, int, int]
    rate: float | None = None
    scale: np.ndarray | None = None
    regime: Mapping[str, Any] = field(default_factory=dict)

    def write(self, path: str | os.PathLike[str]) -> None:
        if not isinstance(path, str | os.PathLike):
            raise Usage(f"a checkpoint's file is a path, not {type(path).__name__}")
        check_place(Path(path), FileKind.CHECKPOINT)
        held = {VALUE + name: value for name, value in self.state.items()}
        held |= {SUM + name: value for name, value in self.sums.items()}
        held[COUNTS] = np.array(self.counts, np.int64)
        held[LEARNING_RATE] = np.array(self.rate, np.float64)
        held[REGIME] = np.array(json.dumps(self.regime))
        if self.scale is not None:
            held[SCALE] = self.scale
        write_whole(Path(path), _zip(held))


def read(path: str | os.PathLike[str]) -> Checkpoint:
    """A file that `write` made; BadInput says what is wrong with another."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            held = {name: stored[name] for name in stored.files}
        return _checkpoint(held)
    except (OSError, ValueError, TypeError, AttributeError, EOFError, KeyError, BadZipFile) as error:
        why = "it is not what step.save writes" if isinstance(error, ValueError | EOFError | BadZipFile) else error
        raise BadInput(f"cannot read the checkpoint {path}: {why}") from error


def _checkpoint(held: Mapping[str, np.ndarray]) -> Checkpoint:
    calls, updates, handed = (int(count) for count in held[COUNTS])
    return Checkpoint(
        _beginning_with(VALUE, held),
        _beginning_with(SUM, held),
        (calls, updates, handed),
        float(held[LEARNING_RATE]) if LEARNING_RATE in held else None,
        held.get(SCALE),
        json.loads(str(held[REGIME])) if REGIME in held else {},
    )


def _beginning_with(words: str, held: Mapping[str, np.ndarray]) -> State:
    return {name.removeprefix(words): value for name, value in held.items() if name.startswith(words)}


def _zip(held: Mapping[str, np.ndarray]) -> bytes:
    """An .npz file's content; `numpy.savez` takes some names for its own."""
    content = io.BytesIO()
    with ZipFile(content, "w") as file:
        for name, value in held.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)
    return content.getvalue()
