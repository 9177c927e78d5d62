"""What a look at a plan's code has lowered is compiled: the code is what Inductor would write, and is lowered once."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx, nn
from torch._inductor import async_compile, config
from torch._inductor.graph import GraphLowering

from remat_cli.torch import inductor
from remat_cli.torch.generated import HeldByCode, look
from remat_cli.torch.handed import Form, Lowering, form_of
from remat_cli.torch.inductor import inductor_options
from remat_cli.torch.report import report
from remat_cli.torch.written import WRITTEN
from solvers.clock import limited
from tests.torch.allocator import allocated


class Gated(nn.Module):
    """The backward pass writes over values that were saved for it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(32, 128), nn.Linear(32, 128), nn.Linear(128, 32)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("few", torch.arange(32.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = nn.functional.silu(self.gate(x)) * self.up(x)
        return x + self.drop(self.down(inner)) * self.few + torch.tensor([0.5, 1.0]).repeat(16)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The code that is compiled, each graph's for itself, without its first line, which counts graphs; its kernels do
    nothing."""
    code: list[str] = []
    monkeypatch.setattr(GraphLowering, "save_output_code", lambda text: code.append(text.split("\n", 1)[1]))
    monkeypatch.setattr(async_compile.AsyncCompile, "cpp_pybinding", lambda *_, **__: lambda *_: None)
    return code


def train(before_backward: Callable[[], object] = lambda: None) -> None:
    torch._dynamo.reset()
    WRITTEN.clear()
    torch.manual_seed(0)
    module, given = nn.Sequential(Gated(), Gated()), torch.randn(512, 32)
    options = inductor_options("60%")
    options["custom_partitioner_fn"].partitioner.clock = lambda _: limited(30, 3000)
    with config.patch({**options, "force_disable_caches": True}):
        loss = torch.compile(module, dynamic=False)(given).square().sum()
        before_backward()
        loss.backward()


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The graphs that are lowered, and whether each is a backward graph."""
    lowered: list[bool] = []
    run = GraphLowering.run

    def count(own: GraphLowering, *given: Any) -> Any:
        lowered.append(bool(own.is_backward))
        return run(own, *given)

    monkeypatch.setattr(GraphLowering, "run", count)
    return lowered


def test_the_code_is_that_of_a_graph_that_is_lowered_anew(written: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = counted(monkeypatch)
    train()
    looks = len(lowered)
    monkeypatch.setattr(Lowering, "take", lambda *_: None)
    train()
    assert written[:2] == written[2:]
    assert "cpp_fused" in written[0]
    assert "cpp_fused" in written[1]
    assert lowered[looks:] == [*lowered[:looks], False, True]


def test_what_was_lowered_under_other_settings_is_lowered_anew(
    written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered = counted(monkeypatch)
    train()
    looks = len(lowered)
    threads = torch.get_num_threads()
    try:
        train(lambda: torch.set_num_threads(threads + 1))
    finally:
        torch.set_num_threads(threads)
    assert lowered[looks:] == [*lowered[:looks], True]
    assert written[0] == written[2]
    assert written[1] != written[3]


@pytest.mark.usefixtures("written")
def test_what_the_backward_pass_writes_over_is_held_once_in_this_plan_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[HeldByCode] = []
    monkeypatch.setattr(inductor, "look", lambda *given: (seen.append(look(*given)), seen[-1])[1])
    torch.manual_seed(0)
    module, given, aims = nn.Linear(32, 500), torch.randn(512, 32), torch.zeros(512, dtype=torch.long)
    options = inductor_options("100%")
    with config.patch({**options, "force_disable_caches": True}):
        run = torch.compile(lambda x, at: nn.functional.cross_entropy(module(x), at), dynamic=False)
        run(given, aims).backward()
    for parameter in module.parameters():
        parameter.grad = None
    held = sum(tensor.nbytes for tensor in (*module.parameters(), given, aims))
    (plan,) = report(options["custom_partitioner_fn"]).graphs
    assert plan.predicted == held + allocated(lambda: run(given, aims).backward())
    logits = 4 * 512 * 500
    assert max(held for held, _ in seen[0].kernels) == pytest.approx(seen[0].peak + logits, abs=0.1 * logits)


class Chain(nn.Module):
    """Each result is read by the next op alone, and what makes it runs in a kernel that reads all of the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(256))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * self.scale
        for place in range(6):
            x = x.T.contiguous().roll(place + 1, 0) + x
        return x.square().sum()


@pytest.mark.usefixtures("written")
def test_a_kernel_holds_what_it_makes_and_not_what_its_neighbours_make() -> None:
    module, given = Chain(), torch.randn(256, 256)
    held = {}
    for name, options in ("stock", {"allow_buffer_reuse": False}), ("own", inductor_options("100%")):
        torch._dynamo.reset()
        with config.patch({**options, "force_disable_caches": True}):
            run = torch.compile(module, dynamic=False)
            run(given).backward()
        held[name] = allocated(lambda run=run: run(given).backward())
    assert held["stock"] > 3.9 * given.nbytes
    assert held["own"] < 2.1 * given.nbytes


def graph_of(constant: float = 1.0, plus: int = 1, length: int = 4) -> fx.GraphModule:
    root = nn.Module()
    root.register_buffer("held", torch.full((4,), constant))
    graph = fx.Graph(root)
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(length, 4)
    total = graph.call_function(torch.ops.aten.add.Tensor, (x, graph.get_attr("held")), {"alpha": plus})
    total.meta["val"] = torch.empty(length, 4)
    graph.output((total,))
    return fx.GraphModule(root, graph)


def form(module: fx.GraphModule, *inputs: Any, **given: Any) -> Form:
    found = form_of(module, {"example_inputs": inputs or [torch.empty(4, 4)], "cpp_wrapper": False, **given})
    assert found is not None
    return found


def test_a_form_is_that_of_a_copy_and_of_nothing_else() -> None:
    own = form(graph_of())
    assert own.same(form(copy.deepcopy(graph_of()), torch.zeros(4, 4), graph_id=7))
    assert not own.same(None)
    others = [graph_of(constant=2.0), graph_of(plus=2), graph_of(length=5)]
    assert not any(own.same(form(other)) for other in others)
    inputs = [torch.empty(4, 4).t(), torch.empty(5, 4)[1:], torch.empty(4, 4, dtype=torch.double)]
    assert not any(own.same(form(graph_of(), other)) for other in inputs)
    assert not own.same(form(graph_of(), cpp_wrapper=True))
    with config.patch({"cpp.simdlen": 1}):
        assert not own.same(form(graph_of()))


def test_a_lowering_is_taken_once_and_goes_into_no_file() -> None:
    own = form(graph_of())
    kept: Any = GraphLowering.__new__(GraphLowering)
    assert Lowering(own, kept, ()).take(form(graph_of(plus=2))) is None
    lowering = Lowering(own, kept, ())
    other = copy.deepcopy({"lowering": lowering})["lowering"]
    assert other.take(form(graph_of())) is kept
    assert lowering.take(form(graph_of())) is None
    assert pickle.loads(pickle.dumps(lowering)) is None


@pytest.mark.usefixtures("written")
def test_what_no_backward_pass_takes_goes_with_its_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Lowering]] = []
    begin = Lowering.__init__

    def count(own: Lowering, *given: Any) -> None:
        begin(own, *given)
        made.append(weakref.ref(own))

    def stop() -> None:
        raise InterruptedError

    monkeypatch.setattr(Lowering, "__init__", count)
    with pytest.raises(InterruptedError):
        train(stop)
    gc.collect()
    waiting = [own() for own in made]
    assert any(lowering and lowering.graph for lowering in waiting)
    del waiting
    torch._dynamo.reset()
    gc.collect()
    assert not any(own() for own in made)
