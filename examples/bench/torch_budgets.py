"""Training steps of models of libraries through torch.compile under budgets that go down, and up again.

Each model of `torch_budgets_models.py`, and of the `_others`, `_newer`, `_fourth` and `_fifth` beside it those named,
begins twice with nothing known of it: budgets go down, then up. A row has what the plan holds (`said`) and what the
step's meter saw (`metered`). `held` is what tensors held in a later step under a meter of all ops, autograd's among
them, with parameters that no graph reads, which are `unread` bytes. `allocated` is what torch's profiler saw the
allocator give out, beside what was there: all that is said, and the unread. `bits` are those of eager, of
`aot_eager`, or nobody's. `more`: the bytes by which more was allocated than with more budget in the same turn.
`heard`: the warnings. `compile`: processor seconds of the first step, by those of torch's own, both where something
was compiled before. `failed`: the step ended with an error, as torch's own does where `torch_fails`.

With `--inductor` Inductor makes the kernels, `bits` is the largest difference of a gradient by its largest value, and
torch's own step has a row too, as budget 100 of the way `torch`. Needs timm, transformers, diffusers and peft. Searches
are limited by work, `--moves`.
"""

from __future__ import annotations

import argparse
import copy
import os
import resource
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.append(str(Path(__file__).parents[1] / "torch-compile"))

import torch
from frontier import Outer
from inductor import peak as allocated
from torch import nn
from torch._inductor import config as inductor
from torch._inductor.utils import fresh_cache
from torch_budgets_fifth import MODELS as FIFTH
from torch_budgets_fourth import MODELS as FOURTH
from torch_budgets_models import MODELS, Made
from torch_budgets_newer import MODELS as NEWER
from torch_budgets_others import MODELS as OTHERS

import remat_cli.torch
from remat_cli.errors import RematWarning
from remat_cli.torch.allowance import allowance_of
from remat_cli.torch.backend import Backend
from remat_cli.torch.estimates import estimates
from remat_cli.torch.inductor import PARTITIONER, inductor_options
from remat_cli.torch.metering import Meter
from remat_cli.torch.partition import Partitioner, PlannedJoint
from remat_cli.torch.remembering import KNOWN
from remat_cli.torch.written import WRITTEN
from solvers.clock import limited

KEY = ("model", "through", "way", "budget")
SECONDS = 60  # of a search: where others use the processor, so many that its moves end first
Row = dict[str, Any]


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="*", help="without names, all but the others")
    parser.add_argument("--moves", type=int, default=500_000, help="of each search")
    parser.add_argument("--budgets", default="90,60,45,30", help="going down, in percent")
    parser.add_argument("--inductor", action="store_true")


def rows(asked: argparse.Namespace) -> Iterator[Row]:
    torch.set_num_threads(1)
    with suppress(ImportError):
        import vision_ready  # noqa: F401  where torchvision is without its compiled part
    for name in asked.models or MODELS:
        torch.manual_seed(0)
        made = (MODELS | OTHERS | NEWER | FOURTH | FIFTH)[name]()
        made[0].train()
        subject = (ThroughInductor if asked.inductor else Subject)(made, asked.moves)
        shares = [int(share) for share in asked.budgets.split(",")]
        yield from ({"model": name, "through": subject.through, **row} for row in subject.rows(shares))


class Subject:
    """A model, what eager and torch's own compilation answer to it, and its steps under budgets: op by op."""

    through, stock = "backend", "aot_eager"

    def __init__(self, made: Made, moves: int) -> None:
        self.made, self.moves = made, moves
        self.eager = third(*self.fresh(), made[1])
        self.seconds, self.by_torch = 0.0, list[Any]()
        with self.warm():
            run, module = self.compiled(self.stock)
            began = spent()
            with suppress(RuntimeError):  # torch's own, of graphs that it makes and cannot run
                step(run, module, made[1])
                self.seconds = spent() - began  # of torch's own first step
                self.by_torch = third(run, module, made[1], 1)

    def rows(self, shares: list[int]) -> Iterator[Row]:
        for way in ("down", "up"):
            with nothing_known():
                seen: list[Row] = []
                for share in sorted(shares, reverse=way == "down"):
                    try:
                        row = self.row(share)
                    except RuntimeError as error:
                        failed = str(error).splitlines()[0]
                        yield {"way": way, "budget": share, "failed": failed, "torch_fails": not self.by_torch}
                        continue
                    more = [one for one in seen if one["budget"] > share]
                    less = [one for one in seen if one["budget"] < share]
                    over = [row["allocated"] - one["allocated"] for one in more]
                    over += [one["allocated"] - row["allocated"] for one in less]
                    seen.append({"way": way, "budget": share, **row, "more": max([0, *over])})
                    yield seen[-1]

    def row(self, share: int) -> Row:
        backend = Backend(
            Partitioner(allowance_of(f"{share}%"), estimates("cpu"), lambda _: limited(SECONDS, self.moves))
        )
        with self.warm():
            return self.of(backend, backend)

    @contextmanager
    def warm(self) -> Iterator[None]:
        """Within it something was compiled already: a first compilation pays for what later ones find there."""
        module = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8))
        torch.compile(module, backend=self.stock, dynamic=False)(torch.randn(4, 8)).sum().backward()
        yield

    def fresh(self) -> tuple[nn.Module, nn.Module]:
        module = copy.deepcopy(self.made[0])
        return module, module

    def compiled(self, backend: Any) -> tuple[Any, nn.Module]:
        torch._dynamo.reset()
        module, _ = self.fresh()
        return torch.compile(module, backend=backend, dynamic=False), module

    def of(self, backend: Any, asked: Any = None) -> Row:
        """The row of a module that is compiled with this backend. `asked`: what makes plans for it."""
        run, module = self.compiled(backend)
        given = self.made[1]
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", RematWarning)
            began = spent()
            step(run, module, given)
            seconds = spent() - began
            own = third(run, module, given, 1)  # where graphs share a budget, the second compiles them anew
            plans = remat_cli.torch.report(asked).graphs if asked else ()
        row: Row = {"graphs": len(plans)}
        if len(plans) == 1:
            plan = plans[0]
            row |= {"before": plan.written or plan.before, "allowed": plan.budget, "said": plan.predicted}
            row |= {"metered": plan.measured, "overhead": plan.overhead and round(plan.overhead, 4), "why": plan.why}
            row["unread"] = unread(asked.partitioner.plans[0], [*module.parameters(), *module.buffers(), *given])
        return {
            **row,
            "held": self.held(run, module),
            "allocated": allocated(run, module, given),
            "bits": self.compared(own),
            "compile": round(seconds / self.seconds, 2) if self.seconds else None,
            "heard": [str(note.message) for note in heard if issubclass(note.category, RematWarning)],
        }

    def held(self, run: Any, module: nn.Module) -> int:
        for parameter in module.parameters():
            parameter.grad = None
        torch.manual_seed(1)
        with Outer([*module.parameters(), *module.buffers(), *self.made[1]]) as outer:
            run(*self.made[1]).backward()
        return outer.meter.peak

    def compared(self, own: list[Any]) -> Any:
        if same(own, self.eager):
            return "eager"
        return "aot_eager" if self.by_torch and same(own, self.by_torch) else "nobody's"


class ThroughInductor(Subject):
    """The same where Inductor makes kernels, which no meter sees: what is held is what was allocated."""

    through = stock = "inductor"

    @contextmanager
    def warm(self) -> Iterator[None]:
        """The same where no kernel of another compilation is found."""
        alone = inductor.patch(force_disable_caches=True, compile_threads=1)
        with alone, fresh_cache(), super().warm():
            yield

    def rows(self, shares: list[int]) -> Iterator[Row]:
        with self.warm():
            stock = self.of("inductor")
        yield {"way": "torch", "budget": 100, **stock}
        yield from super().rows(shares)

    def row(self, share: int) -> Row:
        options = inductor_options(f"{share}%")
        own = options[PARTITIONER]
        own.partitioner.clock = lambda _: limited(SECONDS, self.moves)
        with self.warm(), inductor.patch(options):
            return self.of("inductor", own)

    def held(self, run: Any, module: nn.Module) -> int:
        return int(allocated(run, module, self.made[1]))

    def compared(self, own: list[Any]) -> Any:
        pairs = [(a, b) for a, b in zip(own, self.eager, strict=True) if a is not None]
        return max(float((a - b).abs().max() / (b.abs().max() + 1e-12)) for a, b in pairs)


def step(run: Callable[..., Any], module: nn.Module, given: tuple[torch.Tensor, ...]) -> list[Any]:
    """The loss and the gradients of a step."""
    for parameter in module.parameters():
        parameter.grad = None
    torch.manual_seed(1)
    loss = run(*given)
    loss.backward()
    return [loss.detach(), *(parameter.grad for parameter in module.parameters())]


def third(run: Callable[..., Any], module: nn.Module, given: tuple[torch.Tensor, ...], done: int = 0) -> list[Any]:
    """The third step, of which so many are done: buffers may change what a step computes."""
    for _ in range(2 - done):
        step(run, module, given)
    return step(run, module, given)


def same(own: list[Any], other: list[Any]) -> bool:
    pairs = zip(own, other, strict=True)
    return all(a is b if a is None or b is None else torch.equal(a, b) for a, b in pairs)


def unread(plan: PlannedJoint, given: list[torch.Tensor]) -> int:
    """The bytes of these tensors that the graph is not given."""
    return Meter(given).count() - (plan.lowered.problem.resident if plan.lowered else 0)


def spent() -> float:
    """Processor seconds of this process and of those that it waited for, as compilers of kernels are."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@contextmanager
def nothing_known() -> Iterator[None]:
    """Within it no plan of any graph is known at first."""
    KNOWN.clear()
    WRITTEN.clear()
    with tempfile.TemporaryDirectory() as place, mock.patch.dict(os.environ, {"REMAT_RESULTS": place}):
        yield
