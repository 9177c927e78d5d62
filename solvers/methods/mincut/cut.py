"""The minimum cut of a joint graph: what to save between forward and backward (Algorithms 1 and 2).

Each vertex is split in two, joined by an arc that costs what saving it costs. Invariant: integers throughout.
"""

from __future__ import annotations

from dataclasses import dataclass

from solvers.methods.mincut.flow import INFINITE, minimum_cut
from solvers.methods.mincut.joint import Bans, JointGraph, banned, weight


@dataclass(frozen=True, slots=True)
class Saving:
    """The value of the cut and the vertices it saves."""

    value: int
    saved: tuple[int, ...]


def cut(joint: JointGraph, options: Bans) -> Saving:
    """Save the cheapest set of values from which the backward pass can rebuild all it needs."""
    arcs: list[tuple[int, int, int]] = []
    source, sink = 2 * len(joint.vertices), 2 * len(joint.vertices) + 1
    for index in sorted(banned(joint, options)):
        arcs.append((source, 2 * index, INFINITE))
    for index in range(len(joint.vertices)):
        if joint.closure[index]:
            arcs.append((2 * index, sink, INFINITE))
            continue
        if joint.backward[index]:
            arcs.append((2 * index + 1, sink, INFINITE))
        price = weight(joint, index)
        arcs.append((2 * index, 2 * index + 1, INFINITE if price is None else price))
        arcs += [(2 * index + 1, 2 * user, INFINITE) for user in joint.users[index]]
    found = minimum_cut(sink + 1, arcs, source, sink)
    near = found.near.tolist()
    saved = tuple(i for i in range(len(joint.vertices)) if near[2 * i] and not near[2 * i + 1])
    return Saving(found.value, saved)
