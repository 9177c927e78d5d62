"""Runs a batch from its jobs to their results: known results are not computed again, the rest goes to workers.

Invariant: every job has one result, whatever happens to it; what was finished stays finished, however the batch ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from profiles import costfile
from remat_cli.batch.expect import Check, checks
from remat_cli.batch.manifest import Job, Model
from remat_cli.batch.pool import Ended, Workers
from remat_cli.batch.tasks import LOG, Task, find_record, preparing, solving
from remat_cli.errors import BadInput, RematError
from remat_cli.formats.files import sha256
from remat_cli.model.sessions import KINDS

INTERRUPTED_CODE = 130
NOTHING: Mapping[str, Any] = {"status": "failed", "cached": False, "verified": None, "seconds": {}, "plan": None}


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job and its result, as a report shows it."""

    job: Job
    said: Mapping[str, Any]
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return not self.why

    @property
    def why(self) -> str:
        return "; ".join(check.fault for check in self.checks if check.fault)

    @property
    def codes(self) -> Iterator[int]:
        return (check.code for check in self.checks if check.fault)

    def against(self, check: Check) -> JobReport:
        """The result with one more check."""
        return replace(self, checks=(*self.checks, check))


@dataclass(frozen=True, slots=True)
class Files:
    """The files that jobs of a model are solved on."""

    model: Path
    sha256: str
    costs: tuple[Path, str] | None


class Batch:
    """A batch of jobs; `force`: compute everything again."""

    def __init__(self, jobs: Sequence[Job], out: Path, workers: Workers, force: bool = False) -> None:
        self.jobs = jobs
        self.out = out.absolute()
        self.workers = workers
        self.force = force
        self.of_task: dict[str, list[Job]] = {}  # the jobs that wait for a task, by its folder
        self.hashes: dict[Path, str] = {}
        self.found: dict[str, JobReport] = {}  # the results of the jobs that have ended, by their titles

    def run(self, tell: Callable[[JobReport | None], None]) -> list[JobReport]:
        """All results, in the order of the jobs; `tell` is called with each as it comes, and with None in between."""

        def take(result: JobReport) -> None:
            self.found[result.job.title] = result
            tell(result)

        for jobs in _by_model(self.jobs):
            for result in self._begin(jobs):
                take(result)
        for ended in self.workers.ended():
            if ended is None:
                tell(None)
                continue
            for result in self._after(ended):
                take(result)
        return [self.found[job.title] for job in self.jobs]

    def interrupted(self) -> list[JobReport]:
        """All results of a batch that a signal ended: jobs that were not done have failed for that."""
        why = "the batch was interrupted before this job was done"
        return [
            self.found.get(job.title) or self._failed(job, self._folder(job), why, INTERRUPTED_CODE)
            for job in self.jobs
        ]

    def _begin(self, jobs: list[Job]) -> Iterator[JobReport]:
        model = jobs[0].model
        if not model.prepared:
            yield from self._solve(jobs, lambda: self._as_given(model))
            return
        try:
            timeout, memory = max(job.timeout for job in jobs), jobs[0].memory
            task = preparing(model, self._hash(model.path), self.out / model.name, timeout, memory)
        except (OSError, RematError) as error:
            yield from (self._failed(job, self.out / model.name, str(error), 3) for job in jobs)
            return
        if (record := None if self.force else find_record(task)) is not None:
            yield from self._solve(jobs, lambda: self._as_prepared(model, task, record))
        else:
            self._submit(task, jobs)

    def _submit(self, task: Task, jobs: list[Job]) -> None:
        self.of_task[task["folder"]] = jobs
        self.workers.submit({**task, "force": self.force})

    def _solve(self, jobs: list[Job], files: Callable[[], Files]) -> Iterator[JobReport]:
        """The results of jobs that are known; the others are submitted."""
        try:
            on = files()
        except (OSError, RematError) as error:
            yield from (self._failed(job, self._folder(job), str(error), BadInput.code) for job in jobs)
            return
        for job in jobs:
            task = solving(job, on.model, on.sha256, on.costs, self._folder(job))
            record = None if self.force else find_record(task)
            if record is None:
                self._submit(task, [job])
            else:
                yield self._result(job, record["result"], True)

    def _after(self, ended: Ended) -> Iterator[JobReport]:
        jobs, folder = self.of_task[ended.task["folder"]], Path(ended.task["folder"])
        record = ended.record
        if record is None:
            yield from (self._failed(job, folder, ended.why, ended.code) for job in jobs)
        elif ended.task["kind"] == "prepare":
            known = record
            yield from self._solve(jobs, lambda: self._as_prepared(jobs[0].model, ended.task, known))
        else:
            yield self._result(jobs[0], record["result"], ended.cached or record["result"]["cached"])

    def _as_given(self, model: Model) -> Files:
        """The model's own file, and the cost file that is named or stands beside it."""
        beside = costfile.beside(model.path)
        costs = model.costs or (beside if beside.is_file() and model.path.suffix != ".json" else None)
        return Files(model.path, self._hash(model.path), (costs, self._hash(costs)) if costs else None)

    def _as_prepared(self, model: Model, task: Task, record: Mapping[str, Any]) -> Files:
        made = {Path(task["folder"]) / name: digest for name, digest in record["outputs"].items()}
        models = [path for path in made if path.suffix == ".onnx"] or [model.path]
        costs = [path for path in made if path.suffix == ".yaml"]
        digest = made.get(models[0]) or self._hash(models[0])
        return Files(models[0], digest, (costs[0], made[costs[0]]) if costs else None)

    def _hash(self, path: Path) -> str:
        if path not in self.hashes:
            self.hashes[path] = sha256(path)
        return self.hashes[path]

    def _folder(self, job: Job) -> Path:
        return self.out / job.model.name / job.folder

    def _failed(self, job: Job, folder: Path, why: str, code: int) -> JobReport:
        return self._result(job, {**NOTHING, "why": why}, False, code, folder)

    def _result(
        self, job: Job, found: Mapping[str, Any], cached: bool, code: int = 0, folder: Path | None = None
    ) -> JobReport:
        log = (folder or self._folder(job)) / LOG
        said = {
            **found,
            "model": job.model.shown,
            "name": job.model.name,
            "budget": job.budget,
            "bytes": found.get("budget"),
            "method": job.folder.removeprefix(f"{job.budget}-"),
            "runtime": job.runtime,
            "session": KINDS[job.runtime].name,
            "cached": cached,
            "code": code,
            "seconds": round(sum(found["seconds"].values()), 3) if not cached else 0.0,
            "phases": found["seconds"],
            "log": str(log) if log.is_file() else "",
            "plan": str(self._folder(job) / found["plan"]) if found["plan"] else None,
        }
        for name in ("peak", "cost", "overhead", "gap", "bound"):
            said.setdefault(name, None)
        return JobReport(job, said, tuple(checks(said, job.expected)))


def _by_model(jobs: Sequence[Job]) -> list[list[Job]]:
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.model.name, []).append(job)
    return list(found.values())
