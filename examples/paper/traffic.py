"""Bytes moved by a training step, by network: as it is, with the minimum cut, and with a full checkpoint.

Usage: python examples/paper/traffic.py [NETWORK ...]   (writes traffic.json, and traffic.txt over all of it)

Networks are the zoo's, through `grad`, with costs estimated for a CPU, for sessions that fuse as they do by default;
nothing is timed. Fused: as far as neighbours could share a kernel (Yu and He); seen: by the kernels that onnxruntime
itself makes of the step on a CPU, where what is computed again is fused as it was the first time; unfused: every op by
itself. Min-cut is the paper's cut, without a budget.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from remat_cli.gradient.training import Options, training_graph
from remat_cli.model.sessions import DEFAULT
from remat_cli.planning.fusing import as_fused
from remat_cli.planning.loading import load_subject
from remat_cli.planning.subject import Subject
from remat_cli.zoo.build import build
from solvers.clock import Clock
from solvers.methods.mincut.options import Cutting
from solvers.methods.mincut.traffic import traffic_of
from solvers.problem import Limits, Problem
from solvers.registry import METHODS
from solvers.schedule import baseline, schedule

HERE = Path(__file__).parent
NETWORKS: dict[str, dict[str, Any]] = {
    "vgg16": {"batch": 8},
    "resnet50": {"batch": 8},
    "resnest50": {"batch": 8},
    "regnety-400mf": {"batch": 8},
    "vovnet39": {"batch": 8},
    "unet": {"batch": 2, "image": 192},
    "gpt2": {"batch": 2, "seq": 256},
    "bert-base": {"batch": 2, "seq": 256},
    "albert-base": {"batch": 2, "seq": 256},
}
FUSIONS = ("none", "runtime", "ideal")
PLANS = {"min-cut": Cutting(objective="paper"), "full-checkpoint": None}


def measure(name: str) -> dict[str, Any]:
    subject = as_fused(step_of(name))
    problem = subject.problem
    before = baseline(problem)[1]
    found: dict[str, Any] = {"ops": len(problem.nodes), "as it is": moved(problem, range(len(problem.nodes)))}
    for method, options in PLANS.items():
        told = {"objective": options.objective} if options else {}
        answer = schedule(problem, 1 << 60, METHODS[method].load(**told), Limits(Clock(60.0)))
        assert answer.result.order is not None
        assert answer.outcome is not None
        found[method] = {
            **moved(problem, answer.result.order),
            "time": round(answer.outcome.cost / before.cost - 1, 4),
            "peak": round(answer.outcome.peak / before.peak - 1, 4),
        }
    return found


def step_of(name: str) -> Subject:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        forward = build(name, weights="inputs", **NETWORKS[name])
        path.write_bytes(training_graph(forward, Options()).SerializeToString())
        return load_subject(path, None, {}, DEFAULT)


def moved(problem: Problem, order: Any) -> dict[str, float]:
    """Megabytes, with each notion of fusion."""
    return {fusion: round(traffic_of(problem, order, fusion).total / 1e6, 1) for fusion in FUSIONS}


def table(results: dict[str, Any]) -> str:
    named = "".join(f"{words:>10}" for words in ("unfused", "seen", "fused"))
    lines = [f"{'':<14}{'MB as it is':>30}" + "".join(f"{method:>48}" for method in PLANS)]
    lines.append(f"{'network':<14}{named}" + f"{named}{'time':>9}{'peak':>9}" * 2)
    for name, row in results.items():
        plain = row["as it is"]
        cells = "".join(f"{plain[fusion]:>10}" for fusion in FUSIONS)
        for method in PLANS:
            plan = row[method]
            cells += "".join(f"{plan[fusion] / plain[fusion] - 1:>10.1%}" for fusion in FUSIONS)
            cells += f"{plan['time']:>9.1%}{plan['peak']:>9.1%}"
        lines.append(f"{name:<14}{cells}")
    return "\n".join(lines) + "\n"


def main() -> None:
    stored = HERE / "traffic.json"
    results = json.loads(stored.read_text()) if stored.exists() else {}
    for name in sys.argv[1:] or NETWORKS:
        results[name] = measure(name)
        stored.write_text(json.dumps(results, indent=1) + "\n")
    (HERE / "traffic.txt").write_text(table(results))
    print(table(results), end="")


if __name__ == "__main__":
    main()
