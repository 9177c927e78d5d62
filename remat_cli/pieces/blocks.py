"""Blocks: stretches of a graph's ops through which the pieces of a region go one after the other.

A block ends where nothing wide is held that is cut, so that what is wide is never whole, and what is narrow is held as
the order holds it. Ops of a block that share no piece are parts of it, each with pieces of its own.

Invariant: no op of a block reads whole what is made in pieces within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from remat_cli.model.graph import Op
from remat_cli.pieces.cutting import Cutting


def list_blocks(cutting: Cutting, order: Sequence[Op]) -> Iterator[list[Op]]:
    """The order's blocks, one after the other."""
    block: list[Op] = []
    made: set[str] = set()  # within the block, in pieces
    for op, held in zip(order, _holding(cutting, order), strict=True):
        if _waits(cutting, op, made):
            yield block
            block, made = [], set()
        block.append(op)
        if op.name in cutting.ways:
            made.update(op.writes)
        if not held:
            yield block
            block, made = [], set()
    yield block


def list_parts(cutting: Cutting, block: Sequence[Op]) -> list[list[Op]]:
    """The block's ops by part, in the order of their first ones; what is whole stays beside what it stands after."""
    root: dict[str, str] = {}  # of ops that are cut: another of the same part, or itself
    maker: dict[str, str] = {}

    def find(name: str) -> str:
        while root[name] != name:
            root[name] = name = root[root[name]]
        return name

    for op in block:
        if op.name in cutting.ways:
            root.setdefault(op.name, op.name)
            for one in [find(maker[name]) for name in op.reads if name in maker]:
                root[find(op.name)] = find(one)
            maker |= dict.fromkeys(op.writes, op.name)
    found: dict[str, list[Op]] = {}
    here = next((find(op.name) for op in block if op.name in root), "")
    for op in block:
        here = find(op.name) if op.name in root else here
        found.setdefault(here, []).append(op)
    return list(found.values())


def _holding(cutting: Cutting, order: Sequence[Op]) -> Iterable[bool]:
    """After each step, whether something is held for later that is cut, and wider than a piece of what is widest."""
    sizes = {name: cutting.links.graph.values[name].bytes for name in cutting.along}
    piece = max(sizes.values(), default=0) // cutting.pieces
    wide = {name for name, size in sizes.items() if size > piece}
    wanted: set[str] = set()
    found = []
    for op in reversed(order):
        found.append(bool(wanted))
        wanted.difference_update(op.writes)
        wanted.update(wide.intersection(op.reads))
    return reversed(found)


def _waits(cutting: Cutting, op: Op, made: set[str]) -> bool:
    """Whether the op reads whole what was made in pieces."""
    if made.isdisjoint(op.reads):
        return False
    way = cutting.ways.get(op.name)
    cuts = way.inputs if way else ()
    return any(
        name in made and (place >= len(cuts) or cuts[place] is None or name not in cutting.along)
        for place, name in enumerate((*op.inputs, *op.captures))
    )
