"""The default search measured: what the best plan and the bound are after so many processor seconds, row by row.

Usage: python examples/bench/search.py make FOLDER [--graphs NAME,...]
       python examples/bench/search.py run FOLDER -o OUT.jsonl [--tree CHECKOUT] [--seconds 60] [--seeds 0,1,2]
              [--rows NAME@60%,...] [--without PART] [--core 0] [--wall]
       python examples/bench/search.py compare OLD.jsonl NEW.jsonl [-o TABLE.json]

`make` writes the graphs and budgets of `search_graphs.py`. `run` asks each question in a process of its own, of the
code of any checkout that is set up, with a clock that counts what the process took on a processor: so other work beside
it changes little, and two versions may be run one after the other. With `--wall` seconds are those of the clock on the
wall, which says what more processors bring, on a quiet machine. Costs and bounds are per cent
beyond every op once. The area under the curve is the mean, over the time, of how far the cost stands above the best
bound that either version proved; before there is a plan it counts as 100. `--without` switches a part of the search
off.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

BUDGETS = ("80%", "60%", "least+20%", "least+5%")
LOOKED_AT = (3, 10, 30, 60)  # seconds
NO_PLAN = 100.0  # per cent above the bound
ROOT = Path(__file__).parents[2]


def make(asked: argparse.Namespace) -> None:
    from search_graphs import write

    write(asked.folder, asked.graphs.split(",") if asked.graphs else None)


def run(asked: argparse.Namespace) -> None:
    """A line for each question, the first of them about the machine."""
    graphs = json.loads((asked.folder / "graphs.json").read_text())
    rows = asked.rows.split(",") if asked.rows else [f"{name}@{budget}" for name in graphs for budget in BUDGETS]
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=asked.tree, capture_output=True, text=True, check=True
    ).stdout.strip()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, one used, load {os.getloadavg()[0]:.1f} of other work"
    about = {"commit": commit, "machine": machine, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    with asked.output.open("w") as out:
        out.write(json.dumps(about | {"seconds": asked.seconds, "without": asked.without}) + "\n")
        for name, budget in (row.split("@") for row in rows):
            for seed in asked.seeds.split(","):
                row = _in_tree(asked, name, graphs[name][budget], seed)
                row = {"graph": name, "ops": graphs[name]["ops"], "budget": budget, "seed": int(seed), **row}
                out.write(json.dumps(row) + "\n")
                out.flush()
                print(name, budget, seed, _at(row), row["found_by"], row["cpu"], flush=True)


def _in_tree(asked: argparse.Namespace, name: str, budget: int, seed: str) -> dict[str, Any]:
    path = asked.folder / f"{name}.problem.json"
    words = [asked.tree / ".venv/bin/python", __file__, "one", path.resolve(), budget, seed, asked.seconds]
    pinned = ["taskset", "-c", str(asked.core)] if asked.core is not None else []
    words += ["--without", asked.without] if asked.without else []
    words += ["--wall"] if asked.wall else []
    done = subprocess.run([*pinned, *map(str, words)], cwd=asked.tree, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def one(asked: argparse.Namespace) -> None:
    """Asks one question of the code that this Python has installed."""
    from time import process_time

    import solvers.clock

    if not asked.wall:
        solvers.clock.monotonic = process_time  # type: ignore[attr-defined]
    begun = process_time()
    from remat_cli.formats import problemfile
    from solvers.methods.auto.auto import solve
    from solvers.problem import Limits, Node, Problem, Progress
    from solvers.schedule import schedule

    if asked.without:
        from search_without import switch_off

        switch_off(asked.without)
    chain = [Node(1, (k - 1,) if k else (), (k,)) for k in range(40)]
    tiny = Problem((*chain, Node(1, (39, 0, 5), (40,))), (9,) * 41, (40,))
    schedule(tiny, 27, solve, Limits(solvers.clock.Clock(1.0)))  # everything is imported and loaded
    problem = problemfile.read(asked.problem).problem
    once = sum(node.cost for node in problem.nodes) or 1
    clock = solvers.clock.Clock(asked.seconds)
    series: list[tuple[float, float | None, float | None]] = []

    def share(cost: float | None) -> float | None:
        return None if cost is None else round(100 * (cost / once - 1), 4)

    def hear(progress: Progress) -> None:
        if progress.cost is not None or progress.bound is not None:
            series.append((round(clock.elapsed(), 3), share(progress.cost), share(progress.bound)))

    found = schedule(problem, asked.budget, solve, Limits(clock, seed=asked.seed, report=hear))
    result = found.result
    cost = found.outcome.cost if found.outcome and result.status.found else None
    series.append((round(clock.elapsed(), 3), share(cost), share(result.bound_any_order)))
    row = {
        "status": result.status.value,
        "cpu": round(process_time() - begun, 2),
        "found_by": getattr(result, "found_by", ""),
    }
    parts = [(part.name, part.tries, round(part.seconds, 2), part.won) for part in getattr(result, "parts", ())]
    print(json.dumps(row | {"series": series, "parts": parts}))


def _at(row: dict[str, Any], seconds: float | None = None) -> tuple[float | None, float | None]:
    """Cost and bound at that time, or in the end."""
    met = [(cost, bound) for when, cost, bound in row["series"] if seconds is None or when <= seconds]
    costs, bounds = ([one[side] for one in met if one[side] is not None] for side in (0, 1))
    return min(costs, default=None), max(bounds, default=None)


def _area(row: dict[str, Any], bound: float, seconds: float) -> float:
    """The mean of what the cost is above the bound, until so many seconds."""
    area, before, height = 0.0, 0.0, NO_PLAN
    for when, cost, _ in row["series"]:
        when = min(when, seconds)
        area, before = area + (when - before) * height, when
        if cost is not None:
            height = min(height, 100 * ((100 + cost) / (100 + bound) - 1))
    return (area + (seconds - before) * height) / seconds


def compare(asked: argparse.Namespace) -> None:
    """A row for each question with both versions' figures, and what they come to."""
    (old_about, *old), (new_about, *new) = (
        [json.loads(line) for line in path.read_text().splitlines()] for path in (asked.old, asked.new)
    )
    known = {(row["graph"], row["budget"], row["seed"]): row for row in old}
    seconds = min(old_about["seconds"], new_about["seconds"])
    table = []
    for row in new:
        other = known.get((row["graph"], row["budget"], row["seed"]))
        if other is None:
            continue
        bound = max(_at(one)[1] or 0.0 for one in (row, other))
        areas = [round(_area(one, bound, seconds), 3) for one in (other, row)]
        found = {key: row[key] for key in ("graph", "ops", "budget", "seed")}
        for time in [time for time in LOOKED_AT if time < seconds]:
            found[f"at {time:g} s"] = [_at(one, time)[0] for one in (other, row)]
        found[f"at {seconds:g} s"] = [_at(one)[0] for one in (other, row)]
        bounds = [_at(one)[1] for one in (other, row)]
        table.append(found | {"bounds": bounds, "areas": areas, "cpu": [other["cpu"], row["cpu"]]})
        print(json.dumps(table[-1]))
    said = _summary(table, seconds)
    print(json.dumps(said, indent=1))
    if asked.output:
        rows = ",\n".join(f"  {json.dumps(row)}" for row in table)
        head = json.dumps({"old": old_about, "new": new_about, "summary": said}, indent=1)[:-2]
        asked.output.write_text(f'{head},\n "table": [\n{rows}\n ]\n}}\n')


def _summary(table: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    worse = [_worse(*row[f"at {seconds:g} s"]) for row in table]
    ratios = [(new + 0.01) / (old + 0.01) for old, new in (row["areas"] for row in table)]
    return {
        "rows": len(table),
        "worse by over 0.1": sum(one > 0.1 for one in worse),
        "worse by over 1": sum(one > 1 for one in worse),
        "better by over 0.1": sum(one < -0.1 for one in worse),
        "median ratio of areas": round(median(ratios), 3),
        "processor seconds": [round(sum(row["cpu"][side] for row in table), 1) for side in (0, 1)],
    }


def _worse(old: float | None, new: float | None) -> float:
    """By how many points the new cost is worse."""
    return (NO_PLAN if new is None else new) - (NO_PLAN if old is None else old)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = options.add_subparsers(required=True)
    command = commands.add_parser("make")
    command.add_argument("folder", type=Path)
    command.add_argument("--graphs")
    command.set_defaults(call=make)
    command = commands.add_parser("run")
    command.add_argument("folder", type=Path)
    command.add_argument("-o", "--output", type=Path, required=True)
    command.add_argument("--tree", type=Path, default=ROOT)
    command.add_argument("--seconds", type=float, default=60.0)
    command.add_argument("--seeds", default="0,1,2")
    command.add_argument("--rows")
    command.add_argument("--without")
    command.add_argument("--wall", action="store_true")
    command.add_argument("--core", type=int)
    command.set_defaults(call=run)
    command = commands.add_parser("compare")
    command.add_argument("old", type=Path)
    command.add_argument("new", type=Path)
    command.add_argument("-o", "--output", type=Path)
    command.set_defaults(call=compare)
    command = commands.add_parser("one")
    command.add_argument("problem", type=Path)
    command.add_argument("budget", type=int)
    command.add_argument("seed", type=int)
    command.add_argument("seconds", type=float)
    command.add_argument("--without")
    command.add_argument("--wall", action="store_true")
    command.set_defaults(call=one)
    asked = options.parse_args()
    asked.call(asked)


if __name__ == "__main__":
    main()
