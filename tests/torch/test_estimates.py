"""Prices by datasheet, and what kernels work in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from profiles.roofline import device
from remat_cli.torch import joint as joints
from remat_cli.torch.estimates import estimates
from remat_cli.torch.fusing import fused_prices
from tests.torch.allocator import allocated
from tests.torch.steps import backend, step

SIZE = 2048
aten = torch.ops.aten


def product(dtype: torch.dtype) -> tuple[joints.Joint, fx.Node]:
    """The joint graph of a product of two matrices, which are never made, and the product in it."""
    graph = fx.Graph()
    given = [graph.placeholder(f"primals_{place}") for place in (1, 2)]
    op = graph.call_function(aten.mm.default, tuple(given))
    graph.output(((op,),))
    with FakeTensorMode():
        for node in (*given, op):
            node.meta["val"] = torch.empty(SIZE, SIZE, dtype=dtype)
    joint = joints.read(fx.GraphModule({}, graph), 1)
    return joint, next(iter(joint.ops))


@pytest.fixture
def rounding() -> Iterator[None]:
    """torch is told to round products of float32."""
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    yield
    torch.backends.cuda.matmul.fp32_precision = before


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(
    ("dtype", "rates", "name"),
    [
        (torch.float64, "peak", "double"),
        (torch.float32, "vector", "float"),  # torch rounds products of float32 only where it is told to
        (torch.float16, "peak", "float16"),
        (torch.bfloat16, "peak", "bfloat16"),
    ],
)
def test_a_product_runs_at_the_rate_of_its_type(dtype: torch.dtype, rates: str, name: str, fused: bool) -> None:
    joint, op = product(dtype)
    sheet = device("a100")
    price = fused_prices(joint, "a100") if fused else estimates("a100")
    assert price(op).ns - sheet.launch_ns == round(1e9 * 2 * SIZE**3 / getattr(sheet, rates)[name])


@pytest.mark.usefixtures("rounding")
def test_products_of_float32_are_priced_as_torch_is_told_to_run_them() -> None:
    _, op = product(torch.float32)
    sheet = device("h100")
    assert estimates("h100")(op).ns - sheet.launch_ns == round(1e9 * 2 * SIZE**3 / sheet.peak["float"])


class Patches(nn.Module):
    """Convolutions that work in much beside their tensors, backwards above all."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv2d(3, 16, 3, padding=1), nn.GELU(), nn.Conv2d(16, 16, 7, padding=3, groups=16), nn.GELU()]
        self.layers = nn.Sequential(*layers, nn.Conv2d(16, 32, 3, stride=2, padding=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x).square().mean()


class Widened(nn.Module):
    """A product of 16 bits, and a sum of two types, for which one is copied as the other."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 64).to(torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.layer(x.to(torch.bfloat16)) + x).mean()


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.BatchNorm2d(3), nn.GELU(), nn.Conv2d(3, 8, 1), nn.GroupNorm(4, 8), nn.GELU())
        self.last = nn.BatchNorm2d(8).eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.layers(x)).square().mean()


class Turned(nn.Module):
    """A weight of complex numbers, whose gradient needs their conjugates."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32, 32, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.complex(x, x.cos()) @ self.weight @ self.weight.mT).square().mean()


WORKING: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "convolutions": lambda: (Patches(), torch.randn(4, 3, 32, 32)),
    "types": lambda: (Widened(), torch.randn(128, 64)),
    "norms": lambda: (Normed(), torch.randn(4, 3, 32, 32)),
    "complex": lambda: (Turned(), torch.randn(64, 32)),
}


@pytest.mark.parametrize("budget", ["100%", "80%"])
@pytest.mark.parametrize("name", WORKING)
def test_what_kernels_work_in_is_foretold_and_metered(name: str, budget: str) -> None:
    torch.manual_seed(0)
    (module, x), asked = WORKING[name](), backend(budget)
    run: Any = torch.compile(module, backend=asked, dynamic=False)
    step(module, run, (x,))
    (plan,) = asked.plans
    assert plan.found is not None, plan.why
    for parameter in module.parameters():
        parameter.grad = None
    given = sum(tensor.nbytes for tensor in (*module.parameters(), *module.buffers(), x))
    held = given + allocated(lambda: run(x).backward())
    assert asked.step.meter.peak == plan.found.outcome.peak
    assert plan.found.outcome.peak == pytest.approx(held, rel=0.001)
