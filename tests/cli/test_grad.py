"""`remat grad`: what it prints, what it writes, what it refuses."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.cli.running import Command
from tests.remat_cli.gradient.nets import normalized, perceptron


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    onnx.save(perceptron("batch"), "net.onnx")
    onnx.save(normalized(training=0), "frozen.onnx")
    return Command(capsys, monkeypatch)


def test_the_training_graph_stands_beside_the_model(command: Command) -> None:
    ran = command("grad", "net.onnx", "--batch", 4)
    written = onnx.load("net.train.onnx")
    assert ran.code == 0
    first, second, head, *rows = ran.out.splitlines()
    assert (
        first
        == f"wrote net.train.onnx: {len(written.graph.node)} nodes (forward: 3), 5 inputs, loss and 3 more outputs"
    )
    assert second.startswith("The labels have shape [4]: classes are on axis 1 of the logits")
    assert head.split() == ["parameter", "shape", "read", "gradient"]
    assert [row.split() for row in rows] == [
        *(["w2", "5x4", "1", "80B"], ["w1", "5x3", "1", "60B"], ["b1", "5", "1", "20B"]),
        ["3", "in", "all", "160B"],
    ]


def test_a_file_names_what_is_trained(command: Command) -> None:
    Path("names.txt").write_text("w2 5x4\n\nhead.bias\n")
    ran = command("grad", "net.onnx", "--batch", 4, "--params-from", "names.txt")
    assert ran.code == 0
    assert "1 in all" in ran.out
    assert "head.bias" in ran.err
    Path("names.txt").write_text("\n")
    assert command("grad", "net.onnx", "--batch", 4, "--params-from", "names.txt").code == 3


def test_options_reach_the_graph(command: Command) -> None:
    given = ["--dim", "batch=2", "--loss", "mse", "--wrt", "w1,w2", "--optimizer", "momentum", "-o", "t.onnx", "--json"]
    report = command("grad", "net.onnx", *given).object
    assert report["model"] == "t.onnx"
    assert report["inputs"] == ["x", "target", "w1", "w2", "w2_momentum", "w1_momentum", "learning_rate"]
    assert set(report["outputs"]) == {"loss", "w1_new", "w2_new", "w1_momentum_new", "w2_momentum_new"}


def test_the_same_input_gives_the_same_bytes(command: Command) -> None:
    for name in ("one.onnx", "two.onnx"):
        assert command("grad", "net.onnx", "--batch", 4, "-o", name, "-q").out == ""
    assert Path("one.onnx").read_bytes() == Path("two.onnx").read_bytes()


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (["net.onnx"], 3, "pass --dim batch=N"),
        (["net.onnx", "--batch", 4, "--loss", "hinge"], 3, "computes no 'hinge'"),
        (["net.onnx", "--shape", "x=4,two"], 2, "gives no shape"),
        (["missing.onnx"], 3, "cannot read missing.onnx"),
        (["frozen.onnx"], 3, "inference mode"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(command: Command, given: list[object], code: int, words: str) -> None:
    ran = command("grad", *given)
    assert (ran.code, words in ran.err, "Traceback" in ran.err) == (code, True, False)
    assert not Path("net.train.onnx").exists()


def test_frozen_statistics_can_be_meant(command: Command) -> None:
    assert command("grad", "frozen.onnx", "--freeze-bn").code == 0


@pytest.mark.slow
def test_what_has_no_kernel_on_cuda_is_named_where_that_is_asked(remat: Command) -> None:
    assert remat("zoo", "segnet", "--batch", "1", "--image", "32", "-o", "m.onnx", "-q").code == 0
    assert "CUDA" not in remat("grad", "m.onnx", "--json").out
    notes = remat("grad", "m.onnx", "--device", "cuda", "--json").object["notes"]
    assert notes == ["no kernel on CUDA, so run on the CPU: MaxUnpool, 5 nodes"]


@pytest.mark.parametrize("opset", [11, 18])
def test_weights_beside_the_model_stay_there(command: Command, opset: int) -> None:
    model = perceptron("batch")
    model.opset_import[0].version = opset
    onnx.save(model, "net.onnx")
    onnx.save(model, "beside.onnx", save_as_external_data=True, location="net.data", size_threshold=0)
    for name in ("net", "beside"):
        assert command("grad", f"{name}.onnx", "--batch", 4).code == 0
    assert Path("net.train.onnx").read_bytes() == Path("beside.train.onnx").read_bytes()
    data = Path("net.data").read_bytes()
    Path("net.data").write_bytes(data[:-1])
    refused = command("grad", "beside.onnx", "--batch", 4)
    assert refused.code == 3
    assert "truncated" in refused.err


def test_an_optimizer_as_it_is_set(remat: Command) -> None:
    """The flags of the command are what Python says by keywords."""
    import remat_cli as api

    remat("zoo", "mlp", "-o", "m.onnx", "-q")
    asked = ("--optimizer", "adamw", "--weight-decay", 0.1, "--betas", "0.9,0.95", "--eps", "1e-6", "--clip", 1.0)
    ran = remat("grad", "m.onnx", *asked, "--group", "*.bias:weight_decay=0,lr=1e-3", "-q")
    assert ran.code == 0, ran.err
    said = {"optimizer": "adamw", "weight_decay": 0.1, "betas": (0.9, 0.95), "eps": 1e-6, "clip": 1.0}
    groups = {"*.bias": {"weight_decay": 0, "lr": 1e-3}}
    made = onnx.load("m.train.onnx")
    assert made.graph == api.grad("m.onnx", **said, groups=groups).graph
    for wrong, words in [
        (("--group", "*.bias"), "PATTERN:weight_decay=0"),
        (("--betas", "0.9"), "two numbers"),
        (("--group", "nothing:weight_decay=0"), "no parameter matches"),
    ]:
        ran = remat("grad", "m.onnx", "--optimizer", "adamw", *wrong)
        assert ran.code in (2, 3)
        assert words in ran.err
