"""Is whatever runs modelled, refused, or named? Every kind of small graph down the whole road, in both sessions.

    PYTHONPATH=. python examples/bench/kinds.py > examples/bench/kinds.jsonl
    PYTHONPATH=. python examples/bench/kinds.py --folder FOLDER              # the .onnx files there instead
    PYTHONPATH=. python examples/bench/kinds.py if_in_if sparse --share 90%  # these kinds, at these shares

Each row: `profile` names what is not as foretold (`unlike`), `solve` finds a plan at SHARES of what the model holds,
`verify` measures it. `as`: "foretold" if the measured peak is within NEAR of the predicted one, with the same bits and
no fault; "named" if `profile` said why it would not be, and `verify` finds no fault beyond that; "refused" with the
words; or "WRONG".

Both files are of a machine under load 3 to 13, where a search of some seconds has a tenth of that in processor time:
more is refused there than on a quiet one.

`kinds.jsonl`: 117 graphs, with SHARES and SECONDS as below. Strict: all of one run. Default: 109, of three runs beside
another program, as the code changed: `code` says which; what the first two refused for want of a plan was tried again
in the last.
`cases.jsonl`: what was once reported, strict at 70, then 85%, all of one run; some by default at 70, then 88%, of an
earlier one.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
import onnxruntime

import remat_cli as remat
from remat_cli.errors import Infeasible, Mismatch, NoPlan, RematError
from tests.remat_cli.kinds import KINDS, model

NEAR = 0.03
SHARES = {  # of what it holds there, the first that leads to a plan
    "strict": ("65%", "80%", "92%"),
    "default": ("80%", "92%"),
}
SECONDS = {"strict": 5.0, "default": 15.0}  # of a search, and of trying what it finds


def graphs() -> Iterator[tuple[str, onnx.ModelProto]]:
    """One of each kind, and another of some that depend on their sizes."""
    for kind in KINDS:
        yield kind, model(kind)
    for kind in ("if_wide", "loop_with_scan", "function_twice", "dropout_with_mask", "half_product", "lstm_last"):
        yield f"{kind}, another", model(kind, 1)


def road(path: Path, session: str, shares: Sequence[str]) -> dict[str, Any]:
    """What became of the model in such a session, at the first of the shares that leads to a plan."""
    found: dict[str, Any] = {"session": session}
    try:
        costs = remat.profile(path, threads=1, time_limit=2.0)
        found["unlike"], found["not_run"] = (said or "" for said in (costs.whole.unlike, costs.whole.not_run))
        plan = _plan(path, costs, session, shares)
        found |= {"budget": plan.budget, "status": plan.status, "overhead": round(plan.overhead, 4)}
        found |= _measured(plan, session)
    except RematError as error:
        found |= {"as": "refused", "words": str(error).replace(f"{path.parent}/", "")[:300]}
    found["as"] = found.get("as") or _judged(found)
    return found


def _plan(path: Path, costs: Any, session: str, shares: Sequence[str]) -> Any:
    for share in shares:
        try:
            return remat.solve(
                path, budget=share, costs=costs, session=session, time_limit=SECONDS[session], cache=False
            )
        except (Infeasible, NoPlan):
            if share == shares[-1]:
                raise
    raise AssertionError


def _measured(plan: Any, session: str) -> dict[str, Any]:
    faults: list[str] = []
    try:
        found = remat.verify(plan)
    except Mismatch as error:
        found, faults = error.report, list(error.report.faults)
    mode, said = found.report.mode(session), found.promise.live
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
    return "named" if found["unlike"] else "WRONG"  # results are as they should be, so what is amiss are the bytes


def rows(given: Namespace) -> Iterator[dict[str, Any]]:
    with TemporaryDirectory() as folder:
        for name, path in _files(given, Path(folder)):
            for session in given.session or SHARES:
                begin = time.process_time()
                row = {"graph": name, **road(path, session, given.share or SHARES[session])}
                row["cpu_s"] = round(time.process_time() - begin, 1)
                said = row.get("faults") or row.get("words") or row.get("unlike")
                figures = f"{row['as']:9} {row.get('off')} {row.get('off_later')}"
                print(f"{name:28} {session:8} {figures} {said}", file=sys.stderr)
                yield row


def _files(given: Namespace, folder: Path) -> Iterator[tuple[str, Path]]:
    if given.folder:
        yield from ((path.name, path) for path in sorted(given.folder.glob("*.onnx")))
        return
    for name, made in ((kind, model(kind)) for kind in given.kinds) if given.kinds else graphs():
        path = folder / f"{name.replace(', ', '_')}.onnx"
        path.write_bytes(made.SerializeToString())
        yield name, path


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--share", action="append")
    parser.add_argument("--session", action="append", choices=SHARES)
    counted: Counter[str] = Counter()
    for row in rows(parser.parse_args()):
        print(json.dumps(row), flush=True)
        counted[f"{row['session']}: {row['as']}"] += 1
    print(json.dumps({"onnxruntime": onnxruntime.__version__, "as": counted}))


if __name__ == "__main__":
    main()
