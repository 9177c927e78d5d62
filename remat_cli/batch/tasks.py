"""Tasks for workers, as JSON, and the record that a worker leaves when it is done.

Invariant: a record names its task by the hash of all inputs, and every output file by its content. A task whose record
and files are there need not run again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from remat_cli.batch.manifest import Job, Model
from remat_cli.errors import RematError
from remat_cli.formats.files import sha256, stem_of
from remat_cli.results.store import key_of
from remat_cli.results.versions import versions

FORMAT = "remat-job/1"
RECORD = "result.json"
LOG = "log.txt"
ASKED_FIELDS = [field.name for field in fields(Job) if field.name not in ("model", "folder", "expected")]
FREE_FIELDS = {"folder", "seconds", "timeout", "memory", "path", "costs", "verify", "title"}  # of the key

Task = dict[str, Any]
Record = dict[str, Any]


def preparing(model: Model, digest: str, folder: Path, timeout: float, memory: int | None) -> Task:
    """The training graph of a forward model, and what ops cost."""
    return _with_key(
        {
            "kind": "prepare",
            "title": model.name,
            "path": str(model.path),
            "sha256": digest,
            "stem": stem_of(model.path),
            "grad": model.grad,
            "profile": model.profile,
            "estimate": model.estimate,
            "dims": dict(model.dims),
            "folder": str(folder),
            "timeout": timeout,
            "memory": memory,
        }
    )


def solving(job: Job, path: Path, digest: str, costs: tuple[Path, str] | None, folder: Path) -> Task:
    """One job, on the model at `path`, which may have been made from the job's."""
    return _with_key(
        {
            "kind": "solve",
            "title": job.title,
            "path": str(path),
            "sha256": digest,
            "stem": stem_of(path),
            "costs": str(costs[0]) if costs else None,
            "costs_sha256": costs[1] if costs else None,
            "dims": {} if job.model.grad is not None else dict(job.model.dims),
            **{name: getattr(job, name) for name in ASKED_FIELDS},
            "verify": bool(job.expected.verify),
            "folder": str(folder),
        }
    )


def _with_key(task: Task) -> Task:
    asked = {name: value for name, value in task.items() if name not in FREE_FIELDS}
    return {**task, "key": key_of({"asked": asked, "versions": versions()})}


def find_record(task: Task) -> Record | None:
    """The record of the task, if it was done, with as much time if that mattered, and all that came of it is there."""
    folder = Path(task["folder"])
    try:
        record = json.loads((folder / RECORD).read_text())
        if record["format"] != FORMAT or record["key"] != task["key"]:
            return None
        if not record["proved"] and record["seconds"] < task.get("seconds", 0):
            return None
        if task.get("verify") and record["result"]["verified"] is None and record["result"]["plan"]:
            return None
        changed = any(not same(Path(name), said) for name, said in record["inputs"].items())
        gone = any(sha256(folder / name) != digest for name, digest in record["outputs"].items())
        return None if changed or gone else record
    except (OSError, RematError, KeyError, TypeError, ValueError, RecursionError):  # there is none that can be used
        return None


def fingerprint(path: Path) -> list[Any]:
    """A file that took part, as a record has it: size, time, content."""
    state = path.stat()
    return [state.st_size, state.st_mtime_ns, sha256(path)]


def same(path: Path, said: list[Any]) -> bool:
    """Whether the file is as it was seen; its content is looked at only if it was touched."""
    size, touched, digest = said
    state = path.stat()
    return state.st_size == size and (state.st_mtime_ns == touched or sha256(path) == digest)


def record_of(task: Task, result: Mapping[str, Any], outputs: list[str], inputs: list[Path], proved: bool) -> Record:
    folder = Path(task["folder"])
    return {
        "format": FORMAT,
        "key": task["key"],
        "seconds": task.get("seconds", 0),
        "proved": proved,
        "inputs": {str(path): fingerprint(path) for path in inputs},
        "outputs": {name: sha256(folder / name) for name in outputs},
        "result": dict(result),
    }
