"""Processor seconds of the chain programs, on the tests' chain files and on random chains of given lengths.

`seconds` is the best of `--repeat`, after a first run that loads compiled code. A file holds `fw`, `bw`, `a`, `abar`,
`o_f`, `o_b` and `mem_limit`; a length L stands for a random chain of seed L whose limit is half of what it takes
without recomputation.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

from solvers.methods.chains.chain import Chain, ChainStep, StageOp, chain, simulate
from solvers.methods.chains.floating import floating
from solvers.methods.chains.rotor import SLOTS, revolve, rotor

CHAINS = Path(__file__).parents[2] / "tests" / "data" / "chains"
LENGTHS = ("10", "20", "50", "100", "200", "339")
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


KEY = ("file", "method")


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE|LENGTH")
    parser.add_argument("--methods", default="rotor,rotor-floating")
    parser.add_argument("--slots", type=int, default=SLOTS)
    parser.add_argument("--repeat", type=int, default=1)


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    warm, limit = random_chain(3)
    for method in asked.methods.split(","):
        METHODS[method](warm, limit, asked.slots)
        lengths = LENGTHS[: 3 if method == "rotor-floating" else None]  # its states are of four numbers, not of three
        for name in asked.files or (*lengths, *map(str, sorted(CHAINS.glob("*.json")))):
            problem, limit = read(name)
            seconds = float("inf")
            for _ in range(asked.repeat):
                begun = process_time()
                found = METHODS[method](problem, limit, asked.slots)
                seconds = min(seconds, process_time() - begun)
            run = None if found is None else simulate(problem, found)
            yield {
                "file": Path(name).name,
                "method": method,
                "makespan": run and run.makespan,
                "peak": run and run.peak,
                "seconds": round(seconds, 4),
            }
