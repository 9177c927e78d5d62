"""The one runner of the benches: whatever a bench gives becomes a line of `results/NAME.jsonl`.

    python examples/bench/run.py                     lists them, with the commits that their results are of
    python examples/bench/run.py NAME [WORD ...]     runs one; `--help` tells its words, `-o` another file

A bench is a module here with `rows(asked)`, which gives its rows one by one, and `KEY`, the names that tell its rows
apart. It may have `words(parser)`, what it can be asked, and `conclude(rows)`, what is made of all rows at the end.
Benches that run in processes of their own or write graphs have helpers here too; `search.py` compares two checkouts
in pairs, and has words of its own.

Invariant: each line names its commit, day, machine, load, versions and what was asked, so it is as old as it says; a
row that is measured again stands in the place of what it was, and the others stay.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import platform
import resource
import subprocess
import sys
import sysconfig
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = HERE / "results"
PACKAGES = sysconfig.get_paths()["purelib"]  # a warning may name a place there, which is this machine's
TOLD = ("onnxruntime", "onnxruntime-gpu", "pyscipopt", "torch")  # whose versions a line names
Row = dict[str, Any]


def main(words: list[str]) -> None:
    sys.path[:0] = [str(HERE), str(ROOT)]
    if not words or words[0].startswith("-"):
        print(*(_described(name) for name in names()), sep="\n")
        return
    if words[0] not in names():
        sys.exit(f"There is no bench {words[0]}: there are {', '.join(names())}.")
    run(words[0], words[1:])


def names() -> list[str]:
    """The modules that give rows."""
    return sorted(path.stem for path in HERE.glob("*.py") if {"rows", "KEY"} <= _defined(path))


def _defined(path: Path) -> set[str]:
    body = ast.parse(path.read_text()).body
    assigned = (target for one in body if isinstance(one, ast.Assign) for target in one.targets)
    return {one.name for one in body if isinstance(one, ast.FunctionDef)} | {
        target.id for target in assigned if isinstance(target, ast.Name)
    }


def _described(name: str) -> str:
    duty = (ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text())) or "").splitlines()[0]
    commits = sorted({str(row["commit"]) for row in read(RESULTS / f"{name}.jsonl")})
    return f"{name:16} {duty}  [{', '.join(commits) or 'no results'}]"


def _without_places(words: list[str]) -> str:
    """What was asked, files by their names: where they lie is this machine's."""
    return " ".join(Path(word).name if Path(word).is_absolute() else word for word in words)


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def run(name: str, words: list[str]) -> None:
    bench = importlib.import_module(name)
    parser = argparse.ArgumentParser(
        f"run.py {name}", description=bench.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if hasattr(bench, "words"):
        bench.words(parser)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / f"{name}.jsonl")
    asked = parser.parse_intermixed_args(words)
    known = {_key(bench, row): row for row in read(asked.output)}
    machine = _machine()
    begun = _spent()
    for row in bench.rows(asked):
        full = {**row, "cpu": round(_spent() - begun, 1), **machine, **_now(), "asked": _without_places(words)}
        known[_key(bench, full)] = full
        print(json.dumps(row), flush=True)
        asked.output.parent.mkdir(exist_ok=True)
        lines = "".join(json.dumps(one) + "\n" for one in known.values())
        asked.output.write_text(lines.replace(f"{PACKAGES}/", "").replace(f"{ROOT}/", ""))
        begun = _spent()
    if hasattr(bench, "conclude"):
        bench.conclude(list(known.values()))


def _key(bench: Any, row: Row) -> tuple[Any, ...]:
    return tuple(row.get(part) for part in bench.KEY)


def _spent() -> float:
    """Processor seconds of this process and of those that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _machine() -> Row:
    versions = [f"Python {platform.python_version()}"]
    for package in TOLD:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return {
        "commit": _commit(),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "versions": ", ".join(versions),
    }


def _commit() -> str:
    """`+` behind it where what is run is not what was committed; results do not count."""
    ask = ["git", "-C", str(ROOT)]
    head = subprocess.run([*ask, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=False)
    status = [*ask, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!examples/bench/results", ":!docs"]
    changed = subprocess.run(status, capture_output=True, text=True, check=False).stdout
    return (head.stdout.strip() or "unknown") + ("+" if changed else "")


def _now() -> Row:
    return {"day": time.strftime("%Y-%m-%d"), "load": round(os.getloadavg()[0], 1)}


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main(sys.argv[1:])
