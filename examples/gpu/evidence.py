"""All that only a GPU can tell, in one call: python examples/gpu/evidence.py --device cuda --out FOLDER --minutes 8

Each part runs in a process of its own; what it finds is written to FOLDER/evidence.json as it comes, and as a page to
FOLDER/evidence.md. The most important comes first, and what fails or takes too long is recorded and left behind. A call
on the same FOLDER goes on where the last was cut short. Files of models stay in --work and are not made twice.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.gpu.parts import (
    batches,
    beside,
    inductor,
    machine,
    memory,
    models,
    ops,
    page,
    sessions,
    times,
    torch_batches,
    torch_networks,
    trained,
    where,
)
from examples.gpu.parts.models import Bench

ROOT = Path(__file__).resolve().parents[2]
LEAST = 10.0  # seconds: with less left nothing is begun
# seconds for a part, so that three calls come to every kind of part that no GPU has carried out; others:
MOST = {"dropout": 45.0, "inductor": 215.0, "torch batch": 180.0, "batch": 170.0, "where": 120.0, "trained": 200.0}
USUAL = 150.0
Part = Callable[[Bench], Iterator[dict[str, Any]]]


def parts(bench: Bench) -> dict[str, Part]:
    """Every part by its key, the most telling first. Of three calls of eight minutes the first is Inductor's, the
    second the process figures', the third that of the largest batches and of where time goes."""
    first, second, third, fourth = "gpt2", "resnet50", "unet", "bert"
    usual, *others = bench.budgets
    found: dict[str, Part] = {"machine": machine.machine, "dropout": inductor.dropout}
    for name in torch_networks.SIZES:
        found[f"inductor/{name}"] = partial(inductor.trained, name=name)

    def proved(name: str) -> None:
        found[f"costs/{name}"] = partial(models.costed, name=name)
        found[f"plans/{name}"] = partial(models.planned, name=name)
        found[f"memory/{name}/{usual}"] = partial(memory.verified, name=name, budget=usual)
        found[f"session/{name}"] = partial(sessions.order_and_bits, name=name, budget=usual)

    for name in (second, third, first, fourth):
        proved(name)
    found["torch batch/llama"] = partial(torch_batches.largest, name="llama")
    found[f"batch/{third}"] = partial(batches.largest, name=third)
    found[f"where/{first}"] = partial(where.gone, name=first)
    for name in (first, second):
        found[f"batch/{name}"] = partial(batches.largest, name=name)
    for name in (second, first, fourth):
        found[f"trained/{name}"] = partial(trained.op_by_op, name=name)
    for name in (first, second, third, fourth):
        found[f"steps/{name}"] = partial(times.steps, name=name)
        found[f"pytorch/{name}"] = partial(beside.pytorch, name=name)
    for name in (first, second, third, fourth):
        found[f"allocators/{name}"] = partial(memory.allocators, name=name, budget=usual)
        found[f"profile/{name}"] = partial(times.profiles, name=name)
        for budget in others:
            found[f"memory/{name}/{budget}"] = partial(memory.verified, name=name, budget=budget)
    return found | {"ops/in place": ops.in_place, "ops/workspace": ops.workspace}


SMALL = ("machine", "session/unet", "memory/unet/90", "steps/unet", "batch/unet")  # what a test runs: those that matter


def main() -> None:
    asked = arguments()
    bench = Bench(asked.work.resolve(), asked.device, asked.small, profile=asked.profile, solve=asked.solve)
    if asked.small:
        bench = Bench(asked.work.resolve(), asked.device, True, profile=0.5, solve=120.0, seconds=0.01, method="evict")
    bench.folder.mkdir(parents=True, exist_ok=True)
    if asked.part:
        return carry_out(parts(bench)[asked.part], bench, asked.answers)
    gather(asked, bench)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny models and few parts: that the script itself runs")
    parser.add_argument("--out", type=Path, required=True, help="where the evidence goes")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "gpu" / "work", help="where models go")
    parser.add_argument("--profile", type=float, default=20.0, help="seconds for the costs of a graph")
    parser.add_argument("--solve", type=float, default=15.0, help="seconds for a plan")
    parser.add_argument("--only", nargs="*", default=(), help="parts whose keys begin so")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--answers", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def carry_out(part: Part, bench: Bench, answers: Path) -> None:
    """One part, in this process: a line for each thing found."""
    with answers.open("a") as file:
        for found in part(bench):
            file.write(json.dumps(found) + "\n")
            file.flush()


def gather(asked: argparse.Namespace, bench: Bench) -> None:
    end = time.monotonic() + 60 * asked.minutes
    asked.out.mkdir(parents=True, exist_ok=True)
    wanted = [key for key in parts(bench) if not asked.small or key in SMALL or asked.only]
    wanted = [key for key in wanted if not asked.only or key.startswith(tuple(asked.only))]
    evidence = begun(asked, len(wanted))
    fresh = [key for key in wanted if key not in evidence["results"]]
    again = [key for key in wanted if evidence["results"].get(key, {"status": "done"})["status"] != "done"]
    for key in fresh + again:
        left = end - time.monotonic()
        if left < LEAST:
            break
        begins = time.monotonic()
        most = left if asked.small else MOST.get(key.partition("/")[0], USUAL)
        entry = tried(key, asked, min(left - 2, most))
        seconds = round(time.monotonic() - begins, 2)
        evidence["results"][key] = {**entry, "seconds": seconds}
        evidence["seconds"] += seconds
        write(asked.out, evidence)
        print(f"{key}: {entry['status']} in {seconds:.1f} s {entry.get('why', '')[-200:]}", flush=True)


def begun(asked: argparse.Namespace, wanted: int) -> dict[str, Any]:
    """What an earlier call found, or nothing yet."""
    path = asked.out / "evidence.json"
    if path.is_file():
        held: dict[str, Any] = json.loads(path.read_text())
        if (held["device"], held["small"]) == (asked.device, asked.small):
            return {**held, "wanted": wanted}
    return {
        "format": "remat-gpu/1",
        "device": asked.device,
        "small": asked.small,
        "revision": revision(),
        "began": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "seconds": 0.0,
        "wanted": wanted,
        "results": {},
    }


def revision() -> str:
    """Of the sources, where they came with their history."""
    try:
        asked = ["git", "rev-parse", "--short", "HEAD"]
        return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def command(key: str, asked: argparse.Namespace, answers: str) -> list[str]:
    """What carries out one part in a process of its own."""
    small = ["--small"] if asked.small else []
    times = ["--profile", asked.profile, "--solve", asked.solve]
    places = ["--out", asked.out, "--work", asked.work, "--answers", asked.work.resolve() / answers]
    words = (sys.executable, __file__, "--part", key, "--device", asked.device, *small, *times, *places)
    return [str(word) for word in words]


def started(key: str, asked: argparse.Namespace, answers: str) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    given = {**os.environ, "PYTHONPATH": paths}
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command(key, asked, answers), env=given, start_new_session=True, **pipes)


def ended(running: subprocess.Popen[str], seconds: float) -> tuple[str, str]:
    """How it ended and what it said; with all that it began if it takes longer."""
    try:
        _, words = running.communicate(timeout=max(seconds, 0))
        return "failed" if running.returncode else "done", words
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        return "cut", running.communicate()[1]


def tried(key: str, asked: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """One part in a process of its own."""
    answers = asked.work.resolve() / "answers.jsonl"
    answers.unlink(missing_ok=True)
    with started(key, asked, answers.name) as running:
        status, words = ended(running, seconds)
    found = [json.loads(line) for line in answers.read_text().splitlines()] if answers.is_file() else []
    entry: dict[str, Any] = {"status": status, "found": found}
    if status == "failed":
        entry["why"] = f"code {running.returncode}: {words.strip()[-800:]}"
    elif status == "cut":
        entry["why"] = f"it took longer than {seconds:.0f} s"
    return entry


def write(out: Path, evidence: dict[str, Any]) -> None:
    """Both files, each whole or not at all."""
    for name, text in (("evidence.json", json.dumps(evidence, indent=1) + "\n"), ("evidence.md", page.page(evidence))):
        beside_it = out / f".{name}"
        beside_it.write_text(text)
        beside_it.replace(out / name)


if __name__ == "__main__":
    main()
