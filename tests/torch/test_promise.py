"""The promise, on networks: the same bits as eager, and no more bytes than were foretold and allowed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from remat_cli.torch.backend import Backend
from tests.sampling import few
from tests.torch.models import MODELS
from tests.torch.steps import backend, measured, step, twin


def made(name: str) -> tuple[Any, tuple[Any, ...]]:
    torch.manual_seed(0)
    return MODELS[name]()


@pytest.mark.parametrize("budget", ["85%", "65%"])
@pytest.mark.parametrize("name", few(sorted(MODELS), 2))
def test_same_bits_within_the_budget(name: str, budget: str) -> None:
    module, arguments = made(name)
    other, asked = twin(module), backend(budget)
    run = torch.compile(module, backend=asked, dynamic=False)
    for seed in range(2):
        assert step(module, run, arguments, seed).same_bits(step(other, other, arguments, seed))
    (plan,) = asked.partitioner.plans
    assert plan.found is not None, plan.why
    assert plan.found.fits
    assert measured(asked, module, run, arguments) == plan.found.outcome.peak <= plan.found.budget


@pytest.mark.parametrize("name", few(["gpt", "resnet18"], 1))
def test_what_cannot_be_met_gets_the_leanest_plan_and_a_warning(name: str) -> None:
    module, arguments = made(name)
    other, asked = twin(module), backend("5%")
    run = torch.compile(module, backend=asked, dynamic=False)
    with pytest.warns(UserWarning, match="no plan was found within"):
        found = step(module, run, arguments)
    assert found.same_bits(step(other, other, arguments))
    (plan,) = asked.partitioner.plans
    assert plan.found is not None
    assert not plan.found.fits
    assert measured(asked, module, run, arguments) == plan.found.outcome.peak < plan.found.before.peak


@pytest.mark.slow
def test_less_memory_never_costs_less() -> None:
    module, arguments = made("vit")
    costs = []
    for budget in ("100%", "90%", "75%", "60%"):
        torch._dynamo.reset()
        asked = backend(budget)
        step(module, torch.compile(module, backend=asked, dynamic=False), arguments)
        costs.append(asked.partitioner.plans[0].found.outcome.cost)
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


LOSSES = [F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.l1_loss, F.soft_margin_loss, F.binary_cross_entropy]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_what_a_reduced_loss_keeps_is_foretold(loss: Any, reduction: str) -> None:
    """Some reduce in the memory of their result, which stays as large as their input was."""

    class Losing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(8, 16)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            found = loss(torch.sigmoid(self.inner(x)), y, reduction=reduction)
            return found if found.dim() == 0 else found.mean()

    torch.manual_seed(0)
    module, arguments, asked = Losing(), (torch.randn(64, 8), torch.rand(64, 16)), backend("100%")
    run = torch.compile(module, backend=asked, dynamic=False)
    step(module, run, arguments)
    (plan,) = asked.partitioner.plans
    assert plan.found is not None, plan.why
    assert measured(asked, module, run, arguments) == plan.found.outcome.peak


@pytest.mark.parametrize("stride", [2, 4])  # windows that overlap make more than there was, those with gaps less
def test_what_windows_keep_is_foretold(stride: int) -> None:
    """`unfold` and `fold` work in memory as large as their input's."""

    class Windows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Conv2d(3, 3, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found = F.unfold(self.inner(x).exp(), 3, stride=stride).tanh()
            return F.fold(found.exp(), x.shape[-2:], 3, stride=stride).square().mean()

    torch.manual_seed(0)
    module, arguments, asked = Windows(), (torch.randn(2, 3, 16, 16),), backend("100%")
    run = torch.compile(module, backend=asked, dynamic=False)
    step(module, run, arguments)
    (plan,) = asked.partitioner.plans
    assert plan.found is not None, plan.why
    assert measured(asked, module, run, arguments) == plan.found.outcome.peak


def test_what_is_written_into_a_part_of_a_part_is_copied_whole() -> None:
    """A row of many rows is copied with all of them, though torch says that the copy is as large as the row."""

    class Written(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(8, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rows, h = torch.zeros(32, 64, 16), self.inner(x)
            with torch.no_grad():
                rows[3, :, 4:8] = h[:, :4]
                rows[5][2:4] = x[:2, :1].exp()
            return (h * rows.sum(0)).mean()

    torch.manual_seed(0)
    module, arguments, asked = Written(), (torch.randn(64, 8),), backend("100%")
    run = torch.compile(module, backend=asked, dynamic=False)
    step(module, run, arguments)
    (plan,) = asked.partitioner.plans
    assert plan.found is not None, plan.why
    assert measured(asked, module, run, arguments) == plan.found.outcome.peak


def test_constants_of_a_graph_are_metered() -> None:
    """Numbers that are written in the code are there throughout, though no argument brings them."""

    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(8, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (self.inner(x).exp() * torch.tensor([0.5] * 16)).tanh().square().mean()

    torch.manual_seed(0)
    module, arguments, asked = Constant(), (torch.randn(64, 8),), backend("100%")
    run = torch.compile(module, backend=asked, dynamic=False)
    step(module, run, arguments)
    (plan,) = asked.partitioner.plans
    assert plan.found is not None, plan.why
    assert plan.lowered.problem.resident == sum(x.nbytes for x in (*module.parameters(), *arguments)) + 64
    assert asked.step.meter.peak == plan.found.outcome.peak


def test_constants_that_both_passes_read_are_held_once() -> None:
    """torch copies a backward graph with its constants."""

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(8, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rows = torch.tensor([[0.5] * 16] * 512)
            return ((self.inner(x).exp() * rows).tanh() * rows.sin()).square().mean()

    torch.manual_seed(0)
    module, arguments, asked = Twice(), (torch.randn(512, 8),), backend("60%")
    run = torch.compile(module, backend=asked, dynamic=False)
    other = twin(module)
    assert step(module, run, arguments).same_bits(step(other, other, arguments))
    (plan,) = asked.partitioner.plans
    assert plan.found is not None, plan.why
    assert sum(node.op == "get_attr" for node in plan.lowered.joint.module.graph.nodes) == 1
    assert measured(asked, module, run, arguments) == plan.found.outcome.peak


def assert_as_foretold(module: nn.Module, arguments: tuple[Any, ...], asked: Backend) -> None:
    """Its bits are those of eager, and it holds what its plan says."""
    run = torch.compile(module, backend=asked, dynamic=False)
    other = twin(module)
    assert step(module, run, arguments).same_bits(step(other, other, arguments))
    (plan,) = asked.partitioner.plans
    assert plan.found is not None, plan.why
    assert measured(asked, module, run, arguments) == plan.found.outcome.peak


def test_what_a_sparse_gradient_holds_is_foretold() -> None:
    """Its places are those of the batch, and its values have a row for each of them."""

    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.inner = nn.Embedding(400, 16, sparse=True), nn.Linear(16, 16)

        def forward(self, places: torch.Tensor) -> torch.Tensor:
            return self.inner(self.words(places).exp()).tanh().square().mean()

    torch.manual_seed(0)
    module, arguments, asked = Words(), (torch.randint(400, (256,)),), backend("70%")
    assert_as_foretold(module, arguments, asked)


class Words(nn.Module):
    """Rows of a table, read `often`: each reading has a sparse gradient, and these are summed."""

    def __init__(self, often: int) -> None:
        super().__init__()
        self.often, self.table, self.head = often, nn.Embedding(30, 16, sparse=True), nn.Linear(16, 8)

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        return self.head(sum(self.table(places + turn).sin() for turn in range(self.often))).square().mean()


class Bags(nn.Module):
    def __init__(self, mode: str) -> None:
        super().__init__()
        self.table, self.head = nn.EmbeddingBag(30, 16, mode=mode), nn.Linear(16, 8)

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(places)).square().mean()


@pytest.mark.parametrize("made", [*map(Bags, ("max", "mean", "sum")), *map(Words, (1, 2))])
def test_what_tables_of_rows_hold_is_foretold(made: nn.Module) -> None:
    assert_as_foretold(made, (torch.arange(24).reshape(4, 6),), backend("100%"))


def test_a_sum_of_three_sparse_gradients_holds_no_more_than_is_foretold() -> None:
    """How many rows the first sum has, to which the third is added, depends on the rows."""
    made, arguments, asked = Words(3), (torch.arange(24).reshape(4, 6),), backend("100%")
    run = torch.compile(made, backend=asked, dynamic=False)
    step(made, run, arguments)
    (plan,) = asked.partitioner.plans
    assert plan.found is not None, plan.why
    assert measured(asked, made, run, arguments) <= plan.found.outcome.peak
