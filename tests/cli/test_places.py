"""What stands where a command is to write: its own kind is written over, all else stays, and nothing is begun."""

from __future__ import annotations

from pathlib import Path
from shutil import copy

import pytest

import remat_cli
from remat_cli.formats.kinds import FileKind
from tests.cli.running import Command

MANIFEST = "format: remat-batch/1\nmodels: [{path: p.problem.json}]\nbudgets: [4]\nmethods: [evict]\n"
WRITERS = {
    FileKind.MODEL: ("emit", "m.plan.json", "-o"),
    FileKind.PLAN: ("solve", "p.problem.json", "--budget", "4", "-o"),
    FileKind.CERTIFICATE: ("solve", "p.problem.json", "--budget", "4", "-o", "/dev/null", "--certificate"),
    FileKind.PROBLEM: ("problem", "m.onnx", "-o"),
    FileKind.CHAIN: ("problem", "p.problem.json", "--chain", "-o"),
    FileKind.COSTS: ("profile", "m.onnx", "--estimate", "cpu", "-o"),
    FileKind.CURVE: ("sweep", "p.problem.json", "--budgets", "4", "--methods", "evict", "-o"),
    FileKind.BATCH: ("batch", "m.yaml", "--report"),
    FileKind.JUNIT: ("batch", "m.yaml", "--junit"),
    FileKind.MARKDOWN: ("batch", "m.yaml", "--md"),
    FileKind.CSV: ("batch", "m.yaml", "--csv"),
    FileKind.PAGE: ("show", "m.plan.json", "--html"),
    FileKind.PICTURE: ("show", "m.plan.json", "--plot"),
}
ENDINGS = {FileKind.CURVE: ".json", FileKind.PICTURE: ".svg"}
MORE = (("zoo", "mlp", "-o"), ("grad", "f.onnx", "-o"), ("max-batch", "f.onnx", "--budget", "1GB", "-o"))


@pytest.fixture
def here(remat: Command, data: Path, tmp_path: Path) -> Path:
    copy(data / "torch_mlp.onnx", "m.onnx")
    copy(data / "torch_mlp.onnx", "f.onnx")
    copy(data / "checkmate" / "linear4.problem.json", "p.problem.json")
    Path("m.yaml").write_text(MANIFEST)
    assert remat("solve", "m.onnx", "--budget", "100%", "-o", "m.plan.json").code == 0
    return tmp_path


@pytest.mark.slow
def test_a_command_writes_over_its_own_kind_alone(remat: Command, here: Path) -> None:
    made = {}
    for kind, words in WRITERS.items():
        out = here / f"out-{kind.name}{ENDINGS.get(kind, '')}"
        for _ in range(2):
            assert remat(*words, out.name).code == 0, (words, remat(*words, out.name))
        made[kind] = out.read_bytes()
        assert [other for other in FileKind if other.begins(made[kind][:4096])] == [kind]
    for kind, words in (*WRITERS.items(), *((FileKind.PLAN, words) for words in MORE)):
        for other in (FileKind.PLAN if kind is not FileKind.PLAN else FileKind.PAGE, None):
            out = here / f"stands{ENDINGS.get(kind, '')}"
            out.write_bytes(stood := made[other] if other else b"my own notes")
            ran = remat(*words, out.name)
            assert ran.code == 3, (words, ran)
            assert ran.err.startswith(f"remat: {out.name} is in the way: it is "), ran.err
            assert len(ran.err.splitlines()) == 1
            assert out.read_bytes() == stood


def test_what_is_read_is_not_written_over(remat: Command, here: Path) -> None:
    """Models where models are written, costs where costs are: by whatever name."""
    Path("link.onnx").symlink_to("m.onnx")
    before = {path: path.read_bytes() for path in here.iterdir() if path.is_file()}
    for words in (
        ("emit", "m.plan.json", "-o", "link.onnx"),
        ("grad", "m.onnx", "-o", "./m.onnx"),
        ("show", "m.plan.json", "--plot", "a.svg", "--matrices", "./a.svg"),
        ("problem", "p.problem.json", "-o", "p.problem.json"),
    ):
        assert remat(*words).code == 2, words
    assert {path: path.read_bytes() for path in here.iterdir() if path.is_file()} == before


@pytest.mark.filterwarnings("ignore::remat_cli.RematWarning")
def test_a_checkpoint_is_written_over_a_checkpoint_alone(data: Path, tmp_path: Path) -> None:
    forward = data / "torch" / "language_train_whole.onnx"
    step = remat_cli.step(remat_cli.grad(forward, optimizer="sgd"), forward)
    place = tmp_path / "c.npz"
    for _ in range(2):
        step.save(place)
    assert FileKind.CHECKPOINT.begins(place.read_bytes()[:4096])
    model = Path(copy(forward, tmp_path / "m.onnx"))
    for path in (model, tmp_path):
        with pytest.raises(remat_cli.BadInput, match=r"is in the way: it is a model|it is a folder"):
            step.save(path)
    assert model.read_bytes() == forward.read_bytes()
