"""The lines of docs/how-to/cpp.md for C++, run as they stand: the same bytes, no more than the plan states?

    remat zoo unet --batch 2 --image 192 --width 16 -o unet.onnx
    remat zoo resnet18 --batch 4 --image 128 -o resnet18.onnx
    PYTHONPATH=. python examples/cpp/run.py HEADERS torch_cnn torch_unet_convt unet.onnx resnet18.onnx \\
        > examples/cpp/results.json

HEADERS: a folder with onnxruntime_cxx_api.h, such as /usr/include/onnxruntime of Debian's libonnxruntime-dev; any
version up to the runtime's does. The runtime is the one that the Python package brings. Each model named, a training
graph of the tests' or a forward model that is given an AdamW step, is planned for a default session. The original and
the rewritten model run three times, each run from the state that the one before gave. `peak`: the most that was live at
the end of any kernel of the first two runs, inputs and weights included, as the runtime's trace says. `state`: bytes of
new state that are written over the old; the original holds both. `process`: what the process grew by in its runs, by
the kernel's count, with inputs and weights: of the original, of the rewritten model, and of that with its places, for
which `held` is what `remat places` says. `missed`: requests that had no place.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
from onnx import helper

import remat_cli as remat
from remat_cli.actions.optimizing import optimize_file
from remat_cli.actions.placing import places_of, write_sources
from remat_cli.checking import outside
from remat_cli.formats import placesfile
from remat_cli.ingest import ingest
from remat_cli.model.graph import Graph
from remat_cli.model.signatures import feeds_of, ops_of

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "tests" / "data"
SHARE, SECONDS, SECONDS_OF_PROFILE = "85%", 30.0, 5.0
PAGE = HERE.parents[1] / "docs" / "how-to" / "cpp.md"
RUNS = 3  # of each model


class Programs(NamedTuple):
    """The words that run each. `placed`: with a file of places; empty where there is no such program."""

    plain: list[str]
    placed: list[str]


class Ran(NamedTuple):
    """What came out of all runs, the most that was live in each of the first two, and what the process held."""

    results: bytes
    peaks: list[int]
    held: int
    missed: int


def native_library() -> Path:
    """The runtime that the Python package brings."""
    return next((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*"))


def blocks() -> list[str]:
    """The lines of the page, as they stand: of the session, of a run in place, of places, and of a run with them."""
    return re.findall(r"```cpp\n(.*?)```", PAGE.read_text(), re.DOTALL)


def compiled(headers: Path, folder: Path) -> Programs:
    """What runs the program: without places, and with them."""
    options, binding, places, run = blocks()
    source = folder / "train.cpp"
    text = (HERE / "train.cpp").read_text().replace("  OPTIONS\n", options).replace("    BINDING\n", binding)
    places = places.replace('"train.disabled.remat.places"', "given[7]")
    source.write_text(text.replace("  PLACES\n", places).replace("    RUN\n", run))
    write_sources(folder)
    subprocess.run(["cc", "-O2", "-std=c11", "-c", "remat_places.c"], cwd=folder, check=True)
    library = native_library()
    (folder / library.name.rsplit(".", 2)[0]).symlink_to(library)  # libonnxruntime.so.1, as it names itself
    command = ["g++", "-std=c++17", "-O1", f"-I{headers}", str(source), str(library), f"-Wl,-rpath,{folder}"]
    with_places = [*command, "-DWITH_PLACES", str(folder / "remat_places.o"), "-ldl", "-lpthread"]
    for built, name in ((command, "plain"), (with_places, "placed")):
        subprocess.run([*built, "-o", str(folder / name)], check=True)
    return Programs([str(folder / "plain")], [str(folder / "placed")])


def written(graph: Graph, folder: Path) -> Path:
    lines = []
    for number, (name, array) in enumerate(feeds_of(graph, ops_of(graph)).items()):
        file = folder / f"feed{number}"
        file.write_bytes(np.ascontiguousarray(array).tobytes())
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        lines.append(" ".join(map(str, (name, kind, array.ndim, *array.shape, file))))
    (folder / "feeds").write_text("\n".join(lines) + "\n")
    return folder / "feeds"


def ran(program: list[str], model: Path, feeds: Path, graph: Graph, bound: bool, places: Path | None = None) -> Ran:
    folder = feeds.parent
    out, trace, state = folder / f"{model.name}.out", folder / f"{model.name}.trace", folder / "state"
    state.write_text("".join(f"{output} {old}\n" for output, old in graph.in_place.items()))
    command = [*program, str(model), str(feeds), str(state), str(int(bound)), str(out), str(trace), str(places)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    name, grew, missed = done.stdout.split()
    held = outside(graph) + 1024 * int(grew)
    if places is not None:
        return Ran(out.read_bytes(), [], held, int(missed))
    told = [event["args"] for event in json.loads(Path(name).read_text()) if event.get("cat") == "Node"]
    live = [int(args["mem_bytes_requested_in_use"]) for args in told if "mem_bytes_requested_in_use" in args]
    third = len(live) // RUNS
    peaks = [outside(graph) + max(part) for part in (live[:third], live[third : 2 * third])]
    return Ran(out.read_bytes(), peaks, held, 0)


def training_graph(name: str, folder: Path) -> Path:
    """A graph of the tests' by its name, or a step with AdamW of the forward model in this file."""
    if not name.endswith(".onnx"):
        return optimize_file(Path(shutil.copy(DATA / f"{name}.onnx", folder)), "disabled")
    path = folder / f"{Path(name).stem}.train.onnx"
    path.write_bytes(remat.grad(name, optimizer="adamw").SerializeToString())
    return optimize_file(path, "disabled")


def row(name: str, programs: Programs, folder: Path, share: str = SHARE) -> dict[str, Any]:
    path = training_graph(name, folder)
    feeds = written(ingest(path), folder)
    costs = remat.profile(path, threads=1, time_limit=SECONDS_OF_PROFILE)
    plan = remat.solve(path, budget=share, costs=costs, runtime="stock", time_limit=SECONDS, cache=False)
    graph = plan.subject.graph
    assert graph is not None
    rewritten = folder / f"{path.stem}.remat.onnx"
    rewritten.write_bytes(remat.emit(plan).SerializeToString())
    before = ran(programs.plain, path, feeds, graph, False)
    after = ran(programs.plain, rewritten, feeds, graph, True)
    said = {"budget": plan.budget, "predicted": plan.recorded.promises.live, "state": plan.subject.held_once}
    seen = {"peak_before": before.peaks, "peak": after.peaks, "within": max(after.peaks) <= plan.budget}
    process = {"before": before.held, "after": after.held}
    same = before.results == after.results
    if programs.placed:
        places = folder / f"{path.stem}.remat.places"
        found = places_of(rewritten, {}, threads=1)
        placesfile.write(found.placement, places)
        placed = ran(programs.placed, rewritten, feeds, graph, True, places)
        process |= {"placed": placed.held, "held": found.held, "missed": placed.missed}
        same = same and placed.results == before.results
    return {"graph": Path(name).stem, **said, **seen, "process": process, "same": same}


def rows(names: list[str], programs: Programs, folder: Path) -> None:
    for name in names:
        try:
            print(json.dumps(row(name, programs, folder)), flush=True)
        except remat.RematError as error:
            print(json.dumps({"graph": Path(name).stem, "refused": str(error)[:200]}), flush=True)


def main() -> None:
    reads = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reads.add_argument("headers", type=Path, metavar="HEADERS")
    reads.add_argument("models", nargs="+", metavar="MODEL")
    asked = reads.parse_args()
    with TemporaryDirectory() as scratch:
        rows(asked.models, compiled(asked.headers, Path(scratch)), Path(scratch))


if __name__ == "__main__":
    main()
