"""Time, predicted and measured: two profiles of one graph, their ops' sum against the whole, and what a plan costs.

Invariant: inputs are on the device and stay there; a step's time is a median, and a low quantile stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from examples.gpu.parts.models import Bench, Model, remat
from examples.gpu.parts.steps import step_time


def profiles(bench: Bench, name: str) -> Iterator[dict[str, Any]]:
    """The profile that plans were made from, and another from nothing."""
    model = Model(bench, name)
    first = yaml.safe_load(model.costs().read_text())
    yield {"first": first["totals"]}
    again = bench.folder / f"{name}.again.costs.yaml"
    remat("profile", model.graph(), *bench.costing, "--no-cache", "-q", "-o", again)
    second = yaml.safe_load(again.read_text())
    yield {"second": second["totals"]}
    both = [op for op, cost in first["ops"].items() if cost.get("runs") and second["ops"][op].get("runs")]
    for figure in ("alone", "ns"):
        pair = [[float(file["ops"][op][figure]) for op in both] for file in (first, second)]
        yield {f"rank_correlation_{figure}": round(correlation(ranks(pair[0]), ranks(pair[1])), 4), "ops": len(both)}
    hows: dict[str, int] = {}
    for cost in first["ops"].values():
        hows[cost["how"]] = hows.get(cost["how"], 0) + 1
    yield {"how": hows}


def ranks(values: Sequence[float]) -> list[float]:
    """Places in order, equal values sharing theirs."""
    order = sorted(range(len(values)), key=lambda k: values[k])
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for k in order[start:end]:
            found[k] = (start + end - 1) / 2
        start = end
    return found


def correlation(a: Sequence[float], b: Sequence[float]) -> float:
    mean_a, mean_b = sum(a) / max(1, len(a)), sum(b) / max(1, len(b))
    top = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    below = (sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)) ** 0.5
    return top / below if below else 1.0


def steps(bench: Bench, name: str) -> Iterator[dict[str, Any]]:
    """The original in the strict session and as the runtime comes; each plan with its places and in the arena."""
    model = Model(bench, name)
    said = yaml.safe_load(model.costs().read_text())["totals"]
    plain = step_time(model.graph(), bench.device, "strict", bench.seconds)
    yield {
        "original": {**plain, "predicted_ms": said["sum"] / 1e6, "off": round(said["sum"] / 1e6 / plain["ms"] - 1, 4)}
    }
    yield {"original, default session": step_time(model.graph(), bench.device, "default", bench.seconds)}
    for budget in bench.budgets:
        predicted = model.said(f"{budget}%").overhead
        for how in ("strict", "planned"):
            took = step_time(model.rewritten(f"{budget}%"), bench.device, how, bench.seconds)
            found = took["ms"] / plain["ms"] - 1
            yield {f"{budget}%, {how}": {**took, "overhead": round(found, 4), "predicted_overhead": predicted}}
