"""`remat batch`: jobs that fail alone, are not done twice, and are reported in four ways that say the same."""

from __future__ import annotations

import csv
import fcntl
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from remat_cli.batch import schema
from remat_cli.batch.tasks import LOG, RECORD
from remat_cli.formats import planfile
from tests.cli.running import Command

CHAINS = """format: remat-batch/1
models: ["*.problem.json"]
budgets: [9, 5]
methods: [chen-greedy, evict]
"""


@pytest.fixture
def here(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two models and a manifest, whose results are its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REMAT_RESULTS", str(tmp_path / "results"))
    for name in ("linear8", "linear4"):
        shutil.copy(data / "checkmate" / f"{name}.problem.json", tmp_path)
    Path("m.yaml").write_text(CHAINS)
    return tmp_path


def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("r.json").read_text())
    jsonschema.validate(found, schema.schema_named("report"))
    return found


def by_title(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{job['name']}/{job['budget']}-{job['method']}": job for job in found["jobs"]}


def plans(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.plan.json")}


def begun(*args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "remat_cli", "batch", *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def worker_of(process: subprocess.Popen[str], other_than: int = 0) -> int:
    """The process in which a task is being done."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while True:
        assert process.poll() is None
        for child in map(int, children.read_text().split()):
            if child != other_than and b"batch.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                return child
        time.sleep(0.01)


@contextmanager
def held(title: str) -> Iterator[None]:
    """The lock of a job, which a batch takes for at work elsewhere: it waits there, however fast its machine is."""
    folder = Path("out", title)
    folder.mkdir(parents=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def until(true: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not true():
        assert process.poll() is None
        time.sleep(0.01)


def test_reports_say_the_same_and_nothing_is_done_twice(remat: Command, here: Path) -> None:
    asked = ("batch", "m.yaml", "--report", "r.json", "--junit", "j.xml", "--csv", "r.csv", "--md", "r.md")
    ran = remat(*asked)
    first = report()
    jobs = by_title(first)
    assert len(jobs) == 8
    assert ran.code == 5  # chen-greedy finds none within 5
    assert jobs["linear8/5-evict"]["status"] == "feasible"
    for title, job in jobs.items():
        assert job["passed"] == (job["plan"] is not None) == Path("out", title, f"{job['name']}.plan.json").is_file()
        assert job["passed"] or "found no plan" in job["why"]
        assert Path(job["log"]).is_file()
    suites = ElementTree.parse("j.xml").getroot()
    failed = suites.findall(".//failure")
    assert (int(suites.get("tests", "")), int(suites.get("failures", ""))) == (8, first["failed"])
    assert [fault.get("message") for fault in failed] == [job["why"] for job in first["jobs"] if not job["passed"]]
    with Path("r.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["status"], row["peak"] or "None") for row in rows] == [
        (job["status"], str(job["peak"])) for job in first["jobs"]
    ]
    assert Path("r.md").read_text().count("**failed**") == first["failed"]

    before = plans(here)
    assert remat(*asked).code == 5
    again = report()
    assert again["cached"] == 8
    assert plans(here) == before
    assert [job["status"] for job in again["jobs"]] == [job["status"] for job in first["jobs"]]


@pytest.mark.slow
def test_only_what_changed_is_done_again(remat: Command, here: Path) -> None:
    Path("m.yaml").write_text(CHAINS.replace("[9, 5]", "[9]"))
    asked = ("batch", "m.yaml", "--report", "r.json", "--jobs", 1)
    assert remat(*asked).code == 0
    model = here / "linear4.problem.json"
    model.write_text(model.read_text() + "\n")
    Path("out/linear8/9-evict/linear8.plan.json").write_text("damaged")
    Path("out/linear8/9-chen-greedy", RECORD).write_text("{")
    assert remat(*asked, "--json").code == 0
    assert {title: job["cached"] for title, job in by_title(report()).items()} == {
        "linear4/9-chen-greedy": False,
        "linear4/9-evict": False,
        "linear8/9-chen-greedy": True,  # its answer is known, and its files are written again
        "linear8/9-evict": True,
    }
    assert planfile.read(Path("out/linear8/9-evict/linear8.plan.json")).peak <= 9
    assert remat(*asked, "--force").code == 0
    assert report()["cached"] == 0


def test_what_is_expected(remat: Command, here: Path) -> None:
    Path("m.yaml").write_text(
        """format: remat-batch/1
models:
  - {path: linear8.problem.json, name: over, expect: {max-overhead: 1%}}
  - {path: linear8.problem.json, name: peak, expect: {max-peak: 8}}
  - {path: linear8.problem.json, name: none, budgets: [2], expect: {status: infeasible}}
  - {path: linear8.problem.json, name: proof, methods: [evict], expect: {status: optimal}}
  - {path: linear8.problem.json, name: fine, expect: {status: feasible, max-overhead: 60%, max-peak: 9}}
budgets: [9]
methods: [milp]
"""
    )
    assert remat("batch", "m.yaml", "--report", "r.json", "--junit", "j.xml").code == 6
    assert {job["name"]: job["why"] for job in report()["jobs"]} == {
        "over": "overhead 5.88% is more than 1.00%",
        "peak": "peak 9B is more than 8B",
        "none": "",
        "proof": "feasible, not optimal",
        "fine": "",
    }
    cases = ElementTree.parse("j.xml").getroot().findall("./testsuite[@name='fine']/testcase")
    assert [case.get("name") for case in cases] == [f"9-milp {what}" for what in ("status", "max-overhead", "max-peak")]


def test_a_baseline(remat: Command, here: Path) -> None:
    asked = ("batch", "m.yaml", "--report", "r.json", "--md", "r.md")
    remat(*asked)
    worse = report()
    for job in worse["jobs"]:
        if job["name"] == "linear8" and job["method"] == "evict":
            job["overhead"] -= 0.1
    Path("old.json").write_text(json.dumps(worse))
    assert remat(*asked, "--baseline", "old.json").code == 6
    whys = {title: job["why"] for title, job in by_title(report()).items()}
    assert whys["linear8/9-evict"] == "overhead +5.88%, -4.12% before"
    assert "-4.12%" in Path("r.md").read_text()
    assert remat(*asked, "--baseline", "old.json", "--threshold", "20%").code == 5
    assert remat(*asked, "--baseline", "m.yaml").code == 3


@pytest.mark.slow
def test_a_forward_model_goes_the_whole_road(remat: Command, here: Path) -> None:
    assert remat("zoo", "mlp", "-o", "f.onnx", "-q").code == 0
    Path("m.yaml").write_text(
        """format: remat-batch/1
models: [{path: f.onnx, grad: {optimizer: sgd}, defaults: {estimate: h100}}]
budgets: [100%]
methods: [evict]
expect: {verify: true, max-overhead: 0}
"""
    )
    assert remat("batch", "m.yaml", "--report", "r.json").code == 0
    (job,) = report()["jobs"]
    assert (job["verified"], job["passed"], job["overhead"]) == (True, True, 0)
    made = {path.name for path in Path("out/f").rglob("*") if path.is_file() and not path.name.startswith(".")}
    assert made == {
        *("f.train.onnx", "f.train.costs.yaml", RECORD, LOG),
        *("f.train.plan.json", "f.train.remat.onnx"),
    }
    shutil.rmtree("out")
    assert remat("batch", "m.yaml", "--report", "r.json").code == 0
    assert report()["jobs"][0]["verified"]


def test_what_goes_wrong_goes_wrong_alone(remat: Command, here: Path, data: Path) -> None:
    """A job without memory, one without end, one whose model is none, and one that is well."""
    Path("bad.problem.json").write_text("{}")
    shutil.copy(data / "networks" / "unet.problem.json", "endless.json")
    Path("m.yaml").write_text(
        """format: remat-batch/1
models:
  - {path: linear8.problem.json, name: memory, defaults: {memory-limit: 30MB}}
  - {path: endless.json, name: hangs, budgets: [50%], methods: [auto], defaults: {gap: 0%, timeout: 10ms}}
  - bad.problem.json
  - linear4.problem.json
budgets: [9]
methods: [evict]
"""
    )
    assert remat("batch", "m.yaml", "--report", "r.json", "--junit", "j.xml").code == 3
    found = {job["name"]: job for job in report()["jobs"]}
    assert {name: job["passed"] for name, job in found.items()} == {
        **dict.fromkeys(("memory", "hangs", "bad"), False),
        "linear4": True,
    }
    assert (found["hangs"]["why"], found["hangs"]["code"]) == ("it did not end within 0.01 s", 5)
    assert "bad.problem.json is not a problem" in found["bad"]["why"] or found["bad"]["code"] == 3
    assert "memory" in found["memory"]["why"].lower()
    assert len(ElementTree.parse("j.xml").getroot().findall(".//error")) == 3


def test_a_quiet_batch_says_what_failed_and_nothing_else(remat: Command, here: Path) -> None:
    """Its exit code was all that told of it."""
    Path("bad.problem.json").write_text("{}")
    Path("m.yaml").write_text(CHAINS.replace("[9, 5]", "[9]").replace("[chen-greedy, evict]", "[evict]"))
    ran = remat("batch", "m.yaml", "-q")
    assert (ran.code, ran.out) == (3, "")
    assert [line.split()[:2] for line in ran.err.splitlines()] == [["FAILED", "bad/9-evict"]]


KILLED_ONCE = f"""
import os, signal, sys

def killed(event, given):
    if event == "open" and str(given[0]).endswith("{LOG}") and not os.path.exists("killed"):
        os.close(os.open("killed", os.O_CREAT))
        os.kill(os.getpid(), signal.SIGKILL)

if "batch.worker" in " ".join(sys.orig_argv):
    sys.addaudithook(killed)
"""


def test_a_worker_that_dies_has_its_job_done_elsewhere(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first kills itself when it has begun a job."""
    Path("m.yaml").write_text(CHAINS.replace("[chen-greedy, evict]", "[auto]").replace("9, 5", "9"))
    Path("hook").mkdir()
    Path("hook", "sitecustomize.py").write_text(KILLED_ONCE)
    monkeypatch.setenv("PYTHONPATH", str(here / "hook"))
    process = begun("m.yaml", "--jobs", "1", "--report", "r.json")
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert Path("killed").exists()
    assert report()["passed"] == 2


def test_what_is_killed_goes_on_where_it_was(remat: Command, here: Path) -> None:
    """The coordinator, by SIGKILL: its workers go with it, and what was finished stays so."""
    process = begun("m.yaml", "--jobs", "1")
    child = worker_of(process)
    until(lambda: len(list(Path("out").rglob(RECORD))) >= 2, process)
    process.kill()
    process.communicate()
    for _ in range(1000):
        if not Path(f"/proc/{child}").exists() or "\nState:\tZ" in Path(f"/proc/{child}/status").read_text():
            break
        time.sleep(0.01)
    else:
        raise AssertionError("the worker outlived the batch")
    assert remat("batch", "m.yaml", "--report", "r.json").code == 5
    assert 2 <= report()["cached"] <= len(report()["jobs"])


def test_an_interrupt_ends_it_with_130(remat: Command, here: Path) -> None:
    with held("linear4/9-chen-greedy"):
        process = begun("m.yaml", "--jobs", "1")
        worker_of(process)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=600)
    assert process.returncode == 130
    assert said.rstrip().endswith("remat: interrupted")


@pytest.mark.slow
def test_an_interrupted_batch_writes_its_report(remat: Command, here: Path) -> None:
    """What was done is in it, what was not has failed for that; the same command afterwards does only the rest."""
    with held("linear8/5-evict"):
        process = begun("m.yaml", "--jobs", "1", "--report", "r.json", "--md", "r.md")
        until(lambda: len(list(Path("out").rglob(RECORD))) >= 2, process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)
    assert process.returncode == 130
    assert said.rstrip().endswith("remat: interrupted")
    jobs = report()["jobs"]
    undone = [job for job in jobs if job["code"] == 130]
    assert undone
    assert all(job["status"] == "failed" and "interrupted" in job["why"] for job in undone)
    assert any(job["passed"] for job in jobs)
    assert Path("r.md").is_file()
    assert remat("batch", "m.yaml", "--report", "r.json").code == 5
    assert report()["cached"] >= len(jobs) - len(undone)


ENDLESS = "defaults: {gap: 0%, time-limit: 1h}\n"


def test_an_interrupted_job_keeps_its_best_plan(here: Path, data: Path) -> None:
    """It is there, whole, without a record: the job is done anew the next time."""
    shutil.copy(data / "networks" / "unet.problem.json", here)
    Path("u.yaml").write_text('format: remat-batch/1\nmodels: ["unet.problem.json"]\nbudgets: [50%]\n' + ENDLESS)
    process = begun("u.yaml", "--jobs", "1")

    def has_a_plan() -> bool:
        return any("plan +" in log.read_text() for log in Path("out").rglob(LOG))

    until(has_a_plan, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert (process.returncode, said.rstrip().endswith("remat: interrupted")) == (130, True)
    (plan,) = Path("out").rglob("*.plan.json")
    assert planfile.read(plan).status == "feasible"
    assert not list(Path("out").rglob(RECORD))
    assert not list(Path("out").rglob("*.part"))


@pytest.mark.slow
def test_two_batches_share_a_folder(here: Path) -> None:
    going = [begun("m.yaml", "--jobs", "1", "--report", f"r{number}.json") for number in range(2)]
    for process in going:
        _, said = process.communicate(timeout=600)
        assert process.returncode == 5, said
    one, other = (json.loads(Path(f"r{number}.json").read_text())["jobs"] for number in range(2))
    figures = ("model", "budget", "method", "status", "peak", "overhead", "passed")
    assert [[job[name] for name in figures] for job in one] == [[job[name] for name in figures] for job in other]
    assert sum(job["cached"] for job in one + other) >= len(one)  # neither did what the other had done


def test_a_model_that_goes_while_it_runs(here: Path) -> None:
    with held("linear8/5-evict"):
        process = begun("m.yaml", "--jobs", "1", "--report", "r.json")
        worker_of(process)
        Path("linear8.problem.json").unlink()
    process.communicate(timeout=600)
    assert process.returncode == 3
    failed = [job for job in report()["jobs"] if job["status"] == "failed"]
    assert failed
    assert all("linear8.problem.json" in job["why"] for job in failed)
