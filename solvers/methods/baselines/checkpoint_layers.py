"""`checkpoint-layers`: a checkpoint after each layer, which is computed again as a whole when the backward pass reaches
it: what frameworks' own switches do for transformers, block by block.

A layer ends at the last op, before the next compute-bound one, by which alone the forward graph hangs together. Where
nothing says which ops are compute-bound, each such op ends a layer.
"""

from __future__ import annotations

from solvers.methods.baselines.forward import articulation_points, forward_nodes
from solvers.methods.baselines.segments import order_of
from solvers.methods.baselines.sweep import only
from solvers.problem import Kind, Limits, Problem, Result

HEAVY = (Kind.COMPUTE, Kind.EPILOGUE)


def solve(problem: Problem, budget: int, limits: Limits) -> Result:
    return only(problem, budget, limits, order_of(problem, layer_ends(problem), crossing=True))


def layer_ends(problem: Problem) -> set[int]:
    points = articulation_points(problem)
    heavy = {index for index in forward_nodes(problem) if problem.nodes[index].kind in HEAVY}
    if not heavy:
        return set(points)
    ends: set[int] = set()
    last, begun = -1, False  # the last point since the layer's own compute-bound op
    hanging = set(points)
    for index in forward_nodes(problem):
        if index in heavy and begun and last >= 0:
            ends.add(last)
            last = -1
        begun = begun or index in heavy
        if begun and index in hanging:
            last = index
    return ends
