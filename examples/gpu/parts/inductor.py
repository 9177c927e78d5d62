"""Inductor in bfloat16: torch's partition at five budgets, checkpoints by block, remat at four; and dropout's truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from examples.gpu.parts.models import Bench
from examples.gpu.parts.torch_ways import Ways, compiled, knob

SHARES = (1.0, 0.5, 0.25, 0.1, 0.75)  # the most telling first
BUDGETS = ("60%", "45%", "80%", "30%")


def trained(bench: Bench, name: str) -> Iterator[dict[str, Any]]:
    from torch._inductor import config

    import remat_cli.torch

    ways = Ways(bench, name)
    torch = ways.torch

    def stock(share: float) -> dict[str, Any]:
        with knob(share):
            return {f"torch, {share}": ways.measured(compiled(torch))}

    def remats(budget: str) -> dict[str, Any]:
        options = remat_cli.torch.inductor_options(budget, costs="h100")
        with config.patch(options):
            found = ways.measured(compiled(torch))
        graphs = remat_cli.torch.report(options["custom_partitioner_fn"]).graphs
        said = [{what: getattr(graph, what) for what in ("predicted", "before", "budget", "why")} for graph in graphs]
        return {f"remat, {budget}": {**found, "graphs": said[-1:]}}

    yield stock(SHARES[0])
    yield remats(BUDGETS[0])
    yield {"checkpoint by block": ways.measured(compiled(torch), by_block=True)}
    if bench.small:
        return
    for share, budget in zip(SHARES[1:4], BUDGETS[1:], strict=True):
        yield stock(share)
        yield remats(budget)
    yield stock(SHARES[4])
    yield {"eager": ways.measured(lambda module: module)}


def dropout(bench: Bench) -> Iterator[dict[str, Any]]:
    """y = w * dropout(x): where a gradient is 0 and where y is must be the same places; how many are not."""
    import torch
    from torch._inductor import config

    import remat_cli.torch

    weight = torch.rand(1 << 16, device=bench.device) + 1

    def wrong(run: Any) -> dict[str, float]:
        x = (torch.rand(1 << 16, device=bench.device) + 0.5).requires_grad_()
        y = run(x)
        y.sum().backward()
        assert x.grad is not None
        return {"places": float(((x.grad == 0) != (y == 0)).float().mean()), "zeros": float((y == 0).float().mean())}

    def made() -> Any:
        def step(x: Any) -> Any:
            return torch.cos(torch.nn.functional.dropout(torch.sin(x) * weight, 0.3)) - 1

        torch._dynamo.reset()
        return torch.compile(step, dynamic=False)

    for share in (1.0, 0.5, 0.2, 0.0):
        with knob(share):
            yield {f"torch, {share}": wrong(made())}
    for budget in ("60%", "40%"):
        with config.patch(remat_cli.torch.inductor_options(budget)):
            yield {f"remat, {budget}": wrong(made())}
