"""Processes of our own, each for one piece of work: it runs one of our modules, is told one JSON value a line on stdin,
and answers in such lines on stdout.

Invariant: it finds the remat that started it, and does not outlive that. On Linux the kernel sees to it, however the
parent ends; elsewhere a child ends with its work. Whatever libraries print in it is no answer.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any

PR_SET_PDEATHSIG = 1
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOOK_SECONDS = 0.2  # between two looks at whether an answer is still waited for
READ_BYTES = 1 << 16


class Child:
    """A process that runs the module. It has a session of its own, since an interrupt is ours to hear. `with` ends it,
    and all that it started."""

    def __init__(self, module: str) -> None:
        self.errors = TemporaryFile()  # noqa: SIM115  closed when the process is gone
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=own_environment(),
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self._rest = b""

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def tell(self, words: object) -> None:
        """Paths are told by their names. Raises OSError where it is gone."""
        self.stdin.write(json.dumps(words, default=str).encode() + b"\n")
        self.stdin.flush()

    def heard(self) -> list[Any] | None:
        """What it answered, as soon as there is something; None where it is gone."""
        said = os.read(self.stdout.fileno(), READ_BYTES)
        *lines, self._rest = (self._rest + said).split(b"\n")
        return [json.loads(line) for line in lines] if said else None

    def ask(self, words: object, waiting: Callable[[], object] = lambda: None) -> Any:
        """Its one answer to the words; None where it is gone. `waiting` is called again and again until then."""
        with suppress(BrokenPipeError):
            self.tell(words)
        answers: list[Any] | None = []
        while answers == []:
            while not select.select([self.stdout], [], [], LOOK_SECONDS)[0]:
                waiting()
            answers = self.heard()
        return None if answers is None else answers[0]

    def why(self) -> str:
        """Why the process is gone."""
        code = self.process.wait()
        if code < 0:
            return f"its process was killed by signal {-code}, perhaps for want of memory"
        self.errors.seek(0)
        last = self.errors.read().decode(errors="replace").strip().splitlines()
        return last[-1] if last else f"its process ended with code {code}"

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for file in (self.stdin, self.stdout, self.errors):
            with suppress(BrokenPipeError):  # the rest was no longer read
                file.close()


def serve(parent: str, answers: Callable[[Any], Iterable[object]]) -> None:
    """Be such a process: give the answers to each line until no more come."""
    bind_to(int(parent))
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr  # which writes at once, so that the error that ends the process is the last that is read
    for line in sys.stdin:
        for said in answers(json.loads(line)):
            out.write(json.dumps(said) + "\n")
            out.flush()


def own_environment() -> dict[str, str]:
    """The environment for a process of ours: it imports the same remat, wherever that lies."""
    paths = [ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def bind_to(parent: int) -> None:
    """End when the process `parent` does, which started this one; now, if it has ended already."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
