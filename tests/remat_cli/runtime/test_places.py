"""Places for programs in C: what they call is called here as they call it, around a session of onnxruntime's own."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest

import remat_cli as api
from remat_cli.actions.placing import LIBRARY, places_of, write_sources
from remat_cli.formats import placesfile
from remat_cli.runtime.c_session import c_options
from remat_cli.runtime.placed import library
from solvers.placement.lifetimes import ALIGNMENT
from tests.cli.running import Command
from tests.remat_cli.strict_session import feeds

DATA = Path(__file__).parents[2] / "data"
CNN = DATA / "torch_cnn.onnx"
pytestmark = pytest.mark.skipif(library() is None, reason="the allocator is for Linux alone")


class Program:
    """What a C program does with a file of places and a session."""

    def __init__(self, places: Path) -> None:
        self.lib = ctypes.CDLL(str(library()))
        self.lib.remat_places_open.restype = ctypes.c_void_p
        self.lib.remat_places_block.restype = ctypes.c_int64
        pointer = ctypes.c_void_p
        for name, count in (("begin", 1), ("missed", 3), ("block", 1), ("close", 1)):
            getattr(self.lib, f"remat_places_{name}").argtypes = [pointer] * count
        self.places = self.lib.remat_places_open(str(places).encode())

    @contextmanager
    def run(self) -> Iterator[None]:
        assert self.lib.remat_places_begin(self.places)
        try:
            yield
        finally:
            self.lib.remat_places_end()

    @property
    def missed(self) -> int:
        requests, size = ctypes.c_int64(), ctypes.c_int64()
        self.lib.remat_places_missed(self.places, ctypes.byref(requests), ctypes.byref(size))
        return requests.value


def session_of(model: Path, planned: bool = True) -> Any:
    options = c_options(1)
    if planned:
        options.register_custom_ops_library(str(library()))
        options.add_session_config_entry("session.use_env_allocators", "1")
    return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])


@pytest.fixture
def placed(tmp_path: Path) -> Program:
    placesfile.write(places_of(CNN, {}, threads=1).placement, tmp_path / "m.places")
    return Program(tmp_path / "m.places")


def test_a_run_is_as_the_file_says_and_gives_the_same_bytes(placed: Program) -> None:
    given, planned = feeds(onnx.load(CNN), 0), session_of(CNN)
    expected = session_of(CNN, planned=False).run(None, given)
    for _ in range(2):
        with placed.run():
            found = planned.run(None, given)
        assert [one.tobytes() for one in found] == [one.tobytes() for one in expected]
        del found
    assert placed.missed == 0


def test_another_model_s_requests_are_missed_and_computed_all_the_same(placed: Program) -> None:
    other = DATA / "torch_mlp.onnx"
    given = feeds(onnx.load(other), 0)
    expected = session_of(other, planned=False).run(None, given)
    with placed.run():
        found = session_of(other).run(None, given)
    assert [one.tobytes() for one in found] == [one.tobytes() for one in expected]
    assert placed.missed > 0


def test_a_session_that_has_another_allocator_is_told(placed: Program) -> None:
    """A program that forgets `session.use_env_allocators` would believe that all is as planned."""
    stock, given = session_of(CNN, planned=False), feeds(onnx.load(CNN), 0)
    with placed.run():
        stock.run(None, given)
    assert placed.missed == len(places_of(CNN, {}, threads=1).placement.allocations)


def test_the_block_is_what_is_live_at_once(tmp_path: Path) -> None:
    found = places_of(CNN, {}, threads=1)
    assert found.missed.requests == 0
    assert found.placement.block < found.placement.bound * 1.01
    placesfile.write(found.placement, tmp_path / "m.places")
    program = Program(tmp_path / "m.places")
    assert program.lib.remat_places_block(program.places) == found.placement.block
    program.lib.remat_places_close(program.places)


WHOLE = f"remat-places 1\nblock {4 * ALIGNMENT}\nrequests 2\n{ALIGNMENT} 0\n10 {ALIGNMENT}\nend\n"


@pytest.mark.parametrize(
    "old, new",
    [
        ("end\n", ""),
        ("end\n", "more\n"),
        ("requests 2", "requests 3"),
        ("requests 2", "requests 99999999999999999999"),
        ("requests 2", "requests -2"),
        ("places 1", "places 2"),
        (f"10 {ALIGNMENT}", f"10 {ALIGNMENT + 1}"),
        (f"10 {ALIGNMENT}", f"10 {4 * ALIGNMENT}"),
        (f"10 {ALIGNMENT}", f"10 {-ALIGNMENT}"),
        (f"10 {ALIGNMENT}", f"9223372036854775807 {ALIGNMENT}"),
        (f"block {4 * ALIGNMENT}", "block -1"),
        (WHOLE, ""),
        (WHOLE, "\0" * 64),
    ],
)
def test_a_file_that_is_not_whole_opens_as_nothing(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "m.places"
    path.write_text(WHOLE)
    assert Program(path).places
    assert old in WHOLE
    path.write_text(WHOLE.replace(old, new, 1))
    assert Program(path).places is None
    assert Program(tmp_path / "none.places").places is None


WEIGHTED = WHOLE.replace("end\n", "weights 1 4096 m.data\n1 64 4032 2 32 32 a weight\nend\n")


@pytest.mark.parametrize(
    "old, new",
    [
        ("weights 1", "weights 2"),
        ("weights 1", "weights -1"),
        ("1 64 4032", "1 65 4032"),
        ("1 64 4032", "1 -64 4032"),
        ("1 64 4032", "1 64 9223372036854775807"),
        ("2 32 32", "3 32 32"),
        ("2 32 32", "65 32 32"),
        (" a weight", " "),
        ("end\n", ""),
        ("4032 2 32 32 a weight\nend\n", ""),
    ],
)
def test_weights_that_cannot_be_open_as_nothing(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "m.places"
    path.write_text(WEIGHTED)
    assert Program(path).places  # ONNX Runtime says what it misses
    (tmp_path / "m.data").write_bytes(bytes(4096))
    assert Program(path).places
    path.write_text(WEIGHTED.replace(old, new, 1))
    assert Program(path).places is None


@pytest.mark.parametrize("compiler", ["cc", "x86_64-w64-mingw32-gcc"])
def test_the_source_is_one_file_that_compiles_without_a_warning(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    write_sources(tmp_path)
    command = [compiler, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-c", LIBRARY]
    subprocess.run(command, cwd=tmp_path, check=True)


@pytest.mark.filterwarnings("ignore::remat_cli.RematWarning")
def test_what_is_written_over_an_input_asks_for_no_memory(tmp_path: Path, remat: Command) -> None:
    """A rewritten model says in its metadata which outputs those are, as `emit` writes it."""
    assert remat("zoo", "mlp", "--batch", "4", "-o", tmp_path / "m.onnx", "-q").code == 0
    assert remat("grad", tmp_path / "m.onnx", "--optimizer", "sgd", "-o", tmp_path / "t.onnx", "-q").code == 0
    apart = remat("places", tmp_path / "t.onnx", "--threads", "1", "--json").object
    pairs = api.solve(tmp_path / "t.onnx", budget="90%", work_limit=1000, cache=False).recorded.in_place
    model = onnx.load(tmp_path / "t.onnx")
    assert pairs
    onnx.helper.set_model_props(model, {"remat.in_place": json.dumps(pairs)})
    onnx.save(model, tmp_path / "t.onnx")
    once = remat("places", tmp_path / "t.onnx", "--threads", "1", "--json").object
    assert once["missed"] == apart["missed"] == 0
    assert once["requests"] == apart["requests"] - len(pairs)
    assert once["held"] < apart["held"]
