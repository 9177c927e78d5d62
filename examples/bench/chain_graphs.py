"""Run the chain methods on training graphs, cut into stages.

Usage: python examples/bench/chain_graphs.py [--methods rotor,rotor+] [--shares 0.7,0.5] [--time-limit 30] MODEL...

A model is an ONNX training graph (`remat zoo NAME --weights inputs`, then `remat grad`), its costs estimated unless a
cost file is beside it) or a problem file. A share is of the peak without recomputation. Prints one JSON line for each
model, share and method: cost and peak are relative to running everything once, seconds are of the whole schedule, cpu
of the processor.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import monotonic, process_time

sys.path.insert(0, str(Path(__file__).parents[2]))

from remat_cli.planning.loading import load_subject
from solvers.clock import Clock
from solvers.problem import Limits
from solvers.registry import METHODS
from solvers.schedule import baseline, schedule


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("models", nargs="+", type=Path)
    options.add_argument("--methods", default="rotor,rotor-floating,revolve,rotor+")
    options.add_argument("--shares", default="0.7,0.5")
    options.add_argument("--time-limit", type=float, default=30.0)
    asked = options.parse_args()
    for model in asked.models:
        problem = load_subject(model, None, {}).problem
        plain = baseline(problem)[1]
        for share in map(float, asked.shares.split(",")):
            for method in asked.methods.split(","):
                begun, spent = monotonic(), process_time()
                found = schedule(
                    problem, int(plain.peak * share), METHODS[method].load(), Limits(Clock(asked.time_limit))
                )
                line = {
                    "model": model.name,
                    "nodes": len(problem.nodes),
                    "share": share,
                    "method": method,
                    "status": found.result.status.value,
                    "cost": found.outcome and round(found.outcome.cost / plain.cost, 4),
                    "peak": found.outcome and round(found.outcome.peak / plain.peak, 4),
                    "seconds": round(monotonic() - begun, 1),
                    "cpu": round(process_time() - spent, 1),
                }
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
