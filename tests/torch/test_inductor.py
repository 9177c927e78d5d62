"""Partitions for Inductor, run op by op: a partition is right or wrong whoever compiles it."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn
from torch._inductor import config

from remat_cli.torch import joint as joints
from remat_cli.torch.backend import Backend
from remat_cli.torch.building import build
from remat_cli.torch.estimates import estimates
from remat_cli.torch.fusing import fuse, fused_prices
from remat_cli.torch.inductor import InductorPartitioner, inductor_options, partitioner
from remat_cli.torch.lowering import lower
from remat_cli.torch.partition import Partitioner, RematWarning, holding
from remat_cli.torch.report import report
from remat_cli.torch.written import WRITTEN
from solvers.clock import limited
from solvers.schedule import evaluate
from tests.sampling import few
from tests.torch.allocator import allocated
from tests.torch.capturing import captured
from tests.torch.models import MODELS
from tests.torch.steps import backend, step, twin


@pytest.mark.parametrize("name", few(["mixer", "resnet18"], 1))
def test_a_fused_plan_computes_the_same(name: str) -> None:
    torch.manual_seed(0)
    module, arguments = MODELS[name]()
    other, asked = twin(module), backend("70%")
    asked.partitioner.fused_for = "cpu"
    run = torch.compile(module, backend=asked, dynamic=False)
    assert step(module, run, arguments).same_bits(step(other, other, arguments))
    (plan,) = asked.partitioner.plans
    assert plan.found is not None, plan.why


def test_what_is_computed_inside_its_readers_is_no_value() -> None:
    kept = []

    class Keep(Partitioner):
        def split(self, module, inputs, room, *, num_fwd_outputs, **given):  # type: ignore[no-untyped-def]
            kept.append((joints.copy_of(module), num_fwd_outputs))
            return super().split(module, inputs, room, num_fwd_outputs=num_fwd_outputs, **given)

    whole = backend("100%").partitioner
    x, w = torch.randn(64, 64, requires_grad=True), torch.randn(64, 64, requires_grad=True)
    run = torch.compile(
        lambda x, w: ((x @ w).sin() * 2 + 1).exp() @ w,
        backend=Backend(Keep(whole.allowance, whole.pricing, whole.clock)),
    )
    run(x, w).sum().backward()
    plain = lower(joints.read(*kept[0]), estimates("cpu"))
    joint = joints.read(*kept[0])
    fuse(joint)
    fused = lower(joint, fused_prices(joint))
    made = [op.name for op in fused.ops if op is not None]
    assert len(fused.ops) < len(plain.ops)
    assert "mm" in made
    assert "exp" in made  # a product reads it
    assert not {"sin", "mul", "add"} & set(made)


def test_the_uuid_tells_budgets_apart_and_stays() -> None:
    own = partitioner("60%")
    others = [partitioner("50%"), partitioner("60%", costs="a100"), partitioner("60%", beside="1MB")]
    assert own.uuid() == partitioner("60%").uuid()
    assert own.uuid() not in [other.uuid() for other in others]
    with pytest.raises(ValueError, match="for Inductor costs is one of a100"):
        partitioner("60%", costs="measure")
    assert copy.deepcopy(own) is own  # Inductor copies its configuration, and pickles it for the keys of its caches
    kept = pickle.loads(pickle.dumps(others[2]))
    assert kept.uuid() == others[2].uuid()
    assert kept.partitioner.allowance == others[2].partitioner.allowance


def two_convolutions() -> tuple[nn.Module, torch.Tensor]:
    """Inductor lays values out with channels last, and in the backward pass works in the saved layouts."""
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers), torch.randn(4, 3, 32, 32)


@pytest.mark.slow
def test_the_peak_of_inductors_own_code_is_what_the_allocator_gives_out() -> None:
    torch.manual_seed(0)
    module, given = two_convolutions()
    asked = partitioner("90%")
    asked.partitioner.clock = lambda _: limited(30, 3000)
    with config.patch(custom_partitioner_fn=asked, force_disable_caches=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", RematWarning)  # of a budget that cannot be kept
        run = torch.compile(module, dynamic=False)
        run(given).sum().backward()
    for parameter in module.parameters():
        parameter.grad = None

    def train() -> None:
        result = run(given)  # which the caller holds
        result.sum().backward()

    held = sum(tensor.nbytes for tensor in (*module.parameters(), *module.buffers(), given))
    (found,) = report(asked).graphs
    assert found.predicted == pytest.approx(held + allocated(train), rel=0.03)
    assert found.budget is not None
    assert found.before is not None
    assert found.budget < found.before


@pytest.mark.parametrize("layouts", [True, False])
def test_a_budget_that_is_not_met_names_the_copies_that_inductor_makes_of_weights(layouts: bool) -> None:
    torch.manual_seed(0)
    module, given = two_convolutions()
    own = partitioner("10%").partitioner
    own.clock = lambda _: limited(30, 500)
    asked = PlanOnly(own, "")
    patch = config.patch(custom_partitioner_fn=asked, force_disable_caches=True, layout_optimization=layouts)
    with patch, pytest.warns(RematWarning, match="no plan was found") as heard, pytest.raises(Stop):
        torch.compile(module, dynamic=False)(given)
    assert ("layout_optimization = False" in str(heard[-1].message)) == layouts


def blocks() -> tuple[nn.Module, torch.Tensor]:
    block = [nn.LayerNorm(32), nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32)]
    return nn.Sequential(*[copy.deepcopy(layer) for _ in range(2) for layer in block]), torch.randn(256, 32)


class Stop(BaseException):
    """Ends a compilation when the graph is planned: its kernels are not compiled."""


class PlanOnly(InductorPartitioner):
    def __call__(self, *given, **more):  # type: ignore[no-untyped-def]
        super().__call__(*given, **more)
        raise Stop


def test_what_inductors_code_holds_keeps_to_the_budget() -> None:
    torch.manual_seed(0)
    module, given = blocks()
    own = partitioner("80%").partitioner
    own.clock = lambda _: limited(30, 30_000)
    with config.patch(custom_partitioner_fn=PlanOnly(own, ""), force_disable_caches=True), pytest.raises(Stop):
        torch.compile(module, dynamic=False)(given)
    (plan,) = own.plans
    assert plan.told is not None, plan.why
    assert plan.told.peak <= plan.told.budget < plan.told.whole
    assert not plan.over


class Gated(nn.Module):
    """Three values of the width inside are made by one kernel of the backward pass, if their product is made again."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(32, 128), nn.Linear(32, 128), nn.Linear(128, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.silu(self.gate(x)) * self.up(x))


def test_what_code_holds_beyond_the_model_is_learnt_of_the_ops_in_its_kernels() -> None:
    torch.manual_seed(0)
    own = partitioner("55%").partitioner
    own.clock = lambda _: limited(30, 3000)
    known = set(WRITTEN)
    with config.patch(custom_partitioner_fn=PlanOnly(own, ""), force_disable_caches=True), pytest.raises(Stop):
        torch.compile(nn.Sequential(*[Gated() for _ in range(3)]), dynamic=False)(torch.randn(512, 32))
    (plan,) = own.plans
    assert plan.lowered is not None, plan.why
    (written,) = [WRITTEN[place] for place in WRITTEN if place not in known]
    problem, more = plan.lowered.problem, written.more
    by_the_model = {order: evaluate(problem, order)[1].peak for order in written.peaks}
    assert any(by_the_model[order] < 0.95 * peak for order, peak in written.peaks.items())
    for order, peak in written.peaks.items():
        assert evaluate(holding(problem, more), order)[1].peak >= 0.995 * peak


def test_what_is_computed_inside_kernels_is_computed_anew_for_one_that_is_planned_apart() -> None:
    torch.manual_seed(0)
    first, second = torch.randn(32, 32, requires_grad=True), torch.randn(32, 32, requires_grad=True)
    module, _, outputs = captured(lambda x: ((x @ first).exp() * x) @ second, (torch.randn(64, 32),))
    joint = joints.read(module, outputs)
    fuse(joint)
    lowered = lower(joint, fused_prices(joint))
    forward = [op for op in range(lowered.boundary) if not lowered.problem.nodes[op].once]
    order = [*range(lowered.boundary + 1), *forward, *range(lowered.boundary + 1, len(lowered.ops))]
    backward = build(lowered, order)[1]
    at = {node: place for place, node in enumerate(backward.graph.nodes)}
    products = [place for node, place in at.items() if "mm" in str(node.target)]
    found = backward.graph.find_nodes(op="call_function", target=torch.ops.aten.exp.default)
    assert len(found) > 1
    for one in found:
        assert not any(at[one] < place < at[user] for user in one.users for place in products)


class Attending(nn.Module):
    """Ops with several results, and kernels that work in more than their tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.inward, self.outward = nn.Conv2d(3, 32, 4, stride=4), nn.Linear(32, 96), nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.patches(x).flatten(2).transpose(1, 2)
        query, key, value = self.inward(rows).unflatten(2, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        return self.outward(nn.functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))


def test_what_each_kernel_holds_is_learnt_of_its_own_ops() -> None:
    torch.manual_seed(0)
    own = partitioner("100%").partitioner
    known = set(WRITTEN)
    with config.patch(custom_partitioner_fn=PlanOnly(own, ""), force_disable_caches=True), pytest.raises(Stop):
        torch.compile(Attending(), dynamic=False)(torch.randn(4, 3, 32, 32))
    (plan,) = own.plans
    assert plan.lowered is not None, plan.why
    (written,) = [WRITTEN[place] for place in WRITTEN if place not in known]
    problem, ((order, peak),) = plan.lowered.problem, written.peaks.items()
    assert evaluate(problem, order)[1].peak < 0.9 * peak
    assert evaluate(holding(problem, written.more), order)[1].peak == pytest.approx(peak, rel=0.005)


class Twice(nn.Module):
    """Two products of the same operand's images: each image can be made again when its product's gradient needs it."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(256, 2), nn.Linear(256, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.one(x.sin()).square() + self.other(x.cos())


@pytest.mark.filterwarnings("ignore::remat_cli.errors.RematWarning")  # of a budget that cannot be kept
@pytest.mark.parametrize("apart", [True, False])
def test_what_is_planned_apart_is_not_made_at_once_for_a_shared_operand(apart: bool) -> None:
    torch.manual_seed(0)
    options = inductor_options("75%")
    own = options["custom_partitioner_fn"].partitioner
    if not apart:
        del options["score_fusion_memory_threshold"]
    patch = config.patch({**options, "custom_partitioner_fn": PlanOnly(own, ""), "force_disable_caches": True})
    with patch, pytest.raises(Stop):
        torch.compile(Twice(), dynamic=False)(torch.randn(2048, 256))
    (plan,) = own.plans
    assert plan.told is not None, plan.why
    assert bool(plan.told.over) != apart


def test_the_report_finds_the_partitioner_among_the_options() -> None:
    asked = inductor_options("90%")
    run = torch.compile(nn.Linear(2, 2), options=asked)
    assert "no graph was compiled" in str(report(run))
    assert run.get_compiler_config()["custom_partitioner_fn"] is asked["custom_partitioner_fn"]
    assert not run.get_compiler_config()["allow_buffer_reuse"]
    assert run.get_compiler_config()["score_fusion_memory_threshold"] > 1e12
    with pytest.raises(ValueError, match="not compiled with"):
        report(torch.compile(nn.Linear(2, 2)))


@pytest.mark.slow
def test_code_that_torchs_own_cache_serves_is_reported_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch.manual_seed(0)
    module, given = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)), torch.randn(4, 8)
    told = []
    for _ in range(2):
        torch._dynamo.reset()
        asked = partitioner("100%")
        assert "no graph was compiled" in str(report(asked))
        with config.patch(custom_partitioner_fn=asked, fx_graph_cache=True):
            torch.compile(module, dynamic=False)(given).sum().backward()
        told.append(report(asked))
    assert len(told[0].graphs) == 1
    assert not told[1].graphs
    assert "torch's own cache served" in str(told[1])
