"""Through Inductor: what remat's partitions and torch's own really hold and take, compiled and run.

Usage: python examples/torch-compile/inductor.py [--small] [--models gpt,llama] [--pairs 15] [-o inductor.jsonl]

Peaks are of the allocator, seen by torch's profiler during one step, with weights and inputs; times are of steps run in
turn with the first row's, so that each ratio is of two runs that are neighbours. Gradients are held against eager's.
Rows of a model are replaced, others stay.
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from models import MODELS, SMALL
from torch import nn
from torch._functorch import config as functorch

import remat_cli.torch
from remat_cli.torch.allocations import allocated
from remat_cli.torch.metering import Meter

BUDGETS = ("80%", "60%", "45%")
KNOBS = (1.0, 0.5, 0.15)
Row = dict[str, Any]


def llama() -> tuple[nn.Module, tuple[Any, ...]]:
    """A Llama of transformers: four layers, 256 wide, four sequences of 512 words."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from unseen import OwnLoss

    sizes = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
    module = LlamaForCausalLM(LlamaConfig(vocab_size=512, use_cache=False, **sizes)).train()
    return OwnLoss(module), (torch.randint(0, 512, (4, 512)),)


def step(run: Callable[..., Any], module: nn.Module, given: tuple[Any, ...]) -> None:
    for parameter in module.parameters():
        parameter.grad = None
    torch.manual_seed(1)
    run(*given).backward()


def peak(run: Callable[..., Any], module: nn.Module, given: tuple[Any, ...]) -> int:
    """The most bytes that were allocated at once during a step."""
    for parameter in module.parameters():
        parameter.grad = None
    held = Meter([*module.parameters(), *module.buffers(), *given]).count()
    torch.manual_seed(1)
    return held + allocated(lambda: run(*given).backward())[0]


def compiled(module: nn.Module, given: tuple[Any, ...], budget: str | None, knob: float) -> tuple[Any, Any]:
    """The module compiled with remat's partitioner, or with torch's at this setting of its knob; and the former."""
    torch._dynamo.reset()
    options = {} if budget is None else remat_cli.torch.inductor_options(budget)
    with functorch.patch(activation_memory_budget=knob):
        run = torch.compile(module, dynamic=False, options=options)
        step(run, module, given)
    return run, options.get("custom_partitioner_fn")


def worst(module: nn.Module, other: nn.Module) -> float:
    pairs = zip(module.parameters(), other.parameters(), strict=True)
    return max(float((own.grad - its.grad).abs().max() / (its.grad.abs().max() + 1e-12)) for own, its in pairs)


def rows_of(name: str, make: Callable[[], Any], pairs: int) -> list[Row]:
    torch.manual_seed(0)
    module, given = make()
    eager = copy.deepcopy(module)
    step(eager, eager, given)
    rows: list[Row] = []
    first = None
    for budget, knob in [*((None, knob) for knob in KNOBS), *((budget, 1.0) for budget in BUDGETS)]:
        net = copy.deepcopy(module)
        run, own = compiled(net, given, budget, knob)
        row: Row = {"model": name, "by": f"remat {budget}" if budget else f"torch {knob:g}"}
        row |= {"peak": peak(run, net, given), "worst_gradient": worst(net, eager)}
        if own is not None:
            plan = remat_cli.torch.report(own).graphs[0]
            row |= {"predicted": plan.predicted, "budget": plan.budget, "overhead": plan.overhead, "why": plan.why}
        if first is None:
            first = (run, net)
        row["time"] = ratio(run, net, first, given, pairs)
        rows.append(row)
        print(row, flush=True)
    return rows


def ratio(run: Any, net: nn.Module, first: tuple[Any, nn.Module], given: tuple[Any, ...], pairs: int) -> float:
    """The time of a step by that of the first row's, the median of neighbours."""
    found = []
    for place in range(pairs):
        times = {}
        for key in (0, 1) if place % 2 else (1, 0):
            one, module = ((run, net), first)[key]
            began = time.process_time()
            step(one, module, given)
            times[key] = time.process_time() - began
        found.append(times[0] / times[1])
    return round(statistics.median(found), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--small", action="store_true", help="the tests' sizes")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).with_name("inductor.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    about = {"machine": platform.machine(), "torch": torch.__version__, "threads": 1, "pairs": given.pairs}
    kept: dict[str, list[Row]] = {}
    if given.output.is_file():
        for line in given.output.read_text().splitlines()[1:]:
            kept.setdefault(json.loads(line)["model"], []).append(json.loads(line))
    for name in given.models.split(","):
        kept[name] = rows_of(name, {**(SMALL if given.small else MODELS), "llama": llama}[name], given.pairs)
        lines = [about, *(one for model in kept.values() for one in model)]
        given.output.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
