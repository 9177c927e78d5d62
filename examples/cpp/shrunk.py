"""Models that `remat shrink --for c` wrote, in C++ by the lines of docs/how-to/cpp.md as they stand.

    remat shrink yolov8s.onnx --for c
    PYTHONPATH=. python examples/cpp/shrunk.py HEADERS yolov8s.small.onnx >> examples/cpp/shrunk.jsonl

HEADERS: as for run.py. Inputs are random, by the seed 0. `cpp`: what the process grew by, its session and its runs
included, in bytes; `ms`: its fastest run. `python`, `python_ms`: the same of a process in Python with the same files,
as `remat shrink` meters it. `same`: whether both gave the same bits. `missed`: requests that had no place.
`examples/csharp/shrunk.py` has the same rows of a program in C#, with `csharp` in place of `cpp`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from onnx import helper

from examples.cpp.run import blocks, native_library
from profiles import device as devices
from remat_cli.actions.placing import write_sources
from remat_cli.checking import feeds as feeding
from remat_cli.checking.child import IN_C, UserProgram
from remat_cli.checking.metered import MeteredProcess
from remat_cli.formats import placesfile
from remat_cli.ingest import ingest
from solvers.clock import FOREVER_SECONDS, Clock

HERE = Path(__file__).parent
RUNS = 6


class Program(NamedTuple):
    """The words that run it, and the name of its language in a row."""

    words: list[str]
    language: str


def compiled(headers: Path, folder: Path) -> Program:
    options, _, places, run = blocks()
    places = places.replace('"train.disabled.remat.places"', "given[4]")
    text = (HERE / "infer.cpp").read_text().replace("  OPTIONS\n", options)
    (folder / "infer.cpp").write_text(text.replace("  PLACES\n", places).replace("      RUN\n", run))
    write_sources(folder)
    subprocess.run(["cc", "-O2", "-std=c11", "-c", "remat_places.c"], cwd=folder, check=True)
    library = native_library()
    (folder / library.name.rsplit(".", 2)[0]).symlink_to(library)  # libonnxruntime.so.1, as it names itself
    sources = [str(folder / "infer.cpp"), str(folder / "remat_places.o"), str(library)]
    linked = [f"-Wl,-rpath,{folder}", "-ldl", "-lpthread", "-o", str(folder / "infer")]
    subprocess.run(["g++", "-std=c++17", "-O1", f"-I{headers}", *sources, *linked], check=True)
    return Program([str(folder / "infer")], "cpp")


def written(feeds: dict[str, np.ndarray], folder: Path) -> Path:
    lines = []
    for number, (name, array) in enumerate(feeds.items()):
        file = folder / f"feed{number}"
        file.write_bytes(np.ascontiguousarray(array).tobytes())
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        lines.append(" ".join(map(str, (name, kind, array.ndim, *array.shape, file))))
    (folder / "feeds").write_text("\n".join(lines) + "\n")
    np.savez(folder / "feeds.npz", **feeds)
    return folder / "feeds"


def row(model: Path, program: Program, folder: Path) -> dict[str, Any]:
    threads = devices.find("cpu").threads
    feeds, out = written(feeding.draw_feeds(ingest(model), 0), folder), folder / "out"
    words = map(str, (model, feeds, out, placesfile.beside(model), threads, RUNS))
    done = subprocess.run([*program.words, *words], check=True, capture_output=True, text=True)
    grew, fastest, missed = map(int, done.stdout.split())
    with MeteredProcess(UserProgram(model, IN_C, threads), folder / "feeds.npz", Clock(FOREVER_SECONDS)) as other:
        other.make()
        for _ in range(RUNS):
            other.run()
        held, times = other.peak, other.times[1:]
        other.keep(folder / "results.npz")
    with np.load(folder / "results.npz") as results:
        right = b"".join(np.ascontiguousarray(results[name]).tobytes() for name in results.files)
    return {
        "model": model.stem,
        program.language: 1024 * grew,
        "python": held,
        "share": round(1024 * grew / held, 3),
        "ms": fastest / 1e3,
        "python_ms": round(min(times) / 1e6, 3),
        "missed": missed,
        "same": out.read_bytes() == right,
    }


def main(says: str | None, takes: str, compiled: Callable[[Path, Path], Program]) -> None:
    """`takes`: what the compiler needs of ONNX Runtime."""
    reads = argparse.ArgumentParser(description=says, formatter_class=argparse.RawDescriptionHelpFormatter)
    reads.add_argument("library", type=Path, metavar=takes)
    reads.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    asked = reads.parse_args()
    with TemporaryDirectory() as scratch:
        program = compiled(asked.library, Path(scratch))
        for model in asked.models:
            print(json.dumps(row(model, program, Path(scratch))), flush=True)


if __name__ == "__main__":
    main(__doc__, "HEADERS", compiled)
