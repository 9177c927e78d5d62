"""`show --html`: one page that holds all it shows and loads nothing.

Invariant: what comes from the user's files is text everywhere, never markup and never script. The page's policy lets
only its own script run, and lets nothing be fetched.
"""

from __future__ import annotations

import json
import shlex
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from remat_cli.formats.curvefile import CurveRecord
from remat_cli.notes.words import sentences
from remat_cli.saying.page.packing import pack
from remat_cli.saying.report import held_words
from remat_cli.saying.showing import Shown, again
from remat_cli.units import show_bytes, show_change, show_share, show_time

SCRIPTS = ("data.js", "timeline.js", "moment.js", "statements.js", "curve.js", "start.js")


def page(found: Shown, curve: CurveRecord | None = None) -> str:
    """The page of a plan, or of a model without a plan; `curve`: the object that `remat sweep --json` printed."""
    style, script = _asset("page.css"), _script()
    name = found.subject.path.name
    return Template(_asset("page.html")).substitute(
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        title=escape(f"{name} - remat"),
        heading=escape(name),
        below=escape(_below(found)),
        cards="".join(
            f"<li><span>{escape(a)}</span><b>{escape(b)}</b><span>{escape(c)}</span></li>" for a, b, c in _cards(found)
        ),
        command=escape(_command(found)),
        peaks=_peaks(found),
        breakdown=_breakdown(found),
        again=_again(found),
        curve=CURVE if curve else "",
        footer=escape(_footer(found)),
        data=in_script(pack(found) | {"curve": asdict(curve) if curve else None}),
    )


def in_script(data: Any) -> str:
    """JSON in which no name can end the script, or turn into markup or another line of script."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _script() -> str:
    return '"use strict";\n(() => {\n' + "\n".join(map(_asset, SCRIPTS)) + "})();\n"


def _hash(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def _below(found: Shown) -> str:
    plan, count = found.recorded, len(found.subject.nodes)
    if plan is None:
        return f"{count} ops, as it stands"
    return f"{count} ops; {plan.method}, {plan.status}, {plan.session} session"


def _cards(found: Shown) -> Iterator[tuple[str, str, str]]:
    before, after, plan = found.before, found.after, found.recorded
    if plan is None:
        yield "live at once", show_bytes(before.peak), f"{show_bytes(found.subject.problem.resident)} of it fixed"
        yield "time", show_time(before.cost), "each op once"
        return
    change = f"{after.peak / max(before.peak, 1) - 1:+.1%}"
    yield "live at once", show_bytes(after.peak), f"{change} from {show_bytes(before.peak)}"
    yield "time", show_time(found.time), f"{found.overhead:+.2%} from {show_time(before.cost)}"
    grows = plan.kind.grows
    yield "budget", show_bytes(plan.budget), "of what is live at once" if grows else "of all the process holds"
    if plan.promises.arena is not None:
        yield "held by the process", held_words(plan.promises, plan.kind), "foretold" if grows else "promised"
    times = sum(found.lines[1].again)
    yield "computed again", str(times), f"of {len(found.plan.order())} computes"
    every, own = plan.proved.gap_any_order, plan.proved.closer_in_order
    if every is not None:
        within = "" if own is None else f", {show_share(own)} in this order of ops"
        yield "at most slower than the fastest plan possible", show_share(every), f"proved{within}"
    elif own is not None:
        yield "at most from the bound", show_share(own), "proved, of the schedules that the notes name"


CURVE = """<section aria-labelledby="trade">
<h2 id="trade">What a budget costs in time</h2>
<svg id="curve" role="img" aria-label="Extra time over budget"></svg>
<ul class="legend" id="methods"></ul>
<p class="quiet" id="point"></p>
</section>
"""


def _command(found: Shown) -> str:
    """What to run next on the file that the page is of."""
    name = shlex.quote(str(found.path))
    return f"remat verify {name}" if found.recorded else f"remat solve {name} --budget 70%"


def _peaks(found: Shown) -> str:
    """Whether the two columns of the breakdown are of one moment."""
    old, new = found.breakdowns()
    if found.recorded is None:
        return ""
    words = "Both peaks are at the same op." if old.node == new.node else "The two peaks are at different ops."
    return f"<p>{words} Each column is of the moment at which its own is.</p>"


def _breakdown(found: Shown) -> str:
    old, new = found.breakdowns()
    if found.recorded is None:
        rows = [(role, (show_bytes(size),)) for role, size in old.sizes.items() if size]
        return _table(
            ("", "bytes"), [*((role.value, *cells) for role, cells in rows), ("in all", show_bytes(old.total))]
        )
    lines = [(role.value, size, new.sizes[role]) for role, size in old.sizes.items() if size or new.sizes[role]]
    sizes = (*lines, ("in all", old.total, new.total))
    cells = [(name, show_bytes(a), show_bytes(b), show_change(a, b, 1)) for name, a, b in sizes]
    where = (("at, as it stands", old.node), ("at, with the plan", new.node))
    return _table(("", "as it stands", "with the plan", "change"), cells, where)


def _again(found: Shown) -> str:
    rows = [(name, str(times), show_time(cost)) for name, times, cost in again(found.subject, found.plan)]
    if not rows:
        return ""
    table = _table(("op", "times more", "time"), rows)
    title = f'<h2 id="again">Computed again ({len(rows)} op{"s" * (len(rows) > 1)})</h2>'
    listed = f'<div class="scroll"><table class="plain">{table}</table></div>'
    return f'<section aria-labelledby="again">\n{title}\n{listed}\n</section>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], named: Iterable[tuple[str, str]] = ()) -> str:
    """An HTML table. `named`: rows at the end, each with a name that spans all columns but the first."""

    def line(tag: str, cells: Sequence[str]) -> str:
        kinds = ['class="name"', *['class="number"'] * (len(cells) - 1)]
        return "<tr>" + "".join(f"<{tag} {k}>{escape(c)}</{tag}>" for k, c in zip(kinds, cells, strict=True)) + "</tr>"

    def wide(what: str, name: str) -> str:
        return (
            f'<tr><td class="name">{escape(what)}</td>'
            f'<td class="words" colspan="{len(head) - 1}">{escape(name)}</td></tr>'
        )

    lines = [*(line("td", row) for row in rows), *(wide(*each) for each in named)]
    return f"<thead>{line('th', head)}</thead><tbody>{''.join(lines)}</tbody>"


def _footer(found: Shown) -> str:
    plan = found.recorded
    notes = plan.notes if plan else sentences(found.subject.notes)
    return "; ".join(("Figures are replayed from the plan by remat's simulator", *notes)) + "."
