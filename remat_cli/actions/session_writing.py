"""Writes what a session of a plan is made from, here or in a process of its own:
`python -m remat_cli.actions.session_writing PLAN FOLDER PARENT`.

Invariant: the parts stand in the folder, but for a model that the plan does not change: that stays where it is.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import onnx

from remat_cli import errors
from remat_cli.actions import emitting
from remat_cli.actions.emitting import Emitted
from remat_cli.actions.letting_weights_go import weights_of
from remat_cli.actions.session_parts import PARTS, SessionParts
from remat_cli.actions.writing_over import written_over
from remat_cli.errors import BadInput, RematError
from remat_cli.fences import bind_to
from remat_cli.formats.files import write_whole
from remat_cli.formats.planparts import RecordedPlaces
from remat_cli.notes.kinds import PlanNote
from remat_cli.notes.words import sentences
from remat_cli.onnx_graph.apart import WEIGHTS, put_apart
from remat_cli.plans.planned import Planned, load_planned
from remat_cli.runtime.optimized import layout_block
from remat_cli.runtime.table import PlacesTable
from remat_cli.training.failing import WrittenState
from remat_cli.training.frame import frame_of

MODEL, FRAME, PLACES = "model.onnx", "frame.onnx", "places"


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


def main(plan: str, folder: str, parent: str) -> None:
    bind_to(int(parent))
    said: dict[str, Any]
    try:
        planned = load_planned(Path(plan))
        if planned.subject.graph is not None and planned.recorded.kind.keeps_order:
            put_apart(planned.subject.graph.model, Path(folder))  # before it is copied
        said = asdict(write_parts(planned, Path(folder)))
    except RematError as error:
        named = type(error) if type(error).__module__ == errors.__name__ else BadInput
        said = {"error": named.__name__, "says": str(error)}
    write_whole(Path(folder) / PARTS, json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
