"""The promise of `remat_cli.torch.backend`, held on models of `unseen.py`: peaks and bits, budget by budget.

Usage: python examples/torch-compile/promise.py [--moves 50000] [--models bert,llama] [--from 90] [-o promise.jsonl]

Needs transformers, torchvision and timm, each for its own models. Weights are random, sizes are small. Budgets go down
from 90% in steps of 5 points to the least that is proved, and two steps are trained with each. Loss, gradients and the
bytes alive after each op are compared with eager's and with those that were foretold. `allocated` is what torch's
profiler saw allocated at once in a third step, with what kernels work in. Where the bits are not eager's,
`compiled_bits` says whether they are those of `torch.compile(backend="aot_eager")`. With `--moves 0` a search has 10
seconds and no limit of moves. Rows of a model at the same budget are replaced, others stay.
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from inductor import peak as allocated
from torch import nn
from unseen import UNSEEN, Made

from remat_cli.errors import RematWarning
from remat_cli.torch.allowance import allowance_of
from remat_cli.torch.backend import Backend
from remat_cli.torch.estimates import estimates
from remat_cli.torch.partition import Partitioner
from remat_cli.torch.sharing import whole_peak
from solvers.clock import limited

STEP = 5
Row = dict[str, Any]


def gradients(module: nn.Module) -> list[torch.Tensor | None]:
    return [parameter.grad for parameter in module.parameters()]


def same(own: torch.Tensor | None, its: torch.Tensor | None) -> bool:
    return own is its if own is None or its is None else torch.equal(own, its)


def step(module: nn.Module, run: Callable[..., Any], given: tuple[torch.Tensor, ...]) -> torch.Tensor:
    for parameter in module.parameters():
        parameter.grad = None
    torch.manual_seed(1)
    loss: torch.Tensor = run(*given)
    loss.backward()
    return loss.detach()


def bits_of(made: Made, run: Any = None) -> tuple[torch.Tensor | None, ...]:
    """The loss and the gradients of a step, eager's or those of a backend of torch.compile."""
    torch._dynamo.reset()
    module = copy.deepcopy(made[0])
    loss = step(module, torch.compile(module, backend=run, dynamic=False) if run else module, made[1])
    return loss, *gradients(module)


def row(name: str, made: Made, share: int, moves: int) -> Row:
    expected = bits_of(made)
    torch._dynamo.reset()
    module, given = copy.deepcopy(made[0]), made[1]
    backend = Backend(Partitioner(allowance_of(f"{share}%"), estimates("cpu"), lambda _: limited(10, moves or None)))
    began = time.process_time()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", RematWarning)
        run = torch.compile(module, backend=backend, dynamic=False)
        for _ in range(2):  # where graphs share a budget, the second step compiles them anew
            loss = step(module, run, given)
    own = loss, *gradients(module)
    same_bits = all(map(same, own, expected))
    plans, whole, measured = [plan.found for plan in backend.plans], backend.step, backend.step.meter.peak
    most = allocated(run, module, given)
    found: Row = {
        "model": name,
        "budget": share,
        "moves": moves or None,
        "graphs": len(plans),
        "before": plans[0].before.peak,
    }
    if len(plans) > 1 or not whole.calls:
        held = whole_peak(whole.needs, whole.calls, whole.given.most)
        found |= {"before": held, "allowed": held * share // 100, "bound": None, "predicted": None}
    else:
        found |= {"allowed": plans[0].budget, "bound": plans[0].least_peak_bound, "predicted": plans[0].outcome.peak}
    costs = [sum(plan.outcome.cost for plan in plans), sum(plan.before.cost for plan in plans)]
    if not same_bits:
        found["compiled_bits"] = all(map(same, own, bits_of(made, "aot_eager")))
    return found | {
        "measured": measured,
        "allocated": most,
        "overhead": round(costs[0] / costs[1] - 1, 5),
        "same_bits": same_bits,
        "said": [str(one.message) for one in heard if issubclass(one.category, RematWarning)],
        "cpu_seconds": round(time.process_time() - began, 1),
    }


def rows(name: str, share: int, moves: int) -> Iterator[Row]:
    """The rows of a model, down to the second budget that is not met."""
    torch.manual_seed(0)
    made, missed = UNSEEN[name](), 0
    while share > 0 and missed < 2:
        found = row(name, made, share, moves)
        print(found, flush=True)
        yield found
        missed += found["measured"] > found["allowed"]
        share -= STEP


def keep(row: Row, output: Path, about: Row) -> None:
    """Write the row in the place of the one of its model and budget; rows are sorted by both."""
    rows = [json.loads(line) for line in output.read_text().splitlines()[1:]] if output.is_file() else []
    place = (row["model"], -row["budget"])
    by = {(one["model"], -one["budget"]): one for one in rows} | {place: row}
    output.write_text("".join(json.dumps(line) + "\n" for line in (about, *(by[key] for key in sorted(by)))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=50_000, help="of each of remat's searches")
    parser.add_argument("--models", default=",".join(UNSEEN))
    parser.add_argument("--from", type=int, default=90, dest="share", help="the first budget, in percent")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).with_name("promise.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    with suppress(ImportError):
        import vision_ready  # noqa: F401  where torchvision is without its compiled part
    about = {"machine": platform.machine(), "torch": torch.__version__, "threads": 1, "seconds": 10}
    for name in given.models.split(","):
        for one in rows(name, given.share, given.moves):
            keep(one, given.output, about)


if __name__ == "__main__":
    main()
