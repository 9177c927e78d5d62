"""What the figures share: a network's training step, and results that are kept as they come, network by network."""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from remat_cli.actions.profiling import ProfileQuestion, profile
from remat_cli.gradient.training import Options, training_graph
from remat_cli.model.sessions import STRICT, Session
from remat_cli.planning.loading import load_subject
from remat_cli.planning.subjects.subject import Subject
from remat_cli.zoo.build import build

HERE = Path(__file__).parent


def step_of(name: str, device: str = "v100", session: Session = STRICT, **settings: Any) -> Subject:
    """A training step of the zoo's, with estimates of what its ops cost on such a device."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        forward = build(name, weights="inputs", **settings)
        path.write_bytes(training_graph(forward, Options()).SerializeToString())
        costs = profile(path, ProfileQuestion(estimate=device, cached=False)).costs
        return load_subject(path, costs, {}, session)


def asked_for(networks: Iterable[str], seconds: float) -> tuple[list[str], float]:
    """The networks that the command names, or all, and how long each may take."""
    told = argparse.ArgumentParser()
    told.add_argument("--seconds", type=float, default=seconds)
    told.add_argument("networks", nargs="*", default=list(networks))
    found = told.parse_args()
    return found.networks, found.seconds


def kept(stem: str, every: Iterable[str], measure: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """The results in STEM.json, those of the networks that the command names, or of all, made anew; --draw: of none."""
    stored = HERE / f"{stem}.json"
    results: dict[str, Any] = json.loads(stored.read_text()) if stored.exists() else {}
    for name in () if sys.argv[1:] == ["--draw"] else sys.argv[1:] or every:
        results[name] = measure(name)
        stored.write_text(json.dumps(results, indent=1) + "\n")
    return {name: results[name] for name in every if name in results}


def write_table(stem: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with (HERE / f"{stem}.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
