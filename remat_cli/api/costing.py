"""`remat.profile` and `remat.in_pieces`: what a program asks of a model before it is planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import onnx

from profiles.costs import Costs
from profiles.survey import SurveyProgress
from remat_cli import usual
from remat_cli.actions import piecing, profiling
from remat_cli.api import given
from remat_cli.api.given import Model, warn
from remat_cli.arguments import switch, whole_number, word
from remat_cli.ingest import ingest
from remat_cli.notes.words import sentences
from solvers.clock import Clock


def profile(
    model: Model,
    *,
    device: str = "auto",
    estimate: str | None = None,
    threads: int | None = None,
    batches: Iterable[int] | int = (),
    batch_dim: str | None = None,
    dims: Mapping[str, int] | None = None,
    time_limit: float | str = usual.PROFILE_TIME,
    strict: bool = False,
    runtime: str = "remat",
    session: str | None = None,
    cache: bool = True,
    whole: bool = True,
    report: Callable[[SurveyProgress], None] | None = None,
) -> Costs:
    """What each op costs: measured here, or on paper.

    - `model`: a path, or an onnx.ModelProto; `dims`: sizes of symbolic dimensions.
    - `device`: "auto", "cpu" or "cuda"; `threads`: of a CPU, that one op may use. `estimate`: a device from paper, such
      as "v100", or "flops": nothing is run.
    - `batches`: one profile for each of these sizes of `batch_dim`.
    - `runtime`: with "stock", what kernels cost that only stock sessions have is measured too, not estimated.
      `session`: the same by an older name.
    - `strict`: an op that cannot be measured is an error. `whole`: the whole graph is run too.
    - `time_limit`: in seconds or words ("5m"). `cache`: what was measured before is not measured again.
    - `report`: called with which op is being timed.

    Example:

        costs = remat.profile("train.onnx", estimate="v100")
    """
    sizes = given.items_of(batches, "batches") if isinstance(batches, Iterable) else (batches,)
    asked = profiling.ProfileQuestion(
        session=given.kind_of(runtime, session),
        device=word(device, "device"),
        estimate=None if estimate is None else word(estimate, "estimate"),
        threads=None if threads is None else whole_number(threads, "threads", 1),
        batches=tuple(whole_number(size, "batches", 1) for size in sizes) or None,
        batch_dim=None if batch_dim is None else word(batch_dim, "batch_dim"),
        strict=switch(strict, "strict"),
        cached=switch(cache, "cache"),
        whole=switch(whole, "whole"),
        seconds=given.seconds_of(time_limit),
        dims=given.sizes_of(dims),
    )
    heard, steps = given.heard_by(report), profiling.Steps()
    with steps.read_by(heard):
        clock = Clock(asked.seconds).unless(steps.broken)
        found = profiling.profile(given.model_of(model), asked, steps, clock)
    warn(sentences(found.notes))
    return found.costs


def in_pieces(
    model: Model, *, largest_value: int | str, exact: bool = False, dims: Mapping[str, int] | None = None
) -> onnx.ModelProto:
    """The model with its ops in pieces, so that no op makes a larger value.

    - `model`: a path, or an onnx.ModelProto; `dims`: sizes of symbolic dimensions.
    - `largest_value`: bytes, or "64MB".
    - `exact`: cut only where pieces gave the same bits when they were tried; else sums may be in pieces too, and differ
      in the last bits.

    Raises BadInput where an op that is in the way cannot be cut.

    Example:

        narrow = remat.in_pieces("train.onnx", largest_value="64MB")
    """
    most, sizes, whole = given.bytes_of(largest_value, "largest_value"), given.sizes_of(dims), given.model_of(model)
    graph = ingest(whole, sizes)
    return piecing.narrowed(graph, most, switch(exact, "exact")).made.graph.model
