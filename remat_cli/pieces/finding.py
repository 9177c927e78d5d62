"""Which ops to cut, and into how many pieces: so that no value is wider than so many bytes, as far as the table allows.

Invariant: the widest value that is left comes first; a region is taken only if more becomes narrow than is joined
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from remat_cli.model.graph import Graph
from remat_cli.pieces.cutting import Cutting
from remat_cli.pieces.graph_in_pieces import InPieces, cut
from remat_cli.pieces.regions import Links, Region, grown
from remat_cli.pieces.table import ANY, Allowed, Table

OVER_TIMES = 1.3  # times as wide as asked: what a piece may be for the sake of its borders
TIGHTER = (0.75, 0.5)
CUTTING_ROUNDS = 48  # regions that are cut one after the other: a deep encoder has one in each layer
MOST_PIECES = 6_000  # ops that are pieces, all together: with more, a graph takes minutes to write and longer to plan

Wanted = Callable[[InPieces], Iterable[str]]  # the values to be cut, those first that matter most
Tried = Callable[[Graph, Region], bool]  # whether a region may be cut; if not, the table allows less from then on


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be cut: the ways of the table that are allowed, in regions that pass what is `tried` with them."""

    allowed: Allowed = ANY
    tried: Tried = lambda graph, region: True


FREE = Rules()


@dataclass(frozen=True, slots=True)
class Found:
    """`regions`, each of the graph that those before it have made, and the graph with all of them cut.

    `exact`: whether all ways are of those whose pieces give the same bits.
    """

    regions: tuple[Region, ...]
    made: InPieces = field(repr=False)
    exact: bool = True

    def wider(self, most: int) -> list[str]:
        """Values that ops make of more than so many bytes, the widest first."""
        return wider(self.made.graph, most)


def narrowed_to(graph: Graph, most: int, rules: Rules = FREE) -> Found:
    """The graph with no value of more than `most` bytes, if that can be: borders of windows make pieces wider, so that
    more is asked for than that."""
    found = narrowed(graph, most, rules)
    for share in TIGHTER:
        crowded = len(found.made.origin) > share * MOST_PIECES
        if crowded or not _are_pieces(found.made, found.wider(most)):
            break
        found = narrowed(graph, int(most * share), rules)
    return found


def narrowed(graph: Graph, wide: int, rules: Rules = FREE) -> Found:
    """The graph with its values of more than `wide` bytes in pieces of about as much, where they can be."""
    return cut_down(untouched(graph), lambda made: _too_wide(made, wide), wide, rules)


def untouched(graph: Graph) -> Found:
    return Found((), InPieces(graph, {}))


def cut_down(start: Found, wanted: Wanted, wide: int, rules: Rules = FREE) -> Found:
    """The graph with what is `wanted` in pieces of about `wide` bytes, until nothing is that can be cut."""
    made, regions = start.made, list(start.regions)
    given_up: set[str] = set()
    for _ in range(CUTTING_ROUNDS):
        region = _next(made, list(wanted(made)), wide, rules, given_up)
        if region is None:
            break
        regions.append(region)
        made = cut(made, region)
    return Found(tuple(regions), made, start.exact and rules.allowed.exact)


def with_one(start: Found, value: str, axis: int | None, pieces: int) -> Found | None:
    """The graph with the ops around a value in so many pieces, along an axis if it is named; None if that cannot be."""
    made, graph = start.made, start.made.graph
    if value not in {name for op in graph.ops for name in op.writes}:
        return None
    wide = -(-graph.values[value].bytes // pieces)
    found = _regions(made, Table(graph), Links(graph), value, wide)
    fitting = [(gain, region) for along, gain, region in found if region and (axis is None or along == axis)]
    if not fitting:
        return None
    region = max(fitting, key=lambda pair: pair[0])[1]
    return Found((*start.regions, region), cut(made, region), exact=False)


def wider(graph: Graph, wide: int) -> list[str]:
    """Values that ops make of more than so many bytes, the widest first."""
    names = [name for op in graph.ops for name in op.writes if graph.values[name].bytes > wide]
    return sorted(names, key=lambda name: -graph.values[name].bytes)


def _are_pieces(made: InPieces, values: Iterable[str]) -> bool:
    """Whether any of the values is a piece, and might be made narrower."""
    origin = {name for op in made.graph.ops if op.name in made.origin for name in op.writes}
    return not origin.isdisjoint(values)


def least_pieces(graph: Graph, most: int) -> int:
    """How many pieces there are at least where no value is of more than `most` bytes."""
    return sum(-(-graph.values[name].bytes // most) for name in wider(graph, most))


def _too_wide(made: InPieces, wide: int) -> Iterator[str]:
    """What is to be cut, the widest first; pieces may have what windows reach over their ends besides."""
    values = made.graph.values
    origins = {name: made.origin.get(op.name) for op in made.graph.ops for name in op.writes}
    for name in wider(made.graph, wide):
        if values[name].bytes > wide * OVER_TIMES or not origins[name]:
            yield name


def _next(made: InPieces, values: Sequence[str], wide: int, rules: Rules, given_up: set[str]) -> Region | None:
    """The region around the first value for which there is one. Those without are not looked at again."""
    table, links = Table(made.graph, rules.allowed), Links(made.graph)
    for value in values:
        while value not in given_up:
            regions = _regions(made, table, links, value, wide)
            _, gain, region = max(regions, key=lambda one: one[1], default=(0, 0, None))
            left = 0 if region is None else len(made.origin.keys() - region.ways.keys())
            if region is None or gain <= 0 or left + region.pieces * len(region.ways) > MOST_PIECES:
                given_up.update(_alike(made, links, value))
            elif rules.tried(made.graph, region):
                return region
            else:
                table = Table(made.graph, rules.allowed)
    return None


def _regions(made: InPieces, table: Table, links: Links, value: str, wide: int) -> Iterator[tuple[int, int, Region]]:
    """A region along each of the value's axes, with that axis, and how many bytes it makes narrow that were wide."""
    values = made.graph.values
    pieces = -(-values[value].bytes // wide)
    for axis, size in enumerate(values[value].shape):
        if size > 1:
            seeds = dict.fromkeys(_alike(made, links, value), axis)
            region = grown(table, links, seeds, wide, pieces)
            cutting = Cutting(links, region)
            yield axis, _gain(cutting, wide) if region else 0, replace(region, pieces=cutting.pieces)


def _alike(made: InPieces, links: Links, value: str) -> list[str]:
    """The value and others of its size that are pieces of the same one."""
    values, writer = made.graph.values, links.writer
    origin = made.origin.get(writer[value].name)
    place = writer[value].outputs.index(value)
    others = (op.outputs[place] for op in made.graph.ops if origin and made.origin.get(op.name) == origin)
    return [value, *(name for name in others if name != value and values[name].shape == values[value].shape)]


def _gain(cutting: Cutting, wide: int) -> int:
    """Bytes of wide values that are in pieces alone, less those of wide values that are joined again."""
    values = cutting.links.graph.values
    if cutting.pieces < 2:
        return 0
    sizes = {name: values[name].bytes for name in cutting.along if values[name].bytes > wide}
    return sum(-size if cutting.leaves(name) else size for name, size in sizes.items())
