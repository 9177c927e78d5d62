"""Commands killed in the middle: whatever they leave is whole, and what was there before is not lost.

By hand: `python -m tests.killing SEED COUNT` kills every command in turn, so many times in all, and counts aloud. Half
of the kills come at a time between a command's start and end, half as soon as it is seen to write.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import onnx
from google.protobuf.message import DecodeError

from profiles.costfile import load as load_costs
from profiles.costs import BadCosts
from remat_cli.errors import RematError
from remat_cli.formats import certificatefile, planfile, problemfile
from remat_cli.plans.planned import load_planned
from remat_cli.results.store import Store

ROOT = Path(__file__).parents[1]
LIMIT = "120s"


@dataclass(frozen=True, slots=True)
class Job:
    """`writes`: what is there afterwards, from the folder that it runs in."""

    words: tuple[str, ...]
    writes: tuple[str, ...]


JOBS = {
    "zoo": Job(("zoo", "cnn", "--batch", "2", "--image", "16", "-o", "f.onnx"), ("f.onnx",)),
    "grad": Job(("grad", "f.onnx", "-o", "g.onnx"), ("g.onnx",)),
    "profile": Job(("profile", "m.onnx", "--estimate", "cpu"), ("m.costs.yaml",)),
    "problem": Job(("problem", "m.onnx"), ("m.problem.json",)),
    "solve": Job(
        (
            "solve",
            "m.onnx",
            "--budget",
            "80%",
            "--time-limit",
            LIMIT,
            "--certificate",
            "m.cert.json",
            "-o",
            "m.plan.json",
        ),
        ("m.plan.json", "m.cert.json"),
    ),
    "sweep": Job(("sweep", "m.onnx", "--budgets", "80%,90%", "--time-limit", LIMIT, "-o", "curve"), ()),
    "emit": Job(("emit", "m.plan.json"), ("m.remat.onnx",)),
    "verify": Job(("verify", "m.plan.json", "-o", "m.verify.json"), ("m.verify.json",)),
    "check": Job(("check", "m.cert.json", "m.plan.json"), ()),
    "show": Job(("show", "m.plan.json", "--html", "m.html"), ("m.html",)),
    "elsewhere": Job(("emit", "big.plan.json", "-o", "apart/big.onnx"), ("apart/big.onnx", "apart/big.data")),
}


def _ends(words: str) -> Callable[[Path], object]:
    def look(path: Path) -> None:
        if not path.read_text().rstrip().endswith(words):
            raise ValueError(f"it does not end with {words}")

    return look


TORN = (RematError, BadCosts, DecodeError, OSError, ValueError)
READERS: dict[str, Callable[[Path], object]] = {
    ".remat.onnx": onnx.load,
    ".onnx": lambda path: onnx.load(path, load_external_data=True),
    ".costs.yaml": load_costs,
    ".problem.json": problemfile.read,
    ".plan.json": planfile.read,
    ".cert.json": certificatefile.read,
    ".result.json": lambda path: None,  # the store reads those
    ".json": lambda path: json.loads(path.read_text()),
    ".html": _ends("</html>"),
    ".svg": _ends("</svg>"),
}


class Kills:
    """`home`: what every command does when it is let to end, which each kill begins from."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.seconds: dict[str, float] = {}
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "MPLBACKEND": "agg",
        }

    def begin(self, names: Iterable[str] = JOBS) -> None:
        """Run them once, and see how long each takes."""
        (self.home / "apart").mkdir()
        shutil.copy(ROOT / "tests" / "data" / "torch_unet_convt.onnx", self.home / "m.onnx")
        for name in names:
            if name == "elsewhere":
                self._grow()
            begun = time.monotonic()
            ended = self.start(JOBS[name], self.home).wait()
            self.seconds[name] = time.monotonic() - begun
            assert ended == 0, (name, ended)
            assert not self.wrong(self.home), name

    def _grow(self) -> None:
        """A model with its weights beside it, and a plan of it."""
        model = onnx.load(self.home / "m.onnx")
        onnx.save(model, self.home / "big.onnx", save_as_external_data=True, location="big.data", size_threshold=0)
        asked = Job(("solve", "big.onnx", "--budget", "80%", "--time-limit", LIMIT, "-o", "big.plan.json"), ())
        assert self.start(asked, self.home).wait() == 0

    def start(self, job: Job, folder: Path) -> subprocess.Popen[bytes]:
        environment = {**self.environment, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
        command = [sys.executable, "-m", "remat_cli", *job.words]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdout=quiet, stderr=quiet, start_new_session=True
        )

    def kill(self, name: str, random: Random, folder: Path) -> tuple[str, list[str]]:
        """How it ended, and all that is wrong with what it left."""
        job = JOBS[name]
        shutil.copytree(self.home, folder)
        if random.random() < 0.5:
            for written in job.writes:
                (folder / written).unlink(missing_ok=True)
        shutil.rmtree(folder / "cache", ignore_errors=True)
        before = _whole(folder)
        process = self.start(job, folder)
        until = time.monotonic() + random.uniform(0.2, 1.0) * self.seconds[name]
        at_write = random.random() < 0.5
        files = _names(folder)
        while process.poll() is None and (at_write or time.monotonic() < until):
            if at_write and _names(folder) != files:
                time.sleep(random.choice((0, 0, 1e-4, 1e-3, 1e-2)))
                break
            time.sleep(5e-5 if at_write else 1e-3)
        ended = "ended" if process.poll() is not None else "killed as it wrote" if at_write else "killed"
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        lost = [f"{gone} is gone" for gone in sorted(before - _whole(folder))]
        return ended, [*lost, *self.wrong(folder)]

    def wrong(self, folder: Path) -> list[str]:
        """What is torn in a folder."""
        found = []
        for name in sorted(_whole(folder)):
            read = next((reader for suffix, reader in READERS.items() if name.endswith(suffix)), None)
            try:
                if read is not None:
                    read(folder / name)
            except TORN as error:
                found.append(f"{name} is torn: {error}")
        for name, costs in (("m.plan.json", "m.costs.yaml"), ("big.plan.json", "big.onnx")):
            if (folder / name).exists() and (folder / costs).exists():
                load_planned(folder / name).replayed()
        store = Store(folder / "cache" / "remat" / "results")
        return found + [f"{entry.path} is torn: {entry.wrong}" for entry in store.entries() if entry.wrong]


def _names(folder: Path) -> set[tuple[str, int]]:
    found = set()
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                found.add((f"{place}/{name}", os.stat(f"{place}/{name}").st_mtime_ns))
            except FileNotFoundError:
                continue
    return found


def _whole(folder: Path) -> set[str]:
    """Files that somebody might read: not those that are being written beside their place."""
    every = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in every if not path.name.endswith(".part")}


def main(seed: int, count: int) -> None:
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        kills = Kills(Path(folder) / "home")
        kills.home.mkdir()
        kills.begin()
        print({name: round(seconds, 1) for name, seconds in kills.seconds.items()}, flush=True)
        for number in range(count):
            name = list(JOBS)[number % len(JOBS)]
            ended, wrong = kills.kill(name, Random(f"{seed} {number}"), Path(folder) / "killed")
            shutil.rmtree(Path(folder) / "killed")
            seen[f"{name}: {ended}"] += 1
            seen["wrong"] += bool(wrong)
            if wrong:
                print(number, name, ended, wrong, flush=True)
            if (number + 1) % 50 == 0 or number + 1 == count:
                print(number + 1, dict(sorted(seen.items())), f"{sum(os.times()[:4]):.0f} s of CPU time", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
