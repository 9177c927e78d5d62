"""What is said of a compiled step, and the files that are written of it."""

from __future__ import annotations

import gc
import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import remat_cli.torch as remat_torch
from remat_cli.errors import RematWarning
from remat_cli.formats import problemfile
from remat_cli.torch.estimates import estimates
from remat_cli.torch.measuring import measured
from remat_cli.torch.partition import Partitioner
from tests.cli.running import Command
from tests.torch.steps import backend, said


def network() -> nn.Module:
    layers = [nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32), nn.Dropout(0.1)) for _ in range(3)]
    return nn.Sequential(*layers)


@pytest.fixture
def compiled() -> nn.Module:
    torch.manual_seed(0)
    run = torch.compile(network(), backend=backend("85%"), dynamic=False)
    result = run(torch.randn(64, 32))
    result.square().mean().backward()  # the result is held meanwhile, as callers do
    return run


def test_a_report_says_what_was_foretold_measured_and_computed_again(compiled: nn.Module) -> None:
    (graph,) = remat_torch.report(compiled).graphs
    assert graph.measured == graph.predicted <= graph.budget < graph.before
    assert graph.overhead > 0
    assert all(name.split(".")[0] in "012" for name, _ in graph.again)
    assert "computed again" in str(graph)
    assert str(sum(count for _, count in graph.again)) in str(graph)


def test_a_function_is_reported_as_a_module_is() -> None:
    run = torch.compile(lambda x: (x.sin().exp() * x).sum(), backend=backend("100%"))
    run(torch.randn(8, requires_grad=True)).backward()
    (graph,) = remat_torch.report(run).graphs
    assert graph.overhead == 0


def test_what_runs_between_two_graphs_is_said_to_be_in_no_figure(compiled: nn.Module) -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x.sin().exp()
        torch._dynamo.graph_break()
        return (y * x).sum()

    run = torch.compile(broken, backend=backend("100%"))
    run(torch.randn(8, requires_grad=True)).backward()
    words = "what runs in eager between the graphs is in no figure"
    assert words in str(remat_torch.report(run))
    assert words not in str(remat_torch.report(compiled))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.GRU(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)[0]


def test_the_report_says_why_a_module_has_no_graph_though_torch_gave_the_reason_for_another() -> None:
    """torch.compile skips the code of a class once it skipped it for one module, and says no more."""
    for _ in range(2):
        run = torch.compile(Recurrent(), backend=backend("100%"))
        run(torch.randn(3, 2, 8)).mean().backward()
    said = str(remat_torch.report(run))
    assert said.startswith("no graph was compiled")
    assert re.search("leaves (GRU\\(8, 8\\)|the recurrent layer 'inner') to eager", said)


def test_what_was_left_to_eager_is_forgotten_when_torch_begins_anew(compiled: nn.Module) -> None:
    torch.compile(Recurrent(), backend=backend("100%"))(torch.randn(3, 2, 8))
    assert remat_torch.report(compiled).left
    torch._dynamo.reset()
    run = torch.compile(network(), backend=backend("100%"))
    run(torch.randn(64, 32)).mean().backward()
    assert not remat_torch.report(run).left


def test_the_report_names_what_was_left_to_eager_after_torch_forgot_who_listens(compiled: nn.Module) -> None:
    """The backend is made before, and torch comes to it with no graph."""
    asked = backend("100%")
    torch._dynamo.reset()
    run = torch.compile(Recurrent(), backend=asked)
    run(torch.randn(3, 2, 8)).mean().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RematWarning)
        assert re.search("leaves (GRU\\(8, 8\\)|the recurrent layer 'inner') to eager", str(remat_torch.report(run)))


class SineAgain(torch.autograd.Function):
    """A sine whose backward pass asks for its gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            return torch.autograd.grad(x.sin(), x, gradient)[0]


@pytest.mark.skipif(not hasattr(torch._dynamo.config, "trace_autograd_ops"), reason="this torch has another reason")
def test_a_function_whose_backward_pass_asks_for_gradients_is_named() -> None:
    layer = nn.Linear(8, 8)
    run = torch.compile(lambda x: SineAgain.apply(layer(x)).sum(), backend=backend("100%"))
    with pytest.warns(RematWarning, match=r"calls torch\.autograd\.grad"):
        run(torch.randn(4, 8))


def test_what_another_backend_compiled_is_refused() -> None:
    with pytest.raises(ValueError, match="was not compiled with"):
        remat_torch.report(torch.compile(nn.Linear(2, 2), backend="aot_eager"))


def test_a_saved_joint_graph_can_be_swept(compiled: nn.Module, remat: Command, tmp_path: Path) -> None:
    remat_torch.save_joint(compiled, tmp_path / "net.joint.json")
    names = problemfile.read(tmp_path / "net.joint.json").nodes
    assert {"boundary", "addmm", "gelu"} <= set(names)
    found = json.loads(remat("sweep", "net.joint.json", "--budgets", "100%,75%", "--methods", "evict", "--json").out)
    assert [point["method"] for point in found["points"]] == ["evict", "evict"]
    assert found["points"][0]["peak"] == remat_torch.report(compiled).graphs[0].before


def test_ops_are_measured_once_and_kept(tmp_path: Path) -> None:
    place = tmp_path / "here.costs.yaml"
    prices = measured(estimates("cpu"), place)
    asked = backend("100%")
    asked.partitioner = Partitioner(asked.partitioner.allowance, prices, asked.partitioner.clock)
    module, x = network(), torch.randn(64, 32)
    before = torch.random.get_rng_state()
    run = torch.compile(module, backend=asked, dynamic=False)
    run(x)
    known = measured(estimates("cpu"), place).known
    assert known == prices.known
    products = [cost for name, cost in known.items() if name.startswith("aten.addmm")]
    assert len(products) == 2  # of six, of two signatures
    assert all(cost.how == "measured" and cost.ns > 0 for cost in products)
    torch.random.set_rng_state(before)
    expected = module(x)
    torch.random.set_rng_state(before)
    assert torch.equal(run(x), expected)


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("layers", [["Linear"], ["Sequential"], ["Own"], ["Own", "GELU"]])
def test_layers_of_torch_that_are_compiled_in_place_are_told(layers: list[str], by_name: bool) -> None:
    """torch.compile looks at the code of users alone there, and says nothing of what it leaves."""
    gc.collect()  # modules of other tests are there until then

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(32, 32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).sin()

    kinds = {"Linear": lambda: nn.Linear(32, 32), "Sequential": network, "Own": Own, "GELU": nn.GELU}
    made = [kinds[name]() for name in layers]
    module: nn.Module = made[0] if len(made) == 1 else nn.Sequential(*made)
    asked = backend("1GB")
    budget = f"{len('-'.join(layers))}GB"  # of a backend that no other case has
    options = {"backend": "remat", "options": {"budget": budget}} if by_name else {"backend": asked}
    module.compile(**options)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", RematWarning)
        module(torch.randn(4, 32)).sum().backward()
    left = remat_torch.report(module).left  # the step has said it, though nobody asks
    assert said(heard) == list(left)
    found = [re.search("leaves (.*) to eager, for torch's own code is not compiled in place", text) for text in left]
    assert [one[1] for one in found] == [name for name in layers if name != "Own"]
