"""One training step of six models by torch's knob, by `torch.utils.checkpoint` and by remat: memory, time, gradients.

Usage: python examples/torch-compile/comparison.py [--models t5,clip] [--by remat,greedy] [-o comparison.jsonl]

Needs transformers, timm and peft. Whoever plans, the same ops run, one by one, and each value is let go of after its
last use. `peak` is what tensors held at once in a step, weights and inputs among them, counted from outside: every op
is seen, autograd's own as well. `time` is a step's by that of eager, processor time, the median of pairs of neighbours.
`error` is the largest difference of a gradient from eager's at the same seed, by that gradient's norm; `bits` says
whether loss and gradients are eager's, bit for bit. For models without chance, `exact` is the same difference from
eager in float64. `overhead` is the extra time of a plan by the costs that it was made with. Rows are replaced by those
of the same model and way, others stay.
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from frontier import Outer, boxed
from greedy import GreedyPartitioner
from promise import gradients, same, step
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch import config as functorch
from torch._functorch.partitioners import min_cut_rematerialization_partition
from unseen import CLASSES, Classifier, Made, OwnLoss, language

import remat_cli.torch
from remat_cli.errors import RematWarning
from remat_cli.torch.allowance import allowance_of
from remat_cli.torch.backend import Backend
from remat_cli.torch.estimates import estimates
from remat_cli.torch.partition import clock_of

KNOBS = (1.0, 0.8, 0.6, 0.4, 0.2, 0.1, 0.0)
BUDGETS = ("80%", "60%", "45%")
WORDS = 512
Row = dict[str, Any]


class Pairs(nn.Module):
    """CLIP's loss over pictures and words that belong together."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, pictures: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.model(input_ids=ids, pixel_values=pictures, return_loss=True).loss
        return found


def clip() -> Made:
    from transformers import CLIPConfig, CLIPModel

    sizes = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256}
    config = CLIPConfig(
        text_config={**sizes, "vocab_size": WORDS, "max_position_embeddings": 32},
        vision_config={**sizes, "image_size": 64, "patch_size": 8},
        projection_dim=32,
    )
    return Pairs(CLIPModel(config)), (torch.randint(0, WORDS, (16, 32)), torch.randn(16, 3, 64, 64))


def lora() -> Made:
    from peft import LoraConfig, get_peft_model

    sizes = {"hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 256}
    module, given = language("Llama", "ForCausalLM", length=128, num_key_value_heads=2, use_cache=False, **sizes)()
    adapter = LoraConfig(r=8, lora_dropout=0.1, target_modules=["q_proj", "v_proj"])
    module.model = get_peft_model(module.model, adapter)
    return module, given


def gemma() -> Made:
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    config = Gemma3TextConfig(vocab_size=WORDS, head_dim=16, num_key_value_heads=2, use_cache=False, **WIDTHS)
    return OwnLoss(Gemma3ForCausalLM(config)), (torch.randint(0, WORDS, (8, 64)),)


def of_timm(name: str) -> Callable[[], Made]:
    def make() -> Made:
        import timm

        model = timm.create_model(name, num_classes=CLASSES)
        return Classifier(model), (torch.randn(8, 3, 96, 96), torch.randint(0, CLASSES, (8,)))

    return make


T5 = {"d_model": 64, "d_kv": 16, "d_ff": 256, "num_layers": 3, "num_heads": 4, "decoder_start_token_id": 0}
WIDTHS = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256}
SIX: dict[str, Callable[[], Made]] = {
    "t5": language("T5", "ForConditionalGeneration", use_cache=False, **T5),  # with its dropout, as the next
    "deberta": language("DebertaV2", "ForMaskedLM", max_position_embeddings=64, **WIDTHS),
    "lora": lora,
    "clip": clip,
    "gemma3": gemma,
    "repvit": of_timm("repvit_m0_9"),
}


def stock(knob: float) -> tuple[Any, Any]:
    """torch's own partitioner at this setting of its knob."""
    backend = aot_autograd(fw_compiler=boxed, bw_compiler=boxed, partition_fn=min_cut_rematerialization_partition)
    return backend, functorch.patch(activation_memory_budget=knob)


def greedy(budget: str, at_each_use: bool) -> Backend:
    own = (allowance_of(budget), estimates("cpu"), clock_of(None))
    return Backend(GreedyPartitioner(*own, at_each_use=at_each_use))


def checkpointed(module: nn.Module) -> None:
    """Have the model's blocks computed again in the backward pass, as its library does it."""
    inner: Any = module.model
    if hasattr(inner, "gradient_checkpointing_enable"):
        inner.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if hasattr(inner, "enable_input_require_grads"):
            inner.enable_input_require_grads()
    else:
        inner.set_grad_checkpointing(True)


def by_chance(made: Made) -> bool:
    """Whether two seeds give two losses."""
    losses = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        losses.append(copy.deepcopy(made[0])(*made[1]).detach())
    return not torch.equal(*losses)


def apart(own: list[torch.Tensor | None], its: list[torch.Tensor | None]) -> float:
    """The largest difference of two gradients by the norm of the second, or by a thousandth of the largest norm."""
    norms = [float(value.norm()) for value in its if value is not None]
    floor = 1e-3 * max(norms)
    return max(
        float((a.double() - b.double()).norm()) / max(floor, float(b.norm()))
        for a, b in zip(own, its, strict=True)
        if a is not None and b is not None
    )


def in_float64(made: Made) -> list[torch.Tensor | None]:
    module = copy.deepcopy(made[0]).double()
    step(module, module, tuple(value.double() if value.is_floating_point() else value for value in made[1]))
    return gradients(module)


class Ways:
    """A model, eager's answer to it, and how others compare."""

    def __init__(self, name: str, seed: int, pairs: int) -> None:
        torch.manual_seed(seed)
        self.name, self.pairs = name, pairs
        self.made = SIX[name]()
        self.made[0].train()
        self.given = self.made[1]
        self.eager = copy.deepcopy(self.made[0])
        self.loss = step(self.eager, self.eager, self.given)
        self.expected = [None if value is None else value.clone() for value in gradients(self.eager)]
        self.exact = None if by_chance(self.made) else in_float64(self.made)

    def row(self, by: str, run: Any, module: nn.Module) -> Row:
        """Two steps warm it up: where graphs share a budget, the second compiles them anew."""
        for _ in range(2):
            loss = step(module, run, self.given)
        own = gradients(module)
        bits = torch.equal(loss, self.loss) and all(map(same, own, self.expected))
        found: Row = {"model": self.name, "by": by, "bits": bits, "error": apart(own, self.expected)}
        if self.exact is not None:
            found["exact"] = apart(own, self.exact)
        for parameter in module.parameters():
            parameter.grad = None
        torch.manual_seed(1)
        with Outer([*module.parameters(), *module.buffers(), *self.given]) as outer:
            run(*self.given).backward()
        return found | {"peak": outer.meter.peak} | self.timed(run, module)

    def timed(self, run: Any, module: nn.Module) -> Row:
        ratios = []
        for place in range(self.pairs):
            seconds = {}
            for own in (True, False) if place % 2 else (False, True):
                net, call = (module, run) if own else (self.eager, self.eager)
                began = time.process_time()
                step(net, call, self.given)
                seconds[own] = time.process_time() - began
            ratios.append(seconds[True] / seconds[False])
        quarters = statistics.quantiles(ratios, n=4)
        return {"time": round(statistics.median(ratios), 3), "spread": round((quarters[2] - quarters[0]) / 2, 3)}

    def rows(self, asked: str) -> Iterator[Row]:
        """Of the ways whose names begin as asked."""
        for by, way in self.ways():
            if by.startswith(tuple(asked.split(","))):
                yield way(by)

    def ways(self) -> Iterator[tuple[str, Callable[[str], Row]]]:
        yield "eager", self.as_it_is
        yield "torch.utils.checkpoint", self.as_it_is
        for knob in KNOBS:
            yield f"torch {knob:g}", lambda by, knob=knob: self.compiled(by, *stock(knob))
        for budget in BUDGETS:
            yield f"remat {budget}", lambda by, budget=budget: self.planned(by, remat_cli.torch.backend(budget))
            for name, own in (("greedy", False), ("greedy at each use", True)):
                yield f"{name} {budget}", lambda by, budget=budget, own=own: self.planned(by, greedy(budget, own))

    def as_it_is(self, by: str) -> Row:
        module = copy.deepcopy(self.made[0])
        if by != "eager":
            checkpointed(module)
        return self.row(by, module, module)

    def planned(self, by: str, backend: Any) -> Row:
        found = self.compiled(by, backend)
        plans = remat_cli.torch.report(backend).graphs
        if len(plans) == 1 and "failed" not in found:
            own = plans[0]
            found |= {"foretold": own.predicted, "limit": own.budget, "least": own.least_peak_bound}
            found |= {"overhead": own.overhead and round(own.overhead, 4)}
        return found

    def compiled(self, by: str, backend: Any, setting: Any = None) -> Row:
        torch._dynamo.reset()
        module = copy.deepcopy(self.made[0])
        run = torch.compile(module, backend=backend, dynamic=False)
        try:
            if setting is None:
                return self.row(by, run, module)
            with setting:
                return self.row(by, run, module)
        except RuntimeError as error:  # autograd's, where what was saved is written over
            return {"model": self.name, "by": by, "failed": str(error).splitlines()[0][:90]}


def about(asked: argparse.Namespace) -> Row:
    """What a row is of."""
    here = Path(__file__).parent
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True).stdout
    libraries = {name: version(name) for name in ("torch", "transformers", "timm", "peft")}
    command = f"comparison.py --models {asked.models} --by '{asked.by}' --pairs {asked.pairs} --seed {asked.seed}"
    own = {"commit": commit.strip(), "machine": platform.machine(), "seed": asked.seed, "command": command}
    return {**own, "python": sys.version.split()[0], **libraries, "threads": 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(SIX))
    parser.add_argument(
        "--by", default="", help="how the names of ways begin: eager, torch, remat, greedy; all without"
    )
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).with_name("comparison.jsonl"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with suppress(ImportError):
        import vision_ready  # noqa: F401  where torchvision is without its compiled part
    warnings.simplefilter("ignore", RematWarning)  # of budgets that are not met: the rows say so
    rows = [json.loads(line) for line in asked.output.read_text().splitlines()] if asked.output.is_file() else []
    for name in asked.models.split(","):
        for row in Ways(name, asked.seed, asked.pairs).rows(asked.by):
            print(row, flush=True)
            rows = [one for one in rows if (one["model"], one["by"]) != (name, row["by"])]
            rows.append(row | about(asked))
            asked.output.write_text("".join(json.dumps(line) + "\n" for line in rows))


if __name__ == "__main__":
    main()
