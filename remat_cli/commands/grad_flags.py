"""The flags of `remat grad`, as a record, and what they come to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remat_cli.gradient.training import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class GradFlags:
    """A field a flag, as click has parsed it."""

    loss: str | None
    logits: str | None
    outputs: tuple[str, ...]
    class_axis: int | None
    wrt: tuple[str, ...]
    params_from: Path | None
    ties: tuple[tuple[str, str], ...]
    as_exported: bool
    batch: int | None
    shapes: tuple[tuple[str, list[int]], ...]
    dims: tuple[tuple[str, int], ...]
    optimizer: str
    learning_rate: float
    weight_decay: float | None
    betas: tuple[float, float] | None
    eps: float | None
    momentum: float | None
    clip: float | None
    groups: tuple[str, ...]
    accumulate: bool
    train: bool
    freeze_bn: bool
    precision: str
    device: str
    table: bool
    output: Path | None
    as_json: bool
    quiet: bool


def options_of(flags: GradFlags) -> Options:
    """What is asked of the training graph."""
    from remat_cli.actions.recipes import read_groups, recipe_of
    from remat_cli.gradient.parameters import Choice
    from remat_cli.gradient.prepare import Binding
    from remat_cli.gradient.training import Options

    chosen: dict[str, Any] = {"learning_rate": flags.learning_rate, "weight_decay": flags.weight_decay}
    chosen |= {"betas": flags.betas, "eps": flags.eps, "momentum": flags.momentum}
    chosen |= {"groups": read_groups(flags.groups), "clip": flags.clip}
    return Options(
        loss=flags.loss,
        logits=flags.logits,
        class_axis=flags.class_axis,
        outputs=names_among(flags.outputs),
        choice=Choice(names_among(flags.wrt), _names_in(flags.params_from), flags.ties, flags.as_exported),
        binding=Binding(dict(flags.shapes), flags.batch, dict(flags.dims)),
        recipe=recipe_of(flags.optimizer, chosen),
        freeze_bn=flags.freeze_bn,
        train=flags.train,
        precision=flags.precision,
        accumulate=flags.accumulate,
    )


def names_among(given: tuple[str, ...]) -> list[str]:
    return [name for words in given for name in words.split(",") if name]


def _names_in(path: Path | None) -> list[str]:
    """The first word of each line; what follows, such as a shape, is for people."""
    from remat_cli.errors import BadInput

    if path is None:
        return []
    try:
        names = [line.split()[0] for line in path.read_text().splitlines() if line.split()]
    except OSError as error:
        raise BadInput(f"cannot read the names of parameters in {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} holds no names of parameters: it is not even text") from error
    if not names:
        raise BadInput(f"{path} names no parameters; write one to a line")
    return names
