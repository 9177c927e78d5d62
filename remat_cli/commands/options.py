"""What several commands share: their options, written once so that they read the same everywhere, and their ends."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from remat_cli import usual
from remat_cli.arguments import as_float, brief, may_name
from remat_cli.commands.helping import GroupedCommand as GroupedCommand
from remat_cli.errors import NoPlan, RematError, Usage, error_in
from remat_cli.interrupts import ANSWER
from remat_cli.model.quantities import (
    parse_age,
    parse_budget,
    parse_budgets,
    parse_bytes,
    parse_count,
    parse_seconds,
    parse_share,
)
from remat_cli.model.sessions import KINDS, REMAT, RUNTIME_OF, RUNTIMES, Session

if TYPE_CHECKING:
    from remat_cli.actions.pieces_asked import PiecesAsked
    from remat_cli.model.in_place import InPlace
    from remat_cli.results.memory import Memory
    from solvers.clock import Clock

Command = TypeVar("Command", bound=Callable[..., Any])
BUSY_SHARE = 0.5  # of the time on the wall that had a processor: below it, the machine is said to be busy


class _Parsed(click.ParamType[Any]):
    """A parameter read by a function that raises ValueError with what it expects."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Named(click.Path):
    """A path by which a file can be called."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not may_name(path):
            self.fail(f"no file can be called {brief(str(path))}", param, ctx)
        return path


def _parse_pair(text: str) -> tuple[float, float]:
    try:
        one, other = (float(number) for number in text.split(","))
    except ValueError as error:
        raise ValueError(f"'{text}' is not two numbers, such as 0.9,0.95") from error
    return one, other


def _parse_dim(text: str) -> tuple[str, int]:
    name, _, size = text.partition("=")
    if not name or not size.isdigit() or int(size) < 1:
        raise ValueError(f"'{text}' does not bind a dimension: write --dim batch=32")
    return name, int(size)


def _parse_sized(text: str) -> tuple[str, int | None]:
    name, _, size = text.partition("=")
    return (name, None) if name and size == "max" else _parse_dim(text)


def _parse_sizes(text: str) -> tuple[int, ...]:
    sizes = [part.strip() for part in text.split(",")]
    if not all(size.isdigit() and int(size) > 0 for size in sizes):
        raise ValueError(f"'{text}' is no list of sizes: write 1,8,32")
    return tuple(sorted({int(size) for size in sizes}))


def _parse_shape(text: str) -> tuple[str, list[int]]:
    name, _, sizes = text.rpartition("=")
    parts = sizes.split(",")
    if not name or not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise ValueError(f"'{text}' gives no shape: write --shape input=1,3,224,224")
    return name, [int(part) for part in parts]


def _parse_tie(text: str) -> tuple[str, str]:
    kept, _, gone = text.partition("=")
    if not kept or not gone:
        raise ValueError(f"'{text}' ties nothing: write --tie embedding.weight=head.weight")
    return kept, gone


def _parse_tolerance(text: str) -> float:
    number = as_float(text)
    if number is None or not 0 <= number < inf:
        raise ValueError(f"'{text}' is not a number that is at least 0")
    return number


def _parse_seed(text: str) -> int:
    if not text.isdigit() or int(text) >= 2**31:
        raise ValueError(f"'{text}' is no seed: write a whole number from 0 to {2**31 - 1}")
    return int(text)


def _parse_image(text: str) -> int | tuple[int, int]:
    sizes = [int(part) if part.isdigit() else 0 for part in text.lower().split("x")]
    if not 1 <= len(sizes) <= 2 or min(sizes) < 1:
        raise ValueError(f"'{text}' is no image size: write 224, or height and width as 416x608")
    return sizes[0] if len(sizes) == 1 else (sizes[0], sizes[1])


BUDGETS = _Parsed("budgets", parse_budgets)
SIZE = _Parsed("size", parse_budget)
BYTES = _Parsed("size", parse_bytes)
COUNT = _Parsed("moves", parse_count)
AGE = _Parsed("age", parse_age)
TIME = _Parsed("time", parse_seconds)
SHARE = _Parsed("share", parse_share)
ALLOWANCE = _Parsed("share", lambda text: None if text.strip() == "forward" else parse_share(text))
DIM = _Parsed("name=size", _parse_dim)
DIMS = _Parsed("name=size,...", lambda text: dict(map(_parse_dim, text.split(","))))
PAIR = _Parsed("NUMBER,NUMBER", _parse_pair)
SIZES = _Parsed("sizes", _parse_sizes)
SIZED = _Parsed("name=size", _parse_sized)
SHAPE = _Parsed("name=sizes", _parse_shape)
TIE = _Parsed("name=name", _parse_tie)
TOLERANCE = _Parsed("number", _parse_tolerance)
SEED = _Parsed("n", _parse_seed)
IMAGE = _Parsed("size", _parse_image)
FUSION = click.Choice(["ideal", "runtime"])  # all neighbours that can be fused, or what onnxruntime fuses
FILE = _Named(dir_okay=False, path_type=Path)
PLACE = _Named(path_type=Path)
FOLDER = _Named(file_okay=False, path_type=Path)

output = click.option("-o", "--output", type=FILE, help="Where to write.  [default: beside the input]")
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else.")
quiet = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
verbose = click.option("-v", "--verbose", count=True, help="Print each step; -vv: SCIP's log too.")
seed = click.option("--seed", type=SEED, default=0, help="Of random choices.  [default: 0]")
_pairs = click.option(
    "--in-place",
    "in_place",
    metavar="[NAME=NEW]",
    multiple=True,
    is_flag=False,
    flag_value="auto",  # AUTO of model/in_place.py, which is imported late
    help="Write NEW over NAME; --no-in-place: none.",
)
_held_twice = click.option("--no-in-place", "held_twice", is_flag=True, hidden=True)


def in_place(command: Command) -> Command:
    """Which outputs take the places of inputs; `asked_in_place` reads both flags."""
    return _pairs(_held_twice(command))


def asked_in_place(given: Mapping[str, Any]) -> InPlace:
    """What the flags ask for; None where they say nothing."""
    from remat_cli.model.in_place import parse_pairs

    pairs, held_twice = given["in_place"], given["held_twice"]
    if held_twice and pairs:
        raise Usage("--no-in-place leaves nothing for --in-place; leave one of them out")
    return {} if held_twice else parse_pairs(pairs) or None


_cuts = click.option(
    "--pieces",
    metavar="HOW",
    help="Ops in pieces: auto, exact, off or VALUE=N.",
)
_largest_value = click.option("--largest-value", type=BYTES, help="No op may make a larger value: 1GiB.")


def pieces(command: Command) -> Command:
    """Which ops are cut into pieces before anything is planned; `asked_pieces` reads both flags."""
    return _cuts(_largest_value(command))


def asked_pieces(given: Mapping[str, Any]) -> PiecesAsked:
    from remat_cli.actions.pieces_asked import pieces_named

    return pieces_named(given["pieces"], given["largest_value"])


optimize = click.option(
    "--optimize",
    type=click.Choice(["disabled", "basic", "extended", "all"]),
    metavar="LEVEL",
    help="First optimize: disabled, basic, extended, all.",
)
dims = click.option("--dim", "dims", type=DIM, multiple=True, help="Bind a symbolic dimension: batch=32.")
time_limit = click.option("--time-limit", type=TIME, default=usual.SOLVE_TIME, show_default=True, help="90s, 5m, 1h.")


def estimate(says: str) -> Callable[[Command], Command]:
    """Costs from paper, with what that means for the command."""
    return click.option(
        "--estimate", metavar="DEVICE", help=f"{says}: a device from paper (v100, h100, ...), or flops."
    )


def time_for_all(default: str) -> Callable[[Command], Command]:
    """The limit of a command that asks much, with the time that it takes by itself."""
    return click.option(
        "--time-limit", type=TIME, default=default, show_default=True, help="For all of it: 90s, 5m, 1h."
    )


force = click.option("--force", is_flag=True, help="Search again, whatever is kept from before.")


def clock_of(given: Mapping[str, Any]) -> Clock:
    """The clock of a command with these flags, which runs since the process began, where that is known; work that is
    limited has no limit of time unless that is given too."""
    from solvers.clock import limited

    context = click.get_current_context()
    unsaid = context.get_parameter_source("time_limit") is ParameterSource.DEFAULT
    work_limit = given.get("work_limit")
    clock = limited(None if unsaid and work_limit is not None else given["time_limit"], work_limit)
    begun = context.find_object(float)
    return clock if begun is None else replace(clock, begun=begun)


def memory_of(clock: Clock, given: Mapping[str, Any]) -> Memory:
    """Where answers are kept, and whether this one is looked for there."""
    from remat_cli.results.memory import user_memory

    def say(words: str) -> None:
        if not given["quiet"]:
            click.echo(f"remat: {words}", err=True)

    return user_memory(clock.seconds, given["force"], say)


work_limit = click.option(
    "--work-limit",
    type=COUNT,
    help="Limit the search in moves instead: 5M.",
)
gap = click.option("--gap", type=SHARE, default=usual.GAP, show_default=True, help="Stop this close to the bound.")
budget = click.option("--budget", type=SIZE, help="16GB, 16GiB, or 75% of what the model holds.")
costs = click.option("--costs", type=FILE, help="What ops cost.  [default: MODEL.costs.yaml]")
_SESSION_SAID = "remat_cli.session_said"  # where a command's context has what --session named


def runtime(command: Command) -> Command:
    """`--runtime`, as the kind of `session` that it means, and the names that it had before."""
    named = click.option(
        "--runtime",
        "session",
        type=click.Choice(RUNTIMES),
        callback=_runtime_named,
        metavar="KIND",
        help="What runs the plan: remat (remat.session, in Python on Linux) or stock.  [default: remat]",
    )
    session = click.option(
        "--session",
        "session_said",
        type=click.Choice(tuple(RUNTIME_OF)),
        callback=_note_session,
        hidden=True,
        expose_value=False,
        is_eager=True,
    )
    allocator = click.option(
        "--allocator",
        type=click.Choice(["planned", "arena"]),
        callback=_note_allocator,
        hidden=True,
        expose_value=False,
        is_eager=True,
    )
    return named(session(allocator(command)))


def _runtime_named(context: click.Context, _: click.Parameter, value: str | None) -> Session:
    said = context.meta.get(_SESSION_SAID)
    before = said and RUNTIME_OF[said]
    if value is not None and said is not None and value != before:
        raise click.UsageError(f"--runtime {value} and --session contradict each other; leave out --session")
    if said is not None:
        click.echo(f"note: --session {said} is called --runtime {before} now; the old name ends with 0.3", err=True)
    return KINDS[value or before or REMAT]


def _note_session(context: click.Context, _: click.Parameter, value: str | None) -> None:
    context.meta[_SESSION_SAID] = value


def _note_allocator(_: click.Context, __: click.Parameter, value: str | None) -> None:
    if value == "arena":
        why = "they were dearer, and a larger cap could fail where a smaller one ran"
        words = f"plans for a capped arena are made no more: {why}; leave out --allocator, or say --runtime stock"
        raise click.UsageError(words)
    if value is not None:
        click.echo("note: --allocator is not needed any more; the flag ends with 0.3", err=True)


loss = click.option(
    "--loss",
    help="cross-entropy, mse, or the name of an output that is a scalar loss already; by default the first output, "
    "if it is a scalar, else cross-entropy.",
)
logits = click.option("--logits", help="The value that cross-entropy or mse is taken of; by default the first output.")
class_axis = click.option(
    "--class-axis",
    type=int,
    help="The axis of the logits that labels choose from; by default 1, or the last of [batch, position, class].",
)
wrt = click.option("--wrt", multiple=True, help="Train these alone (repeat, or separate with commas); default: all.")


def names_among(given: tuple[str, ...]) -> list[str]:
    """The names of an option that may be repeated, or have several between commas."""
    return [name for words in given for name in words.split(",") if name]


optimizer = click.option(
    "--optimizer",
    type=click.Choice(["none", "sgd", "momentum", "adam", "adamw"]),
    default="none",
    show_default=True,
    help="Update the parameters in the graph.",
)
train = click.option(
    "--train", is_flag=True, help="Train every Dropout and BatchNormalization, whatever mode the file has it in."
)
freeze_bn = click.option(
    "--freeze-bn", is_flag=True, help="Accept BatchNormalization in inference mode, its statistics fixed."
)


def optimized(model: Path, level: str | None) -> Path:
    """The model, or the file of what onnxruntime makes of it, if that is asked for."""
    if level is None:
        return model
    from remat_cli.actions.optimizing import optimize_file

    return optimize_file(model, level)


def say_object(said: Mapping[str, Any], error: RematError | None = None) -> None:
    """What a command prints for --json, with the error that it ends in."""
    ANSWER.say(json.dumps(error_in(said, error)))


def tell_no_plan(halted: bool, clock: Clock, said: Mapping[str, Any] | None = None) -> RematError:
    """The last words of a command that ended before there was a plan, and the error that it ends in. `said`: what JSON
    has besides, if that is asked for."""
    from remat_cli.actions.interrupts import Halted

    words = "no plan was found within the time limit; give more time with --time-limit"
    had, passed = time.process_time(), clock.elapsed()
    if had < BUSY_SHARE * passed:
        words += f" (this machine is busy: of {passed:.1f} s the command had {had:.1f} on a processor)"
    error = Halted("interrupted before there was a plan") if halted else NoPlan(words)
    if said is not None:
        say_object(said, error)
    click.echo(f"remat: {error}", err=True)
    return error
