"""`torch.compile(model, backend=remat_cli.torch.backend(budget="60%"))`: a training step, op by op, within a budget.

Invariant: the ops are those of eager, with their kernels; only which are run again, and when, is decided here.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import torch
from torch import fx

from remat_cli.errors import RematWarning
from remat_cli.torch.aside import WITHOUT
from remat_cli.torch.beside import Beside
from remat_cli.torch.building import Split
from remat_cli.torch.partition import Partitioner, PlannedJoint, partition_fn
from remat_cli.torch.private import TorchDynamoException, aot_autograd, donate_nothing, lookup_backend, reset
from remat_cli.torch.ranks import RanksDiffer, meet
from remat_cli.torch.reading import meetings
from remat_cli.torch.regions import write_out
from remat_cli.torch.running import Compiled, op_by_op, share_constants
from remat_cli.torch.sizes import SizeCheck
from remat_cli.torch.skipped import look_in_place, tell_of_skipped
from remat_cli.torch.whole_step import WholeStep


class Backend:
    """The backend that torch.compile is given. `plans`: the plan of each graph. `step`: the memory of the graphs
    together. `asked`: the arguments that make an equal one, for a compiled module that is pickled."""

    def __init__(self, partitioner: Partitioner, asked: tuple[Any, ...] = ()) -> None:
        self.partitioner = partitioner
        self.asked = asked
        tell_of_skipped(self)
        self.step = WholeStep(partitioner.allowance, self._compile_again)
        self.anew = False  # whether this rank compiled again, as others may not have

    @property
    def plans(self) -> list[PlannedJoint]:
        return self.partitioner.plans

    def __call__(self, module: Any, inputs: Any, **options: Any) -> Any:
        tell_of_skipped(self)
        try:
            if not self.plans:
                look_in_place(self)
            write_out(module)
            return _Graph(self, inputs).compile(module, inputs)
        except (
            TorchDynamoException,
            RanksDiffer,
        ):  # torch.compile's own, by which it begins a graph again or says what it cannot do
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, the training goes on as it would without us
            text = f"remat: '{WITHOUT}' compiles this graph, without a budget: {type(error).__name__}: {error}"
            warnings.warn(f"{text}; please report this", RematWarning, stacklevel=2)
            return lookup_backend(WITHOUT)(module, inputs)

    def __deepcopy__(self, _: Any) -> Backend:
        """A copy of a compiled module trains beside it, within the same budget."""
        return self

    def __reduce__(self) -> Any:
        return (backend, self.asked) if self.asked else super().__reduce__()

    def _compile_again(self) -> None:
        self.anew = True
        self.partitioner.plans.clear()
        reset()
        tell_of_skipped(self)


class _Graph:
    """One graph on its way from torch.compile to a forward and a backward pass."""

    def __init__(self, backend: Backend, inputs: Any) -> None:
        self.backend = backend
        self.number = backend.step.add_graph(inputs)
        self.planned: PlannedJoint | None = None
        self.late: fx.GraphModule | None = None  # the backward graph as it was planned
        self.leaves: list[bool] = []
        self.outputs = 0  # of the forward pass, before what it saves

    def compile(self, module: Any, inputs: Any) -> Any:
        self.backend.partitioner.allowance.look_ahead(inputs)
        self.leaves = [isinstance(x, torch.Tensor) and x.is_leaf and x.requires_grad for x in inputs]
        given = {"fw_compiler": self.forward, "bw_compiler": self.backward, "partition_fn": self.split}
        return aot_autograd(**given)(module, inputs)

    def split(self, module: fx.GraphModule, inputs: Any, **given: Any) -> Split:
        partitioner, step = self.backend.partitioner, self.backend.step
        given["leaves"], self.outputs = self.leaves, given["num_fwd_outputs"]
        result = partitioner.split(module, inputs, lambda lowered: step.room(self.number, lowered), **given)
        self.planned, self.late = partitioner.plans[-1], result[1]
        if self.planned.lowered is not None and not step.settled and not self.backend.anew:
            meet(meetings(self.planned.lowered.joint.effects))
        step.hear(self.number, self.planned)
        return result

    def forward(self, graph: fx.GraphModule, _: Any) -> Compiled:
        donate_nothing()
        step, planned = self.backend.step, self.planned
        if planned is None:  # the graph runs without gradients: an optimizer's, after the step, is no part of its peak
            return op_by_op(graph, step, _do_nothing, first=False)
        check = SizeCheck(graph.graph, planned)

        def begin(arguments: list[Any]) -> None:
            check(arguments)
            step.begin_forward(self.number, arguments)

        def end(results: Any) -> None:
            step.end_forward(results[self.outputs :] or results)

        return op_by_op(graph, step, begin, end)

    def backward(self, graph: fx.GraphModule, _: Any) -> Compiled:
        step = self.backend.step
        if self.late is not None:  # torch hands over a copy, in which constants are copies too
            share_constants(graph, self.late)

        def begin(arguments: list[Any]) -> None:
            step.begin_backward(self.number, arguments)

        return op_by_op(graph, step, begin, step.end_backward)


def _do_nothing(_: list[Any]) -> None:
    pass


def backend(
    budget: str | int,
    costs: str = "cpu",
    time_limit: float | None = None,
    beside: Beside = 0,
    checkpoints: Literal["lift", "keep"] = "lift",
) -> Backend:
    """A backend for torch.compile: a training step of its graphs holds no more than `budget`.

    budget: bytes ("12GB"), a share of what the step holds as written ("60%"), or "fit", for what the device
        has free.
    costs: the device whose datasheet prices the ops ("cpu", "a100"), "measure", or a cost file.
    time_limit: the seconds that each graph may be searched. By default a search takes less time than torch's own part
        of the compilation, and finds the same plan on every machine.
    beside: what else the budget is for, held throughout: bytes ("1.2GB"), or the optimizer, whose state it is.
    checkpoints: blocks under `torch.utils.checkpoint` are planned like all else ("lift"), or computed again in the
        backward pass and not saved, as they ask ("keep").
    """
    partitioner = partition_fn(budget, costs, time_limit, beside, checkpoints)
    return Backend(partitioner, (budget, costs, time_limit, partitioner.allowance.beside, checkpoints))
