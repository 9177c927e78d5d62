"""A run of a session whose ops may fail on what they are given.

Invariant: what the runtime raises is a BadInput of ours that names the op.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from remat_cli.errors import BadInput

# where onnxruntime noticed, which is for its developers
FROM_ITS_SOURCE = re.compile(r"^\S+\.(?:cc|h|cu):\d+ .*?(?:\[with [^\]]*\] |was false\. |\) (?=[A-Z]))")


SMALL_BYTES = 1024  # bytes: what is no larger is copied before each run, such as the count of updates
BROKEN = (
    "a run of this step broke off while it wrote new state in the place of the old: what is left is of no one update; "
    "load a checkpoint, or make the step with keep_state=True, which holds both"
)


@dataclass(frozen=True, slots=True)
class WrittenState:
    """`state`: the names of what runs write over.

    `before`: ops that run only before any of it is written but what has no more than `SMALL_BYTES`.
    """

    state: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()


NOTHING_WRITTEN = WrittenState()


def small_of(state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Copies of what a run may have written over when it is still as if it had not begun."""
    return {name: value.copy() for name, value in state.items() if value.nbytes <= SMALL_BYTES}


class OpFailed(BadInput):
    """An op that the runtime could not run on the batch; '' for its name where it does not say."""

    def __init__(self, says: str, op: str) -> None:
        super().__init__(says)
        self.op = op


def run(session: Any, names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
    """The results of the session. An op that fails, for example because labels are out of range, gives an error with
    its name."""
    try:
        return list(session.run(names, feeds))
    except Exception as error:
        if not type(error).__module__.startswith("onnxruntime."):
            raise
        words = " ".join(str(error).split())
        op = re.search(r"running (\w+) node\. Name:'([^']*)'", words)
        where = f"the op {op[1]} '{op[2]}'" if op else "the step"
        why = FROM_ITS_SOURCE.sub("", words.rpartition("Status Message: ")[2])
        said = f"{where} failed on this batch: {why}"
        raise OpFailed(said, op[2] if op else "") from error
