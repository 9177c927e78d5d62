"""What is surely in memory while a node runs for the first time: values that cannot be made again.

A node that runs once makes its values once. If it must run before another node, and something that needs that other
node reads such a value, or the value is an output, then the value lies in memory all the while.

Invariant: the bound holds for every order, repeats and any order of first computes included.
"""

from __future__ import annotations

from solvers.orders.blocks import Blocks
from solvers.orders.bounds import Held, needs
from solvers.problem import Problem


def kept_bound(problem: Problem) -> int:
    """The memory of the node that needs most, with what cannot be made again and is needed later."""
    blocks, kept = Blocks(problem), kept_values(problem)
    pairs = zip(problem.nodes, kept, strict=True)
    return max(needs(blocks, node, Held(stay.union(node.reads)), Held(stay)) for node, stay in pairs)


def kept_values(problem: Problem) -> list[frozenset[int]]:
    """For each node the values that are made before its first run, stay during it, and are not made again."""
    lasting = [value for node in problem.nodes if node.once for value in node.writes if problem.sizes[value]]
    place = {value: 1 << index for index, value in enumerate(lasting)}
    writer = {value: index for index, node in enumerate(problem.nodes) for value in node.writes}
    before = [0] * len(problem.nodes)  # the lasting values that are made before each node, as bits
    for index, node in enumerate(problem.nodes):
        for read in node.reads:
            if read in writer:
                before[index] |= before[writer[read]] | place.get(read, 0)
    outputs = sum(place.get(value, 0) for value in set(problem.outputs))
    after = [0] * len(problem.nodes)  # those that are read by what needs each node
    for index in range(len(problem.nodes) - 1, -1, -1):
        node = problem.nodes[index]
        read = sum(place.get(value, 0) for value in set(node.reads))
        for value in node.reads:
            if value in writer:
                after[writer[value]] |= after[index] | read
    return [
        frozenset(lasting[bit] for bit in _bits(made & (later | outputs)))
        for made, later in zip(before, after, strict=True)
    ]


def _bits(number: int) -> list[int]:
    found = []
    while number:
        low = number & -number
        found.append(low.bit_length() - 1)
        number ^= low
    return found
