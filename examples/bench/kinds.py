"""Is whatever runs modelled, refused, or named? Every kind of small graph down the whole road, for both runtimes.

    python examples/bench/run.py kinds --folder FOLDER              # the .onnx files there instead
    python examples/bench/run.py kinds if_in_if sparse --share 90%  # these kinds, at these shares

Each row: `profile` names what is not as foretold (`unlike`), `solve` finds a plan at SHARES of what the model holds,
`verify` measures it. `as`: "foretold" if the measured peak is within NEAR of the predicted one, with the same bits and
no fault; "named" if `profile` said why it would not be, and `verify` finds no fault beyond that; "refused" with the
words; or "WRONG". A search has SECONDS by the clock: a busy machine refuses more than a quiet one.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

import remat_cli as remat
from remat_cli.errors import Infeasible, Mismatch, NoPlan, RematError
from tests.remat_cli.kinds import KINDS, model

NEAR = 0.03
SHARES = {  # of what it holds there, the first that leads to a plan
    "remat": ("65%", "80%", "92%"),
    "stock": ("80%", "92%"),
}
PROFILING = 30.0  # seconds at most: with less a busy machine does not get to run the model
SECONDS = {"remat": 5.0, "stock": 15.0}  # of a search, and of trying what it finds


def graphs() -> Iterator[tuple[str, onnx.ModelProto]]:
    """One of each kind, and another of some that depend on their sizes."""
    for kind in KINDS:
        yield kind, model(kind)
    for kind in ("if_wide", "loop_with_scan", "function_twice", "dropout_with_mask", "half_product", "lstm_last"):
        yield f"{kind}, another", model(kind, 1)


def road(path: Path, runtime: str, shares: Sequence[str]) -> dict[str, Any]:
    """What became of the model with such a runtime, at the first of the shares that leads to a plan."""
    found: dict[str, Any] = {"runtime": runtime}
    try:
        costs = remat.profile(path, threads=1, time_limit=PROFILING)
        found["unlike"], found["not_run"] = (said or "" for said in (costs.whole.unlike, costs.whole.not_run))
        plan = _plan(path, costs, runtime, shares)
        found |= {"budget": plan.budget, "status": plan.status, "overhead": round(plan.overhead, 4)}
        found |= _measured(plan, runtime)
    except RematError as error:
        found |= {"as": "refused", "words": str(error).replace(f"{path.parent}/", "")[:300]}
    found["as"] = found.get("as") or _judged(found)
    return found


def _plan(path: Path, costs: Any, runtime: str, shares: Sequence[str]) -> Any:
    for share in shares:
        try:
            return remat.solve(
                path, budget=share, costs=costs, runtime=runtime, time_limit=SECONDS[runtime], cache=False
            )
        except (Infeasible, NoPlan):
            if share == shares[-1]:
                raise
    raise AssertionError


def _measured(plan: Any, runtime: str) -> dict[str, Any]:
    faults: list[str] = []
    try:
        found = remat.verify(plan)
    except Mismatch as error:
        found, faults = error.report, list(error.report.faults)
    mode, said = found.report.mode("strict" if runtime == "remat" else "default"), found.promise.live
    said_later = found.promise.later or said
    return {
        "predicted": said,
        "before": mode.before.first,
        "peak": mode.after.first,
        "later": mode.after.second,
        "off": round(mode.after.first / said - 1, 4) if said and mode.after.first else None,
        "off_later": round(mode.after.second / said_later - 1, 4) if said_later and mode.after.second else None,
        "same": not mode.differs and not mode.failed,
        "faults": faults,
    }


def _judged(found: dict[str, Any]) -> str:
    off = [abs(found[name]) for name in ("off", "off_later") if found.get(name) is not None]
    if not found["same"]:
        return "named" if found["not_run"] else "WRONG"
    if not found["faults"] and off and max(off) <= NEAR:
        return "foretold"
    # results are as they should be, so what is amiss are the bytes
    return "named" if found["unlike"] or found["not_run"] else "WRONG"


KEY = ("graph", "runtime")


def words(parser: ArgumentParser) -> None:
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--folder", type=Path, help="of models, in place of the kinds of the tests")
    parser.add_argument("--share", action="append")
    parser.add_argument("--runtime", action="append", choices=SHARES)


def rows(asked: Namespace) -> Iterator[dict[str, Any]]:
    with TemporaryDirectory() as folder:
        for name, path in _files(asked, Path(folder)):
            for runtime in asked.runtime or SHARES:
                yield {"graph": name, **road(path, runtime, asked.share or SHARES[runtime])}


def conclude(known: list[dict[str, Any]]) -> None:
    print(dict(Counter(f"{row['runtime']}: {row['as']}" for row in known)))


def _files(given: Namespace, folder: Path) -> Iterator[tuple[str, Path]]:
    if given.folder:
        yield from ((path.name, path) for path in sorted(given.folder.glob("*.onnx")))
        return
    for name, made in ((kind, model(kind)) for kind in given.kinds) if given.kinds else graphs():
        path = folder / f"{name.replace(', ', '_')}.onnx"
        path.write_bytes(made.SerializeToString())
        yield name, path
