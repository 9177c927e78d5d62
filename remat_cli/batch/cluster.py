"""Workers on a Dask cluster: Dask decides who does which task, and what happens when a worker dies.

On each Dask worker a task runs as it does here: in a fenced process of our own (`pool`). Models are sent by a path that
both sides see, or by content, and then outputs come back the same way.

Invariant: the bytes are those of the same task done here; only this module imports distributed, and only when it is
used.
"""

from __future__ import annotations

import queue
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

from remat_cli.batch.pool import BUG_CODE, POLL_SECONDS, Ended, Pool
from remat_cli.batch.tasks import LOG, RECORD, Task
from remat_cli.errors import BadInput, Usage
from remat_cli.formats.files import write_whole
from remat_cli.results.versions import versions

CONNECT_SECONDS = 10.0  # seconds
LOCAL = "local"
CARRIED = ("path", "costs")  # fields of a task that name the files it needs

_here = threading.local()


class Cluster:
    """`address`: of a scheduler, or `local` for one of our own with `count` workers. `carried`: files are sent by
    content."""

    def __init__(self, address: str, count: int, carried: bool) -> None:
        self._stack = ExitStack()
        self._address = address
        self._carried = carried
        self._client = _connect(address, count, self._stack)
        self._sent: dict[str, Any] = {}
        self._tasks: dict[str, Task] = {}
        self._futures: dict[str, Any] = {}
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()

    def submit(self, task: Task) -> None:
        files = {name: self._file(task[name]) for name in CARRIED if self._carried and task.get(name)}
        key = f"remat-{uuid4()}"  # a name that no other user of the cluster has
        self._tasks[key] = task
        future = self._client.submit(do, task, versions(), self._carried, **files, key=key, pure=False)
        self._futures[key] = future
        future.add_done_callback(lambda _: self._done.put(key))

    def running(self) -> list[tuple[str, float]]:
        return []

    def ended(self) -> Iterator[Ended | None]:
        while self._tasks:
            try:
                key = self._done.get(timeout=POLL_SECONDS)
            except queue.Empty:
                self._check()
                yield None
                continue
            if self._futures[key].status == "lost":  # with the worker that held the answer: Dask has it done anew
                self._check()
                time.sleep(POLL_SECONDS)
                self._done.put(key)
                yield None
                continue
            yield self._taken(self._tasks.pop(key), self._futures.pop(key))

    def close(self) -> None:
        self._stack.close()

    def _file(self, path: str) -> Any:
        """A file's content on the cluster, sent once. It is a task, which runs again if the worker that has the file
        dies."""
        if path not in self._sent:
            try:
                content = Path(path).read_bytes()
            except OSError as error:
                raise BadInput(f"cannot read {path}: {error.strerror}") from error
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the warning says that the graph is large
                self._sent[path] = self._client.submit(bytes, content, key=f"remat-file-{uuid4()}", pure=False)
        return self._sent[path]

    def _taken(self, task: Task, future: Any) -> Ended:
        if future.status == "cancelled":
            raise self._gone()
        if future.status == "error":
            error = future.exception()
            return Ended(task, None, why=f"the cluster gave it up: {type(error).__name__}: {error}", code=BUG_CODE)
        try:
            said = future.result()
        except CancelledError:
            raise self._gone() from None
        folder = Path(task["folder"])
        for name in sorted(said["files"], key=lambda name: name == RECORD):  # the record comes last
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, said["files"][name])
        return Ended(task, said["record"], said["cached"], said["why"], said["code"])

    def _check(self) -> None:
        if self._client.status not in ("running", "connecting"):
            raise self._gone()

    def _gone(self) -> BadInput:
        return BadInput(f"the cluster at {self._address} is gone; what was finished is kept: run it again")


def _connect(address: str, count: int, stack: ExitStack) -> Any:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise Usage("--cluster needs dask.distributed: pip install 'remat[cluster]'") from error
    try:
        if address == LOCAL:
            cluster = LocalCluster(n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None)
            return stack.enter_context(Client(stack.enter_context(cluster), timeout=CONNECT_SECONDS))
        return stack.enter_context(Client(address, timeout=CONNECT_SECONDS))
    except (OSError, TimeoutError, ValueError) as error:
        raise BadInput(f"there is no Dask scheduler at {address}: {error or type(error).__name__}") from error


def do(
    task: Task, asked: Mapping[str, str], carried: bool, path: bytes | None = None, costs: bytes | None = None
) -> dict[str, Any]:
    """A task on a worker of the cluster; the result has the fields of `Ended`, and the files to be sent back."""
    if versions() != asked:
        differ = ", ".join(name for name in asked if asked[name] != versions().get(name))
        why = f"the worker has other versions than the batch, of {differ}; install the same"
        return {"record": None, "cached": False, "why": why, "code": Usage.code, "files": {}}
    if not carried:
        return {**_do_here(task), "files": {}}
    with tempfile.TemporaryDirectory(prefix="remat-batch-") as root:
        moved = dict(task)
        for name, content in (("path", path), ("costs", costs)):
            if content is not None:
                moved[name] = _within(root, task[name])
                Path(moved[name]).parent.mkdir(parents=True, exist_ok=True)
                Path(moved[name]).write_bytes(content)
        moved["folder"] = _within(root, task["folder"])
        said = _do_here(moved)
        made = [RECORD, LOG, *((said["record"] or {}).get("outputs", ()))]
        folder = Path(moved["folder"])
        return {**said, "files": {name: (folder / name).read_bytes() for name in made if (folder / name).is_file()}}


def _within(root: str, path: str) -> str:
    """The same path below another root, so that paths from file to file stay as they are."""
    return str(Path(root, *Path(path).parts[1:]))


def _do_here(task: Task) -> dict[str, Any]:
    """Do the task in this thread's own process, which stays for the next task."""
    if not hasattr(_here, "pool"):
        _here.pool = Pool(1)
    _here.pool.submit(task)
    for ended in _here.pool.ended():
        if ended is not None:
            return {"record": ended.record, "cached": ended.cached, "why": ended.why, "code": ended.code}
    raise AssertionError("a task came to no end")
