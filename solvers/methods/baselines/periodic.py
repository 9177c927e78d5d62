"""`periodic`: s segments of equally many stages, as PyTorch's `torch.utils.checkpoint.checkpoint_sequential` makes them
of a Sequential's; s is swept.

A stage ends with an op by which alone the forward graph hangs together; on a plain chain each op is one.

Each segment but the last keeps what the ops after it read, and is computed again as a whole when the backward pass
reaches it. Costs and sizes are not looked at.
"""

from __future__ import annotations

from solvers.methods.baselines.forward import articulation_points
from solvers.methods.baselines.options import SEGMENTS, SegmentCount
from solvers.methods.baselines.segments import order_of
from solvers.methods.baselines.sweep import over_knob
from solvers.problem import Limits, Problem, Result


def solve(problem: Problem, budget: int, limits: Limits, options: SegmentCount = SEGMENTS) -> Result:
    """`segments`: a fixed s."""
    segments = options.segments
    nodes = articulation_points(problem)
    knobs = list(range(1, max(1, len(nodes)) + 1)) if segments is None else [min(segments, max(1, len(nodes)))]
    return over_knob(
        problem, budget, limits, knobs, lambda count: order_of(problem, segment_ends(nodes, count), crossing=True)
    )


def segment_ends(nodes: list[int], count: int) -> set[int]:
    """The last op of each segment except the last segment, which takes the remaining stages."""
    size = len(nodes) // count
    return {nodes[part * size - 1] for part in range(1, count)}
