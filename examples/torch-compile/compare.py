"""remat beside torch's own knob: what partitions hold and take, under the same costs and the same meter.

Usage: python examples/torch-compile/compare.py [--moves 400000] [--models gpt,vit] [--small] [--unseen] [--run]

torch is asked for its default partition (`dp 1`), and for its `dp` and `ilp` at budgets of 0.9 to 0; remat for the
peaks of those of its partitions that none of the others beats in both, and for less. remat is told of all of them, as
it is in use. Peaks are of live tensors, inputs and weights and gradients among them; overheads by the costs of
`profiles/devices/cpu.yaml`. Both come from `simulate`; with `--run` remat's partitions are trained as well, one step is
metered (`measured`), and gradients are compared with eager's bit for bit (`same_bits`). `--unseen` takes the models of
`unseen.py`, whose loss is one graph. Rows of a model are replaced, others stay.
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from models import MODELS, SMALL
from unseen import UNSEEN

from remat_cli.torch import joint as joints
from remat_cli.torch.allowance import allowance_of
from remat_cli.torch.backend import Backend
from remat_cli.torch.estimates import estimates
from remat_cli.torch.lowering import Lowered, lower
from remat_cli.torch.metering import Meter
from remat_cli.torch.partition import Partitioner
from remat_cli.torch.planning import find
from remat_cli.torch.seeds import SETTINGS, order_of, torchs_own
from solvers.clock import limited
from solvers.schedule import evaluate

PRICE = estimates("cpu")
Row = dict[str, Any]


class Capture(Partitioner):
    """Keeps the joint graph, and splits it as without a budget."""

    def split(self, module: Any, inputs: Any, room: Any, *, num_fwd_outputs: int, **given: Any) -> Any:
        self.kept = joints.copy_of(module), inputs, num_fwd_outputs
        return super().split(module, inputs, room, num_fwd_outputs=num_fwd_outputs, **given)


def captured(make: Callable[[], Any]) -> tuple[Lowered, Any, Any]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, given = make()
    capture = Capture(allowance_of("100%"), PRICE, limited)
    torch.compile(module, backend=Backend(capture), dynamic=False)(*given)
    graph, inputs, count = capture.kept
    return lower(joints.read(graph, count), PRICE), graph, inputs


def torchs(name: str, lowered: Lowered, graph: Any, inputs: Any) -> tuple[list[Row], list[tuple[int, ...]]]:
    """torch's partitions, as rows and as orders."""
    whole = evaluate(lowered.problem, range(len(lowered.problem.nodes)))[1]
    rows, orders = [], []
    for solver, share in SETTINGS:
        try:
            order = order_of(lowered, *torchs_own(graph, inputs, len(lowered.joint.forward_outputs), solver, share))
        except RuntimeError as error:  # without scipy there is no `ilp`
            rows.append({"model": name, "by": f"torch {solver} {share:g}", "failed": str(error)})
            continue
        if order is None:
            rows.append({"model": name, "by": f"torch {solver} {share:g}", "failed": "no order says what it does"})
            continue
        outcome = evaluate(lowered.problem, order)[1]
        orders.append(order)
        overhead = outcome.cost / whole.cost - 1
        rows.append({"model": name, "by": f"torch {solver} {share:g}", "peak": outcome.peak, "overhead": overhead})
    return rows, orders


def ours(name: str, lowered: Lowered, budget: int, known: list[tuple[int, ...]], moves: int) -> tuple[Row, Any]:
    began = time.process_time()
    found = find(lowered.problem, budget, limited(60, moves), lambda: known)
    row = {"model": name, "by": "remat", "budget": budget, "peak": found.outcome.peak, "overhead": found.overhead}
    row |= {"bound": found.bound and found.bound / found.before.cost - 1, "fits": found.fits}
    return row | {"search_seconds": round(time.process_time() - began, 1)}, found.order


def trained(make: Callable[[], Any], budget: int, moves: int) -> Row:
    """Compile with this budget, and hold one step against eager and the meter."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, given = make()
    other = copy.deepcopy(module)
    other(*given).backward()
    backend = Backend(Partitioner(allowance_of(budget), PRICE, lambda _: limited(60, moves)))
    backend.step.meter = Meter([*module.parameters(), *module.buffers(), *given])
    torch.compile(module, backend=backend, dynamic=False)(*given).backward()
    pairs = zip(module.parameters(), other.parameters(), strict=True)
    return {
        "measured": backend.step.meter.peak,
        "same_bits": all(torch.equal(own.grad, its.grad) for own, its in pairs),
    }


def compare(name: str, make: Callable[[], Any], moves: int, run: bool) -> list[Row]:
    lowered, graph, inputs = captured(make)
    whole = evaluate(lowered.problem, range(len(lowered.problem.nodes)))[1]
    rows, known = torchs(name, lowered, graph, inputs)
    rows.insert(
        0, {"model": name, "by": "none", "peak": whole.peak, "overhead": 0.0, "ops": len(lowered.problem.nodes)}
    )
    for budget in budgets_of(rows, whole.peak):
        row, order = ours(name, lowered, budget, known, moves)
        known.append(order)
        rows.append(row | (trained(make, budget, moves) if run else {}))
        print(rows[-1], flush=True)
    return rows


def budgets_of(rows: list[Row], whole: int, most: int = 9) -> list[int]:
    """The peaks of torch's best partitions, and two that are lower; the smallest first, whose plans fit the others."""
    own = [row for row in rows if row["by"].startswith("torch") and "peak" in row]
    best = [r for r in own if not any(o["peak"] <= r["peak"] and o["overhead"] < r["overhead"] - 1e-4 for o in own)]
    peaks = sorted({row["peak"] for row in best if row["peak"] < 0.98 * whole})
    lowest = min([*peaks, whole])
    return sorted({*peaks[:most], int(0.95 * lowest), int(0.85 * lowest)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=400_000, help="of each of remat's searches")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--small", action="store_true", help="the tests' sizes")
    parser.add_argument("--unseen", action="store_true", help="models of libraries")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).with_name("results.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    with suppress(ImportError):
        import vision_ready  # noqa: F401  where torchvision is without its compiled part
    makers = UNSEEN if given.unseen else SMALL if given.small else MODELS
    about = {"machine": platform.machine(), "torch": torch.__version__, "threads": 1, "moves": given.moves}
    kept: dict[str, list[Row]] = {}
    if given.output.is_file():
        for line in given.output.read_text().splitlines()[1:]:
            kept.setdefault(json.loads(line)["model"], []).append(json.loads(line))
    for name in given.models.split(","):
        shown = f"{name} of a library" if given.unseen else name
        kept[shown] = compare(shown, makers[name], given.moves, given.run)
        lines = [about, *(one for model in kept.values() for one in model)]
        given.output.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
