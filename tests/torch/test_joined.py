"""What functions of C++ are bound to hold, against a count of the values that are alive."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import nn
from torch._inductor import config

from remat_cli.torch.building import build
from remat_cli.torch.generated import HeldByCode, look
from remat_cli.torch.inductor import InductorPartitioner
from remat_cli.torch.joined import joined
from remat_cli.torch.lowering import Lowered
from remat_cli.torch.partition import Partitioner, partition_fn
from solvers.problem import Node, Problem


def chain(draws: random.Random, length: int) -> Problem:
    """Each op reads one or two of the values before it."""
    nodes = []
    for op in range(length):
        reads = tuple({draws.randrange(op) for _ in range(2)}) if op else ()
        nodes.append(Node(1, reads, (op,), workspace=draws.randint(0, 9)))
    return Problem(tuple(nodes), tuple(draws.randint(1, 40) for _ in range(length)), outputs=(length - 1,), resident=7)


@pytest.mark.parametrize("seed", range(30))
def test_a_function_holds_what_is_alive_when_it_begins_what_it_makes_and_works_in(seed: int) -> None:
    draws = random.Random(seed)
    problem = chain(draws, 12)
    apart = set(draws.sample(range(12), 4))
    order = tuple(range(12))
    last = {value: max((op for op in order if value in problem.nodes[op].reads), default=value) for value in order}
    last[11] = 12
    found = joined(problem, order, apart)
    places = [place for _, run in found.kernels for place in run]
    assert places == [op for op in order if op not in apart]
    for held, run in found.kernels:
        assert not set(range(run[0], run[-1] + 1)) & apart
        assert run[0] == 0 or run[0] - 1 in apart
        alive = [value for value in order if value in run or (value < run[0] and last[value] >= run[0])]
        work = max(problem.nodes[op].workspace for op in run)
        assert held == problem.resident + sum(problem.sizes[value] for value in alive) + work
    assert found.peak == max(held for held, _ in found.kernels)


def test_nothing_is_said_where_nothing_is_known_of_the_code() -> None:
    assert joined(chain(random.Random(0), 5), tuple(range(5)), set()).kernels == ()


def test_what_is_assembled_of_parts_ends_no_function_and_is_held_once() -> None:
    parts, whole, more, alone = 0, 2, 3, 4
    nodes = [Node(1, (), (0,)), Node(1, (), (1,)), Node(1, (0, 1), (2,)), Node(1, (), (3,)), Node(1, (2, 3), (4,))]
    problem = Problem(tuple(nodes), (20, 30, 50, 7, 1), outputs=(4,), resident=100)
    (one,) = joined(problem, range(5), {alone}, {whole}).kernels
    assert one == (100 + 20 + 30 + 7, (parts, parts + 1, whole, more))
    assert joined(problem, range(5), {alone, whole}).kernels == ((150, (parts, parts + 1)), (157, (more,)))


class Halves(nn.Module):
    """The gradient of the first product is assembled of those of its halves."""

    def __init__(self) -> None:
        super().__init__()
        self.inward, self.outward = nn.Linear(64, 384), nn.Linear(192, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self.inward(x.sin()).chunk(2, -1)
        return self.outward(nn.functional.silu(gate) * up)


def test_inductors_function_goes_on_over_what_is_assembled_in_it() -> None:
    seen: list[tuple[HeldByCode, HeldByCode, int]] = []

    class Looks(Partitioner):
        def _aimed(self, lowered: Lowered, _: Any) -> None:
            targets = [op and op.target for op in lowered.ops]
            again, at = (targets.index(kind.default) for kind in (torch.ops.aten.sin, torch.ops.aten.cat))
            order = list(range(len(targets)))
            whole = look(build(lowered, order), [True])
            order.insert(at + 1, again)
            apart = {*whole.apart, lowered.boundary}
            seen.append(
                (look(build(lowered, order), [True]), joined(lowered.problem, order, apart, whole.assembled), at)
            )

    asked = partition_fn("100%")
    own = Looks(asked.allowance, asked.pricing, asked.clock, fused_for="cpu")
    torch._dynamo.reset()
    with config.patch(custom_partitioner_fn=InductorPartitioner(own, ()), force_disable_caches=True):
        torch.compile(Halves(), dynamic=False)(torch.randn(256, 64))
    ((held, foreseen, at),) = seen
    (own_run,) = [kernel for kernel in foreseen.kernels if at in kernel[1]]
    (its_run,) = [kernel for kernel in held.kernels if at + 1 in kernel[1]]
    assert {at - 1, at, at + 1} <= set(own_run[1])
    assert its_run[0] == pytest.approx(own_run[0], abs=64)
