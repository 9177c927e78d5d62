"""Time the chain programs on chain files, or on random chains of a given length.

Usage: python examples/bench/chains.py [--methods rotor,rotor-floating] [--slots 500] [--repeat 1] FILE|LENGTH...

Prints one JSON line for each file and method: file, method, makespan, peak, seconds (the best of `--repeat`, after a
first run that compiles). A file holds `fw`, `bw`, `a`, `abar`, `o_f`, `o_b` and `mem_limit`; a length L stands for
a random chain of seed L whose limit is half of what it takes without recomputation.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[2]))

from solvers.methods.chains.chain import Chain, ChainStep, StageOp, chain, simulate
from solvers.methods.chains.floating import floating
from solvers.methods.chains.revolve import revolve
from solvers.methods.chains.rotor import SLOTS, rotor

METHODS: dict[str, Callable[[Chain, float, int], tuple[ChainStep, ...] | None]] = {
    "rotor": rotor,
    "rotor-floating": floating,
    "revolve": revolve,
}


def read(name: str) -> tuple[Chain, float]:
    if name.isdigit():
        return random_chain(int(name))
    told = json.loads(Path(name).read_text())
    return chain(told["fw"], told["bw"], told["a"], told["abar"], told["o_f"], told["o_b"]), told["mem_limit"]


def random_chain(length: int) -> tuple[Chain, float]:
    """Times and sizes spread as in the chain files that come with the tests."""
    draw = random.Random(length).uniform
    forward = [round(draw(1, 10), 3) for _ in range(length)]
    a = [draw(1, 10) for _ in range(length + 1)]
    made = chain(
        forward,
        [*(round(time * draw(1.6, 2.4), 3) for time in forward), 0.0],
        a,
        [a[0], *(size * draw(1, 4) for size in a[1:])],
        [draw(0, 1) for _ in range(length)],
        [*(draw(0, 2) for _ in range(length)), 0.0],
    )
    stages = range(1, made.length + 1)
    kept = [ChainStep(StageOp.ALL, stage) for stage in stages] + [
        ChainStep(StageOp.BACK, stage) for stage in reversed(stages)
    ]
    return made, simulate(made, kept).peak / 2


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("files", nargs="+", metavar="FILE|LENGTH")
    options.add_argument("--methods", default="rotor")
    options.add_argument("--slots", type=int, default=SLOTS)
    options.add_argument("--repeat", type=int, default=1)
    asked = options.parse_args()
    warm, limit = random_chain(3)
    for method in asked.methods.split(","):
        METHODS[method](warm, limit, asked.slots)
        for name in asked.files:
            problem, limit = read(name)
            seconds = float("inf")
            for _ in range(asked.repeat):
                begun = perf_counter()
                found = METHODS[method](problem, limit, asked.slots)
                seconds = min(seconds, perf_counter() - begun)
            run = None if found is None else simulate(problem, found)
            line = {
                "file": name,
                "method": method,
                "makespan": run and run.makespan,
                "peak": run and run.peak,
                "seconds": round(seconds, 4),
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
