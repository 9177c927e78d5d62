"""The check of what was built: it lets through what computes the same, and stops all else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import fx
from torch._functorch import partitioners

from remat_cli.torch.checking import Differs, check
from remat_cli.torch.joint import copy_of

aten = torch.ops.aten


def split_of(run: Any, *arguments: torch.Tensor) -> tuple[fx.GraphModule, fx.GraphModule, fx.GraphModule, int]:
    """A joint graph, and torch's default partition of it, which computes nothing twice."""
    found: list[Any] = []

    def keep(module: fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **given: Any) -> Any:
        forward, backward = partitioners.default_partition(copy_of(module), inputs, num_fwd_outputs=num_fwd_outputs)
        found.extend((copy_of(module), copy_of(forward), copy_of(backward), num_fwd_outputs))
        return forward, backward

    compiled = torch._dynamo.backends.common.aot_autograd(fw_compiler=lambda g, _: g, partition_fn=keep)
    torch.compile(run, backend=compiled, dynamic=False)(*arguments).sum().backward()
    return tuple(found)


def network(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.dropout(torch.tanh(x @ weight), 0.5, True).exp()


@pytest.fixture
def split() -> tuple[Any, ...]:
    return split_of(network, torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True))


def call(module: fx.GraphModule, target: Any) -> fx.Node:
    return next(node for node in module.graph.nodes if node.target is target)


def test_what_torch_splits_computes_the_same(split: tuple[Any, ...]) -> None:
    joint, forward, backward, count = split
    check(joint.graph, forward.graph, backward.graph, count)


def test_another_op_in_the_backward_graph_is_seen(split: tuple[Any, ...]) -> None:
    joint, forward, backward, count = split
    call(backward, aten.mm.default).target = aten.add.Tensor
    with pytest.raises(Differs, match="gradient"):
        check(joint.graph, forward.graph, backward.graph, count)


def test_another_argument_in_the_forward_graph_is_seen(split: tuple[Any, ...]) -> None:
    joint, forward, backward, count = split
    dropout = call(forward, aten.native_dropout.default)
    dropout.args = (dropout.args[0], 0.25, dropout.args[2])
    with pytest.raises(Differs, match="forward output 0"):
        check(joint.graph, forward.graph, backward.graph, count)


def test_random_numbers_drawn_twice_are_seen(split: tuple[Any, ...]) -> None:
    joint, forward, backward, count = split
    dropout = call(forward, aten.native_dropout.default)
    with forward.graph.inserting_before(dropout):
        again = forward.graph.node_copy(dropout)
    forward.graph.lint()
    assert again is not dropout
    with pytest.raises(Differs):
        check(joint.graph, forward.graph, backward.graph, count)


def test_saved_values_that_change_places_are_seen(split: tuple[Any, ...]) -> None:
    joint, forward, backward, count = split
    output = next(iter(forward.graph.find_nodes(op="output")))
    saved = list(output.args[0])
    names = [node.name for node in backward.graph.find_nodes(op="placeholder")]
    first, second = [place for place, node in enumerate(saved) if place >= count and node.name in names][:2]
    saved[first].name, saved[second].name = "other", saved[first].name
    with pytest.raises((Differs, KeyError)):
        check(joint.graph, forward.graph, backward.graph, count)
