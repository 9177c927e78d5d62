"""A run of a session whose ops may fail on what they are given.

Invariant: what the runtime raises is a BadInput of ours that names the op.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from remat_cli.errors import BadInput


class OpFailed(BadInput):
    """An op that the runtime could not run on the batch; '' for its name where it does not say."""

    def __init__(self, says: str, op: str) -> None:
        super().__init__(says)
        self.op = op


def run(session: Any, names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
    """What the session gives; what the runtime refuses, such as labels out of range, with the op's name."""
    try:
        return list(session.run(names, feeds))
    except Exception as error:
        if not type(error).__module__.startswith("onnxruntime."):
            raise
        words = " ".join(str(error).split())
        op = re.search(r"running (\w+) node\. Name:'([^']*)'", words)
        where = f"the op {op[1]} '{op[2]}'" if op else "the step"
        said = f"{where} failed on this batch: {words.rpartition('Status Message: ')[2]}"
        raise OpFailed(said, op[2] if op else "") from error
