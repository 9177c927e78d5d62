"""Files as PyTorch's exporters write them: autograd's gradients, or a refusal that says how to export instead.

The files and autograd's word on them come from examples/pytorch/export_small.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import remat_cli as remat
from remat_cli.model.step_parts import Parts, parts_of

FILES = Path(__file__).parents[2] / "data" / "torch"
WHOLE = [
    *("conv_train_whole", "conv_train_traced_whole"),
    *("language_train_whole", "language_eval_whole", "language_train_traced_whole", "language_eval_traced_whole"),
    *("vanishing_train_whole", "vanishing_eval_whole", "vanishing_train_traced_whole", "vanishing_eval_traced_whole"),
    *("clones_train_whole", "clones_eval_whole", "clones_train_traced_whole", "clones_eval_traced_whole"),
]


def _parts(step: onnx.ModelProto) -> Parts:
    parts = parts_of(step)
    assert parts is not None
    return parts


def _ran(step: onnx.ModelProto, witness: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One run at the module's initial values; a tied parameter may bear any of its names."""
    session = onnxruntime.InferenceSession(step.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"x": witness["x"], "labels": witness["labels"]}
    feeds |= {name: witness[f"before.{name}"] for name in (*_parts(step).parameters, *_parts(step).statistics)}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def _witness(name: str) -> dict[str, np.ndarray]:
    model, mode, *_ = name.split("_")
    with np.load(FILES / f"{model}_{mode}.npz") as stored:
        return dict(stored)


@pytest.mark.parametrize("name", WHOLE)
def test_the_gradients_are_autograds(name: str) -> None:
    witness = _witness(name)
    found = _ran(remat.grad(FILES / f"{name}.onnx"), witness)
    assert found["loss"] == pytest.approx(float(witness["loss"]), rel=1e-5)
    expected = {key.removeprefix("grad."): value for key, value in witness.items() if key.startswith("grad.")}
    if name == "language_train_whole" or name == "language_eval_whole":  # torch.export keeps the last of tied names
        expected["head.weight"] = expected.pop("wte.weight")
    assert {key for key in found if key.endswith("_grad")} == {f"{key}_grad" for key in expected}
    for key, gradient in expected.items():
        np.testing.assert_allclose(found[f"{key}_grad"], gradient, rtol=1e-4, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("name", ["conv_train_whole", "conv_train_traced_whole"])
def test_running_statistics_are_the_modules(name: str) -> None:
    witness = _witness(name)
    found = _ran(remat.grad(FILES / f"{name}.onnx"), witness)
    for key in ("bn1.running_mean", "bn1.running_var", "bn2.running_mean", "bn2.running_var"):
        np.testing.assert_allclose(found[f"{key}_new"], witness[f"after.{key}"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("conv_train_default", "7 of the module's 9"),  # normalization folded into the convolutions, also in training
        ("language_train_default", "11 of the module's 17"),  # normalizations merged, weights transposed and untied
        ("vanishing_train_default", "4 of the module's 7"),  # a bias of zeros, a factor of one, what can be folded
        ("clones_train_default", "3 of the module's 4"),
        ("conv_train_traced", "4 weights"),
        ("language_eval_traced", "6 weights"),
    ],
)
def test_what_an_exporter_folded_or_merged_is_refused_with_the_call_that_keeps_it(name: str, count: str) -> None:
    with pytest.raises(remat.BadInput, match="optimize=False") as refused:
        remat.grad(FILES / f"{name}.onnx")
    assert count in str(refused.value)


def test_statistics_of_inference_are_refused_with_the_option() -> None:
    with pytest.raises(remat.BadInput, match="--freeze-bn"):
        remat.grad(FILES / "conv_eval_whole.onnx")
    frozen = _ran(remat.grad(FILES / "conv_eval_whole.onnx", freeze_bn=True), _witness("conv_eval"))
    np.testing.assert_allclose(
        frozen["bn1.weight_grad"], _witness("conv_eval")["grad.bn1.weight"], rtol=1e-4, atol=1e-6
    )


def test_what_stands_in_the_file_can_be_meant() -> None:
    parts = _parts(remat.grad(FILES / "language_train_default.onnx", as_exported=True))
    assert any("named by an exporter" in note for note in parts.notes)
    assert any("read often: ln1.weight (3 times)" in note for note in parts.notes)
    assert any("of one element" in note for note in parts.notes)


def test_what_may_be_a_buffer_is_named_where_the_exporter_does_not_tell() -> None:
    """A traced export holds buffers as it holds parameters; torch.export's files say which is which."""
    traced = " ".join(_parts(remat.grad(FILES / "vanishing_train_traced_whole.onnx")).notes)
    assert "perhaps buffers" in traced
    assert "scale, shift, decay" in traced
    assert "fc.weight" not in traced
    assert "out.bias" not in traced
    assert "perhaps buffers" not in " ".join(_parts(remat.grad(FILES / "vanishing_train_whole.onnx")).notes)


def test_the_modules_own_list_of_parameters_chooses() -> None:
    names = ["wte.weight", "wpe.weight", "ln1.weight"]
    chosen = _parts(remat.grad(FILES / "language_train_traced_whole.onnx", params=[*names, "pooler.weight"]))
    assert set(chosen.parameters) == set(names)
    assert any("pooler.weight" in note for note in chosen.notes)
    every = [key.removeprefix("grad.") for key in _witness("language_train") if key.startswith("grad.")]
    tied = _parts(remat.grad(FILES / "language_train_whole.onnx", params=every))
    assert set(tied.parameters) == {*every, "head.weight"} - {"wte.weight"}
    with pytest.raises(remat.BadInput, match="none of the 1 names"):
        remat.grad(FILES / "language_train_traced_whole.onnx", params=["model.wte.weight"])


class _Parameter:
    def __init__(self, requires_grad: bool) -> None:
        self.requires_grad = requires_grad


class _Module:
    """What of a PyTorch module says which parameters are trained: all but `frozen`, and one that has two names."""

    def __init__(self, names: list[str], frozen: str, tied: tuple[str, str]) -> None:
        self.found = {name: _Parameter(name != frozen) for name in names}
        self.found[tied[1]] = self.found[tied[0]]

    def named_parameters(self, remove_duplicate: bool) -> list[tuple[str, _Parameter]]:
        assert not remove_duplicate
        return list(self.found.items())


@pytest.mark.parametrize("way, tied", [("whole", "head.weight"), ("traced_whole", "wte.weight")])
def test_of_a_module_all_is_trained_that_requires_a_gradient(way: str, tied: str) -> None:
    names = [key.removeprefix("grad.") for key in _witness("language_train") if key.startswith("grad.")]
    module = _Module(names, "ln1.weight", ("wte.weight", "head.weight"))
    chosen = _parts(remat.grad(FILES / f"language_train_{way}.onnx", params=module))
    assert set(chosen.parameters) == {*names, tied} - {"ln1.weight", "wte.weight"} | {tied}
    assert not any("not trained" in note for note in chosen.notes)
    with pytest.raises(remat.BadInput, match="folded or transposed"):
        remat.grad(FILES / "language_train_traced.onnx", params=module)


def test_a_region_of_no_grad_is_named() -> None:
    """torch.export keeps it as code of its own, which the places in the file show, and nothing else does."""
    path = FILES / "vanishing_train_whole.onnx"
    model = onnx.load(path)
    assert "no_grad" not in " ".join(_parts(remat.grad(model)).notes)
    node = next(node for node in model.graph.node if node.op_type == "Exp")
    place = 'File "<eval_with_key>.97", line 6, in forward'
    node.metadata_props.add(key="pkg.torch.onnx.stack_trace", value=place)
    assert f"1 ops ({node.name}) stand in a region of no_grad" in " ".join(_parts(remat.grad(model)).notes)


def test_tied_weights_are_one_parameter_read_twice() -> None:
    parts = _parts(remat.grad(FILES / "language_train_whole.onnx"))
    assert parts.parameters["head.weight"] == 2
    assert parts.notes == ("no op reads wte.weight: tied to another parameter, or without use",)


def test_weights_that_began_equal_are_two_unless_they_are_tied() -> None:
    path = FILES / "clones_train_traced_whole.onnx"
    apart = _parts(remat.grad(path))
    assert "equal at the start: layers.0.weight, layers.1.weight" in " ".join(apart.notes)
    tied = remat.grad(path, ties=[("layers.0.weight", "layers.1.weight")])
    assert set(_parts(tied).parameters) == set(apart.parameters) - {"layers.1.weight"}
    witness = _witness("clones_train")
    both = witness["grad.layers.0.weight"] + witness["grad.layers.1.weight"]
    np.testing.assert_allclose(_ran(tied, witness)["layers.0.weight_grad"], both, rtol=1e-4, atol=1e-6)
    with pytest.raises(remat.BadInput, match="no two tensors of one shape"):
        remat.grad(path, ties=[("layers.0.weight", "layers.0.bias")])
