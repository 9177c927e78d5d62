"""Plans of a graph whose code Inductor has written, each with the peak of that code.

Invariant: a peak is of code that the torch at hand wrote under the settings at hand. Graphs of other ops may have the
same problem, so the code of a plan that is used is written anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from remat_cli.results.store import Store, folder, key_of
from remat_cli.torch.private import inductor_settings
from remat_cli.torch.remembering import Order, key, legal
from solvers.problem import Problem

More = dict[int, int]  # op -> bytes
MOST = 24  # plans kept of a graph


@dataclass(slots=True)
class Written:
    """`peaks`: the peak of each plan's code. `more`: what ops hold beyond the model. `answers`: the peak of the plan
    that was used for each budget."""

    peaks: dict[Order, int] = field(default_factory=dict)
    more: More = field(default_factory=dict)
    answers: dict[int, int] = field(default_factory=dict)


WRITTEN: dict[str, Written] = {}  # of this process


def place_of(problem: Problem) -> str:
    return key_of({"graph": key(problem), "written by": str(torch.__version__), "settings": inductor_settings()})


def recall_written(problem: Problem) -> Written:
    """What is known of this graph, from this process or from the results that the user keeps."""
    place = place_of(problem)
    if place not in WRITTEN:
        found: dict[str, Any] = Store(folder()).get(place) or {}
        pairs = [(legal(problem, order), int(peak)) for order, peak in found.get("peaks", ())]
        peaks = {order: peak for order, peak in pairs if order is not None}
        more = {int(op): int(held) for op, held in found.get("more", ())}
        answers = {int(budget): int(peak) for budget, peak in found.get("answers", ()) if peak in peaks.values()}
        WRITTEN[place] = Written(peaks, more, answers)
    return WRITTEN[place]


def remember_written(problem: Problem, known: Written) -> None:
    used = set(known.answers.values())
    leanest = sorted(known.peaks.items(), key=lambda pair: (pair[1] not in used, pair[1]))[:MOST]
    entry = {
        "peaks": [[list(order), peak] for order, peak in leanest],
        "more": list(known.more.items()),
        "answers": list(known.answers.items()),
    }
    Store(folder()).keep(place_of(problem), {"method": "torch", "budget": None}, entry)
