"""Joint graphs of PyTorch's, with its partitioner's answers, as files that joint.py reads.

Usage: python examples/bench/joint_torch.py FOLDER [MODEL ...]     (needs torch and networkx; made with torch 2.13)
"""

from __future__ import annotations

import copy
import json
import sys
import time
from pathlib import Path
from typing import Any

import networkx
import torch
from torch import fx, nn
from torch._functorch import partitioners
from torch._functorch.aot_autograd import aot_module
from torch._functorch.partitioners import MinCutOptions
from torch._inductor.decomposition import select_decomp_table

OPTIONS = {  # far apart, long chains, materialized backward, not listed, reductions
    "default": (True, True, True, True, True),
    "aggressive": (False, False, False, False, True),
    "more_aggressive": (False, False, False, True, True),
    "no_far": (False, True, True, True, True),
    "no_long": (True, False, True, True, True),
    "no_matbw": (True, True, False, True, True),
    "no_reduction": (True, True, True, True, False),
}


class Block(nn.Module):
    """A transformer's block, attention written out."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        weights = self.drop(torch.softmax(scores.masked_fill(~mask, float("-inf")), -1))
        x = x + self.drop(self.out((weights @ v).transpose(1, 2).reshape(batch, length, width)))
        return x + self.drop(self.down(nn.functional.gelu(self.up(self.norm2(x)), approximate="tanh")))


class Residual(nn.Module):
    """Two convolutions with BatchNorm, and what went in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm1(self.conv1(x)))
        return nn.functional.silu(self.norm2(self.conv2(y)) + x)


class Dense(nn.Module):
    """Concatenations, as in DenseNet, and pooling."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(width * (i + 1), width, 3, padding=1) for i in range(count))
        self.norms = nn.ModuleList(nn.BatchNorm2d(width * (i + 1)) for i in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = torch.cat([x, conv(torch.sigmoid(norm(x)))], 1)
        return nn.functional.max_pool2d(x, 2)


def models() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    text, picture = torch.randn(2, 64, 64), torch.randn(2, 8, 16, 16)
    return {
        "dropout_1l": (nn.Sequential(*(Block(64, 4, 0.1) for _ in range(1))), text),
        "dropout_4l": (nn.Sequential(*(Block(64, 4, 0.1) for _ in range(4))), text),
        "plain_12l": (nn.Sequential(*(Block(64, 4, 0.0) for _ in range(12))), text),
        "plain_24l": (nn.Sequential(*(Block(64, 4, 0.0) for _ in range(24))), text),
        "residual_6": (nn.Sequential(*(Residual(8) for _ in range(6))), picture),
        "dense_4": (Dense(8, 4), picture),
    }


def joint_graph(model: nn.Module, given: torch.Tensor) -> tuple[fx.GraphModule, int, list[int]]:
    """The graph that the partitioner is given: its forward outputs come first."""
    caught: list[tuple[fx.GraphModule, int, list[int]]] = []

    def catch(joint: fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **known: Any) -> Any:
        fixed = known.get("static_lifetime_input_indices") or []
        caught.append((copy.deepcopy(joint), num_fwd_outputs, list(fixed)))
        return partitioners.default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)

    def same(graph: fx.GraphModule, _: Any) -> fx.GraphModule:
        return graph

    compiled = aot_module(
        model, fw_compiler=same, bw_compiler=same, partition_fn=catch, decompositions=select_decomp_table()
    )
    compiled(given).sum().backward()
    return caught[0]


def described(joint: fx.GraphModule, split: int, fixed: list[int]) -> dict[str, Any]:
    """The file's content, PyTorch's answers included."""
    joint.graph.eliminate_dead_code()
    joint.graph = partitioners.fx_graph_cse(joint.graph)
    info = partitioners.classify_nodes(joint, fixed, split)
    for node in reversed(joint.graph.nodes):
        node.dist_from_bw = 10**9 if node.op == "output" or info.is_required_fw(node) else 0
        if node.op != "output" and info.is_required_fw(node):
            node.dist_from_bw = min([10**9, *(user.dist_from_bw + 1 for user in node.users)])
    ops = partitioners.get_default_op_list()
    outputs = next(node for node in joint.graph.nodes if node.op == "output").args[0]
    return {
        "torch": torch.__version__,
        "num_fwd_outputs": split,
        "outputs": [None if output is None else output.name for output in outputs],
        "nodes": [_node(node, ops, info) for node in joint.graph.nodes],
        "answers": {name: _answer(joint, info, MinCutOptions(*flags)) for name, flags in OPTIONS.items()},
    }


def _node(node: fx.Node, ops: Any, info: Any) -> dict[str, Any]:
    name = str(node.target) if node.op == "call_function" else node.op
    tensor = isinstance(node.meta.get("val"), torch.Tensor)
    return {
        "name": node.name,
        "op": "getitem" if "getitem" in name else name,
        "bytes": partitioners._size_of(node) if "val" in node.meta else 0,
        "deps": [source.name for source in node.all_input_nodes],
        "posdeps": [source.name for source in node.args if isinstance(source, fx.Node)],
        "is_primal": partitioners._is_primal(node),
        "is_tangent": partitioners._is_tangent(node),
        "is_seed": partitioners._is_fwd_seed_offset(node),
        "is_tensor": tensor,
        "fusible": ops.is_fusible(node),
        "recomputable": ops.is_recomputable(node),
        "view": ops.is_view(node),
        "random": ops.is_random(node),
        "compute_intensive": ops.is_compute_intensive(node),
        "static_lifetime": node in info.static_lifetime_input_nodes,
    }


def _answer(joint: fx.GraphModule, info: Any, options: MinCutOptions) -> dict[str, Any]:
    values: list[float] = []
    cut = networkx.minimum_cut

    def listen(*given: Any, **named: Any) -> Any:
        found = cut(*given, **named)
        values.append(found[0])
        return found

    networkx.minimum_cut = listen
    began = time.perf_counter()
    try:
        saved, banned = partitioners.solve_min_cut(joint.graph, info, options)
    finally:
        networkx.minimum_cut = cut
    return {
        "cut_value": values[0],
        "saved": [node.name for node in saved],
        "banned": [node.name for node in banned],
        "cpu_s": round(time.perf_counter() - began, 4),
    }


if __name__ == "__main__":
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    for name, (model, given) in models().items():
        if not wanted or name in wanted:
            content = described(*joint_graph(model, given))
            (folder / f"{name}.json").write_text(json.dumps(content))
            print(name, len(content["nodes"]), content["answers"]["default"]["cpu_s"])
