"""The promise of `remat_cli.torch.backend`, held on modules of transformers: peaks and bits, budget by budget.

Usage: python examples/torch-compile/promise.py [--moves 100000] [--models bert,llama] [-o promise.jsonl]

Needs transformers. Weights are random, sizes are small. For each budget one step is trained, and its losses, gradients
and the bytes alive after each op are compared with eager's and with those that were foretold. The last budget cannot be
met: its plan is the leanest that is known.
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from remat_cli.errors import RematWarning
from remat_cli.torch.allowance import allowance_of
from remat_cli.torch.backend import Backend
from remat_cli.torch.estimates import estimates
from remat_cli.torch.partition import Partitioner
from solvers.clock import limited

BUDGETS = ("90%", "75%", "60%", "45%", "2%")
SIZES = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256}
WORDS, LENGTH, BATCH = 512, 64, 8


class WithLoss(nn.Module):
    """A model of transformers whose one argument gives its loss."""

    def __init__(self, model: nn.Module, **given: str) -> None:
        super().__init__()
        self.model, self.given = model, given

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.model(**dict.fromkeys(self.given.values(), x)).loss
        return found


def of(family: str, model: str, **sizes: Any) -> Callable[[], tuple[nn.Module, torch.Tensor]]:
    def make() -> tuple[nn.Module, torch.Tensor]:
        config = getattr(transformers, f"{family}Config")(vocab_size=WORDS, **sizes)
        whole = WithLoss(getattr(transformers, f"{family}{model}")(config), ids="input_ids", labels="labels")
        return whole, torch.randint(0, WORDS, (BATCH, LENGTH))

    return make


GPT2 = {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": LENGTH}
MODELS = {
    "gpt2": of("GPT2", "LMHeadModel", **GPT2),  # with its dropout
    "bert": of("Bert", "ForMaskedLM", max_position_embeddings=LENGTH, **SIZES),
    "llama": of("Llama", "ForCausalLM", num_key_value_heads=2, **SIZES),
    "qwen3": of("Qwen3", "ForCausalLM", num_key_value_heads=2, head_dim=16, **SIZES),
}


def gradients(module: nn.Module) -> list[torch.Tensor | None]:
    return [parameter.grad for parameter in module.parameters()]


def same(own: torch.Tensor | None, its: torch.Tensor | None) -> bool:
    return own is its if own is None or its is None else torch.equal(own, its)


def step(module: nn.Module, run: Callable[..., Any], x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(1)
    loss: torch.Tensor = run(x)
    loss.backward()
    return loss.detach()


def row(name: str, make: Callable[[], tuple[nn.Module, torch.Tensor]], budget: str, moves: int) -> dict[str, Any]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, x = make()
    other = copy.deepcopy(module)
    backend = Backend(Partitioner(allowance_of(budget), estimates("cpu"), lambda: limited(60, moves)))
    began = time.process_time()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", RematWarning)
        run = torch.compile(module, backend=backend, dynamic=False)
        for _ in range(2):  # where graphs share a budget, the second step compiles them anew
            for parameter in module.parameters():
                parameter.grad = None
            loss = step(module, run, x)
    expected = step(other, other, x)
    plans = [plan.found for plan in backend.plans]
    costs = [sum(plan.outcome.cost for plan in plans), sum(plan.before.cost for plan in plans)]
    one = plans[0] if len(plans) == 1 else None
    return {
        "model": name,
        "budget": budget,
        "graphs": len(plans),
        "before": one and one.before.peak,
        "predicted": one and one.outcome.peak,
        "measured": backend.step.meter.peak,
        "allowed": one and one.budget,
        "least_peak_bound": one and one.least_peak_bound,
        "overhead": round(costs[0] / costs[1] - 1, 5),
        "same_bits": torch.equal(loss, expected) and all(map(same, gradients(module), gradients(other))),
        "said": [str(one.message) for one in heard if issubclass(one.category, RematWarning)],
        "cpu_seconds": round(time.process_time() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=100_000, help="of each of remat's searches")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).with_name("promise.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    about = {"machine": platform.machine(), "torch": torch.__version__, "transformers": transformers.__version__}
    lines = [json.dumps(about | {"threads": 1, "moves": given.moves})]
    for name in given.models.split(","):
        for budget in BUDGETS:
            found = row(name, MODELS[name], budget, given.moves)
            print(found, flush=True)
            lines.append(json.dumps(found))
            given.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
