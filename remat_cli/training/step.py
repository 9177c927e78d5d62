"""A training step bound to its state: called with a batch, it trains, and answers with the loss.

Invariant: between calls the state is whole: parameters, an optimizer's state and statistics are of the same update. A
batch that is refused changes nothing. Where the step writes its state in place, a run that breaks off leaves parts of
two updates: from then on the step refuses all but `load`. Of a run whose op fails before that, nothing is left.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, overload

import numpy as np
import onnx

from profiles.forking import BORN_BEFORE
from remat_cli.arguments import number
from remat_cli.errors import BadInput, RematWarning, Usage, meant
from remat_cli.gradient.classes import LABELS, named_class_axis
from remat_cli.gradient.optimizers import RATE
from remat_cli.gradient.scaling import FINITE, LOSS_SCALE
from remat_cli.training import checkpoint
from remat_cli.training.checkpoint import Checkpoint
from remat_cli.training.failing import BROKEN, NOTHING_WRITTEN, OpFailed, WrittenState, run, small_of
from remat_cli.training.rates import Regime, differences
from remat_cli.training.scale import LossScale
from remat_cli.training.state import State, check_labels, classes_of, describe_names, fitting, frame_of, parts_told
from remat_cli.training.sums import Sums

TRACKED = "num_batches_tracked"  # PyTorch's count of a BatchNorm's batches, which nothing reads


class Step:
    """`session` runs the step `model`. With `update`, gradients of several batches are averaged, then applied.

    `regime`: how it trains. `written`: what of the state runs write over.
    """

    def __init__(
        self,
        session: Any,
        model: onnx.ModelProto,
        state: State,
        regime: Regime,
        update: Any = None,
        written: WrittenState = NOTHING_WRITTEN,
    ) -> None:
        self._written, self._whole = written, True
        self._process = os.getpid()
        self._turn = RLock()  # one run at a time: each begins with the state that the one before has written
        self._session, self._update, self._regime = session, update, regime
        self._parts = parts_told(model)
        model = frame_of(model)  # what is kept of it keeps all of it in memory
        self._chooses = named_class_axis(model) is not None  # labels choose among classes
        self._classes = classes_of(model)
        self._kinds = {value.name: value.type.tensor_type for value in model.graph.input}
        self._outputs = [output.name for output in session.get_outputs()]
        self._state = {name: value for name, value in state.items() if name not in self._parts.sums}
        self._sums = Sums(self._parts, self._kinds)
        self._rate = regime.rate
        self.loss_scale = LossScale() if LOSS_SCALE in self._kinds else None  # only a step with float16 has one
        self.calls = 0  # batches seen
        self.updates = 0  # updates of the parameters so far
        self._handed = 0  # batches that the module last loaded into knows of

    @property
    def data(self) -> tuple[str, ...]:
        """The names of what a batch holds, in the order in which a sequence is taken."""
        return self._parts.data

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names that a call can return besides the loss."""
        state = {f"{name}_new" for name in (*self._state, *self._parts.parameters, *self._parts.sums)}
        return tuple(name for name in self._outputs if name != "loss" and name not in state)

    @property
    def learning_rate(self) -> float:
        """Which the schedule multiplies; it can be set at any time."""
        return self._rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._rate = number(rate, "a learning rate")

    @property
    def next_rate(self) -> float:
        """The learning rate of the next update, with the schedule's factor."""
        return self.learning_rate * self._regime.schedule.at(self.updates)

    def __repr__(self) -> str:
        told = f"{len(self._parts.parameters)} parameters, {self.calls} batches seen, {self.updates} updates"
        return f"<training step: {told}, learning rate {self.next_rate:g}>"

    @overload
    def __call__(self, batch: Mapping[str, Any] | Sequence[Any]) -> float: ...
    @overload
    def __call__(self, batch: Mapping[str, Any] | Sequence[Any], outputs: Sequence[str]) -> dict[str, Any]: ...
    def __call__(
        self, batch: Mapping[str, Any] | Sequence[Any], outputs: Sequence[str] | None = None
    ) -> float | dict[str, Any]:
        """The loss of the batch; afterwards the parameters are updated, or its gradients counted in.

        - `batch`: what the step takes of data, by name, or in the order of `data`.
        - `outputs`: names of `outputs`, if they are wanted too: then the answer holds them and "loss" by name.

        Gradients in float16 that are not finite are left out, and what they would be counted in to with them.

        Example:

            found = step((images, labels), outputs=["logits"])
            print(found["loss"], found["logits"].argmax(1))
        """
        wanted = None if outputs is None else self._wanted(outputs)
        if os.getpid() != self._process:  # a run would wait for threads that are not there
            raise Usage(f"this step {BORN_BEFORE}")
        with self._turn:
            loss, asked = self._run(batch, wanted or ())
        return loss if wanted is None else {"loss": loss, **asked}

    def _run(self, batch: Mapping[str, Any] | Sequence[Any], wanted: Sequence[str]) -> tuple[float, dict[str, Any]]:
        self._check_whole()
        feeds = self._feeds(batch)
        feeds |= {name: value for name, value in self._state.items() if name in self._kinds} | self._sums.feeds()
        with self._writing():
            found = dict(zip(self._outputs, run(self._session, self._outputs, feeds), strict=True))
            asked = {name: found[name].copy() for name in wanted}  # gradients may be summed where they are
            return self._made(found), asked

    def _wanted(self, names: Sequence[str]) -> list[str]:
        if not isinstance(names, Iterable) or (
            not isinstance(names, str) and any(not isinstance(n, str) for n in names)
        ):
            batch = ", ".join(self.data)
            raise Usage(f"outputs are names, not {_kind(names)}; a batch is given as one: step(({batch}))")
        wanted = [names] if isinstance(names, str) else list(names)
        if unknown := [name for name in wanted if name not in ("loss", *self.outputs)]:
            there = meant(str(unknown[0]), self.outputs) if self.outputs else "it gives the loss alone"
            raise Usage(
                f"the step gives no '{unknown[0]}'; {there} (it gives outputs of the model that grad was told to keep: "
                f"outputs=['{unknown[0]}'])"
            )
        return [name for name in wanted if name != "loss"]

    def _made(self, found: Mapping[str, Any]) -> float:
        """The loss of a run, of which the state is taken, or its gradients."""
        if self.loss_scale is not None:
            self.loss_scale.heard(bool(found[FINITE]))
        self.calls += 1
        self._take(found, self._parts.statistics)
        if self._update is not None:
            self._count_in(found)
        elif found.get(FINITE, True):
            self._take(found)
            self.updates += 1
        return float(found["loss"])

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The state is whole again only if all of this comes to its end, or an op fails before any of it is written."""
        self._whole = not self._written.state
        small, sums = small_of(self._state), self._sums.small()
        try:
            yield
        except OpFailed as error:
            if error.op in self._written.before:
                self._state |= small
                self._sums.put_back(sums)
                self._whole = True
            raise
        self._whole = True

    def _check_whole(self) -> None:
        if not self._whole:
            raise Usage(BROKEN)

    def _feeds(self, batch: Mapping[str, Any] | Sequence[Any]) -> State:
        if not isinstance(batch, Mapping | Sequence) or isinstance(batch, str):
            if len(self.data) != 1 or not hasattr(batch, "shape"):
                raise Usage(
                    f"a batch holds {describe_names(list(self.data))}, by name or in this order; not {_kind(batch)}"
                )
            batch = (batch,)
        given = batch if isinstance(batch, Mapping) else dict(zip(self.data, batch))
        wrong = sorted(set(self.data) ^ set(given))
        if not isinstance(batch, Mapping) and len(batch) != len(self.data):
            raise Usage(f"a batch holds {describe_names(list(self.data))}, in this order; {len(batch)} were given")
        if wrong:
            missing = [name for name in wrong if name in self.data]
            lacks = [f"it lacks {describe_names(missing)}"] if missing else []
            knows = [f"the step takes no {describe_names(sorted(set(wrong) - set(missing)))}"]
            faults = "; ".join(lacks + knows[: len(wrong) - len(missing)])
            raise Usage(f"a batch holds {describe_names(list(self.data))}; {faults}")
        feeds = {name: fitting(name, given[name], self._kinds[name], in_batch=True) for name in self.data}
        if self._chooses:
            check_labels(feeds[LABELS], self._classes)
        if self._update is None and RATE in self._kinds:
            feeds[RATE] = np.array(self.next_rate, np.float32)
        if self.loss_scale is not None:
            feeds[LOSS_SCALE] = np.array(self.loss_scale.value, np.float32)
        return feeds

    def _take(self, found: Mapping[str, Any], names: Sequence[str] | None = None) -> None:
        """Make the step's results for these names, or for all of its state, the new state."""
        for name in self._state if names is None else names:
            if f"{name}_new" in found:
                self._state[name] = found[f"{name}_new"]

    def _count_in(self, found: Mapping[str, Any]) -> None:
        self._sums.take(found, alone=self._regime.accumulate == 1)
        if self.calls % self._regime.accumulate == 0:
            self._apply()

    def _apply(self) -> None:
        if self.loss_scale is not None and not self._sums.finite():
            self._sums.begin()
            return
        names = [output.name for output in self._update.get_outputs()]
        taken = {entry.name for entry in self._update.get_inputs()}
        feeds = {name: value for name, value in self._state.items() if name in taken}
        feeds |= self._sums.mean(self._regime.accumulate)
        feeds[RATE] = np.array(self.next_rate, np.float32)
        try:
            self._take(dict(zip(names, self._update.run(names, feeds), strict=True)))
        finally:
            self._sums.begin()
        self.updates += 1

    def state_dict(self) -> State:
        """Parameters and running statistics by the module's names; later steps do not change them."""
        self._check_whole()
        names = (*self._parts.parameters, *self._parts.statistics)
        return {name: self._state[name].copy() if name in self._written.state else self._state[name] for name in names}

    def load_into(self, module: Any) -> None:
        """Copy parameters and running statistics into a PyTorch module: the one that the step was made from."""
        if not hasattr(module, "state_dict"):
            raise Usage(f"weights are loaded into a PyTorch module, not {_kind(module)}")
        there = module.state_dict()
        own = self.state_dict()
        if missing := [name for name in own if name not in there]:
            raise Usage(
                f"the module has no {describe_names(missing[:3])}; it is not the one that the step was made from"
            )
        for name, value in own.items():
            if list(there[name].shape) != list(value.shape):
                raise Usage(f"'{name}' is {list(there[name].shape)} in the module, but {list(value.shape)} in the step")
        for name, value in own.items():
            there[name].copy_(there[name].new_tensor(value))
        for name in there:
            if name.endswith(TRACKED) and name.replace(TRACKED, "running_mean") in own:
                there[name].add_(self.calls - self._handed)
        self._handed = self.calls

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint, from which `load` goes on as if there had been no break; Dropout alone draws anew."""
        self._check_whole()
        scale = None if self.loss_scale is None else self.loss_scale.written()
        counts = self.calls, self.updates, self._handed
        sums = self._sums.written(amid=self.calls % self._regime.accumulate > 0)
        Checkpoint(self._state, sums, counts, self.learning_rate, scale, self._regime.described()).write(path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint that `save` wrote, at the learning rate that was set then.

        One of another optimizer is refused; where this step is told other settings of it, or another schedule, it goes
        on with its own and a RematWarning says which.
        """
        held = checkpoint.read(path)
        if set(held.state) != set(self._state):
            raise BadInput(f"the checkpoint {path} is not of this step: they hold other names")
        state = {name: fitting(name, value, self._kind_of(name)) for name, value in held.state.items()}
        sums = self._sums.read(held.sums)
        self._compare(path, held)
        self._state = state
        self._sums.load(sums)
        if self.loss_scale is not None and held.scale is not None:
            self.loss_scale = LossScale.read(held.scale)
        if held.rate is not None:
            self.learning_rate = held.rate
        self.calls, self.updates, self._handed = held.counts
        self._whole = True

    def _compare(self, path: str | os.PathLike[str], held: Checkpoint) -> None:
        """Say how this step trains otherwise than that of the checkpoint did, or refuse to go on from there."""
        now = self._regime.described()
        before, own = (told.get("optimizer", {}).get("name") for told in (held.regime, now))
        if before and own and before != own:
            raise BadInput(f"the checkpoint {path} is of the optimizer {before}, and this step has {own}")
        if held.sums and held.regime.get("accumulate", self._regime.accumulate) != self._regime.accumulate:
            raise BadInput(
                f"the checkpoint {path} is from amid {held.regime['accumulate']} batches that make an update, "
                f"and here {self._regime.accumulate} do: say accumulate={held.regime['accumulate']}"
            )
        for said in differences(held.regime, now):
            words = f"the checkpoint {path} was trained otherwise: {said}"
            warnings.warn(words, RematWarning, stacklevel=3)

    def _kind_of(self, name: str) -> onnx.TypeProto.Tensor:
        """The type of an input of the step; state that only the update has keeps its own type."""
        if name in self._kinds:
            return self._kinds[name]
        value = self._state[name]
        return onnx.helper.make_tensor_type_proto(
            onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        ).tensor_type


def _kind(given: object) -> str:
    return f"a {type(given).__name__}"
