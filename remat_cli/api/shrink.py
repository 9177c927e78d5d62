"""`remat.shrink`: a model that is only run, in less memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from remat_cli import usual
from remat_cli.actions.interrupts import stoppable
from remat_cli.actions.shrinking.asked import ShrinkQuestion
from remat_cli.actions.shrinking.shrink import Shrinking, Shrunk, check_places, folder_for
from remat_cli.actions.shrinking.ways import TriedWay
from remat_cli.api import given
from remat_cli.api.given import File, Model
from remat_cli.arguments import word
from remat_cli.checking.trying import in_file
from remat_cli.errors import Interrupted, NoPlan, Usage
from remat_cli.formats.files import stem_of

IN_MEMORY = Path("model.onnx")


def shrink(
    model: Model,
    output: File | None = None,
    *,
    feeds: File | Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
    also: Sequence[Mapping[str, int]] = (),
    max_slower: float | str = usual.SLOWER,
    target: str = "python",
    time_limit: float | str | None = None,
    work_limit: int | str | None = None,
    seed: int = 0,
    cache: bool = True,
    report: Callable[[TriedWay], None] | None = None,
) -> Shrunk:
    """Try every way of running a model in less memory, measure each in a process of its own, and write the best.

    - `model`: a path, or an onnx.ModelProto. `output`: where the smaller model goes, by default `m.small.onnx` of
      `m.onnx`; it is written only where it holds clearly less than two options of ONNX Runtime do.
    - `feeds`: inputs by name, or a file of them, from which sizes are taken too; by default random and valid, by the
      `seed`. `dims`: sizes of symbolic dimensions. `also`: other sizes that the same file has to run.
    - `max_slower`: the share of time that less memory may cost.
    - `target`: what is to run it: "python" (`remat.session`), "c", or "stock" ONNX Runtime.
    - `time_limit`: in seconds or words ("5m"), by default 120. `work_limit`: in moves of the searches for plans, as
      `solve` takes it; each plan has its share. `cache`: what was found before is not looked for again.
    - `report`: called with each way as soon as it was tried.

    Raises NoPlan where there was no time to run the model at all; at Ctrl-C Interrupted, whose `found` is what there
    was by then, its files written.

    Example:

        found = remat.shrink("net.onnx", feeds={"x": batch})
        print(found.choice.best, found.files)
    """
    asked = ShrinkQuestion(
        feeds=given.feeds_of(feeds),
        dims=given.sizes_of(dims),
        also=tuple(given.sizes_of(sizes, "also") for sizes in given.items_of(also, "also")),
        slower=given.share_of(max_slower, "max_slower"),
        target=word(target, "target"),
        seed=given.seed_of(seed),
    )
    asked.check()
    whole, heard = given.model_of(model), given.heard_by(report)
    clock = given.clock_of(time_limit, work_limit, usual.SHRINK_TIME)
    place = _output(whole, output)
    with stoppable() as interrupts, folder_for(place) as folder:
        path = whole if isinstance(whole, Path) else in_file(whole, IN_MEMORY, folder)
        check_places(place, asked.target, path)
        memory = given.memory_of(cache, clock.seconds)
        work = Shrinking(path, place, folder, asked, clock.unless(interrupts), heard, memory=memory)
        work.run()
        found = work.finish()
    if interrupts.asked:
        raise Interrupted(found=found)
    if found.choice is None:
        raise NoPlan("time was up before the model had run; give more with time_limit")
    return found


def _output(model: Path | onnx.ModelProto, output: File | None) -> Path:
    if output is not None:
        return given.path_of(output, "output")
    if isinstance(model, Path):
        return model.with_name(f"{stem_of(model)}.small.onnx")
    raise Usage("a model in memory has no place: say output='net.small.onnx'")
