"""Regions that are compiled once for many calls (`torch.compiler.nested_compile_region`), written out.

As calls of subgraphs they would be split one by one, without regard to what the whole step holds.

Invariant: the graph computes the same, by the same ops in the same order.
"""

from __future__ import annotations

import operator

import torch
from torch import fx

from remat_cli.torch.reading import attribute


def write_out(module: fx.GraphModule) -> None:
    """Put the ops of each region in the place of its calls."""
    found = module.graph.find_nodes(op="call_function", target=torch.ops.higher_order.invoke_subgraph)
    calls = [call for call in found if all(user.target is operator.getitem for user in call.users)]
    for call in calls:
        name = str(call.args[0].target)
        body = attribute(module, name)
        write_out(body)
        results = _insert(module, name, body, call)
        for user in list(call.users):
            user.replace_all_uses_with(results[user.args[1]])
            module.graph.erase_node(user)
        module.graph.erase_node(call)
    if calls:
        module.graph.lint()
        module.recompile()


def _insert(module: fx.GraphModule, name: str, body: fx.GraphModule, call: fx.Node) -> list[fx.Node]:
    """Copies of the body's ops before its call, and what they return."""
    now = dict(zip(body.graph.find_nodes(op="placeholder"), call.args[2:], strict=True))
    with module.graph.inserting_before(call):
        for node in body.graph.nodes:
            if node.op == "output":
                return list(fx.node.map_arg(node.args[0], now.__getitem__))
            if node.op == "get_attr":
                place = f"{name}_{node.target}".replace(".", "_")
                setattr(module, place, attribute(body, str(node.target)))
                now[node] = module.graph.get_attr(place)
                now[node].meta = dict(node.meta)
            elif node.op != "placeholder":
                now[node] = module.graph.node_copy(node, now.__getitem__)
    raise AssertionError("a graph has an output")
