"""A model of what Inductor never writes to memory: pointwise ops that it computes inside the kernels that read them.

Inductor itself is not asked. Written are the operands and results of matrix products, convolutions and gathers,
reductions, outputs, and values made of several large ones for several readers. All else is computed again inside each
reader.

Invariant: an op that is not written becomes a view of what it reads; nothing else of the joint graph changes.
"""

from __future__ import annotations

import operator

import torch
from torch import fx

from profiles.roofline import device
from remat_cli.torch.estimates import arithmetic_ns
from remat_cli.torch.joint import Joint
from remat_cli.torch.kinds import is_pointwise
from remat_cli.torch.lowering import Price, Pricing
from remat_cli.torch.private import inductor_config

_aten, _prims = torch.ops.aten, torch.ops.prims
READ_INSIDE = {
    _aten.sum, _aten.mean, _aten.amax, _aten.amin, _aten.var_mean, _aten.var, _aten.max, _aten.min, _aten.prod,
    _aten.any, _aten.argmax, _aten.gather, _prims.inductor_random,
}  # fmt: skip
ALSO_INSIDE = {_prims.inductor_random, _prims.inductor_lookup_seed, _aten.slice_scatter, _aten.select_scatter}
LARGE_BYTES = 16384  # bytes
MANY_READS = 4  # large values that one kernel reads at most


def fuse(joint: Joint) -> None:
    """Turn ops whose results are not written into views."""
    outputs = {node for node in (*joint.forward_outputs, *joint.backward_outputs) if isinstance(node, fx.Node)}
    pinned = {*joint.effects, *joint.accesses, *joint.pinned, *outputs}
    for node in joint.module.graph.nodes:
        if node.op != "call_function":
            continue
        if node in joint.ops and node not in pinned and _is_inside(joint, node):
            del joint.ops[node]
            joint.views.add(node)
            joint.inside.add(node)
        if node in joint.views:
            seen = (buffer for argument in node.all_input_nodes for buffer in joint.buffers[argument])
            joint.buffers[node] = tuple(dict.fromkeys(seen))


def fused_prices(joint: Joint, name: str = "cpu") -> Pricing:
    """Arithmetic, or the traffic of what is really read and written, on one of the devices of `profiles/devices`."""
    sheet = device(name)

    def price(op: fx.Node) -> Price:
        touched = {buffer for node in (op, *op.all_input_nodes) for buffer in joint.buffers[node]}
        traffic = 1e9 * sum(buffer.bytes for buffer in touched) / sheet.memory_bandwidth
        return Price(round(max(arithmetic_ns(op, sheet), traffic)) + sheet.launch_ns)

    return price


def copies_of_weights(joint: Joint) -> str:
    """What is said where a plan's code is over the budget, if Inductor copies the weights of convolutions."""
    convolves = any(op.target is _aten.convolution.default for op in joint.ops)
    if not convolves or not inductor_config.layout_optimization:
        return ""
    return (
        "; Inductor may hold a second copy of each convolution's weight, in a layout of its own:"
        " torch._inductor.config.layout_optimization = False does without"
    )


def _is_inside(joint: Joint, op: fx.Node) -> bool:
    if not _can_be_inside(op):
        return False
    users = _readers(joint, op)
    if any(user.op == "output" for user in users):
        return False
    if not all(is_kernel(user) for user in users):
        return False
    read = {buffer for argument in op.all_input_nodes for buffer in joint.buffers[argument]}
    large = [buffer for buffer in read if buffer.bytes >= LARGE_BYTES]
    return len(large) <= MANY_READS and not (len(large) >= 2 and len(users) >= 2)


def is_kernel(op: fx.Node) -> bool:
    """Whether Inductor makes a kernel of the op, together with others that are beside it."""
    return _can_be_inside(op) or getattr(op.target, "overloadpacket", None) in READ_INSIDE


def _can_be_inside(op: fx.Node) -> bool:
    if op.target is _aten.scatter.value:  # Inductor turns a scatter into a constant into a comparison
        return isinstance(op.args[0], fx.Node) and op.args[0].target is _aten.full.default
    packet = getattr(op.target, "overloadpacket", None)
    return is_pointwise(op) or packet in ALSO_INSIDE


def _readers(joint: Joint, node: fx.Node) -> list[fx.Node]:
    """The readers of the result, directly or through views."""
    found: list[fx.Node] = []
    for user in node.users:
        if user in joint.views or user.target is operator.getitem:
            found += _readers(joint, user)
        else:
            found.append(user)
    return found
