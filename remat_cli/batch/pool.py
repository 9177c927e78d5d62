"""Workers on this machine: each task runs in a fenced process, so that its failures stay in that process.

Invariant: every task that is submitted comes back once, with its record or with an error. A task whose worker was
killed is tried once more, elsewhere, before it fails. No worker outlives `close`.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from remat_cli.batch.tasks import LOG, Task
from remat_cli.children import Child
from remat_cli.errors import NoPlan

POLL_SECONDS = 0.2  # seconds
STOPPED_SECONDS = 8.0  # seconds, at most, in which a worker that is stopped writes its plan
TASK_TRIES = 2  # of a task whose worker is killed
BUG_CODE = 1  # the exit code of an unforeseen error
TOO_HEAVY_CODE = 3  # the exit code of a task that exceeds its memory
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Ended:
    """A task and its record; or the reason why there is none, and its exit code."""

    task: Task
    record: Mapping[str, Any] | None
    cached: bool = False
    why: str = ""
    code: int = 0


class Workers(Protocol):
    """The workers that do tasks: processes here, or a cluster."""

    def submit(self, task: Task) -> None: ...

    def ended(self) -> Iterator[Ended | None]:
        """Tasks as they end, and None in between, so that the caller can report progress."""
        ...

    def running(self) -> list[tuple[str, float]]:
        """Titles of the tasks under way, and seconds since each began."""
        ...

    def close(self) -> None: ...


@dataclass(slots=True)
class _Worker:
    """A process. `task`: its present task, begun at `begun` if it has begun."""

    child: Child
    task: Task | None = None
    begun: float | None = None
    used: bool = False  # whether it did a task before this one

    def held(self) -> int:
        """Bytes of memory of the process and its children."""
        waiting, total = [self.child.process.pid], 0
        while waiting:
            pid = waiting.pop()
            with suppress(OSError):  # the process has ended
                total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
                waiting += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return total

    def tell(self, task: Task) -> None:
        self.task, self.begun = task, None
        with suppress(BrokenPipeError):  # the process has died; the reader of its answers notices that
            self.child.tell(task)

    def stop(self) -> None:
        """Ask for the best plan by now, and nothing more."""
        with suppress(ProcessLookupError):
            self.child.process.send_signal(signal.SIGTERM)


@dataclass(slots=True)
class Pool:
    """A number of workers, started when there is a task."""

    count: int
    waiting: deque[Task] = field(default_factory=deque)
    workers: list[_Worker] = field(default_factory=list)
    tries: dict[str, int] = field(default_factory=dict)
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def submit(self, task: Task) -> None:
        self.waiting.append(task)

    def running(self) -> list[tuple[str, float]]:
        now = monotonic()
        return [(worker.task["title"], now - worker.begun) for worker in self.workers if worker.task and worker.begun]

    def ended(self) -> Iterator[Ended | None]:
        while self.waiting or any(worker.task for worker in self.workers):
            self._hand_out()
            for key, _ in self.selector.select(POLL_SECONDS):
                yield from self._listen(key.data)
            yield from self._late()
            yield from self._heavy()
            yield None

    def close(self) -> None:
        """End all workers; those that have a task are given a moment to keep the best plan by now."""
        busy = [worker for worker in self.workers if worker.task is not None]
        for worker in busy:
            worker.stop()
        until = monotonic() + STOPPED_SECONDS
        for worker in busy:
            with suppress(subprocess.TimeoutExpired):
                worker.child.process.wait(max(0.0, until - monotonic()))
        for worker in list(self.workers):
            self._end(worker)
        self.selector.close()

    def _hand_out(self) -> None:
        idle = [worker for worker in self.workers if worker.task is None]
        while self.waiting and (idle or len(self.workers) < self.count):
            worker = idle.pop() if idle else self._started()
            worker.tell(self.waiting.popleft())

    def _started(self) -> _Worker:
        worker = _Worker(Child("remat_cli.batch.worker"))
        self.selector.register(worker.child.stdout, selectors.EVENT_READ, worker)
        self.workers.append(worker)
        return worker

    def _listen(self, worker: _Worker) -> Iterator[Ended]:
        answers = worker.child.heard()
        if answers is None:
            yield from self._died(worker)
        for said in answers or ():
            yield from self._hear(worker, said)

    def _hear(self, worker: _Worker, said: Mapping[str, Any]) -> Iterator[Ended]:
        assert worker.task is not None
        if "begun" in said:
            worker.begun = monotonic()
            return
        task, worker.task, worker.begun, worker.used = worker.task, None, None, True
        if said.get("last"):
            self._end(worker)
        if said.get("again"):
            self.waiting.append(task)
        elif "record" in said:
            yield Ended(task, said["record"], said["cached"])
        else:
            yield Ended(task, None, why=said["failed"], code=said["code"])

    def _late(self) -> Iterator[Ended]:
        for worker in list(self.workers):
            if worker.task and worker.begun and monotonic() - worker.begun > worker.task["timeout"]:
                task = worker.task
                self._end(worker)
                yield Ended(task, None, why=f"it did not end within {task['timeout']:g} s", code=NoPlan.code)

    def _heavy(self) -> Iterator[Ended]:
        """Tasks that exceed their memory; if the worker was used before, the task is tried again in a fresh one."""
        for worker in list(self.workers):
            task = worker.task
            if task is None or task["memory"] is None or (held := worker.held()) <= task["memory"]:
                continue
            self._end(worker)
            if worker.used:
                self.waiting.append(task)
            else:
                why = f"it held {held} bytes of memory, more than its limit of {task['memory']}"
                yield Ended(task, None, why=why, code=TOO_HEAVY_CODE)

    def _died(self, worker: _Worker) -> Iterator[Ended]:
        task = worker.task
        self._end(worker)
        code = worker.child.process.returncode
        if task is None:
            return
        tried = self.tries[task["folder"]] = self.tries.get(task["folder"], 0) + 1
        if code < 0 and tried < TASK_TRIES:
            self.waiting.append(task)
        else:
            yield Ended(task, None, why=_of_death(code, task), code=BUG_CODE)

    def _end(self, worker: _Worker) -> None:
        self.selector.unregister(worker.child.stdout)
        self.workers.remove(worker)
        worker.child.end()


def _of_death(code: int, task: Task) -> str:
    last = _last_line(Path(task["folder"]) / LOG)
    if code >= 0:
        return f"its process ended with code {code}" + (f": {last}" if last else "")
    name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
    why = ", perhaps for want of memory" if -code in (signal.SIGKILL, signal.SIGABRT) else ""
    return f"its process was killed by {name}, twice{why}"


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""
