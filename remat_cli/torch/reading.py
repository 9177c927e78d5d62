"""The properties of one node of an FX graph: the memory that its result lives in, and whether it may run twice.

Invariant: a node that is not known to be safe counts as unsafe: it runs once.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from remat_cli.torch.private import HigherOrderOperator, OpOverload, identity_of

PURE_SPACES = ("aten", "prims", "inductor_prims", "prim")
PURE_HOPS = frozenset(
    {"cond", "while_loop", "map", "map_impl", "scan", "associative_scan", "flex_attention", "flex_attention_backward"}
    | {"invoke_subgraph", "wrap"}
)
COLLECTIVES = ("_c10d_functional", "_c10d_functional_autograd", "c10d", "_dtensor")

BY_ROWS, BY_COLUMNS = ("crow_indices", "col_indices", "values"), ("ccol_indices", "row_indices", "values")
SPARSE_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: BY_ROWS,
    torch.sparse_bsr: BY_ROWS,
    torch.sparse_csc: BY_COLUMNS,
    torch.sparse_bsc: BY_COLUMNS,
}


_aten = torch.ops.aten
REDUCED_IN_PLACE = {_aten.mse_loss, _aten.smooth_l1_loss, _aten.soft_margin_loss, _aten.binary_cross_entropy}
MADE_LIKE_INPUT = {_aten.im2col, _aten.col2im}
BAGS = {_aten._embedding_bag, _aten._embedding_bag_forward_only}
WRITTEN_IN_A_COPY = {_aten.copy, _aten.slice_scatter, _aten.select_scatter, _aten.diagonal_scatter}
_meet = torch.ops._c10d_functional
OF_ONE_SIZE = {_meet.all_reduce, _meet.all_gather_into_tensor, _meet.reduce_scatter_tensor, _meet.broadcast}
CHOICES = {_aten.topk, _aten.sort, _aten.argmax, _aten.argmin, _aten.kthvalue, _aten.mode}


class NotUnderstood(Exception):
    """Something in a joint graph that no plan can be made for; the message says what and where."""


def output_of(module: fx.GraphModule | fx.Graph) -> fx.Node:
    """The node of a graph that says what it returns."""
    graph = module.graph if isinstance(module, fx.GraphModule) else module
    return next(iter(graph.find_nodes(op="output")))


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors in a result, which may be a tuple of results."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def plain_tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors with a storage in a result: what a sparse one is made of in its place, an opaque one not at all."""
    found: list[torch.Tensor] = []
    for tensor in tensors_of(value):
        if tensor.layout in SPARSE_PARTS:
            found += plain_tensors_of([getattr(tensor, part)() for part in SPARSE_PARTS[tensor.layout]])
        elif tensor.layout in (torch.strided, torch.jagged):
            found.append(tensor)
    return found


def storages_of(value: Any, name: str = "") -> dict[int, Any]:
    """The storages of a result: their identity and their bytes, which may be symbolic. A sparse tensor is in those of
    its parts."""
    found: dict[int, Any] = {}
    for tensor in tensors_of(value):
        parts = plain_tensors_of(tensor)
        try:
            storages = [part.untyped_storage() for part in parts]
        except (NotImplementedError, RuntimeError):
            storages = []
        if not storages:
            raise NotUnderstood(f"the value of '{name}' has no plain storage ({tensor.layout})")
        found |= {identity_of(storage): storage.nbytes() for storage in storages}
    return found


def is_sparse(value: Any) -> bool:
    return any(tensor.layout in SPARSE_PARTS for tensor in tensors_of(value))


def bytes_kept(node: fx.Node, size: Any, source: Sequence[Any], place: int = 0) -> Any:
    """The bytes of a storage that the op makes. `source`: those of the storages that its first argument is in. `place`:
    which of the op's storages it is.

    Some losses compute each element's into the memory of their result, and reduce it there: the one number that is left
    keeps all of it. `fold` and `unfold` take memory as large as their input's, and then give it the shape of their
    result. What writes into a part of a view makes a copy of all the memory that the view is of. On a CPU the bags of
    rows, where they are listed, are in memory for one number more.
    """
    packet = getattr(node.target, "overloadpacket", None)
    if packet in BAGS and place == 1:
        bags = node.meta["val"][1]
        return size + bags.element_size() if bags.device.type == "cpu" and bytes_of(size) else size
    if packet in WRITTEN_IN_A_COPY:
        return functools.reduce(torch.sym_max, source, size)
    if packet in MADE_LIKE_INPUT:
        given = node.args[0].meta["val"]
        return torch.sym_max(size, given.numel() * given.element_size())
    if packet not in REDUCED_IN_PLACE or _argument(node, "reduction") == 0:
        return size
    first, second = (node.args[place].meta["val"] for place in (0, 1))
    elements = math.prod(torch.broadcast_shapes(first.shape, second.shape))
    return elements * node.meta["val"].element_size()


def bytes_of_sum(node: fx.Node, place: int, given: Sequence[Sequence[Any]]) -> Any:
    """The bytes of a part of a sum of two sparse tensors, which has room for the rows of both. `given`: the bytes of
    their parts. How many rows other sparse results have depends on the values in a tensor."""
    if node.target is _aten.add.Tensor and node.meta["val"].layout is torch.sparse_coo and set(map(len, given)) == {2}:
        first, second = given
        return first[place] + second[place]
    raise NotUnderstood(f"the size of '{node.name}', which is sparse, depends on the values in it")


def bytes_of(size: Any, name: str = "") -> int:
    """Bytes as an integer; a symbolic size is that of the inputs at hand."""
    if isinstance(size, int):
        return size
    hint = size.node.hint
    if hint is None:
        raise NotUnderstood(f"the size of '{name}' depends on the values in a tensor")
    return int(hint)


def is_plain(node: fx.Node) -> bool:
    """Whether the result is a number or a symbolic size: not a tensor, nor a tuple of tensors."""
    value = node.meta.get("val")
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool))


def schema_of(node: fx.Node) -> Any:
    return node.target._schema if isinstance(node.target, OpOverload) else None


def mutated_inputs(node: fx.Node) -> list[fx.Node]:
    """The arguments that the op writes into."""
    schema = schema_of(node)
    if schema is None or not schema.is_mutable:
        return []
    found = []
    for place, argument in enumerate(schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        given = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        found += [leaf for leaf in pytree.tree_leaves(given) if isinstance(leaf, fx.Node)]
    return found


def is_random(node: fx.Node) -> bool:
    """Whether two runs may give different results, because they draw random numbers."""
    if isinstance(node.target, OpOverload):
        if torch.Tag.nondeterministic_seeded not in node.target.tags:
            return False
        return _argument(node, "dropout_p") != 0.0  # attention is tagged for its dropout, also where it has none
    return any(is_random(inner) for graph in subgraphs(node) for inner in graph.nodes if inner.op == "call_function")


def chooses(node: fx.Node) -> bool:
    """Whether the op says which numbers are the largest, as a router of experts does: kernels that round otherwise, as
    Inductor's may from one pass to the other, could choose others in a second run."""
    return getattr(node.target, "overloadpacket", None) in CHOICES


def has_effect(node: fx.Node) -> bool:
    """Whether a run leaves something behind besides its result, or may for all that is known."""
    if node.target is operator.getitem or is_plain(node):
        return False
    if isinstance(node.target, OpOverload):
        if is_collective(node) or node.target._schema.is_mutable:
            return True
        return node.target.namespace not in PURE_SPACES or node.is_impure(impure_random=False)
    if isinstance(node.target, HigherOrderOperator):
        if node.target.name() not in PURE_HOPS:
            return True
        return any(has_effect(inner) for graph in subgraphs(node) for inner in graph.nodes if inner.op != "placeholder")
    return node.op == "call_function" and not _is_arithmetic(node.target)


def is_collective(node: fx.Node) -> bool:
    """Whether the op runs together with other ranks."""
    return isinstance(node.target, OpOverload) and node.target.namespace in COLLECTIVES


def meetings(ops: Iterable[fx.Node]) -> dict[str, list[str]]:
    """For each group of ranks its collectives among these ops, with their sizes where these are one for all ranks."""
    found: dict[str, list[str]] = {}
    for op in filter(is_collective, ops):
        group = _argument(op, "group_name")
        if isinstance(group, str):
            sizes = op.args[0].meta["val"].shape if op.target.overloadpacket in OF_ONE_SIZE else ()
            known = [size for size in sizes if isinstance(size, int)]
            found.setdefault(group, []).append(f"{op.target.overloadpacket.__name__}{known or ''}")
    return found


def subgraphs(node: fx.Node) -> Iterator[fx.Graph]:
    """The graphs that a higher-order op is given."""
    owner = node.graph.owning_module
    for argument in node.all_input_nodes:
        if argument.op == "get_attr" and owner is not None:
            found = attribute(owner, str(argument.target))
            if isinstance(found, fx.GraphModule):
                yield found.graph


def is_tangent(node: fx.Node) -> bool:
    return node.op == "placeholder" and "tangents" in str(node.target)


def is_view(node: fx.Node) -> bool:
    """Whether the op only looks at the memory of its one tensor argument."""
    if node.op != "call_function" or is_random(node) or has_effect(node):
        return False
    given = [argument for argument in node.all_input_nodes if tensors_of(argument.meta.get("val"))]
    if len(given) != 1:
        return False
    if isinstance(node.target, OpOverload) and node.target.is_view:
        return True  # though what is known of its result may be of a double that was dropped
    made = storages_of(node.meta.get("val"), node.name)
    return bool(made) and set(made) <= set(storages_of(given[0].meta["val"], given[0].name))


def _argument(node: fx.Node, name: str) -> Any:
    """An argument by its name; None if the op has none of that name."""
    for place, argument in enumerate(node.target._schema.arguments):
        if argument.name == name:
            return node.args[place] if place < len(node.args) else node.kwargs.get(name, argument.default_value)
    return None


def attribute(owner: Any, path: str) -> Any:
    """What a module has at a dotted path; None if nothing."""
    for name in path.split("."):
        owner = getattr(owner, name, None)
    return owner


def _is_arithmetic(target: Any) -> bool:
    """Python's own operators and functions on sizes, which change nothing."""
    place = getattr(target, "__module__", "") or ""
    return place in ("_operator", "builtins", "math") or place.startswith(("torch.fx", "torch.utils._sympy", "torch"))
