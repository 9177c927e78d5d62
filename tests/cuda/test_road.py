"""The road on CUDA, on the wheel's own CUDA provider and a device that has memory and does no arithmetic.

What is held here is what the provider does on the host. What kernels compute, and how long they take, only a GPU says.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from remat_cli.model.semantics import FROM_OPSET, NEVER, without_kernel
from tests.cuda.device import build, environment, remat

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler, and so no device")
LOOK = """
import json, sys
from pathlib import Path
from profiles import cuda
from profiles.strict import strict_options
from remat_cli.checking.feeds import draw_feeds
from remat_cli.ingest import ingest

path = Path(sys.argv[1])
graph = ingest(path, {})
options = strict_options()
options.enable_profiling, options.profile_file_prefix = True, str(path.with_suffix(""))
session = cuda.session(str(path), options, [cuda.PROVIDER])
session.run(None, draw_feeds(graph, 0))
events = json.loads(Path(session.end_profiling()).read_text())
ran = [event for event in events if event["name"].endswith("_kernel_time")]
ran.sort(key=lambda event: int(event["ts"]))
names = [event["name"].removesuffix("_kernel_time") for event in ran]
print(json.dumps([names == [op.name for op in graph.ops], sorted({e["args"]["provider"] for e in ran})]))
"""


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("device"))


@pytest.fixture
def given(device: Path, tmp_path: Path) -> dict[str, str]:
    return environment(device, XDG_CACHE_HOME=str(tmp_path / "cache"))


@pytest.mark.parametrize("name", ["torch_unet_convt", "torch_gpt2_eager"])
def test_every_op_has_a_kernel_there_and_runs_in_the_order_of_the_file(
    given: dict[str, str], data: Path, tmp_path: Path, name: str
) -> None:
    shutil.copy(data / f"{name}.onnx", tmp_path)
    command = [sys.executable, "-c", LOOK, str(tmp_path / f"{name}.onnx")]
    ran = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == [True, ["CUDAExecutionProvider"]]


def test_a_kernel_that_fails_there_does_not_send_the_session_to_the_cpu(
    given: dict[str, str], data: Path, tmp_path: Path
) -> None:
    """onnxruntime's Python would try again on the CPU, and say so on stdout."""
    shutil.copy(data / "torch_mlp.onnx", tmp_path)
    ran = subprocess.run(
        [sys.executable, "-c", LOOK, str(tmp_path / "torch_mlp.onnx")],
        env={**given, "REMAT_DEVICE_BYTES": "500000"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "Failed to allocate memory" in ran.stderr
    assert ran.stdout == ""


WHERE = """
import json, sys
from pathlib import Path
import numpy as np
from profiles import cuda
from profiles.strict import strict_options

options = strict_options()
options.enable_profiling, options.profile_file_prefix = True, sys.argv[1]
session = cuda.session(sys.argv[1], options, [cuda.PROVIDER, "CPUExecutionProvider"])
session.run(None, {"x": np.full((1, 2, 4, 4), 0.5, np.float32)})
events = json.loads(Path(session.end_profiling()).read_text())
print(json.dumps({e["name"].removesuffix("_kernel_time"): e["args"]["provider"] for e in events if e["cat"] == "Node"}))
"""
TOGETHER = {  # other inputs and attributes than one tensor and none
    "Mean": (["x", "x"], {}),
    "MaxUnpool": (["x", "places"], {"kernel_shape": [1, 1]}),
    "MaxPool": (["x"], {"kernel_shape": [2, 2]}),
    "AveragePool": (["x"], {"kernel_shape": [2, 2]}),
    "InstanceNormalization": (["x", "two", "two"], {}),
    "Conv": (["x", "filters"], {"pads": [1, 0, 0, 1]}),
    "ConvTranspose": (["x", "filters"], {"pads": [1, 0, 0, 1]}),
}
HAVE = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "Gelu", "Erf", "Sin", "AveragePool", "Conv")


@pytest.mark.parametrize("opset", [21, 22])
def test_what_has_no_kernel_there_is_named(given: dict[str, str], tmp_path: Path, opset: int) -> None:
    """One node of each kind; the provider says where it put them."""
    kinds = [*NEVER, *FROM_OPSET, *HAVE, "ConvTranspose"]
    read = {kind: TOGETHER.get(kind, (["x"], {})) for kind in kinds}
    nodes = [helper.make_node(kind, read[kind][0], [f"{kind}.y"], kind, **read[kind][1]) for kind in kinds]
    constants = [
        numpy_helper.from_array(array, name)
        for name, array in {
            "places": np.arange(32).reshape(1, 2, 4, 4),
            "two": np.ones(2, np.float32),
            "filters": np.ones((2, 2, 3, 3), np.float32),
        }.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(f"{kind}.y") for kind in kinds]
    given_x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 4, 4])
    graph = helper.make_graph(nodes, "kinds", [given_x], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.save(model, tmp_path / "kinds.onnx")
    command = [sys.executable, "-c", WHERE, str(tmp_path / "kinds.onnx")]
    ran = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    elsewhere = {kind for kind, where in json.loads(ran.stdout).items() if where == "CPUExecutionProvider"}
    assert elsewhere == {re.split("[ ,]", what)[0] for what in without_kernel(model)}


@pytest.mark.parametrize(
    "without, driver, words",
    [
        ("", "12040", "an NVIDIA driver for CUDA 13.0 (this one is for CUDA 12.4)"),
        ("libcudnn.so.9", "13000", "missing: cuDNN 9 (libcudnn.so.9)."),
        ("libcublas.so.13", "13000", "missing: CUDA 13 (libcublas.so.13)."),
        ("libcuda.so.1", "13000", "missing: the NVIDIA driver."),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    device: Path, data: Path, tmp_path: Path, without: str, driver: str, words: str
) -> None:
    libraries = tmp_path / "libraries"
    shutil.copytree(device, libraries)
    (libraries / without).unlink() if without else None
    given = environment(libraries, REMAT_DEVICE_DRIVER=driver)
    ran = remat(given, tmp_path, "profile", data / "torch_mlp.onnx", "--device", "cuda", "--json")
    assert ran.returncode == 2
    assert json.loads(ran.stdout)["error"]["kind"] == "usage"
    assert words in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
