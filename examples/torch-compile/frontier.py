"""Models of libraries trained by torch's partitions and by remat's, op by op, under a meter that sees all ops.

Usage: python examples/torch-compile/frontier.py [--models bert,vit] [-o frontier.jsonl]

Needs scipy, transformers, torchvision and timm. torch is asked for its default partition, and for `dp` and `ilp` at 0.9
to 0; remat for the peaks of those that none of the others beats, and for 90%, 85% and so on until two budgets are not
met. `peak` and `overhead` come from `simulate`, by the costs of `profiles/devices/cpu.yaml`. `measured` is what tensors
held at once in a second step, inside and beside the graphs. `bits`: whether loss and gradients are eager's. Rows of a
model are replaced, others stay.
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from compare import captured
from promise import same, step
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch.fx.graph import _BoxedCodeGen
from torch.utils._python_dispatch import TorchDispatchMode
from unseen import GPT2, UNSEEN, Made, language

import remat_cli.torch
from remat_cli.errors import RematWarning
from remat_cli.torch.metering import Meter
from remat_cli.torch.seeds import order_of, torchs_own
from solvers.schedule import evaluate

NAMED = {name: UNSEEN[name] for name in ("bert", "vit", "mixer", "resnet18", "resnet50", "unet", "mamba", "convnext")}
SETTINGS = (("dp", 1.0), *((solver, share / 10) for solver in ("dp", "ilp") for share in range(9, -1, -1)))
Row = dict[str, Any]


def gpt2() -> Made:
    """With a loss that logs nothing, so that there is one graph."""
    module, given = language("GPT2", "LMHeadModel", **GPT2)()
    module.model.config.loss_type = module.model.loss_type = "ForCausalLM"
    return module, given


class Outer(TorchDispatchMode):
    """Meters every op, those that autograd runs beside the graphs as well."""

    supports_higher_order_operators = True  # as `with_effects` is, in BOFT

    def __init__(self, given: list[torch.Tensor]) -> None:
        super().__init__()
        self.meter = Meter(given)

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.meter.made(result)
        return result


def boxed(module: fx.GraphModule, _: Any) -> Callable[[list[Any]], Any]:
    """The graph, letting go of each value after its last use."""
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    graph.set_codegen(_BoxedCodeGen())
    run = fx.GraphModule(module, graph)

    def call(arguments: list[Any]) -> Any:
        return run.forward(arguments)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def trained(made: Made, backend: Any) -> Row:
    """Two steps: the bits of the first, and the memory of the second."""
    torch._dynamo.reset()
    module, other, given = copy.deepcopy(made[0]), copy.deepcopy(made[0]), made[1]
    run = torch.compile(module, backend=backend, dynamic=False)
    losses = step(module, run, given), step(other, other, given)
    pairs = zip(module.parameters(), other.parameters(), strict=True)
    bits = torch.equal(*losses) and all(same(own.grad, its.grad) for own, its in pairs)
    for parameter in module.parameters():
        parameter.grad = None
    torch.manual_seed(1)
    with Outer([*module.parameters(), *module.buffers(), *given]) as outer:
        run(*given).backward()
    return {"measured": outer.meter.peak, "bits": bits}


def torchs(name: str, made: Made) -> list[Row]:
    lowered, graph, inputs = captured(lambda: made)
    count = len(lowered.joint.forward_outputs)
    whole = evaluate(lowered.problem, range(len(lowered.problem.nodes)))[1]
    rows = [{"model": name, "by": "none", "peak": whole.peak, "overhead": 0.0}]
    for solver, share in SETTINGS:
        row: Row = {"model": name, "by": f"torch {solver} {share:g}"}

        def split(module: Any, inputs: Any, *, num_fwd_outputs: int, solver=solver, share=share, **_: Any) -> Any:  # type: ignore[no-untyped-def]
            return torchs_own(module, inputs, num_fwd_outputs, solver, share)

        order = order_of(lowered, *torchs_own(graph, inputs, count, solver, share))
        if order is not None:
            outcome = evaluate(lowered.problem, order)[1]
            row |= {"peak": outcome.peak, "overhead": outcome.cost / whole.cost - 1}
        try:
            row |= trained(made, aot_autograd(fw_compiler=boxed, bw_compiler=boxed, partition_fn=split))
        except RuntimeError as error:  # a saved value was written over: BatchNorm's averages
            row["failed"] = str(error)[:80]
        rows.append(row)
    return rows


def budgets_of(rows: list[Row]) -> list[str]:
    """The peaks of torch's best partitions."""
    own = [row for row in rows if row["by"].startswith("torch") and "peak" in row]
    best = [r for r in own if not any(o["peak"] <= r["peak"] and o["overhead"] < r["overhead"] - 1e-4 for o in own)]
    return [
        str(peak) for peak in sorted({r["peak"] for r in best if r["peak"] < 0.985 * rows[0]["peak"]}, reverse=True)
    ]


def ours(name: str, made: Made, budget: str) -> Row:
    backend = remat_cli.torch.backend(budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RematWarning)  # of budgets that are not met
        row = trained(made, backend)
    (plan,) = backend.plans
    found = plan.found
    assert found is not None, plan.why
    own = {"model": name, "by": "remat", "budget": budget, "limit": found.budget, "peak": found.outcome.peak}
    return {**own, "overhead": found.overhead, "least": found.least_peak_bound, "fits": found.fits, **row}


def rows_of(name: str, made: Made) -> list[Row]:
    rows = torchs(name, made)
    rows += [ours(name, made, budget) for budget in budgets_of(rows)]
    missed = 0
    for share in range(90, 0, -5):
        rows.append(ours(name, made, f"{share}%"))
        missed += not rows[-1]["fits"]
        if missed == 2:
            break
    return rows


def main() -> None:
    makers: dict[str, Callable[[], Made]] = {"gpt2": gpt2, **NAMED}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(makers))
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).with_name("frontier.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    with suppress(ImportError):
        import vision_ready  # noqa: F401  where torchvision is without its compiled part
    kept: dict[str, list[Row]] = {}
    if given.output.is_file():
        for line in given.output.read_text().splitlines()[1:]:
            kept.setdefault(json.loads(line)["model"], []).append(json.loads(line))
    about = {"machine": platform.machine(), "torch": torch.__version__, "threads": 1, "seconds": 10}
    for name in given.models.split(","):
        torch.manual_seed(0)
        kept[name] = rows_of(name, makers[name]())
        lines = [about, *(one for model in kept.values() for one in model)]
        given.output.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
