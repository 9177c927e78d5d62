"""Writes what a session of a plan is made from, here or in a process of its own:
`python -m remat_cli.actions.session_writing PARENT`.

Invariant: the parts stand in the folder, but for a model that the plan does not change: that stays where it is. An op
that is said to run before all updates does so in whatever order the session runs. Weights may be let go of where all
lie in one file beside the model.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import onnx

from remat_cli import errors
from remat_cli.actions import emitting
from remat_cli.actions.emitting import Emitted
from remat_cli.actions.session_parts import SessionParts
from remat_cli.children import serve
from remat_cli.errors import BadInput, RematError
from remat_cli.formats.files import write_whole
from remat_cli.formats.planfile import RecordedPlaces
from remat_cli.formats.weights import KEPT_BYTES, StoredWeight, Weights
from remat_cli.model.graph import Graph
from remat_cli.model.sessions import STRICT, Session
from remat_cli.notes.kinds import PlanNote
from remat_cli.notes.words import sentences
from remat_cli.onnx_graph.stored import WEIGHTS, is_beside, length_of, offset_of, put_apart, weights_file
from remat_cli.planning.kinds import target_of
from remat_cli.plans.planned import Planned, load_planned
from remat_cli.runtime.optimized import layout_block
from remat_cli.runtime.table import PlacesTable
from remat_cli.training.failing import NOTHING_WRITTEN, SMALL_BYTES, WrittenState
from remat_cli.training.state import frame_of

MODEL, FRAME, PLACES = "model.onnx", "frame.onnx", "places"
WORTH_IT = 4  # times as many bytes as stay: fewer weights are not worth it
OTHER_PROCESSOR = (
    "{} was made on another kind of processor: it has the layouts of convolutions that onnxruntime chose there, and"
    " would give other results here; run 'remat shrink' on this one"
)


def write_parts(plan: Planned, folder: Path) -> SessionParts:
    _check_layout(plan)
    emitted, recorded, graph = emitting.emit(plan), plan.recorded, plan.subject.graph
    original = plan.subject.path.resolve()
    model, tensors = _files(emitted, original, folder)
    places = recorded.placement
    seen = 0 if places is None else places.threads or 0
    return SessionParts(
        model=str(model),
        tensors=str(tensors),
        runtime=recorded.kind.runtime,
        threads=seen or plan.subject.threads,
        placed=places is not None,
        places=_places(places, folder) if places is not None and (plan.subject.measured or seen) else "",
        in_place=dict(graph.in_place) if graph else {},
        before=sorted(_written(plan, emitted).before),
        notes=sentences(note for note in plan.subject.notes if note.kind == PlanNote.WRITES_OVER),
        weights=_weights(places, emitted.model, tensors),
        frame=str(_frame(emitting.graph_of(plan).model, folder)),
    )


def _check_layout(plan: Planned) -> None:
    places = plan.recorded.placement
    if places is not None and places.layout not in (None, layout_block()):
        raise BadInput(OTHER_PROCESSOR.format(plan.path or plan.subject.path))


def _written(plan: Planned, emitted: Emitted) -> WrittenState:
    order = [plan.subject.nodes[node] for node in plan.replayed()[0].order()]
    return written_over(plan.subject.graph, emitted.model, order, plan.recorded.kind)


def _places(places: RecordedPlaces, folder: Path) -> str:
    """The file of the plan's places."""
    (folder / PLACES).write_bytes(PlacesTable.of(places).content())
    return str(folder / PLACES)


def _weights(places: RecordedPlaces | None, model: onnx.ModelProto, folder: Path) -> tuple[Any, ...]:
    """The weights that the plan says may be let go of."""
    found = weights_of(model, folder, places.weights) if places is not None and places.weights else None
    return () if found is None else astuple(found)


def _frame(model: onnx.ModelProto, folder: Path) -> Path:
    write_whole(folder / FRAME, frame_of(model).SerializeToString())
    return folder / FRAME


def _files(emitted: Emitted, original: Path, folder: Path) -> tuple[Path, Path]:
    """The model's file, and the folder of its external tensors."""
    if emitted.unchanged and emitted.plan.subject.content is None:
        return original, original.parent
    put_apart(emitted.model, folder)
    write_whole(folder / MODEL, emitted.model.SerializeToString(deterministic=True))
    return folder / MODEL, folder if (folder / WEIGHTS).exists() else original.parent


def kept_of(model: onnx.ModelProto, folder: Path) -> int | None:
    """How many bytes of the model's weights are to stay in memory; None for all of them."""
    file = weights_file(model)
    return None if file is None or (folder / file).stat().st_size < WORTH_IT * KEPT_BYTES else KEPT_BYTES


def weights_of(model: onnx.ModelProto, folder: Path, kept: int) -> Weights | None:
    """The weights that lie in one file, of a model in that folder; None where they lie in several, or in none."""
    file = weights_file(model)
    if file is None:
        return None
    beside = [(one, _stored(one)) for one in model.graph.initializer if is_beside(one)]
    whole = tuple(
        stored for one, stored in beside if stored.bytes == length_of(one)
    )  # others take less than a byte each
    return Weights(str(folder / file), kept, whole)


def _stored(tensor: onnx.TensorProto) -> StoredWeight:
    width = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return StoredWeight(tensor.name, tensor.data_type, width, tuple(tensor.dims), offset_of(tensor))


def written_over(
    graph: Graph | None, model: onnx.ModelProto, order: Sequence[str], session: Session = STRICT
) -> WrittenState:
    """What a run of the model in such a session writes over. `order`: of the graph's ops, by the plan."""
    if graph is None:
        return NOTHING_WRITTEN
    large = {name for name in graph.in_place if graph.values[name].bytes > SMALL_BYTES}
    before = target_of(session).runs_before(large, graph, model, order)
    return WrittenState(frozenset(graph.in_place.values()), before)


def answers(told: list[str]) -> Iterator[dict[str, Any]]:
    """Told a plan and a folder, the parts; or the error to raise."""
    plan, folder = map(Path, told)
    try:
        planned = load_planned(plan)
        if planned.subject.graph is not None and planned.recorded.kind.keeps_order:
            put_apart(planned.subject.graph.model, folder)  # before it is copied
        yield asdict(write_parts(planned, folder))
    except RematError as error:
        named = type(error) if type(error).__module__ == errors.__name__ else BadInput
        yield {"error": named.__name__, "says": str(error)}


if __name__ == "__main__":
    serve(sys.argv[1], answers)
