"""PyTorch under remat's plans, op by op, beside torch's own partitions of the same graphs.

Invariant: all ways begin from the same weights and inputs; gradients are held against eager's, eager's against its own.
"""

from __future__ import annotations

import copy
import functools
import gc
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from examples.gpu.parts import beside as others
from examples.gpu.parts.models import Bench, Model
from examples.gpu.parts.networks import network
from examples.gpu.parts.torch_ways import knob

BUDGETS = ("70%", "50%")
KNOBS = (("dp", 1.0), ("dp", 0.5), ("ilp", 0.5), ("dp", 0.2))
Gradients = list[Any]


def op_by_op(bench: Bench, name: str) -> Iterator[dict[str, Any]]:
    """Eager twice, torch's partitions run op by op, and remat's plans with measured costs."""
    import remat_cli.torch

    trial = Trial(bench, name)
    yield {"eager": trial.of(lambda net: net)}
    yield {"eager, itself": trial.of(lambda net: net)}
    first, *further = KNOBS
    with knob(first[1], first[0]):
        yield {f"torch, {first[0]} {first[1]}": trial.of(compiler(trial.torch, torchs_partitions()))}
    for budget in BUDGETS:
        backend = remat_cli.torch.backend(budget, costs="measure", time_limit=bench.searching)
        yield {f"remat, {budget}": trial.of(compiler(trial.torch, backend), remat_cli.torch.report)}
    for solver, share in further:
        with knob(share, solver):
            yield {f"torch, {solver} {share}": trial.of(compiler(trial.torch, torchs_partitions()))}


def compiler(torch: Any, backend: Any) -> Callable[[Any], Any]:
    return lambda net: torch.compile(net, backend=backend, dynamic=False)


def torchs_partitions() -> Any:
    """A backend that runs torch's minimum cut op by op, each value let go after its last use."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch.fx.graph import _BoxedCodeGen

    def plain(graph: Any, _: Any) -> Any:
        graph.graph.set_codegen(_BoxedCodeGen())
        graph.recompile()

        def run(arguments: list[Any]) -> Any:
            return graph.forward(arguments)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    return aot_autograd(fw_compiler=plain, bw_compiler=plain, partition_fn=min_cut_rematerialization_partition)


class Trial:
    """One network, its loss and its batch; each way trains a copy of it."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.torch, self.bench = others.prepared(), bench
        made, batch = network(self.torch, bench, name)
        self.network, self.given = made.cpu(), batch(Model(bench, name).usual_batch)
        self.eager: Gradients = []
        self.compiled: Gradients = []

    def of(self, way: Callable[[Any], Any], report: Callable[[Any], Any] | None = None) -> dict[str, Any]:
        """`measured`, or in which words it failed: torch's partitions do not run with every network."""
        try:
            return self.measured(way, report)
        except RuntimeError as error:
            return {"failed": str(error)[-300:]}

    def measured(self, way: Callable[[Any], Any], report: Callable[[Any], Any] | None) -> dict[str, Any]:
        """What one way holds and takes, and how far its gradients are from eager's and from the first compiled ones.

        `left`: the bytes that the ways before did not give back; they are in what is allocated.
        """
        self.torch._dynamo.reset()
        gc.collect()
        left = 0
        if self.bench.device == "cuda":
            self.torch.cuda.empty_cache()
            left = self.torch.cuda.memory_allocated()
        net = with_loss(self.torch, copy.deepcopy(self.network).to(self.bench.device).train())
        begun = time.perf_counter()
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            run = way(net)
            step = functools.partial(self._step, net, run)
            for _ in range(2):  # where graphs share a budget, the second step compiles them anew
                step()
        taken = time.perf_counter() - begun
        gradients = [parameter.grad for parameter in net.parameters()]
        apart = self._apart(gradients)
        if run is not net and not self.compiled:
            self.compiled = [gradient.detach().cpu() for gradient in gradients]
        del gradients
        held = others.timed(self.torch, self.bench, step)
        said = [str(one.message)[:200] for one in heard if "remat" in str(one.message)]
        found = {"left": left, **held, **apart, "compiled_s": round(taken, 1), "said": said}
        return found | (_reported(report(run)) if report else {})

    def _step(self, net: Any, run: Any) -> None:
        net.zero_grad(set_to_none=True)
        self.torch.manual_seed(1)
        run(self.given["input"], self.given["labels"]).backward()

    def _apart(self, gradients: Gradients) -> dict[str, Any]:
        found = [gradient.detach().cpu() for gradient in gradients]
        said = {"gradients": len(found)}
        if not self.eager:
            self.eager = found
            return said
        said |= {f"{key}_from_eager": value for key, value in self._off(found, self.eager).items()}
        if self.compiled:
            said |= {f"{key}_from_compiled": value for key, value in self._off(found, self.compiled).items()}
        return said

    def _off(self, found: Gradients, expected: Gradients) -> dict[str, Any]:
        pairs = [*zip(found, expected, strict=True)]
        differ = sum(not self.torch.equal(own, its) for own, its in pairs)
        return {"differ": differ, "worst": max(float((a - b).abs().max() / (b.abs().max() + 1e-12)) for a, b in pairs)}


def with_loss(torch: Any, net: Any) -> Any:
    """The loss is in the graph, so that its values are in the plan."""

    class WithLoss(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, given: Any, labels: Any) -> Any:
            return others.loss_of(torch, self.net(given), labels)

    return WithLoss()


def _reported(report: Any) -> dict[str, Any]:
    figures = ("predicted", "measured", "before", "budget", "least_peak_bound", "overhead", "gap", "why")
    return {"graphs": [{figure: getattr(graph, figure) for figure in figures} for graph in report.graphs]}
