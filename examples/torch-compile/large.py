"""What a plan of a large joint graph costs: processor seconds of the partitioner, the first time and from what is kept.

Usage: python examples/torch-compile/large.py [--layers 48] [--budgets 60,45] [-o large.jsonl]

Each row is of a new process, with the default time limit; `kept` is the second process that asks the same.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from models import GPT

import remat_cli.torch
from remat_cli.torch.partition import Partitioner

LENGTH, WORDS = 64, 256


class Timed(Partitioner):
    """Notes the processor seconds of a split, and the size of the joint graph."""

    def split(self, module: Any, inputs: Any, room: Any, *, num_fwd_outputs: int, **given: Any) -> Any:
        began, self.size = time.process_time(), len(module.graph.nodes)
        found = super().split(module, inputs, room, num_fwd_outputs=num_fwd_outputs, **given)
        self.seconds = time.process_time() - began
        return found


def row(layers: int, budget: str) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    asked = remat_cli.torch.backend(budget)
    inner = asked.partitioner
    asked.partitioner = timed = Timed(inner.allowance, inner.pricing, inner.clock)
    ids = torch.randint(0, WORDS, (2, 4, LENGTH))
    torch.compile(GPT(layers, 64, WORDS, LENGTH), backend=asked, dynamic=False)(*ids).backward()
    (plan,) = remat_cli.torch.report(asked).graphs
    assert plan.overhead is not None, plan.why
    about = {"layers": layers, "budget": budget, "nodes": timed.size, "cpu_seconds": round(timed.seconds, 1)}
    return about | {
        "predicted": plan.predicted,
        "allowed": plan.budget,
        "measured": plan.measured,
        "overhead": round(plan.overhead, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--budgets", default="60,45", help="percent")
    parser.add_argument("--one", help="print the row of this budget, in this process")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).with_name("large.jsonl"))
    given = parser.parse_args()
    if given.one:
        print(json.dumps(row(given.layers, given.one)))
        return
    rows: list[Any] = [{"machine": platform.machine(), "torch": torch.__version__, "threads": 1}]
    with tempfile.TemporaryDirectory() as folder:
        for budget in given.budgets.split(","):
            for kept in (False, True):
                call = [sys.executable, __file__, "--layers", str(given.layers), "--one", f"{budget}%"]
                done = subprocess.run(call, env={**os.environ, "REMAT_RESULTS": folder}, check=True, stdout=-1)
                rows.append({"kept": kept, **json.loads(done.stdout.splitlines()[-1])})
                print(rows[-1], flush=True)
    given.output.write_text("".join(json.dumps(line) + "\n" for line in rows))


if __name__ == "__main__":
    main()
