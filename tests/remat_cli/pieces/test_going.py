"""The order of ops in pieces: walks along it reach less than walks along the whole ops do."""

from __future__ import annotations

import onnx
import pytest

import remat_cli as remat
from remat_cli.ingest import ingest_content
from remat_cli.model.graph import Graph, Op
from remat_cli.model.problem_of import problem_of
from remat_cli.pieces.blocks import list_blocks
from remat_cli.pieces.cutting import Cutting
from remat_cli.pieces.finding import narrowed
from remat_cli.pieces.regions import Links
from remat_cli.zoo.build import build
from solvers.clock import limited
from solvers.methods.exact.low_walks import lowest
from solvers.problem import Limits
from solvers.reductions.views import reduced

MODELS = {
    "gpt2": {"layers": 3, "hidden": 32, "heads": 4, "seq": 64, "batch": 8, "vocabulary": 31},
    "unet": {"batch": 4, "image": 32, "width": 4},
}


@pytest.fixture(scope="module", params=MODELS)
def graph(request: pytest.FixtureRequest) -> Graph:
    model: onnx.ModelProto = remat.grad(build(request.param, **MODELS[request.param]))
    return ingest_content(model.SerializeToString())


def widest(graph: Graph) -> int:
    return max(graph.values[name].bytes for op in graph.ops for name in op.writes)


def reached(graph: Graph) -> int:
    """The least peak of walks along the graph's order."""
    problem = problem_of(graph, {op.name: (1, 0) for op in graph.ops}).problem
    found = lowest(reduced(problem).problem, Limits(limited(moves=100_000))).leanest
    assert found is not None
    return found.peak


def test_walks_reach_less_in_pieces(graph: Graph) -> None:
    assert reached(narrowed(graph, widest(graph) // 4).made.graph) < 0.9 * reached(graph)


def test_no_op_of_a_block_reads_whole_what_is_made_in_pieces_there(graph: Graph) -> None:
    found = narrowed(graph, widest(graph) // 4)
    cutting = Cutting(Links(graph), found.regions[0])
    blocks = list(list_blocks(cutting, graph.ops))
    assert [op.name for block in blocks for op in block] == [op.name for op in graph.ops]
    assert len(blocks) > 1
    for block in blocks:
        made = {name for op in block if op.name in cutting.ways for name in op.outputs}
        assert not [op.name for op in block if made.intersection(whole_reads(cutting, op))]


def whole_reads(cutting: Cutting, op: Op) -> set[str]:
    """What an op reads, but for what it reads in pieces that another makes."""
    cuts = cutting.ways[op.name].inputs if op.name in cutting.ways else ()
    in_pieces = {name for name, cut in zip(op.inputs, cuts, strict=False) if cut and name in cutting.along}
    return set(op.reads) - in_pieces
