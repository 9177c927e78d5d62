"""`remat batch --cluster`, on workers that were started by hand, one of which is killed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from remat_cli.batch.cluster import Cluster
from tests.cli.running import Command

MANIFEST = """format: remat-batch/1
models: ["*.problem.json"]
budgets: [9, 5]
methods: [evict]
"""


@contextmanager
def dask(kind: str, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """`dask scheduler` or `dask worker`."""
    command = [sys.executable, "-m", "dask", kind, "--scheduler-file", "scheduler.json", "--no-dashboard", *args]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def here(remat: Command, data: Path, tmp_path: Path) -> Path:
    for name in ("linear8", "linear4"):
        shutil.copy(data / "checkmate" / f"{name}.problem.json", tmp_path)
    Path("m.yaml").write_text(MANIFEST)
    return tmp_path


def plans(folder: str) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*.plan.json")}


def begun(address: str, carry: str) -> subprocess.Popen[bytes]:
    """A batch whose outputs have the name of the way that files go."""
    asked = ["m.yaml", "-q", "-o", carry, "--cluster", address, "--carry", carry]
    return subprocess.Popen([sys.executable, "-m", "remat_cli", "batch", *asked])


@pytest.mark.slow
def test_workers_started_by_hand_give_the_same_bytes(remat: Command, here: Path) -> None:
    with ExitStack() as stack:
        stack.enter_context(dask("scheduler", "--port", "0", "--host", "127.0.0.1"))
        ours = ("--nthreads", "1", "--no-nanny", "--local-directory", "scratch")
        workers = [stack.enter_context(dask("worker", *ours)) for _ in range(2)]
        while not Path("scheduler.json").is_file() or "tcp://" not in (text := Path("scheduler.json").read_text()):
            time.sleep(0.05)
        address = text.split('"address": "')[1].split('"')[0]
        process = begun(address, "content")
        while not any(Path("content").rglob("result.json")):
            assert process.poll() is None
            time.sleep(0.02)
        workers[0].kill()
        assert process.wait(timeout=600) == 0
        assert begun(address, "path").wait(timeout=600) == 0
    assert remat("batch", "m.yaml", "-q", "--jobs", 2, "-o", "here").code == 0
    assert plans("content") == plans("path") == plans("here")
    assert len(plans("here")) == 4


class LostOnce:
    """A task of Dask that is done, then lost with its worker, and done anew by the second look at it."""

    def __init__(self) -> None:
        self.looked = 0

    @property
    def status(self) -> str:
        self.looked += 1
        return "lost" if self.looked == 1 else "finished"

    def add_done_callback(self, tell: Callable[[LostOnce], None]) -> None:
        tell(self)

    def result(self) -> dict[str, object]:
        return {"files": {}, "record": None, "cached": False, "why": "", "code": 0}


def test_an_answer_lost_with_its_worker_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker can die after it has said that a task is done and before its answer is fetched: Dask does it anew."""
    future = LostOnce()
    client = SimpleNamespace(status="running", submit=lambda *_, **__: future)
    monkeypatch.setattr("remat_cli.batch.cluster._connect", lambda *_: client)
    cluster = Cluster("tcp://anywhere", 1, carried=False)
    cluster.submit({"folder": "out"})
    ended = [end for end in cluster.ended() if end is not None]
    assert [(end.code, end.why) for end in ended] == [(0, "")]
    assert future.looked > 1


def test_no_cluster_is_said(remat: Command, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remat_cli.batch.cluster.CONNECT_SECONDS", 0.2)
    ran = remat("batch", "m.yaml", "--cluster", "tcp://127.0.0.1:1")
    assert ran.code == 3
    assert ran.err.startswith("remat: there is no Dask scheduler at tcp://127.0.0.1:1")
