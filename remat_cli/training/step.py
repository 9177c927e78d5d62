"""A training step bound to its state: called with a batch, it trains, and answers with the loss.

Invariant: between calls the state is whole: parameters, an optimizer's state and statistics are of the same update. A
batch that is refused changes nothing. Where the step writes its state in place, a run that breaks off leaves parts of
two updates: from then on the step refuses all but `load`. Of a run whose op fails before that, nothing is left.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import onnx

from remat_cli.errors import BadInput, Usage
from remat_cli.formats.files import write_whole
from remat_cli.gradient.optimizers import RATE
from remat_cli.gradient.scaling import FINITE, LOSS_SCALE
from remat_cli.training.scale import LossScale
from remat_cli.training.state import State, described, fitting, told_parts

TRACKED = "num_batches_tracked"  # PyTorch's count of a BatchNorm's batches, which nothing reads
VALUE, SUM, COUNTS, SCALE = "value of ", "sum of ", "counts", "loss scale"  # in a checkpoint
LEARNING_RATE = "learning rate"


SMALL = 1024  # bytes: what is no larger is copied before each run, such as the count of updates
BROKEN = (
    "a run of this step broke off while it wrote new state in the place of the old: what is left is of no one update; "
    "load a checkpoint, or make the step with keep_state=True, which holds both"
)


@dataclass(frozen=True, slots=True)
class WrittenState:
    """`state`: the names of what runs write over. `before`: ops that run only before any of it but what is `SMALL`."""

    state: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()


NOTHING_WRITTEN = WrittenState()


class OpFailed(BadInput):
    """An op that the runtime could not run on the batch; '' for its name where it does not say."""

    def __init__(self, says: str, op: str) -> None:
        super().__init__(says)
        self.op = op


class Step:
    """`session` runs the step `model`. With `update`, gradients of `accumulate` batches are averaged, then applied.

    `written`: what of the state runs write over.
    """

    def __init__(
        self,
        session: Any,
        model: onnx.ModelProto,
        state: State,
        rate: float,
        update: Any = None,
        accumulate: int = 1,
        written: WrittenState = NOTHING_WRITTEN,
    ) -> None:
        self._written, self._whole = written, True
        self._session, self._update, self._accumulate = session, update, accumulate
        self._parts = told_parts(model)
        self._kinds = {value.name: value.type.tensor_type for value in model.graph.input}
        self._outputs = [output.name for output in session.get_outputs()]
        self._state = state
        self._sums: State = {}
        self.learning_rate = rate  # of the next update
        self.loss_scale = LossScale() if LOSS_SCALE in self._kinds else None  # of a step with float16
        self.calls = 0  # batches seen
        self.updates = 0  # of the parameters
        self._handed = 0  # batches that the module last loaded into knows of

    @property
    def data(self) -> tuple[str, ...]:
        """The names of what a batch holds, in the order in which a sequence is taken."""
        return self._parts.data

    def __call__(self, batch: Mapping[str, Any] | Sequence[Any]) -> float:
        """The loss of the batch; afterwards the parameters are updated, or its gradients counted in.

        Gradients in float16 that are not finite are left out, and what they would be counted in to with them.
        """
        self._check_whole()
        feeds = self._feeds(batch)
        feeds |= {name: value for name, value in self._state.items() if name in self._kinds}
        with self._writing():
            return self._made(feeds)

    def _made(self, feeds: State) -> float:
        found = dict(zip(self._outputs, _run(self._session, self._outputs, feeds), strict=True))
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
        small = {name: value.copy() for name, value in self._state.items() if value.nbytes <= SMALL}
        try:
            yield
        except OpFailed as error:
            if error.op in self._written.before:
                self._state |= small
                self._whole = True
            raise
        self._whole = True

    def _check_whole(self) -> None:
        if not self._whole:
            raise Usage(BROKEN)

    def _feeds(self, batch: Mapping[str, Any] | Sequence[Any]) -> State:
        given = batch if isinstance(batch, Mapping) else dict(zip(self.data, batch))
        wrong = sorted(set(self.data) ^ set(given))
        if wrong or len(batch) != len(self.data):
            raise Usage(f"a batch holds {described(list(self.data))}; missing or not known: {described(wrong)}")
        feeds = {name: fitting(name, given[name], self._kinds[name]) for name in self.data}
        if self._update is None and RATE in self._kinds:
            feeds[RATE] = np.array(self.learning_rate, np.float32)
        if self.loss_scale is not None:
            feeds[LOSS_SCALE] = np.array(self.loss_scale.value, np.float32)
        return feeds

    def _take(self, found: Mapping[str, Any], names: Sequence[str] | None = None) -> None:
        """What the step made of its state, or of these alone, is the state."""
        for name in self._state if names is None else names:
            if f"{name}_new" in found:
                self._state[name] = found[f"{name}_new"]

    def _count_in(self, found: Mapping[str, Any]) -> None:
        for name in self._parts.parameters:
            gradient = np.asarray(found[f"{name}_grad"])
            if name in self._sums:
                self._sums[name] += gradient
            else:
                self._sums[name] = gradient if self._accumulate == 1 else gradient.copy()
        if self.calls % self._accumulate == 0:
            self._apply()

    def _apply(self) -> None:
        if self.loss_scale is not None and not all(np.isfinite(total).all() for total in self._sums.values()):
            self._sums.clear()
            return
        names = [output.name for output in self._update.get_outputs()]
        taken = {entry.name for entry in self._update.get_inputs()}
        feeds = {name: value for name, value in self._state.items() if name in taken}
        for name in self._parts.parameters:
            feeds[f"{name}_grad"] = self._sums.pop(name)
            if self._accumulate > 1:
                feeds[f"{name}_grad"] /= self._accumulate
        feeds[RATE] = np.array(self.learning_rate, np.float32)
        self._take(dict(zip(names, self._update.run(names, feeds), strict=True)))
        self.updates += 1

    def state_dict(self) -> State:
        """Parameters and running statistics by the module's names; later steps do not change them."""
        self._check_whole()
        names = (*self._parts.parameters, *self._parts.statistics)
        return {name: self._state[name].copy() if name in self._written.state else self._state[name] for name in names}

    def load_into(self, module: Any) -> None:
        """Copy parameters and running statistics into a PyTorch module: the one that the step was made from."""
        there = module.state_dict()
        own = self.state_dict()
        if missing := [name for name in own if name not in there]:
            raise Usage(f"the module has no {described(missing[:3])}; it is not the one that the step was made from")
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
        held = {VALUE + name: value for name, value in self._state.items()}
        held |= {SUM + name: value for name, value in self._sums.items()}
        held[COUNTS] = np.array([self.calls, self.updates, self._handed], np.int64)
        held[LEARNING_RATE] = np.array(self.learning_rate, np.float64)
        if self.loss_scale is not None:
            held[SCALE] = self.loss_scale.written()
        write_whole(Path(path), _zipped(held))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint that `save` wrote, at the learning rate that was set then."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                held = {name: stored[name] for name in stored.files}
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            raise BadInput(f"cannot read the checkpoint {path}: {error}") from error
        state = _beginning_with(VALUE, held)
        sums = _beginning_with(SUM, held)
        if set(state) != set(self._state) or COUNTS not in held or not set(sums) <= set(self._parts.parameters):
            raise BadInput(f"the checkpoint {path} is not of this step: they hold other names")
        self._state = {name: fitting(name, value, self._kind_of(name)) for name, value in state.items()}
        self._sums = sums
        if self.loss_scale is not None and SCALE in held:
            self.loss_scale = LossScale.read(held[SCALE])
        if LEARNING_RATE in held:  # older checkpoints do not say
            self.learning_rate = float(held[LEARNING_RATE])
        self.calls, self.updates, self._handed = (int(count) for count in held[COUNTS])
        self._whole = True

    def _kind_of(self, name: str) -> onnx.TypeProto.Tensor:
        """Of an input of the step; an optimizer's state may be the update's alone, and is as it is."""
        if name in self._kinds:
            return self._kinds[name]
        value = self._state[name]
        return onnx.helper.make_tensor_type_proto(
            onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        ).tensor_type


def _run(session: Any, names: Sequence[str], feeds: State) -> list[Any]:
    """What the session gives; what the runtime refuses, such as labels out of range, with the op's name."""
    try:
        return list(session.run(names, feeds))
    except Exception as error:
        if not type(error).__module__.startswith("onnxruntime."):
            raise
        words = " ".join(str(error).split())
        op = re.search(r"running (\w+) node\. Name:'([^']*)'", words)
        where = f"the op {op[1]} '{op[2]}'" if op else "the step"
        said = f"{where} failed on this batch: {words.rpartition('Status Message: ')[2]}"
        raise OpFailed(said, op[2] if op else "") from error


def _beginning_with(words: str, held: Mapping[str, np.ndarray]) -> State:
    return {name.removeprefix(words): value for name, value in held.items() if name.startswith(words)}


def _zipped(held: Mapping[str, np.ndarray]) -> bytes:
    """An .npz file's content; `numpy.savez` takes some names for its own."""
    content = io.BytesIO()
    with ZipFile(content, "w") as file:
        for name, value in held.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)
    return content.getvalue()
