"""Ctrl-C and SIGTERM, from the first moment of the command to its exit code, which is then 130.

Invariant: an exception is raised only where nobody asks (`remat_cli.actions.interrupts`), and never into an import:
compiled modules do not survive that. A second signal ends the process at once. With --json, one object is printed: once
it is begun, a signal sets the exit code and no more. Imports next to nothing, since it comes before all else.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import NoReturn

CODE = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)
OBJECT = '{"error": {"code": 130, "kind": "interrupted", "says": "interrupted"}}'  # before json is imported
IMPORTING = "<frozen importlib._bootstrap>"


class PrintedObject:
    """The object that a command prints for --json. Once it has `begun`, no error is printed as another."""

    begun = False

    def say(self, text: str) -> None:
        self.begun = True
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


ANSWER = PrintedObject()


def command(run: Callable[[], None]) -> None:
    """`run`, and exit code 130 if a signal came, even where the exception it raised was lost on the way."""
    heard: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if heard:
            _leave()
        if importing(frame):
            if "--json" in sys.argv[1:] and not ANSWER.begun:
                ANSWER.say(OBJECT)
            _leave()
        heard.append(number)
        if not ANSWER.begun:
            raise KeyboardInterrupt

    for number in SIGNALS:
        signal.signal(number, stop)
    try:
        run()
    except SystemExit as end:
        if heard:
            _leave(said=end.code == CODE)
        raise
    finally:
        if heard:
            _leave()


def importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != IMPORTING:
        frame = frame.f_back
    return frame is not None


def _leave(said: bool = False) -> NoReturn:
    """The end, whatever threads or finalizers think of it: all that must be undone has been."""
    try:
        sys.stdout.flush()
        sys.stderr.write("" if said else "remat: interrupted\n")
        sys.stderr.flush()
    finally:
        os._exit(CODE)
