"""`remat zoo`: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner, Result

from remat_cli.commands.zoo import command
from remat_cli.errors import Usage
from remat_cli.gradient.prepare import Binding
from remat_cli.gradient.training import Options, training_graph
from remat_cli.ingest import ingest_content
from remat_cli.model.graph import Graph
from remat_cli.zoo.build import build
from remat_cli.zoo.names import ZOO
from tests.sampling import few

SMALL = {"image": 64, "layers": 1, "seq": 16, "hidden": 32, "heads": 2, "width": 4, "vocabulary": 100}
EXAMPLE = Path(__file__).parents[2] / "examples" / "zoo"


def zoo(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, catch_exceptions=True)


def test_without_a_name_the_networks_are_listed() -> None:
    lines = zoo().output.splitlines()
    assert [line.split()[0] for line in lines] == list(ZOO)
    assert zoo("--list").output == zoo().output
    assert list(json.loads(zoo("--json").stdout)) == list(ZOO)


def test_a_network_is_written_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "small.onnx"
    result = zoo("mlp", "--batch", "4", "--layers", "1", "-o", str(path), "--json")
    assert json.loads(result.stdout) == {
        "model": str(path),
        "network": "mlp",
        "nodes": 3,
        "parameters": 784 * 256 + 256 + 256 * 10 + 10,
        "weights": "random",
        "input": [4, 784],
        "logits": [4, 10],
    }
    assert [node.name for node in onnx.load(path).graph.node] == ["fc1", "fc1.relu", "head"]


def test_by_default_it_is_named_after_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = zoo("gpt2", "--batch", "1")
    assert result.output == (
        "gpt2.onnx: 391 nodes, 124,439,808 parameters (inputs of the model), input [1, 1024], logits [1, 1024, 50257]\n"
    )
    assert Path("gpt2.onnx").stat().st_size < 2_000_000


def test_an_option_the_network_lacks_is_a_usage_error() -> None:
    result = zoo("vgg16", "--seq", "3")
    assert isinstance(result.exception, Usage)
    assert str(result.exception) == ("vgg16 has no --seq; it takes --batch, --image, --channels, --classes, --hidden")


@pytest.mark.parametrize("file", ["README.md", "run.sh"])
def test_the_examples_commands_work(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = (EXAMPLE / file).read_text().splitlines()
    commands = [line.partition("#")[0].split()[2:] for line in lines if line.startswith("remat zoo ")]
    assert len(commands) >= 4
    for arguments in commands:
        result = zoo(*arguments, "--weights", "inputs")
        assert result.exit_code == 0, result.output
        onnx.checker.check_model(f"{arguments[0]}.onnx")


def test_a_reader_who_has_had_enough_is_no_error() -> None:
    command = f"{sys.executable} -m remat_cli zoo --list | true; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert ran.stdout == "0\n"


FREE = ["unet", "vit-b16", "gpt2", "albert-base", "resnest50", "llama-1b", "diffusion-unet"]


@pytest.mark.parametrize("name", few(FREE, 3))
def test_a_free_batch_takes_any_size(name: str) -> None:
    """Bound to a size, its training step is that of the network of that size, value by value."""
    small = {key: size for key, size in SMALL.items() if key in ZOO[name].options()}
    free = build(name, weights="inputs", free_batch=True, **small)
    for shown in (free.graph.input[0], free.graph.output[0]):
        assert shown.type.tensor_type.shape.dim[0].dim_param == "batch"
    ours = step_of(free, Options(binding=Binding(dims={"batch": 3})))
    theirs = step_of(build(name, weights="inputs", batch=3, **small), Options())
    assert [op.node.op_type for op in ours.ops] == [op.node.op_type for op in theirs.ops]
    assert sorted(value.bytes for value in ours.values.values()) == sorted(
        value.bytes for value in theirs.values.values()
    )


def step_of(forward: onnx.ModelProto, options: Options) -> Graph:
    return ingest_content(training_graph(forward, options).SerializeToString(), {})


def test_a_batch_is_of_one_size_or_free() -> None:
    result = zoo("mlp", "--batch", "4", "--free-batch")
    assert isinstance(result.exception, Usage)
    assert "--batch or --free-batch" in str(result.exception)
