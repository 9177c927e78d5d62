"""The models that the evidence is about, their files and how they are made: each by a command of remat's, once.

Invariant: a file that is there is whole, and is not made again; so a second call goes on where the first was cut short.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import remat_cli
from remat_cli.formats.files import write_whole
from remat_cli.planning.loading import load_subject
from remat_cli.zoo.build import build

BUDGETS = (70, 90, 50)  # per cent; the first matters most
SMALL_BUDGETS = (90,)
ROOT = Path(__file__).parents[3]
SEED = 0
Sizes = dict[str, int]
# as they are, and small, for a CPU: so that activations are more than weights, or there would be nothing to plan
SIZES: dict[str, tuple[tuple[str, Sizes], tuple[str, Sizes]]] = {
    "gpt2": (
        ("gpt2", {"batch": 8, "seq": 512}),
        ("gpt2", {"batch": 16, "seq": 8, "layers": 2, "hidden": 32, "heads": 2, "vocabulary": 64, "positions": 16}),
    ),
    "resnet50": (("resnet50", {"batch": 64}), ("cnn", {"batch": 2})),
    "unet": (
        ("unet", {"batch": 8, "image": 512}),
        ("mlp", {"batch": 512, "layers": 4, "hidden": 64, "features": 32}),
    ),
    "bert": (
        ("bert-base", {"batch": 32, "seq": 128}),
        ("bert-base", {"batch": 16, "seq": 8, "layers": 1, "hidden": 32, "heads": 2, "vocabulary": 64}),
    ),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """Where files go, what runs them, and how long the commands may look."""

    folder: Path
    device: str
    small: bool = False
    profile: float = 20.0
    solve: float = 15.0
    seconds: float = 2.0  # of steps that are timed
    method: str = "auto"
    datasheet: bool = False  # costs of the device's datasheet, not measured

    @property
    def names(self) -> list[str]:
        return list(SIZES)

    @property
    def costing(self) -> tuple[str, ...]:
        """How `profile` is asked; a small CPU's costs are from paper, as no figure of it counts."""
        if self.small and self.device == "cpu":
            return ("--estimate", "cpu")
        if self.datasheet:
            return ("--estimate", "h100")
        return ("--device", self.device, "--time-limit", f"{self.profile}s")

    @property
    def searching(self) -> float:
        """Seconds for a plan of torch's graph: small ones are proved soon, and the rest of the time would be idle."""
        return 2.0 if self.small else self.solve

    @property
    def budgets(self) -> tuple[int, ...]:
        return SMALL_BUDGETS if self.small else BUDGETS


class Failed(Exception):
    """A command did not do what it was asked; its last words."""


def remat(*arguments: object) -> str:
    command = [sys.executable, "-m", "remat_cli", *map(str, arguments)]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": paths})
    if ran.returncode:
        words = ran.stderr.strip().splitlines()[-3:]
        raise Failed(f"remat {' '.join(map(str, arguments))}: exit {ran.returncode}: {' / '.join(words)}")
    return ran.stdout


@dataclass(frozen=True, slots=True)
class Model:
    """A training graph of one size, and the files that are made of it."""

    bench: Bench
    name: str
    batch: int | None = None  # other than it usually has

    @property
    def stem(self) -> str:
        return self.name if self.batch is None else f"{self.name}-{self.batch}"

    @property
    def network(self) -> tuple[str, Sizes]:
        name, sizes = SIZES[self.name][self.bench.small]
        return name, sizes if self.batch is None else {**sizes, "batch": self.batch}

    @property
    def usual_batch(self) -> int:
        return self.network[1]["batch"]

    def of_batch(self, batch: int) -> Model:
        return replace(self, batch=batch)

    def graph(self) -> Path:
        """Weights are inputs, as in a program that trains: so they change without a new session."""
        train = self.bench.folder / f"{self.stem}.train.onnx"
        if not train.is_file():
            name, sizes = self.network
            graph = remat_cli.grad(build(name, weights="inputs", **sizes))
            write_whole(train, graph.SerializeToString(deterministic=True))
        return train

    def costs(self) -> Path:
        costs = self.graph().with_suffix(".costs.yaml")
        if not costs.is_file():
            remat("profile", self.graph(), *self.bench.costing, "-q")
        return costs

    def plan(self, budget: str) -> Path:
        """A plan for `70%` or for bytes, and its model beside it."""
        plan = self.bench.folder / f"{self.stem}.{budget.rstrip('%')}.plan.json"
        if not plan.is_file():
            self.costs()
            how = ("--method", self.bench.method, "--time-limit", f"{self.bench.solve}s", "--seed", SEED)
            remat("solve", self.graph(), "--budget", budget, *how, "-q", "-o", plan)
        return plan

    def rewritten(self, budget: str) -> Path:
        plan = self.plan(budget)
        model = plan.with_name(plan.name.replace(".plan.json", ".remat.onnx"))
        if not model.is_file():
            self.graph()  # a plan that was carried here has no model yet
            write_whole(model, remat_cli.emit(plan).SerializeToString(deterministic=True))
        return model

    def said(self, budget: str) -> Said:
        """What the plan says of itself, and of the graph as it stands."""
        plan = json.loads(self.plan(budget).read_text())
        return Said(**{field.name: {**plan, **plan["promises"]}[field.name] for field in fields(Said)})

    def needs(self) -> int:
        """Bytes that the graph holds as it stands, by remat's prediction; kernels' workspace is not in it."""
        return load_subject(self.graph(), None, {}).before().peak


@dataclass(frozen=True, slots=True)
class Said:
    """`arena`: what the process holds; `live`: what is live at once; `cost`: ns."""

    budget: int
    live: int
    arena: int
    cost: int
    baseline_peak: int
    baseline_cost: int

    @property
    def overhead(self) -> float:
        return round(self.cost / self.baseline_cost - 1, 4)


def costed(bench: Bench, name: str) -> Iterator[dict[str, Any]]:
    """The graph and its costs; what was measured is kept, so that one that was cut short goes on."""
    begun = time.perf_counter()
    yield {"graph": Model(bench, name).graph().name, "seconds": round(time.perf_counter() - begun, 1)}
    yield {"costs": Model(bench, name).costs().name, "seconds": round(time.perf_counter() - begun, 1)}


def planned(bench: Bench, name: str) -> Iterator[dict[str, Any]]:
    """A plan for each budget, all at once: a machine with a GPU has cores to spare."""
    model = Model(bench, name)
    with ThreadPoolExecutor() as pool:
        waiting = {budget: pool.submit(model.plan, f"{budget}%") for budget in bench.budgets}
    for budget, plan in waiting.items():
        failed = plan.exception()
        yield {f"{budget}%": str(failed)[-300:] if failed else asdict(model.said(f"{budget}%"))}
