"""`*.chain.json`: a chain of stages in Rotor's form, read as a scheduling problem, and written from a chain.

`fw`: the stages' forward times; `bw`: their backward times, and the loss's; `a` and `abar`: from 0 on, the sizes of
what each stage is given and of all that its backward needs, its output among that; `o_f`, `o_b`: memory needed only
while a forward or a backward runs. `delta` (sizes of gradients, by default those of `a`), `resident` and `format` may
be left out; what else there is (limits, answers) is passed over. Times with decimals are counted in units of the last
decimal, and so are sizes, and budgets with them.

Invariant: run by Rotor's rules, a sequence costs and needs what its order of computes does in the problem, but where a
stage's abar is smaller than its a, which it contains: there it counts as large.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from remat_cli.errors import BadInput
from remat_cli.formats.declared import Undeclared
from remat_cli.model.problem_of import Named
from remat_cli.reading import written_by_newer
from solvers.methods.chains.chain import Chain
from solvers.problem import Node, Problem

FORMAT = "remat-chain/1"
DECIMALS = 6  # decimals of a time or size
LARGEST_NUMBER = 2**60
LISTS = ("fw", "bw", "a", "abar", "o_f", "o_b")


def is_chain(data: object) -> bool:
    return isinstance(data, dict) and "fw" in data


def problem_of_chain(data: Mapping[str, Any]) -> Named:
    """The problem: F1..FL, the loss's backward and BL..B1; a^0 is resident, as an input is."""
    lists = _lists(data)
    stages = len(lists["fw"])
    forward, backward = _whole(lists["fw"], lists["bw"])
    delta = lists.get("delta", lists["a"])
    a, abar, o_f, o_b, delta, (held,) = _whole(
        *(lists[name] for name in ("a", "abar", "o_f", "o_b")), delta, [data.get("resident", 0)]
    )
    extra = [0, *(max(0, full - size) for full, size in zip(abar[1:], a[1:], strict=True))]
    rest, gradient = stages - 1, 2 * stages - 1  # values: a^l is l - 1, the rest of abar^l that and `rest`, ...
    nodes = [
        Node(forward[s - 1], (s - 2,) if s > 1 else (), (s - 1, rest + s), workspace=o_f[s - 1])
        for s in range(1, stages + 1)
    ]
    places = {s: gradient + 1 + stages - s for s in range(stages, -1, -1)}  # the index of delta^s
    loss = Node(backward[stages], (stages - 1,), (places[stages],), o_b[stages], backward=True)
    nodes.append(loss)
    for s in range(stages, 0, -1):
        reads = ((s - 2,) if s > 1 else ()) + (s - 1, rest + s, places[s])
        nodes.append(Node(backward[s - 1], reads, (places[s - 1],), o_b[s - 1], backward=True))
    problem = Problem(
        nodes=tuple(nodes),
        sizes=(*a[1:], *extra[1:], *(delta[s] for s in range(stages, -1, -1))),
        outputs=(places[0],),
        resident=a[0] + held,
        optional=frozenset(range(stages, 2 * stages)),
    )
    numbers = range(1, stages + 1)
    names = [*(f"F{s}" for s in numbers), f"B{stages + 1}", *(f"B{s}" for s in reversed(numbers))]
    values = [*(f"a{s}" for s in numbers), *(f"abar{s}" for s in numbers)]
    return Named(problem, tuple(names), (*values, *(f"delta{s}" for s in range(stages, -1, -1))))


def _lists(data: Mapping[str, Any]) -> dict[str, list[Any]]:
    if data.get("format", FORMAT) != FORMAT:
        newer = written_by_newer(data["format"], FORMAT)
        raise Undeclared(newer or f"its format is {data['format']!r}, not {FORMAT!r}")
    count = len(data["fw"]) if isinstance(data["fw"], list) else 0
    if not count:
        raise Undeclared("the chain has no stages: fw is not a list of forward times")
    lists = {}
    for name in (*LISTS, *(("delta",) if "delta" in data else ())):
        lists[name] = _list(data, name, count + (name not in ("fw", "o_f")))
    if _is_no_number(data.get("resident", 0)):
        raise Undeclared(f"resident is {data['resident']!r}, which is no size")
    return lists


def _list(data: Mapping[str, Any], name: str, count: int) -> list[Any]:
    found = data.get(name)
    if not isinstance(found, list):
        raise Undeclared(f"the chain has no list {name!r}")
    if len(found) == count - 1 and name == "o_b":  # the loss needs nothing besides
        found = [*found, 0]
    if len(found) != count:
        raise Undeclared(f"{name} has {len(found)} entries, where a chain with that many forward times has {count}")
    if wrong := [entry for entry in found if _is_no_number(entry)]:
        raise Undeclared(f"{name} holds {wrong[0]!r}, which is no time or size")
    return found


def _is_no_number(entry: Any) -> bool:
    return type(entry) not in (int, float) or not 0 <= entry <= LARGEST_NUMBER


def _whole(*lists: Sequence[float]) -> list[list[int]]:
    """The numbers as integers, in a unit that keeps all decimals, up to six."""
    numbers = [Decimal(str(entry)).normalize() for entries in lists for entry in entries]
    unit = 10 ** min(DECIMALS, max(0, *(-int(number.as_tuple().exponent) for number in numbers)))
    return [[round(entry * unit) for entry in entries] for entries in lists]


def dumps(chain: Chain, resident: int) -> str:
    """The chain, its last stage the loss's, followed by one that takes no time and holds nothing."""
    lists: dict[str, Sequence[float]] = {
        "fw": chain.forward[1:],
        "bw": (*chain.backward[1:], 0),
        "a": chain.a,
        "abar": chain.abar,
        "o_f": [max(0, size) for size in chain.o_f[1:]],
        "o_b": [*(max(0, size) for size in chain.o_b[1:]), 0],
        "delta": chain.delta,
    }
    lines = [f'"{name}": {json.dumps([int(entry) for entry in entries])}' for name, entries in lists.items()]
    return f'{{"format": "{FORMAT}", "resident": {resident},\n ' + ",\n ".join(lines) + "}\n"


def chain_text(problem: Problem, where: Path) -> str:
    """The file's content for the chain that a problem comes to. Raises BadInput for what is no chain."""
    from solvers.methods.chains.staged import chain_of
    from solvers.reductions.views import reduced

    chain, held = chain_of(reduced(problem).problem)
    if chain.length < 2:
        raise BadInput(f"{where}: nowhere does a single value cross its forward pass, so it is no chain")
    return dumps(chain, held)
