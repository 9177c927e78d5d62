"""The time of a step by remat's plan beside that without recomputation, in pairs, and what measured costs foretold.

Usage: python examples/torch-compile/times.py [--pairs 15] [--budget 60] [--models bert,llama] [-o times.jsonl]

Both run op by op, from the same weights. Costs of ops are measured in this process first. Each ratio is of two steps
that are neighbours, in processor seconds; `measured` is the median, `spread` half of the middle half of them.
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import statistics
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from promise import step
from unseen import UNSEEN

from remat_cli.errors import RematWarning
from remat_cli.torch.allowance import allowance_of
from remat_cli.torch.backend import Backend
from remat_cli.torch.estimates import estimates
from remat_cli.torch.measuring import measured
from remat_cli.torch.partition import Partitioner
from solvers.clock import limited

Row = dict[str, Any]


def seconds(module: Any, run: Any, given: Any) -> float:
    began = time.process_time()
    step(module, run, given)
    return time.process_time() - began


def row(name: str, budget: int, moves: int, pairs: int, costs: Path) -> Row:
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, given = UNSEEN[name]()
    runs, plans = [], []
    for share in (budget, 100):
        own, prices = copy.deepcopy(module), measured(estimates("cpu"), costs)
        backend = Backend(Partitioner(allowance_of(f"{share}%"), prices, lambda _: limited(10, moves)))
        run = torch.compile(own, backend=backend, dynamic=False)
        for _ in range(3):  # where graphs share a budget, the second step compiles them anew
            step(own, run, given)
        runs.append((own, run, given))
        plans.append([plan.found for plan in backend.plans])
    ratios, whole = [], []
    for place in range(pairs):
        times = {key: seconds(*runs[key]) for key in ((0, 1) if place % 2 else (1, 0))}
        ratios.append(times[0] / times[1])
        whole.append(times[1])
    foretold = sum(plan.outcome.cost for plan in plans[0]) / sum(plan.before.cost for plan in plans[0])
    middle, quarters = statistics.median(ratios), statistics.quantiles(ratios, n=4)
    return {
        "model": name,
        "budget": budget,
        "foretold": round(foretold - 1, 4),
        "measured": round(middle - 1, 4),
        "spread": round((quarters[2] - quarters[0]) / 2, 4),
        "error": round(foretold / middle - 1, 4),
        "ops_ms": round(sum(plan.before.cost for plan in plans[0]) / 1e6, 1),
        "step_ms": round(1e3 * statistics.median(whole), 1),
        "fits": all(plan.fits for plan in plans[0]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=30_000, help="of each of remat's searches")
    parser.add_argument("--models", default=",".join(UNSEEN))
    parser.add_argument("--budget", type=int, default=60, help="percent")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).with_name("times.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", RematWarning)
    with suppress(ImportError):
        import vision_ready  # noqa: F401  where torchvision is without its compiled part
    about = {"machine": platform.machine(), "torch": torch.__version__, "threads": 1, "pairs": given.pairs}
    rows = [about | {"moves": given.moves}]
    with tempfile.TemporaryDirectory() as folder:
        for name in given.models.split(","):
            rows.append(row(name, given.budget, given.moves, given.pairs, Path(folder) / "ops.costs.yaml"))
            print(rows[-1], flush=True)
            given.output.write_text("".join(json.dumps(line) + "\n" for line in rows))


if __name__ == "__main__":
    main()
