"""What a batch costs besides its jobs: 20 models x 5 budgets x 2 methods, twice, and 1,000 queued jobs.

Machinery is the processor time of a batch and all its processes, less what its jobs' own phases took (loading, solving,
emitting), for each job.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

REMAT = [sys.executable, "-m", "remat_cli"]
MODELS, QUEUED = 20, 1000


def remat(*args: object) -> tuple[float, float]:
    """Wall and processor seconds, children's included."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), monotonic()
    subprocess.run([*REMAT, *map(str, args)], check=False, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return monotonic() - begun, spent


def manifest(budgets: list[str], methods: list[str]) -> str:
    return json.dumps({"format": "remat-batch/1", "models": ["*.train.onnx"], "budgets": budgets, "methods": methods})


def measured(name: str, extra: list[str]) -> dict[str, Any]:
    wall, spent = remat("batch", "m.yaml", "-q", "--jobs", 2, "--report", f"{name}.json", *extra)
    report = json.loads(Path(f"{name}.json").read_text())
    phases = 0.0 if report["cached"] else sum(job["processor"] for job in report["jobs"])
    return {
        "jobs": len(report["jobs"]),
        "cached": report["cached"],
        "wall_seconds": round(wall, 2),
        "processor_seconds": round(spent, 2),
        "phases_seconds": round(phases, 2),
        "load_before": round(os.getloadavg()[0], 1),
    }


def queued() -> dict[str, Any]:
    """The most memory that the coordinator of so many jobs held, on its own."""
    Path("m.yaml").write_text(manifest([f"{50 + number}%" for number in range(QUEUED // MODELS)], ["evict"]))
    code = (
        "import resource, sys; from pathlib import Path; from remat_cli.batch.manifest import read; "
        "from remat_cli.batch.pool import Pool; from remat_cli.batch.run import Batch; jobs = read(Path('m.yaml')); "
        "pool = Pool(2); batch = Batch(jobs, Path('queued'), pool); "
        "names = {job.model.name for job in jobs}; "
        "[list(batch._begin([job for job in jobs if job.model.name == name])) for name in names]; "
        "print(len(pool.waiting), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    return {"jobs": int(said[0]), "coordinator_bytes": int(said[1])}


KEY = ("cluster",)


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cluster", help="as `remat batch` takes it, such as local")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    extra = ["--cluster", asked.cluster] if asked.cluster else []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["REMAT_RESULTS"] = str(Path(folder, "results"))
        for number in range(MODELS):
            remat("zoo", "mlp", "--batch", 64 + number, "--layers", 3, "-o", f"m{number}.onnx", "-q")
            remat("grad", f"m{number}.onnx", "-o", f"m{number}.train.onnx", "-q")
        Path("m.yaml").write_text(manifest(["95%", "90%", "85%", "80%", "75%"], ["evict", "chen-greedy"]))
        first, again = (measured(name, extra) for name in ("first", "again"))
        rest = first["processor_seconds"] - first["phases_seconds"]
        each = round(1000 * rest / first["jobs"], 1)
        yield {"cluster": asked.cluster, "machinery_ms_a_job": each, "first": first, "again": again, "queued": queued()}
