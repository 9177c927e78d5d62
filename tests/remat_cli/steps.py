"""Training steps as subjects: networks of the zoo, and forward models written by hand, through `grad` and back."""

from __future__ import annotations

from pathlib import Path

import onnx

from remat_cli.gradient.training import Options, training_graph
from remat_cli.model.sessions import STRICT, Session
from remat_cli.planning.loading import load_subject
from remat_cli.planning.subjects.subject import Subject
from remat_cli.zoo.build import build


def network(folder: Path, name: str, **settings: int | str) -> Subject:
    return step(folder, build(name, weights="inputs", **settings), Options())


def step(folder: Path, forward: onnx.ModelProto, options: Options, session: Session = STRICT) -> Subject:
    path = folder / "step.onnx"
    path.write_bytes(training_graph(forward, options).SerializeToString())
    return load_subject(path, None, {}, session)
