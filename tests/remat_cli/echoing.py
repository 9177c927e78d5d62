"""A process of ours that says what it is told, and what else it is asked for: `python -m tests.remat_cli.echoing`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

from remat_cli.children import serve


def answers(told: object) -> Iterator[object]:
    print("what a library prints")
    if told == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if told == "raise":
        raise ValueError("this is wrong")
    if told == "twice":
        yield 1
    yield told


if __name__ == "__main__":
    serve(sys.argv[1], answers)
