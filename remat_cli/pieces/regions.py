"""Regions: ops that are cut together, a piece of one being what the next one reads.

Invariant: a value that ops of a region make is cut along one axis by all of them that read it in pieces; what is local
(`ways.AlongAxis`) is read in the region alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from remat_cli.model.graph import Graph, Op
from remat_cli.pieces.table import Table
from remat_cli.pieces.ways import AlongAxis, Way

NEAR_OPS = 12  # ops between two that are cut, which are cut as well lest the one wait for all pieces of the other


@dataclass(frozen=True, slots=True)
class Region:
    """`ways`: of each op that is cut, by name. `pieces`: into how many, or as many as the shortest axis has places."""

    pieces: int
    ways: Mapping[str, Way]

    def __bool__(self) -> bool:
        return bool(self.ways)


class Links:
    """Who makes and who reads each value of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.ops = {op.name: op for op in graph.ops}
        self.writer = {name: op for op in graph.ops for name in op.writes}
        self.readers: dict[str, list[Op]] = {}
        for op in graph.ops:
            for name in op.reads:
                self.readers.setdefault(name, []).append(op)

    def touching(self, value: str) -> Iterable[Op]:
        if value in self.writer:
            yield self.writer[value]
        yield from self.readers.get(value, ())


def grown(table: Table, links: Links, seeds: Mapping[str, int], wide: int, pieces: int) -> Region:
    """The region around values cut along an axis: the ops that touch a value of more than `wide` bytes that need never
    be whole, and those between them."""
    ways, along = _reached(table, links, seeds)
    inner = {value for value in along if links.graph.values[value].bytes > wide and _stays(links, ways, value)}
    cores = {name for name in ways if not inner.isdisjoint((*links.ops[name].reads, *links.ops[name].writes))}
    chosen = cores | {name for name in _between(links, ways, cores) if not ways[name].total}
    return Region(pieces, settled(links, {op.name: ways[op.name] for op in table.graph.ops if op.name in chosen}))


def _stays(links: Links, ways: Mapping[str, Way], value: str) -> bool:
    """Whether a value is made and read in pieces alone."""
    read = all(_takes(ways, reader, value) for reader in links.readers.get(value, ()))
    return read and value not in links.graph.outputs and _makes(links, ways, value)


def _reached(table: Table, links: Links, seeds: Mapping[str, int]) -> tuple[dict[str, Way], dict[str, AlongAxis]]:
    """All ops to which the cut can be carried from op to op, and the axes of the values between them."""
    along = {value: AlongAxis(axis) for value, axis in seeds.items()}
    ways: dict[str, Way] = {}
    waiting = deque(op for value in seeds for op in links.touching(value))
    late: deque[Op] = deque()  # whose ways do not go with what is known: some may read of it whole
    while waiting or late:
        whole = not waiting
        op = late.popleft() if whole else waiting.popleft()
        if op.name in ways:
            continue
        for way in table.ways(op):
            way = _carrying(op, way, along)
            if (new := _agreed(links, op, way, along, whole)) is not None:
                ways[op.name] = way
                along.update(new)
                waiting.extend(other for value in new for other in links.touching(value))
                break
        else:
            late.extend([] if whole else [op])
    return ways, along


def _agreed(links: Links, op: Op, way: Way, along: Mapping[str, AlongAxis], whole: bool) -> dict[str, AlongAxis] | None:
    """The axes of further values, if the way goes with those known, of which it must meet one. `whole`: what is cut may
    be read whole, as keys are that come in pieces where queries are cut."""
    new: dict[str, AlongAxis] = {}
    met = False
    for name, cut in (*zip(op.inputs, way.inputs), *zip(op.outputs, way.outputs)):
        if not name or name not in links.writer:
            continue
        known = along.get(name, new.get(name))
        if known is None:
            if cut is not None:
                new[name] = cut
        elif known != cut:
            if not whole or cut is not None or known.local or name in op.outputs:
                return None
        else:
            met = True
    return new if met else None


def _carrying(op: Op, way: Way, along: Mapping[str, AlongAxis]) -> Way:
    """The way with local indices on both sides, if they are so on one and it only moves them."""
    if not way.carries or not any(name in along and along[name].local for name in (op.inputs[0], op.outputs[0])):
        return way
    return localized(way)


def localized(way: Way) -> Way:
    inputs, outputs = (tuple(cut and replace(cut, local=True) for cut in cuts) for cuts in (way.inputs, way.outputs))
    return replace(way, inputs=inputs, outputs=outputs)


def _between(links: Links, ways: Mapping[str, Way], cores: set[str]) -> set[str]:
    """Ops that can be cut on short paths from one of the cores to another."""
    after = _distances(links, ways, cores, lambda op: [r for v in op.writes for r in links.readers.get(v, ())])
    before = _distances(links, ways, cores, lambda op: [links.writer[v] for v in op.reads if v in links.writer])
    return {name for name in after if name in before and after[name] + before[name] <= NEAR_OPS + 1}


def _distances(
    links: Links, ways: Mapping[str, Way], cores: set[str], following: Callable[[Op], list[Op]]
) -> dict[str, int]:
    """How many steps each op that can be cut is from the nearest of the cores, if near."""
    found = dict.fromkeys(cores, 0)
    waiting = deque(sorted(cores))
    while waiting:
        name = waiting.popleft()
        for op in following(links.ops[name]) if found[name] < NEAR_OPS else ():
            if op.name in ways and op.name not in found:
                found[op.name] = found[name] + 1
                waiting.append(op.name)
    return {name: far for name, far in found.items() if far}


def settled(links: Links, ways: Mapping[str, Way]) -> dict[str, Way]:
    """What is left of the ways once local values are made and read in pieces alone."""
    kept = dict(ways)
    while wrong := [name for name in kept if not _keeps_local(links, kept, name)]:
        for name in wrong:
            del kept[name]
    return kept


def _keeps_local(links: Links, ways: Mapping[str, Way], name: str) -> bool:
    op, way = links.ops[name], ways[name]
    for value, cut in zip(op.inputs, way.inputs):
        if cut is not None and cut.local and not _makes(links, ways, value):
            return False
    for value, cut in zip(op.outputs, way.outputs):
        if (
            cut is not None
            and cut.local
            and (
                value in links.graph.outputs
                or any(not _takes(ways, reader, value) for reader in links.readers.get(value, ()))
            )
        ):
            return False
    return True


def _makes(links: Links, ways: Mapping[str, Way], value: str) -> bool:
    return value in links.writer and links.writer[value].name in ways


def _takes(ways: Mapping[str, Way], op: Op, value: str) -> bool:
    """Whether the op reads the value in pieces, wherever it does."""
    return op.name in ways and all(
        cut is not None for name, cut in zip(op.inputs, ways[op.name].inputs) if name == value
    )
