"""Files made to hurt: each ends in one line and exit 3, in the command itself; mutated ones in every reader."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import onnx
import pytest

from profiles.costfile import load as load_costs
from profiles.costs import BadCosts
from remat_cli.actions.differentiating import differentiate
from remat_cli.errors import RematError
from remat_cli.formats import certificatefile, planfile, problemfile
from remat_cli.gradient.training import Options
from remat_cli.ingest import ingest
from remat_cli.onnx_graph.load import load_with_tensors
from remat_cli.planning.loading import load_subject
from remat_cli.zoo.build import build
from tests.fuzzing import mutated, twisted, warped
from tests.sampling import few

SEED = int(os.environ["FRESH_SEED"])
UNSOUND = os.environ.get(
    "FUZZ_SEED", "0"
)  # the same ones in every run, unless asked: some of what onnx does is its own
SECONDS, BYTES = 2, 1 << 30  # of CPU time, beside what starting takes, and of memory


def _remat(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 6, SECONDS + 6))
        resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))

    command = [sys.executable, "-m", "remat_cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, preexec_fn=limited, check=False)


def test_what_is_sound_is_read_within_the_same_limits(data: Path, tmp_path: Path) -> None:
    """Else a file would be refused for want of memory, and the tests below would show nothing."""
    ended = _remat("problem", str(data / "torch_mlp.onnx"), "-o", "m.problem.json", folder=tmp_path)
    assert ended.returncode == 0, ended


def _refused(*arguments: str, folder: Path) -> None:
    ended = _remat(*arguments, folder=folder)
    assert ended.returncode == 3, ended
    assert ended.stderr.startswith("remat: "), ended
    assert ended.stderr.count("\n") == 1, ended


@pytest.mark.parametrize("name", few(["ext_nul", "ext_loop", "huge", "huge62", "expfun"], 2))
def test_models(name: str, data: Path, tmp_path: Path) -> None:
    _refused("solve", str(data / "hostile" / f"{name}.onnx"), "--budget", "50%", folder=tmp_path)


@pytest.mark.parametrize("name", ["laughs_how", "laughs_date", "intbad", "bool", "dims_big"])
def test_costs(name: str, data: Path) -> None:
    with pytest.raises(BadCosts):
        load_costs(data / "hostile" / f"{name}.yaml")


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000 + "a", "? " * 100_000, "{a: " * 100_000])
def test_costs_nested_without_end(text: str, tmp_path: Path) -> None:
    (tmp_path / "deep.yaml").write_text(text)
    with pytest.raises(BadCosts):
        load_costs(tmp_path / "deep.yaml")


def test_plans_and_problems(data: Path, tmp_path: Path) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000 + "]" * 100_000)
    for path in (data / "hostile" / "path_nul.plan.json", data / "hostile" / "surrogate_value.json", deep):
        for read in (planfile.read, problemfile.read):
            with pytest.raises(RematError):
                read(path)


def test_devices_are_not_read(tmp_path: Path) -> None:
    for command in (("grad", "/dev/zero"), ("show", "/dev/zero")):
        _refused(*command, folder=tmp_path)


def test_devices_are_written_through(data: Path, tmp_path: Path) -> None:
    problem = str(data / "wrong_once" / "view_of_resident_reads_shape.problem.json")
    device = tmp_path / "device"
    os.mkfifo(device)
    reader = os.open(device, os.O_RDONLY | os.O_NONBLOCK)
    assert _remat("solve", problem, "--budget", "100%", "-q", "-o", str(device), folder=tmp_path).returncode == 0
    assert device.is_fifo()
    assert os.read(reader, 1 << 20).startswith(b"{")
    os.close(reader)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_device_is_said(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "remat_cli", "zoo", "--list", "--json"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
    assert ended.returncode == 3
    assert ended.stderr == "remat: cannot write the answer: No space left on device\n"


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "model": ("ort_mlp.onnx", lambda path: ingest(path, {})),
    "problem": ("wrong_once/lp_rounding_494.problem.json", problemfile.read),
    "plan": ("hostile/path_nul.plan.json", planfile.read),
    "costs": ("costs/small.costs.yaml", load_costs),
    "certificate": ("hostile/linear4.cert.json", certificatefile.read),
}


def _estimated(path: Path) -> None:
    load_subject(path, None, {})


def _differentiated(path: Path) -> None:
    differentiate(load_with_tensors(path), Options())


def _graph(data: Path) -> onnx.ModelProto:
    return onnx.load(data / "ort_mlp.onnx")


def _cnn(_: Path) -> onnx.ModelProto:
    return build("cnn", batch=2, image=16)


def _transformer(_: Path) -> onnx.ModelProto:
    return build("gpt2", batch=1, layers=1, seq=8, hidden=16, heads=2, vocabulary=50)


@pytest.mark.parametrize(
    ("read", "of"), [(_estimated, _graph), (_differentiated, _cnn), (_differentiated, _transformer)]
)
def test_unsound_models_in_a_sound_encoding(
    read: Callable[[Path], None],
    of: Callable[[Path], onnx.ModelProto],
    data: Path,
    tmp_path: Path,
) -> None:
    model, path = of(data), tmp_path / "m.onnx"
    for number in range(int(os.environ.get("FUZZ_COUNT", 150))):
        path.write_bytes(warped(Random(f"{UNSOUND} {read.__name__} {number}"), model))
        with suppress(RematError):
            read(path)


@pytest.mark.parametrize("kind", READERS)
def test_mutated_files_are_read_or_refused(kind: str, data: Path, tmp_path: Path) -> None:
    name, read = READERS[kind]
    content = (data / name).read_bytes().replace(b"!!int ", b"").replace(b"\\u0000", b"")
    path = tmp_path / Path(name).name
    for number in range(int(os.environ.get("FUZZ_COUNT", 500))):
        random = Random(f"{SEED} {kind} {number}")
        twist = content.startswith(b"{") and random.random() < 0.5
        path.write_bytes(twisted(random, content) if twist else mutated(random, content))
        with suppress(RematError, BadCosts):
            read(path)
