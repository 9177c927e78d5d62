"""`torch.compile(module, options=remat_cli.torch.inductor_options(budget="60%"))`: a plan for Inductor.

Invariant: `uuid` changes with all that a partition depends on besides the graph, so that Inductor's caches never hand
out another's. The peak is foretold from Inductor's code, or without `foretell` by a model of its fusions (`fusing.py`).
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx

from profiles.roofline import names
from remat_cli.results.store import key_of
from remat_cli.results.versions import versions
from remat_cli.torch.beside import Beside
from remat_cli.torch.building import Split
from remat_cli.torch.generated import HeldByCode, look
from remat_cli.torch.partition import Partitioner, RematWarning, partition_fn
from remat_cli.torch.private import CustomPartitionerFn

PARTITIONER = "custom_partitioner_fn"  # Inductor's setting
SHARED_OPERAND = "score_fusion_memory_threshold"  # bytes in common for which Inductor has one kernel do two ops' work
NEVER = 1 << 60


class InductorPartitioner(CustomPartitionerFn):
    """The partitioner for Inductor's configuration. `partitioner.plans`: the plan of each graph whose code torch's own
    cache did not have. `asked`: the arguments that make an equal one."""

    def __init__(self, partitioner: Partitioner, asked: tuple[Any, ...]) -> None:
        self.partitioner = partitioner
        self.asked = asked
        self.looked_up = False  # whether torch looked into its caches for code of this partitioner's

    def __call__(self, gm: fx.GraphModule, joint_inputs: Any, **given: Any) -> Split:
        with _uncollected():
            return self.partitioner(gm, joint_inputs, **given)

    def __deepcopy__(self, _: Any) -> InductorPartitioner:
        """Inductor copies its configuration; plans are of the one that the user holds."""
        return self

    def __reduce__(self) -> Any:
        """Inductor pickles its configuration for the keys of its caches: what was asked says all."""
        return partitioner, self.asked

    def uuid(self) -> str:
        self.looked_up = True
        return key_of({"asked": list(self.asked), "torch": str(torch.__version__), "versions": versions()})


def partitioner(
    budget: str | int,
    costs: str = "cpu",
    time_limit: float | None = None,
    beside: Beside = 0,
    foretell: bool = True,
) -> InductorPartitioner:
    """A partitioner for Inductor: the peak of what it compiles keeps to `budget`, as far as it is foretold.

    costs: the device whose datasheet prices the kernels ("cpu", "a100"). Ops cannot be measured here: Inductor makes
        other kernels of them.
    foretell: have Inductor write its code for the graph without recomputation and for a few plans, and keep the
        peak of that code to the budget. A share is then of what the code without recomputation holds. Each plan takes
        its search and the time in which Inductor writes its code; kinds of ops that are no kernels of Inductor's run
        once. False: one plan by a model of what Inductor fuses, which can be far off.
    The other arguments are those of `backend`.
    """
    if costs not in names():
        raise ValueError(f"for Inductor costs is one of {', '.join(names())}, not {costs!r}")
    inner = partition_fn(budget, costs, time_limit, beside)
    inner.fused_for = costs
    inner.foretell = _foretold if foretell else None
    return InductorPartitioner(inner, (budget, costs, time_limit, inner.allowance.beside, foretell))


def inductor_options(
    budget: str | int,
    costs: str = "cpu",
    time_limit: float | None = None,
    beside: Beside = 0,
    foretell: bool = True,
) -> dict[str, Any]:
    """The options of torch.compile for Inductor under a budget. The arguments are those of `partitioner`.

    Two habits of Inductor's are switched off, for what they hold: it keeps memory that is free for a later buffer of
    the same size, and has one kernel do what two ops with the same operand do, though one of them is planned for later.
    It may move kernels: it does where that holds less by its own estimate, and keeps the order of the plan otherwise.
    """
    own = partitioner(budget, costs, time_limit, beside, foretell)
    return {PARTITIONER: own, "allow_buffer_reuse": False, SHARED_OPERAND: NEVER}


@contextmanager
def _uncollected() -> Iterator[None]:
    """Within it Python collects no garbage: a collection looks at all of torch's objects, and takes an eighth of a
    look."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _foretold(split: Split, held: Sequence[bool], ready: bool) -> HeldByCode | None:
    """What Inductor's code for a plan holds; None, with a warning, where it cannot be told."""
    try:
        return look(split, held, ready)
    except Exception as error:  # noqa: BLE001  a figure for a report: the training does not need it
        text = f"remat: the peak of Inductor's code is not known ({type(error).__name__}: {error})"
        warnings.warn(text, RematWarning, stacklevel=2)
        return None
