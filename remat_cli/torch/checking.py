"""Checks that a forward and a backward graph compute what the joint graph computes, from the graphs alone.

Invariant: it shares nothing with the code that builds them. Each call gets a number for what it computes: the same
function of the same numbers has the same number. A call that draws random numbers or has an effect gets a running count
instead, so that it must run once and in the same order. A read of overwritten memory has another number than before.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from remat_cli.torch import batchnorm, dropout, layouts
from remat_cli.torch.reading import has_effect, is_random, is_tangent, mutated_inputs, output_of, storages_of

Number = int


class Differs(Exception):
    """The two graphs compute something else; the message names the output."""


@dataclass(slots=True)
class _Numbering:
    numbers: dict[Any, Number] = field(default_factory=dict)
    effects: int = 0
    whole: dict[fx.Node, Number] = field(default_factory=dict)  # the number of a whole BatchNorm, averages included
    pairs: dict[Number, tuple[Number, Number]] = field(default_factory=dict)  # a dropout -> its result and its mask
    written: dict[int, int] = field(default_factory=dict)  # storage of an input -> how often it was overwritten

    def number(self, key: Any) -> Number:
        return self.numbers.setdefault(key, len(self.numbers))

    def run(self, graph: fx.Graph, given: dict[fx.Node, Number]) -> list[Number | None]:
        """The numbers of the graph's outputs."""
        known = dict(given)
        for node in graph.nodes:
            if node.op == "get_attr":
                known[node] = self.number(("constant", node.target))
            elif node.op == "call_function":
                known[node] = self.call(node, known)
            elif node.op == "output":
                return [known[value] if isinstance(value, fx.Node) else None for value in node.args[0]]
        raise Differs("a graph returns nothing")

    def call(self, node: fx.Node, known: dict[fx.Node, Number]) -> Number:
        if dropout.share_and_scale(node) is not None:
            return self.dropped(node, known)
        if (source := layouts.copied(node)) is not None:
            return known[source]
        if node.target is operator.getitem and (pair := self.pairs.get(known[node.args[0]])) is not None:
            return pair[node.args[1]]
        if node.target is operator.getitem and node.args[1] in batchnorm.AVERAGES and node.args[0] in self.whole:
            return self.number(("average", self.whole[node.args[0]], node.args[1]))
        found = self.number(self.key(node, known, node.target, (node.args, node.kwargs)))
        for target in mutated_inputs(node):
            for key in _storages(target):
                self.written[key] = self.written.get(key, 0) + 1
        essence = batchnorm.essence(node)
        if essence is None:
            return found
        self.whole[node] = found
        target, arguments = essence
        return self.number(("essence", *self.key(node, known, target, (arguments, node.kwargs))[:3]))

    def dropped(self, node: fx.Node, known: dict[fx.Node, Number]) -> Number:
        """A dropout has the numbers of a mask that is drawn, and of its use."""
        kept, scale = dropout.share_and_scale(node) or (0.0, 0.0)
        x, read = _Token(known[node.args[0]]), self.seen(node)
        empty = self.number((dropout.EMPTY, repr(((x,), {"dtype": torch.bool})), None, read))
        self.effects += 1
        mask = self.number((dropout.DRAW, repr(((_Token(empty), kept), {})), self.effects, ()))
        result = self.number((dropout.APPLY, repr(((x, _Token(mask), scale), {})), None, read))
        found = self.number(("dropout", result, mask))
        self.pairs[found] = (result, mask)
        return found

    def key(self, node: fx.Node, known: dict[fx.Node, Number], target: Any, given: Any) -> tuple[Any, ...]:
        arguments = fx.node.map_arg(given, lambda argument: _Token(known[argument]))
        effect = None
        if is_random(node) or has_effect(node):
            self.effects += 1
            effect = self.effects
        return target, repr(arguments), effect, self.seen(node)

    def seen(self, node: fx.Node) -> tuple[tuple[int, int], ...]:
        """For each argument of the op, how often its memory was overwritten before."""
        reads = ((place, key) for place, argument in enumerate(node.all_input_nodes) for key in _storages(argument))
        return tuple((place, self.written[key]) for place, key in reads if key in self.written)


class _Token:
    """A number in place of an argument, spelled so that no plain argument looks like it."""

    def __init__(self, number: Number) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"<<{self.number}>>"


def check(joint: fx.Graph, forward: fx.Graph, backward: fx.Graph, num_fwd_outputs: int) -> None:
    """Raises Differs if the two graphs, run one after the other, are not the joint graph in another form."""
    numbers: dict[Any, Number] = {}
    given = {node.name: ("input", node.name) for node in joint.find_nodes(op="placeholder")}
    whole = _Numbering(numbers)
    starts = {node: whole.number(given[node.name]) for node in joint.find_nodes(op="placeholder")}
    wanted = whole.run(joint, starts)
    split = _Numbering(numbers)
    starts = {node: split.number(given[node.name]) for node in forward.find_nodes(op="placeholder")}
    made = split.run(forward, starts)
    pairs = zip(_names(forward)[num_fwd_outputs:], made[num_fwd_outputs:], strict=True)
    saved = {name: number for name, number in pairs if number is not None}
    starts = {}
    for node in backward.find_nodes(op="placeholder"):
        own = is_tangent(node) or node.name not in saved
        starts[node] = split.number(given[node.name]) if own else saved[node.name]
    found = [*made[:num_fwd_outputs], *split.run(backward, starts)]
    _compare(wanted, found, num_fwd_outputs)
    if whole.effects != split.effects:
        raise Differs(f"{split.effects} ops with effects run where there are {whole.effects}")


def _compare(wanted: Sequence[Number | None], found: Sequence[Number | None], num_fwd_outputs: int) -> None:
    for place, (own, other) in enumerate(zip(wanted, found, strict=True)):
        if own != other:
            late = place - num_fwd_outputs
            raise Differs(f"forward output {place}" if late < 0 else f"gradient {late}")


def _names(graph: fx.Graph) -> list[str]:
    return [value.name if isinstance(value, fx.Node) else "" for value in output_of(graph).args[0]]


def _storages(node: fx.Node) -> list[int]:
    return list(storages_of(node.meta.get("val"), node.name))
