"""One file for several sizes of inputs: dimensions stay free, the plan is that of one size, and all of them are run.

Invariant: a way that fails at one of the sizes, or gives other outputs there, is not recommended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from remat_cli.actions.shrinking.asked import ShrinkQuestion
from remat_cli.actions.shrinking.metering import WayTrials
from remat_cli.actions.shrinking.preparing import prepare
from remat_cli.actions.shrinking.truth import witness
from remat_cli.actions.shrinking.ways import AS_IT_IS, LEAN, RunWay, TriedWay
from remat_cli.checking.child import LEAN as LEAN_SESSION
from remat_cli.checking.child import STOCK as STOCK_SESSION
from remat_cli.checking.child import UserProgram
from remat_cli.errors import Usage, meant
from remat_cli.model.graph import Graph
from solvers.clock import Clock


def judged_at(
    model: Path,
    asked: ShrinkQuestion,
    sizes: Mapping[str, int],
    best: tuple[RunWay, UserProgram],
    folder: Path,
    clock: Clock,
) -> Iterator[TriedWay]:
    """The model as it is, with two options, and by the best way, as is asked at those sizes: a row each."""
    folder.mkdir()
    ready = prepare(model, asked, folder)
    trials = WayTrials(ready.feeds, folder, partial(witness, model, ready.graph, ready.feeds, folder))
    for way, run in ((AS_IT_IS, UserProgram(model, STOCK_SESSION)), (LEAN, UserProgram(model, LEAN_SESSION)), best):
        yield trials.tried(replace(way, name=f"{way.name}, {words_of(sizes)}"), run, clock)


def check_sizes(also: Sequence[Mapping[str, int]], graph: Graph) -> None:
    """Refuse sizes of dimensions that the model has not."""
    for name in (name for sizes in also for name in sizes):
        if name not in graph.dims:
            raise Usage(
                f"the model has no free dimension {name!r} that could have another size; {meant(name, graph.dims)}"
            )


def wrong_at(last: TriedWay, sizes: Mapping[str, int]) -> str:
    """Why a way is not to be recommended, if it is not."""
    if not last.ran:
        return f"at {words_of(sizes)}: {last.failed}"
    return "" if last.outputs.near else f"its outputs are others at {words_of(sizes)}"


def words_of(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())
