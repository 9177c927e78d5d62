"""The cost file: its text is readable, small in version control, and checked when it is read.

Invariant: loaded costs were checked, every figure is finite and not negative. Dumped costs load again equal, and equal
costs give equal bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from profiles.costs import ABSURD_NS, BadCosts, Costs, Fit, OpCost
from profiles.plain_yaml import not_plain
from profiles.totals import Totals

SCHEMA = "remat-costs/1"


RESERVED = {"yes", "no", "on", "off", "true", "false", "null"}


FILE_BYTES = 2**26


FILE_DEPTH = 12  # nested mappings and lists


LONGEST_KEY = 1000  # YAML reads no longer key before a colon


ABSURD_BYTES = 2**50


HOW = ("measured", "estimated", "view", "inside", "set by hand")


# what stands at each place
HEAD = ("schema", "model", "device", "date", "unit", "batch", "totals", "ops", "kernels")
MODEL = ("path", "sha256", "dims")
OP = tuple(one.name for one in fields(OpCost))
FIT = tuple(one.name for one in fields(Fit))


def beside(model: Path) -> Path:
    """Where a model's costs are looked for, and written, if nobody says."""
    return model.with_name(model.name.removesuffix(".onnx") + ".costs.yaml")


def dump(costs: Costs) -> str:
    """The file's text: a short head, then one line for each op, sorted by name; then the kernels, if there are any."""
    head = {
        "schema": SCHEMA,
        "model": {"path": costs.model, "sha256": costs.sha256, "dims": dict(sorted(costs.dims.items()))},
        "device": dict(costs.device),
        "date": costs.date,
        "unit": costs.unit,
        **({"batch": costs.batch} if costs.batch else {}),
        "totals": {"ops": len(costs.ops), "sum": costs.total, **costs.whole.as_mapping()},
    }
    lines = [yaml.dump(head, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=1000).rstrip()]
    lines += ["ops:", *map(_line, sorted(costs.ops.items()))] if costs.ops else ["ops: {}"]
    lines += ["kernels:", *map(_line, sorted(costs.kernels.items()))] if costs.kernels else []
    return "\n".join(lines) + "\n"


def _line(item: tuple[str, OpCost]) -> str:
    key = _key(item[0])
    start = f"  {key}:" if len(key) < LONGEST_KEY else f"  ? {key}\n  :"
    return f"{start} {_flow(_plain(item[1]))}"


def load(path: Path) -> Costs:
    """Read and check a cost file. Raises BadCosts, which names the place."""
    try:
        text = _text(path)
        if wrong := not_plain(text, FILE_DEPTH, _loader()):
            raise BadCosts(f"{path}:{wrong[0]}: {wrong[1]}")
        return parse(yaml.load(text, Loader=_loader()), str(path))
    except OSError as error:
        raise BadCosts(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadCosts(f"{path} is not a cost file: it is not even text; 'remat profile' writes them") from error
    except yaml.YAMLError as error:
        raise BadCosts(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    except BadCosts:
        raise
    # the reader raises these for bad tags and numbers
    except (LookupError, OverflowError, TypeError, ValueError) as error:
        raise BadCosts(f"{path}: holds what no cost file holds: {error}") from error


def _text(path: Path) -> str:
    if not path.exists():
        raise BadCosts(f"{path}: there is no such file")
    if not path.is_file():
        raise BadCosts(f"{path}: cannot be read: it is not a regular file")
    if path.stat().st_size > FILE_BYTES:
        raise BadCosts(f"{path}: has {path.stat().st_size} bytes; a cost file may have {FILE_BYTES}")
    return path.read_text(encoding="utf-8")


def parse(document: Any, where: str) -> Costs:
    """Check a cost file's content."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else type(document).__name__
        newer = ", which a newer remat wrote" if str(found).partition("/")[0] == SCHEMA.partition("/")[0] else ""
        words = f"not a cost file of schema {SCHEMA} (found {found!r}{newer})"
        raise BadCosts(f"{where}: {words}; make one with `remat profile`")
    _check_names(document, HEAD, where)
    model = _mapping(document.get("model"), f"{where}: model")
    _check_names(model, MODEL, f"{where}: model")
    ops = _ops(document.get("ops"), f"{where}: ops")
    dims = {
        str(k): _count(v, f"{where}: model: dims: {k}") for k, v in _mapping(model.get("dims") or {}, where).items()
    }
    totals = _mapping(document.get("totals") or {}, f"{where}: totals")
    whole = Totals.of({name: value for name, value in totals.items() if name not in ("ops", "sum")})
    return Costs(
        model=str(model.get("path", "")),
        sha256=str(model.get("sha256", "")),
        dims=dims,
        device=_mapping(document.get("device") or {}, f"{where}: device"),
        ops=ops,
        whole=whole,
        date=str(document.get("date", "")),
        unit=str(document.get("unit", "ns")),
        batch=str(document.get("batch", "")),
        kernels=_ops(document.get("kernels") or {}, f"{where}: kernels"),
    )


def _ops(entries: Any, where: str) -> dict[str, OpCost]:
    return {
        str(name): _op(_mapping(entry, f"{where}: {name}"), f"{where}: {name}")
        for name, entry in _mapping(entries, where).items()
    }


def _op(entry: Mapping[str, Any], where: str) -> OpCost:
    _check_names(entry, OP, where)
    ns = _number(entry.get("ns"), f"{where}: ns", ABSURD_NS)
    workspace = _number(entry.get("workspace", 0), f"{where}: workspace", ABSURD_BYTES)
    how, pinned = entry.get("how", "set by hand"), entry.get("pinned", False)
    if not isinstance(pinned, bool):
        raise BadCosts(f"{where}: pinned is {pinned!r:.40}; it is true or false")
    if how not in HOW:
        raise BadCosts(f"{where}: how is {how!r}; it must be one of {', '.join(HOW)}")
    return OpCost(
        ns=round(ns),
        workspace=round(workspace),
        how=how,
        alone=None if entry.get("alone") is None else round(_number(entry["alone"], f"{where}: alone", ABSURD_NS)),
        spread=None if entry.get("spread") is None else _number(entry["spread"], f"{where}: spread"),
        runs=None if entry.get("runs") is None else _count(entry["runs"], f"{where}: runs"),
        note=str(entry.get("note", "")),
        pinned=pinned,
        fit=_fit(_mapping(entry["fit"], f"{where}: fit"), f"{where}: fit") if entry.get("fit") else None,
    )


def _fit(entry: Mapping[str, Any], where: str) -> Fit:
    _check_names(entry, FIT, where)
    points = {}
    for batch, pair in _mapping(entry.get("points"), f"{where}: points").items():
        points[_count(batch, where)] = _pair(pair, f"{where}: points: {batch}")
    time, workspace = _pair(entry.get("time"), f"{where}: time"), _pair(entry.get("workspace"), f"{where}: workspace")
    return Fit({batch: (round(ns), round(size)) for batch, (ns, size) in points.items()}, time, workspace)


def _pair(value: Any, where: str) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise BadCosts(f"{where}: expected two numbers, found {value!r}")
    return _number(value[0], where), _number(value[1], where)


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadCosts(f"{where}: expected a mapping, found {value!r:.40}")
    return value


def _number(value: Any, where: str, most: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadCosts(f"{where}: expected a number, found {value!r:.40}")
    if value < 0 or value > most:
        raise BadCosts(
            f"{where}: {value} is {'negative' if value < 0 else 'absurdly large'}; correct it or profile again"
        )
    return value


def _count(value: Any, where: str) -> int:
    if _number(value, where) != int(value):
        raise BadCosts(f"{where}: expected a whole number, found {value!r:.40}")
    return int(value)


def _check_names(entry: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Refuse a name that nothing reads, such as one that is spelled wrong."""
    if other := next((name for name in entry if name not in known), None):
        raise BadCosts(f"{where}: {other!r:.40} means nothing here; there are {', '.join(known)}")


def _plain(cost: OpCost) -> dict[str, Any]:
    plain: dict[str, Any] = {"ns": cost.ns, "workspace": cost.workspace, "how": cost.how}
    for name in ("alone", "spread", "runs"):
        if getattr(cost, name) is not None:
            plain[name] = getattr(cost, name)
    if cost.note:
        plain["note"] = cost.note
    if cost.pinned:
        plain["pinned"] = True
    if cost.fit:
        plain["fit"] = {
            "points": {batch: list(point) for batch, point in sorted(cost.fit.points.items())},
            "time": list(cost.fit.time),
            "workspace": list(cost.fit.workspace),
        }
    return plain


def _key(name: str) -> str:
    """A name as a YAML key; it is quoted where a reader could take it for something else."""
    if re.fullmatch(r"[A-Za-z_/][\w./:-]*\w", name, re.ASCII) and name.lower() not in RESERVED:
        return name
    plain = (c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in name)
    return f'"{"".join(plain)}"'


def _flow(value: Any) -> str:
    text = yaml.dump(value, Dumper=_dumper(), default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6)
    return text.removesuffix("\n").removesuffix("...").rstrip("\n")


def _dumper() -> Any:
    return getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def _loader() -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)
