"""remat beside torch's own knob: what partitions hold and take, op by op, under the same costs and the same meter.

Usage: python examples/torch-compile/compare.py [--seconds 5] [--models gpt,vit] [-o results.jsonl]

Every partition is compiled and trained for real, on one thread. `peak` is what a meter saw alive at once, inputs and
weights among it; `overhead` is by the costs of `profiles/devices/cpu.yaml`; `seconds` are of the processor, the least
of some steps. torch is asked for its default partition (`dp 1`), and for its `dp` and `ilp` at budgets of 0.9 to 0;
remat for the peaks of those of its partitions that none of the others beats in both, and for less.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from models import MODELS

from remat_cli.saying.units import parse_budget
from remat_cli.torch.backend import Backend
from remat_cli.torch.estimates import estimates
from remat_cli.torch.metering import Meter
from remat_cli.torch.partition import Partitioner
from remat_cli.torch.seeds import SETTINGS, torchs_own
from solvers.clock import Clock

PRICE = estimates("cpu")
STEPS = 5


class Torch:
    """torch's own partitioner at one setting, in the place of ours."""

    def __init__(self, solver: str, budget: float) -> None:
        self.solver, self.budget, self.cost = solver, budget, 0

    def __call__(self, module: Any, inputs: Any, *, num_fwd_outputs: int, **given: Any) -> Any:
        split = torchs_own(module, inputs, num_fwd_outputs, self.solver, self.budget)
        self.cost = sum(cost_of(graph) for graph in split)
        return split


def cost_of(module: Any) -> int:
    """By our prices; views and parts of tuples cost nothing."""
    from remat_cli.torch.reading import is_view

    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    return sum(PRICE(node).ns for node in calls if "getitem" not in str(node.target) and not is_view(node))


def run(make: Callable[[], Any], partitioner: Any, eager: list[torch.Tensor]) -> dict[str, Any]:
    """Compile, check against eager, meter one step, time some."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, given = make()
    backend = Backend(partitioner)
    compiled = torch.compile(module, backend=backend, dynamic=False)
    compiled(*given).backward()
    same = all(torch.equal(own.grad, its) for own, its in zip(module.parameters(), eager, strict=True))
    forget(module)
    backend.watch.meter, backend.watch.always = Meter([*module.parameters(), *module.buffers(), *given]), True
    compiled(*given).backward()
    backend.watch.always = False
    times = []
    for _ in range(STEPS):
        forget(module)
        gc.collect()
        began = time.process_time()
        compiled(*given).backward()
        times.append(time.process_time() - began)
    return {"peak": backend.watch.meter.peak, "same_bits": same, "seconds": round(min(times), 4)}


def forget(module: Any) -> None:
    for parameter in module.parameters():
        parameter.grad = None


def compare(name: str, seconds: float) -> list[dict[str, Any]]:
    make = MODELS[name]
    torch.manual_seed(0)
    module, given = make()
    other = copy.deepcopy(module)
    other(*given).backward()
    eager = [parameter.grad for parameter in other.parameters()]
    whole = Partitioner(parse_budget("100%"), PRICE, lambda: Clock(seconds))
    row = run(make, whole, eager)
    base = whole.plans[0].found.before
    rows = [{"model": name, "by": "none", "overhead": 0.0, **row}]
    for solver, budget in SETTINGS:
        own = Torch(solver, budget)
        try:
            row = run(make, own, eager)
        except Exception as error:  # noqa: BLE001  some of torch's partitions do not compile; that is a result
            rows.append({"model": name, "by": f"torch {solver} {budget:g}", "failed": f"{type(error).__name__}"})
            continue
        rows.append({"model": name, "by": f"torch {solver} {budget:g}", "overhead": own.cost / base.cost - 1, **row})
        print(rows[-1], flush=True)
    for budget in budgets_of(rows, base.peak):
        ours = Partitioner(parse_budget(str(budget)), PRICE, lambda: Clock(seconds))
        row = run(make, ours, eager)
        found = ours.plans[0].found
        row |= {"budget": budget, "predicted": found.outcome.peak, "overhead": found.overhead, "bound": found.bound}
        rows.append({"model": name, "by": "remat", "fits": found.fits, "cost": found.outcome.cost, **row})
        print(rows[-1], flush=True)
    return rows


def budgets_of(rows: list[dict[str, Any]], whole: int, most: int = 5) -> list[int]:
    """The peaks of torch's best partitions, and three that are lower."""
    own = [row for row in rows if row["by"].startswith("torch") and "peak" in row]
    best = [r for r in own if not any(o["peak"] <= r["peak"] and o["overhead"] < r["overhead"] - 1e-4 for o in own)]
    peaks = sorted({row["peak"] for row in best if row["peak"] < 0.98 * whole})
    lowest = min([*peaks, whole])
    return sorted({*peaks[:most], *(int(share * lowest) for share in (0.95, 0.85))}, reverse=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each of remat's searches")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).with_name("results.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    about = {"machine": platform.machine(), "torch": torch.__version__, "threads": 1, "search_seconds": given.seconds}
    lines = [json.dumps(about)]
    for name in given.models.split(","):
        lines += [json.dumps(row) for row in compare(name, given.seconds)]
        given.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
