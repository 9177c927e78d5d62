"""What was lowered for a look at a plan's code, handed to Inductor where it compiles that graph: each is lowered once.

Invariant: a lowering is handed only to a graph of the same calls and constants, on arguments of the same form, under
the same settings. Any other is lowered anew. Either way the code is written as for the look: on a CPU Inductor has one
function of C++ carry out all kernels that follow each other, which then holds what each of them makes. Here each kernel
has a function of its own, and holds what the plan says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import fx

from remat_cli.torch.packed import pack
from remat_cli.torch.private import CppScheduling, GraphLowering, compile_fx, conditions
from remat_cli.torch.reading import attribute, output_of, tensors_of
from remat_cli.torch.workspaces import spelling

HANDED = "remat_lowered"  # in the meta of a graph's output, of all graphs whose code was looked at
NO_FORM = {"example_inputs", "shape_env", "graph_id"}  # of what Inductor is given with a graph


@dataclass(frozen=True, slots=True)
class Form:
    """All that a lowering depends on. `constants`: what the graph has of its module."""

    graph: tuple[Any, ...]
    constants: tuple[Any, ...]
    given: tuple[Any, ...]

    def same(self, other: Form | None) -> bool:
        if other is None or (self.graph, self.given) != (other.graph, other.given):
            return False
        return all(_same(own, its) for own, its in zip(self.constants, other.constants, strict=True))


class Lowering:
    """A graph that Inductor has lowered, with its code. It goes wherever the meta of a node goes, and into no file."""

    def __init__(self, form: Form, graph: GraphLowering, code: Any) -> None:
        self.form, self.code = form, code
        self.graph: GraphLowering | None = graph

    def __deepcopy__(self, _: Any) -> Lowering:
        return self

    def __reduce__(self) -> Any:
        return type(None), ()

    def take(self, form: Form | None) -> GraphLowering | None:
        """The lowered graph, if that is what would be made of this form. It is taken once."""
        graph, self.graph = self.graph, None
        if graph is None or not self.form.same(form):
            return None
        made: Any = graph
        made.run = lambda *_: None
        made.codegen = lambda: _packed(self.code)
        return graph


def write(graph: GraphLowering) -> Any:
    """The code of a lowered graph, each of whose kernels has a function."""
    with mock.patch.object(CppScheduling, "MAX_FUSED_KERNEL_ARGS_NUM", 0):  # a function that has more is ended
        return graph.codegen()


def hand(module: fx.GraphModule, lowering: Lowering | None) -> None:
    """Have Inductor take the lowering when it compiles the module, or lower it anew and write it in the same way."""
    compile_fx.GraphLowering = _lower
    output_of(module).meta[HANDED] = lowering


def _lower(module: fx.GraphModule, *more: Any, **given: Any) -> GraphLowering:
    """The graph, lowered or ready to be."""
    about = output_of(module).meta
    if HANDED not in about:
        return GraphLowering(module, *more, **given)
    handed: Lowering | None = about[HANDED]
    about[HANDED] = None
    found = handed and handed.take(form_of(module, given))
    return found or _Anew(module, *more, **given)


class _Anew(GraphLowering):
    def codegen(self) -> Any:
        return _packed(write(super()))


def _packed(code: Any) -> Any:
    """The code, whose functions are compiled together."""
    pack(str(code[0].value))
    return code


def form_of(module: fx.GraphModule, given: dict[str, Any]) -> Form | None:
    """The form of a graph and of what Inductor is given with it; None where a size is not known."""
    nodes = list(module.graph.nodes)
    inputs = given["example_inputs"]
    values = [node.meta.get("val") for node in nodes]
    if any(_is_symbolic(value) for value in (*values, *inputs)):
        return None
    about = output_of(module).meta
    return Form(
        tuple(
            (node.op, node.name, node.target, str(node.args), str(node.kwargs), str(spelling(value)))
            for node, value in zip(nodes, values, strict=True)
        ),
        tuple(attribute(module, str(node.target)) for node in nodes if node.op == "get_attr"),
        (
            [(str(spelling(value)), [tensor.storage_offset() for tensor in tensors_of(value)]) for value in inputs],
            {name: _plain(value) for name, value in given.items() if name not in NO_FORM},
            [about.get(name) for name in ("user_visible_output_idxs", "original_output_strides")],
            conditions(bool(given.get("is_backward"))),
        ),
    )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _is_symbolic(value: Any) -> bool:
    lengths = [length for tensor in tensors_of(value) for length in (*tensor.shape, *tensor.stride())]
    return any(isinstance(length, torch.SymInt) for length in (value, *lengths))


def _same(one: Any, other: Any) -> bool:
    """Whether two constants are one, or tensors that are alike to the bit: torch copies a backward graph with them."""
    if one is other:
        return True
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return False
    return spelling(one) == spelling(other) and torch.equal(one, other)
