"""A training step by eager and by a backend, from the same weights and the same random numbers."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from remat_cli.errors import RematWarning
from remat_cli.torch.allowance import allowance_of
from remat_cli.torch.backend import Backend
from remat_cli.torch.estimates import estimates
from remat_cli.torch.metering import Meter
from remat_cli.torch.partition import Partitioner
from remat_cli.torch.workspaces import workspace_on_cpu
from solvers.clock import limited

MOVES = 200_000


@dataclass(frozen=True, eq=False)
class Step:
    """The loss and all that it left behind."""

    loss: torch.Tensor
    gradients: list[torch.Tensor | None]
    buffers: list[torch.Tensor]
    random: torch.Tensor  # a draw after it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step) and self.same_bits(other)

    def same_bits(self, other: Step) -> bool:
        pairs = [(self.loss, other.loss), (self.random, other.random)]
        pairs += list(zip(self.buffers, other.buffers, strict=True))
        for own, its in zip(self.gradients, other.gradients, strict=True):
            if own is None or its is None:
                if own is not its:
                    return False
                continue
            if own.layout != its.layout:
                return False
            pairs.append((own.to_dense(), its.to_dense()))
        return all(torch.equal(own, its) for own, its in pairs)


class Outer(TorchDispatchMode):
    """Meters all ops, those that autograd runs beside the graphs as well."""

    def __init__(self, given: list[torch.Tensor]) -> None:
        super().__init__()
        self.meter = Meter(given)

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.meter.made(result, workspace_on_cpu(func, args, kwargs or {}))
        return result


def step(module: nn.Module, run: Callable[..., Any], arguments: tuple[Any, ...], seed: int = 0) -> Step:
    """One forward and backward pass of `run`, which is the module or what it was compiled to."""
    torch.manual_seed(seed)
    given = [argument for argument in arguments if isinstance(argument, torch.Tensor) and argument.requires_grad]
    for tensor in (*module.parameters(), *given):
        tensor.grad = None
    loss = run(*arguments)
    loss.backward()
    gradients = [tensor.grad for tensor in (*module.parameters(), *given)]
    return Step(loss.detach(), gradients, [b.clone() for b in module.buffers()], torch.rand(3))


def twin(module: nn.Module) -> nn.Module:
    return copy.deepcopy(module)


def backend(budget: str, moves: int = MOVES) -> Backend:
    """A backend whose searches are limited by work."""
    return Backend(Partitioner(allowance_of(budget), estimates("cpu"), lambda _: limited(30, moves)))


def measured(backend: Backend, module: nn.Module, run: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    """The most bytes that tensors hold in one more step, inputs and weights among them."""
    for parameter in module.parameters():
        parameter.grad = None
    backend.step.meter, backend.step.always = Meter([*module.parameters(), *module.buffers(), *arguments]), True
    run(*arguments).backward()
    backend.step.always = False
    return backend.step.meter.peak


def said(heard: Sequence[warnings.WarningMessage]) -> list[str]:
    """What remat said among all warnings: versions of torch have some of their own."""
    return [str(one.message) for one in heard if issubclass(one.category, RematWarning)]
