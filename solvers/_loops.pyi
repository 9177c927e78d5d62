"""The loops in C++, beside which this file lies: `native/module.cpp` names them. They run without Python's lock."""

from solvers.annealing.cooling import Cooling, Kept
from solvers.methods.chains.program import Bools, Floats
from solvers.orders.arrays import Arrays, Ints
from solvers.orders.evict import Scoring
from solvers.pebbles.copies import Tables as Copies
from solvers.placement.canonical import Sections
from solvers.placement.lives import Lives

# solvers/orders
def memory_of(arrays: Arrays, order: Ints, /) -> Ints: ...  # bytes in use during each compute; empty if it is illegal

# where each step's blocks begin, and of each block its bytes and the last step that needs it; empty if it is illegal
def blocks_taken(arrays: Arrays, order: Ints, /) -> tuple[Ints, Ints, Ints]: ...

# without computes that are not a node's first and whose results nobody needs; empty if it names what is no node
def trim(arrays: Arrays, order: Ints, /) -> Ints: ...
def walk_through(
    arrays: Arrays, budget: int, scoring: Scoring, group: Ints, depth_first: bool, halt: Ints, /
) -> tuple[Ints, int]: ...
def follow_traces(
    arrays: Arrays, free: Bools, made: Floats, least: Floats, after: Ints, read: Ints, cost: Floats, /
) -> None: ...

# solvers/pebbles: (least, peak or -1, bytes of what is wanted, states looked at, and of each step of the way the node
# or -1, the bit that is made of nothing, and where what is held stands)
def reach(
    copies: Copies, wanted: Ints, alone: Ints, known: int, most: int, at_least: int, halt: Ints, /
) -> tuple[int, int, int, int, Ints, Ints, Ints, Ints]: ...

# solvers/annealing
def anneal_orders(
    arrays: Arrays, order: Ints, budget: int, roof: int, peak: int, cooling: Cooling, kept: Kept, halt: Ints, /
) -> tuple[Ints, int]: ...

# solvers/methods/chains: the structs Segments and Floating of programs.hpp, field for field
def fill_segments(
    left: int, right: int, excess: Floats, loose: Floats, inner: Ints, segments: tuple[Floats | Ints | Bools, ...], /
) -> None: ...
def fill_floating(last: int, excess: Floats, chain: tuple[Floats | Ints, ...], /) -> None: ...

# solvers/methods/mincut
def minimum_cut(
    count: int, tails: Ints, heads: Ints, capacities: Ints, source: int, sink: int, /
) -> tuple[int, Bools]: ...

# solvers/placement
def place_in_order(order: Ints, lives: Lives, offset: Ints, /) -> None: ...
def place_from_bottom(items: Sections, rank: Ints, offset: Ints, /) -> int: ...

# how it ended, and the work; it gives up when it has looked at `most` items
def search_canonical(
    items: Sections, rank: Ints, height: int, most: int, offset: Ints, halt: Ints, /
) -> tuple[int, int]: ...
def place_by_ejection(
    lives: Lives, weight: Floats, more: Floats, height: int, offset: Ints, seed: int, most: int, halt: Ints, /
) -> tuple[int, int]: ...
def take_buffers(events: Ints, shape: Ints, /) -> Ints: ...
def above(arrays: Arrays, order: Ints, room: int, /) -> int: ...
def held_later(arrays: Arrays, order: Ints, /) -> int: ...
def arrange(
    searched: Arrays,
    begin: Ints,
    budget: int,
    roof: int,
    peak: int,
    arrays: Arrays,
    room: int,
    known_lacking: int,
    known_cost: int,
    cooling: Cooling,
    kept: Kept,
    halt: Ints,
    /,
) -> tuple[Ints, int, int]: ...

# for tests
def drawn(seed: int, count: int, bound: int, /) -> Floats: ...
def annealed(
    arrays: Arrays, order: Ints, budget: int, roof: int, cooling: Cooling, kept: Kept, /
) -> tuple[Ints, Ints, int, int, Ints, int, int]: ...

# solvers/late.py
def wait_when_late() -> None: ...
