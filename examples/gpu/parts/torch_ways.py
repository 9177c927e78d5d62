"""One network trained in several ways: what each holds, how long its step takes beside another's, and its gradients.

Invariant: all ways begin from the same weights and inputs. Bytes are the allocator's own count beyond what ways before
left behind; times are of steps in turn with those of the way that was measured first.
"""

from __future__ import annotations

import copy
import gc
import itertools
import statistics
import time
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from examples.gpu.parts.models import Bench
from examples.gpu.parts.torch_networks import network

WARM = 3
_NUMBER = itertools.count()
Compile = Callable[[Any], Any]


class Ways:
    """`exact`: gradients in float32, without dropout, against which all are held."""

    def __init__(self, bench: Bench, name: str) -> None:
        import torch

        torch._dynamo.config.recompile_limit = 1000
        self.torch, self.bench = torch, bench
        self.made = {drops: network(torch, name, bench.small, bench.device, drops) for drops in (True, False)}
        torch.manual_seed(1)
        self.batch = self.made[True][1]()
        self.exact = self._gradients(self.made[False][0].float(), lambda one: one)
        self.made[False][0].to(torch.bfloat16)
        self.first: Callable[[], None] | None = None

    def measured(self, way: Compile, by_block: bool = False) -> dict[str, Any]:
        """What the way holds and takes, or in which words it failed."""
        try:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                found = self._measured(way, by_block)
        except RuntimeError as error:
            return {"failed": str(error)[-300:]}
        return found | {"said": [str(one.message)[:200] for one in heard if "remat" in str(one.message)]}

    def _measured(self, way: Compile, by_block: bool) -> dict[str, Any]:
        """Without dropout first: its gradients can be held against others. Then as it is trained."""
        held = self.made[False][0]
        held.by_block = by_block
        apart = self._apart(self._gradients(held, way))
        self._let_go()
        left, begun = self._allocated(), time.perf_counter()
        module = copy.deepcopy(self.made[True][0])
        module.by_block = by_block
        step = self._step(way(_alone(module)), module)
        for _ in range(WARM):  # where graphs share a budget, the second step compiles them anew
            step()
        compiled = time.perf_counter() - begun
        found = {"compiled_s": round(compiled, 1), **self._peak(step, left), **apart, **self._timed(step)}
        if self.first is None:
            self.first = step
        return found

    def _step(self, run: Any, module: Any) -> Callable[[], None]:
        def step() -> None:
            module.zero_grad(set_to_none=True)
            run(*self.batch).backward()

        return step

    def _gradients(self, module: Any, way: Compile) -> list[Any]:
        module = copy.deepcopy(module)
        way(_alone(module))(*self.batch).backward()
        return [parameter.grad.float().cpu() for parameter in module.parameters()]

    def _apart(self, found: list[Any]) -> dict[str, Any]:
        """How far the gradients are from float32's, by their norms: the median and the worst of the parameters."""
        off = [float((own - its).norm() / (its.norm() + 1e-30)) for own, its in zip(found, self.exact, strict=True)]
        return {"gradients_off": {"median": statistics.median(off), "worst": max(off)}}

    def _timed(self, step: Callable[[], None]) -> dict[str, Any]:
        """Milliseconds of a step, and the ratio to the first way's, in turn with it."""
        end, times, ratios = time.perf_counter() + self.bench.seconds, list[float](), list[float]()
        while len(times) < WARM or time.perf_counter() < end:
            times.append(self._once(step))
            if self.first is not None:
                ratios.append(times[-1] / self._once(self.first))
        found = {"ms": round(1e3 * statistics.median(times), 3)}
        return found | ({"over_first": round(statistics.median(ratios), 4)} if ratios else {})

    def _once(self, step: Callable[[], None]) -> float:
        self._wait()
        begun = time.perf_counter()
        step()
        self._wait()
        return time.perf_counter() - begun

    def _peak(self, step: Callable[[], None], left: int) -> dict[str, Any]:
        if self.bench.device != "cuda":
            from tests.torch.allocator import allocated

            return {"allocated": allocated(step)}  # beyond the gradients of the step before, which go first
        cuda = self.torch.cuda
        cuda.reset_peak_memory_stats()
        step()
        self._wait()
        stats = cuda.memory_stats()
        return {
            "left": left,
            "allocated": cuda.max_memory_allocated() - left,
            "requested": stats["requested_bytes.all.peak"],
            "reserved": cuda.max_memory_reserved(),
        }

    def _let_go(self) -> None:
        gc.collect()
        if self.bench.device == "cuda":
            self.torch.cuda.empty_cache()

    def _allocated(self) -> int:
        return int(self.torch.cuda.memory_allocated()) if self.bench.device == "cuda" else 0

    def _wait(self) -> None:
        if self.bench.device == "cuda":
            self.torch.cuda.synchronize()


def _alone(module: Any) -> Any:
    """The module with code of its own: torch.compile keeps what it made of code, not of a module."""
    kind = type(module)
    code = kind.forward.__code__.replace(co_name=f"forward_{next(_NUMBER)}")
    own = types.FunctionType(code, kind.forward.__globals__, "forward", None, kind.forward.__closure__)
    module.__class__ = type(kind.__name__, (kind,), {"forward": own})
    return module


def compiled(torch: Any, **how: Any) -> Compile:
    return lambda module: torch.compile(module, dynamic=False, **how)


@contextmanager
def knob(share: float, solver: str = "dp") -> Iterator[None]:
    """torch's own budget for what is saved between the passes."""
    from torch._functorch import config

    patch: AbstractContextManager[Any] = config.patch(
        activation_memory_budget=share, activation_memory_budget_solver=solver
    )
    with patch:
        yield
