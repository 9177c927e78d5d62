"""The process in which tasks are done, one after another: `python -m remat_cli.batch.worker PARENT`.

It is told a task and answers `begun` once nobody else is at work in the task's folder, then its record, or what went
wrong. What is printed meanwhile is the task's log.

Invariant: it ends when its parent does; what it cannot answer for, it dies of, and its log says why. Where it is
stopped while it searches, the best plan by then is kept, without a record: the task is not done.
"""

from __future__ import annotations

import fcntl
import os
import resource
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TextIO

from remat_cli.batch.tasks import LOG, RECORD, Task, find_record
from remat_cli.children import serve
from remat_cli.errors import RematError
from remat_cli.interrupts import command

SPARE_BYTES = 2**28  # bytes
OUT_OF_MEMORY_CODE = 3  # the exit code of that, as of the command's


def main(parent: str) -> None:
    number = count()
    serve(parent, lambda task: _answers(task, next(number) > 0))


def _answers(task: Task, used: bool) -> Iterator[Mapping[str, Any]]:
    """`used`: whether other tasks have left things in this process's memory."""
    try:
        folder = Path(task["folder"])
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield {"begun": True}
            known = None if task.get("force") else find_record(task)
            if known:
                yield {"record": known, "cached": True}
                return
            record = _do(task, folder)
            _check_memory(task["memory"], folder)
            yield {"record": record, "cached": False}
    except RematError as error:
        yield {"failed": str(error), "code": error.code}
    except MemoryError:
        yield {"failed": _for_memory(task["memory"]), "code": OUT_OF_MEMORY_CODE, "again": used, "last": True}
        os._exit(0)
    except OSError as error:
        yield {"failed": f"cannot read or write {error.filename or 'its files'}: {error.strerror}", "code": 3}


def _do(task: Task, folder: Path) -> Mapping[str, Any]:
    with _logging(folder / LOG), _within(task["memory"]):
        from remat_cli.batch import work

        return work.done(task)


def _check_memory(limit: int | None, folder: Path) -> None:
    """Refuse a task that exceeded its memory between two checks by the watching process."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if limit is not None and held > limit:
        (folder / RECORD).unlink(missing_ok=True)
        raise MemoryError


def _for_memory(limit: int | None) -> str:
    return "there is not enough memory for it" + (f" within its limit of {limit} bytes" if limit else "")


@contextmanager
def _logging(path: Path) -> Iterator[None]:
    """Everything that is printed, by whatever language, goes there."""
    with path.open("w") as log:
        _print_to(log)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()


def _print_to(file: TextIO) -> None:
    for number in (1, 2):
        os.dup2(file.fileno(), number)


@contextmanager
def _within(limit: int | None) -> Iterator[None]:
    """Not much more memory than that, in this process and in each that it starts: who watches them ends them at the
    limit itself, since a process that is refused a little may wait for ever for a thread that could not begin."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit + limit // 4 + SPARE_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


if __name__ == "__main__":
    command(lambda: main(sys.argv[1]))
