"""One plan on all ranks: whichever rank comes to a search first makes it, and the others take its answer.

Ranks meet in the key-value store with which torch.distributed began. No collective is called, so a rank whose graphs
are others than its neighbours', as in a pipeline, waits for nobody.

Invariant: the answer to one question is the same on every rank; a rank that gets none in time searches by itself and
says so. Collectives never run twice, and their order is that of the graph under every plan (`joint.py`), so that ranks
with different plans still meet in them.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from torch import distributed

from remat_cli.errors import RematWarning
from remat_cli.torch.private import divided, store_of_ranks

MOST_SHOWN = 300  # letters of a list of collectives
PATIENCE_SECONDS = 60.0  # beside twice the time of a search: a rank may still be compiling what comes before


met: Counter[str] = Counter()  # a group of ranks -> the graphs of this process in which they meet


class RanksDiffer(RuntimeError):
    """Ranks have different plans of a graph in which they meet."""


def on_one_rank(question: str, seconds: float, answer: Callable[[], Any]) -> Any:
    """The answer, as JSON has it, of the rank that asks first; `seconds`: what a search takes at most."""
    store = meeting_place()
    if store is None:
        return answer()
    key = f"remat/{question}"
    if store.add(f"{key}/asked", 1) == 1:
        try:
            found = answer()
        except BaseException:
            store.set(key, "null")  # the others search by themselves
            raise
        store.set(key, json.dumps(found))
        return found
    try:
        store.wait([key], timedelta(seconds=2 * min(seconds, 1e6) + PATIENCE_SECONDS))
    except distributed.DistError:
        text = (
            "remat: another rank that searches for a plan of this graph has not answered: this rank searches by itself"
        )
        warnings.warn(text, RematWarning, stacklevel=2)
        return answer()
    found = json.loads(store.get(key))
    return answer() if found is None else found


def compare(question: str, digest: str) -> bool:
    """Whether the first rank that compared what it has for this question had the same."""
    store = meeting_place()
    if store is None:
        return True
    held = store.compare_set(f"remat/{question}/digest", "", digest).decode()
    return held in ("", digest)  # a store that stands for none holds nothing


def meet(groups: dict[str, list[str]]) -> None:
    """Hold the collectives of a graph, for each group of ranks, against those of the graph that other ranks of it came
    to after as many others. Raises RanksDiffer: they would wait for ever, or take one another's numbers."""
    for group, found in groups.items():
        met[group] += 1
        question, words = f"group {group}/{met[group]}", ", ".join(found)
        if compare(question, hashlib.sha256(words.encode()).hexdigest()):
            continue
        shown = words if len(words) < MOST_SHOWN else f"{words[:MOST_SHOWN]} ..."
        text = f"remat: another rank meets in other collectives in graph {met[group]} of group '{group}' than this one"
        raise RanksDiffer(f"{text} ({shown}): give all ranks of a group the same module and inputs of the same sizes")


def meeting_place() -> Any:
    """The store of all ranks; None where there is one rank."""
    return store_of_ranks() if divided() and distributed.get_world_size() > 1 else None
