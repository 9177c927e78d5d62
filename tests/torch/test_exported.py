"""`grad` of what torch.export gave: autograd's gradients, of the parameters that the module itself trains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import remat_cli as remat
from remat_cli import grad
from remat_cli.model.step_parts import parts_of
from tests.cli.running import Command

pytest.importorskip("onnxscript", reason="torch writes ONNX with it")


class Tied(nn.Module):
    """A tied embedding with a row that is not trained, a frozen layer, one without use, and one under no_grad."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 8, padding_idx=0)
        self.first, self.frozen, self.target = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.norm, self.unused = nn.BatchNorm1d(8), nn.Linear(3, 3)
        self.head = nn.Linear(8, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.frozen.requires_grad_(False)
        self.register_buffer("scale", torch.full((8,), 0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.norm(self.first(self.embedding(x).mean(1)))) * self.scale
        with torch.no_grad():
            aim = torch.tanh(self.target(h)) * 2
        return self.head(h + self.frozen(h) * aim + self.target(h).detach())


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.lstm, self.head = nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.embedding(x))[0][:, -1])


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.block(self.embedding(x)).mean(1))


class Within(nn.Module):
    """A region of enable_grad within one of no_grad."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(10, 8), nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embedding(x).mean(1)
        with torch.no_grad():
            a = torch.tanh(h)
            with torch.enable_grad():
                b = self.head(a)
            c = b * 2
        return self.head(h) + b + c


LABELS = torch.tensor([1, 0, 9, 3])
WORDS = torch.tensor([[1, 2, 0, 5, 9], [3, 3, 3, 0, 1], [7, 8, 6, 5, 4], [0, 2, 2, 4, 1]])


def program_of(module: nn.Module, *given: torch.Tensor, **more: Any) -> Any:
    return torch.export.export(module, given or (WORDS,), **more)


def ran(step: onnx.ModelProto, module: nn.Module) -> dict[str, np.ndarray]:
    """A run at the module's values."""
    parts = parts_of(step)
    assert parts is not None
    session = onnxruntime.InferenceSession(step.SerializeToString(), providers=["CPUExecutionProvider"])
    held = {name: value.detach().numpy() for name, value in module.state_dict().items()}
    feeds = {"x": WORDS.numpy(), "labels": LABELS.numpy()}
    feeds |= {name: held[name] for name in (*parts.parameters, *parts.statistics)}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def autograds(module: nn.Module) -> dict[str, np.ndarray]:
    loss = nn.functional.cross_entropy(module(WORDS), LABELS)
    loss.backward()  # type: ignore[no-untyped-call]
    found = {name: one.grad.numpy() for name, one in module.named_parameters() if one.grad is not None}
    return {"loss": loss.detach().numpy(), **{f"{name}_grad": gradient for name, gradient in found.items()}}


def named_alike(found: dict[str, np.ndarray], module: nn.Module) -> dict[str, np.ndarray]:
    """Gradients by the first name of each parameter."""
    first: dict[int, str] = {}
    every = {name: first.setdefault(id(one), name) for name, one in module.named_parameters(remove_duplicate=False)}
    return {f"{every[name.removesuffix('_grad')]}_grad": one for name, one in found.items() if name.endswith("_grad")}


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("kind", [Tied, Recurrent, Attending, Within])
def test_the_gradients_are_autograds_and_of_what_the_module_trains(kind: type[nn.Module], mode: str) -> None:
    torch.manual_seed(0)
    module = kind().train(mode == "train")
    step = remat.grad(program_of(module), freeze_bn=True)
    found, expected = ran(step, module), autograds(module)
    assert found["loss"] == pytest.approx(expected.pop("loss"), rel=1e-5)
    gradients = named_alike(found, module)
    assert gradients.keys() == expected.keys()
    for name, gradient in expected.items():
        np.testing.assert_allclose(gradients[name], gradient, rtol=1e-4, atol=1e-6, err_msg=name)
    for name, value in module.state_dict().items():  # as the forward pass left them
        if name.rpartition(".")[2].startswith("running") and f"{name}_new" in found:
            np.testing.assert_allclose(found[f"{name}_new"], value.numpy(), rtol=1e-5, atol=1e-7)


def test_the_program_stays_as_it_is() -> None:
    program = program_of(Tied())
    before = str(program.graph), str(program.graph_signature), program.graph_module.code
    remat.grad(program)
    assert (str(program.graph), str(program.graph_signature), program.graph_module.code) == before


def test_sizes_that_are_open_are_bound() -> None:
    batch = torch.export.Dim("batch", min=2, max=64)
    module = Recurrent()
    step = remat.grad(program_of(module, WORDS, dynamic_shapes=({0: batch},)), batch=4)
    expected, found = autograds(module), ran(step, module)
    np.testing.assert_allclose(found["head.weight_grad"], expected["head.weight_grad"], rtol=1e-4, atol=1e-6)


def test_an_optimizer_of_torch_has_its_groups_by_the_program() -> None:
    torch.manual_seed(0)
    module = Tied().eval()
    decayed = [module.first.weight, module.target.weight, module.embedding.weight]
    others = [module.first.bias, *module.norm.parameters()]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.01)
    step = remat.grad(program_of(module), optimizer=optimizer, freeze_bn=True)
    parts = parts_of(step)
    assert parts is not None
    named = dict(module.named_parameters(remove_duplicate=False))
    assert {id(named[name]) for name in parts.parameters} <= {id(one) for one in (*decayed, *others)}
    session = onnxruntime.InferenceSession(step.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"x": WORDS.numpy(), "labels": LABELS.numpy()}
    for value in session.get_inputs():
        if value.name in named:
            feeds[value.name] = named[value.name].detach().numpy().copy()
        elif value.name in parts.state:
            shape = [int(size) for size in value.shape]
            feeds[value.name] = np.zeros(shape, np.int64 if "int64" in value.type else np.float32)
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(names, feeds), strict=True))
    nn.functional.cross_entropy(module(WORDS), LABELS).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    for name in parts.parameters:
        np.testing.assert_allclose(
            found[f"{name}_new"], named[name].detach().numpy(), rtol=1e-4, atol=1e-5, err_msg=name
        )


class Changing(nn.Module):
    """Drops between recurrent layers, and keeps an average of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(10, 8), nn.RNN(8, 8, 2, dropout=0.5, batch_first=True)
        self.drop, self.head = nn.Dropout(0.25), nn.Linear(8, 10)
        self.register_buffer("seen", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.rnn(self.embedding(x))[0][:, -1]
        self.seen.add_(h.detach().mean(0))
        return self.head(self.drop(h))


def test_what_the_step_leaves_out_is_said() -> None:
    with pytest.warns(remat.RematWarning) as said:
        step = remat.grad(program_of(Changing()))
    words = [str(one.message) for one in said]
    assert any("nn.RNN" in one and "nothing is dropped" in one for one in words)
    assert any("changes buffers" in one and "seen" in one for one in words)
    assert any(
        node.op_type in ("Dropout", "Bernoulli", "RandomUniform", "RandomUniformLike") for node in step.graph.node
    )
    with pytest.warns(remat.RematWarning) as said:
        remat.grad(program_of(Changing().eval()))
    assert not any("nn.RNN" in str(one.message) for one in said)


def test_what_cannot_be_said_is_refused() -> None:
    with pytest.raises(remat.Usage, match="give torch"):
        remat.grad(Tied())
    with pytest.raises(remat.Usage, match="no parameter"):
        remat.grad(program_of(Recurrent().requires_grad_(False)))


def test_a_file_of_a_program_in_the_command(remat: Command) -> None:
    program = program_of(Tied().eval())
    torch.export.save(program, "m.pt2")
    asked = remat("grad", "m.pt2", "--freeze-bn", "--json")
    assert asked.code == 0, asked
    assert json.loads(asked.out)["model"] == "m.train.onnx"
    step = grad("m.pt2", freeze_bn=True)
    assert step.SerializeToString(deterministic=True) == Path("m.train.onnx").read_bytes()
    trained = {entry["name"] for entry in json.loads(asked.out)["parameters"]}
    assert trained == {"head.weight", "first.weight", "first.bias", "norm.weight", "norm.bias"}
    Path("bad.pt2").write_bytes(b"PK no")
    for words, code, says in (
        (("grad", "bad.pt2"), 3, "torch.export.save"),
        (("grad", "none.pt2"), 3, "cannot read none.pt2"),
        (("grad", "m.pt2", "-o", "m.pt2"), 2, "would be lost"),
    ):
        answer = remat(*words)
        assert answer.code == code, answer
        assert says in answer.err
        assert answer.err.count("\n") == 1
