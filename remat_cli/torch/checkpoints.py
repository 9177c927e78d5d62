"""Obeys `torch.utils.checkpoint`: blocks that the backward pass computes again, values to be saved.

Invariant: only tags that torch itself sets are read; an op that must run once, for any other reason, never runs twice.
"""

from __future__ import annotations

import copy

from torch import fx
from torch.utils.checkpoint import CheckpointPolicy

from remat_cli.torch.joint import Joint
from remat_cli.torch.private import cleanup_recompute_tags, must_recompute

KEEP, LIFT = "keep", "lift"  # the tags are obeyed, or the plan decides


def obey(joint: Joint) -> None:
    """Note which ops the backward pass must compute again, and which must not be."""
    tags = _cleaned(joint.module)
    once = {*joint.effects, *joint.accesses, *joint.pinned}
    for op in joint.ops:
        if op in joint.backward or op in once:
            continue
        if must_recompute(tags[op]):
            joint.again.add(op)
        elif tags[op].meta.get("recompute") == CheckpointPolicy.MUST_SAVE:
            joint.pinned.add(op)


def asked(joint: Joint) -> bool:
    """Whether any block is under a checkpoint."""
    return any("recompute" in op.meta for op in joint.ops)


def _cleaned(module: fx.GraphModule) -> dict[fx.Node, fx.Node]:
    """The nodes with their tags, but that what one block hands to the next is saved, as torch has it."""
    copies: dict[fx.Node, fx.Node] = {}
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, copies))
    for old, new in copies.items():
        new.meta = copy.copy(old.meta)
    cleanup_recompute_tags(fx.GraphModule(module, graph), is_default_partition=False)
    return copies
