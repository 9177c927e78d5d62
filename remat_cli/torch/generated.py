"""The memory that Inductor's own code for a forward and a backward graph holds.

Inductor writes the code that it would compile. Here that code runs with tensors that have no data and without its
kernels, while a meter watches. What the remaining ops work in is measured once for each kind.

Invariant: nothing is compiled, and the graphs given are not changed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import Any
from unittest import mock

import torch
from torch import fx
from torch.utils._python_dispatch import TorchDispatchMode

from remat_cli.torch.bodies import without_data
from remat_cli.torch.building import PLACE, Split
from remat_cli.torch.handed import Form, Lowering, form_of, hand, write
from remat_cli.torch.joint import copy_of
from remat_cli.torch.lowering import stays
from remat_cli.torch.metering import Meter
from remat_cli.torch.private import (
    ASYNC_COMPILE,
    DONATED,
    DebugContext,
    FakeTensorMode,
    GraphLowering,
    compile_fx,
    donated,
    hint_of,
    inductor_config,
    ir,
    without_modes,
)
from remat_cli.torch.reading import is_tangent, output_of, tensors_of
from remat_cli.torch.workspaces import workspace_of

NAMES = "<forward code>", "<backward code>"
BUFFER = re.compile(r"\bbuf\d+\b")
PART = re.compile(r"= buf\d+\[")  # of the results of an op that has several
WRITTEN_OVER = re.compile(r"; del (?!buf\d)(\w+)  # reuse")
NO_KERNEL = re.compile(r"= (empty_strided|reinterpret_tensor)|^\s*(assert|#)")


@dataclass(frozen=True, slots=True)
class HeldByCode:
    """What a plan's code holds. `kernels`: the bytes while each kernel runs, and the computes of the plan that it
    carries out, as far as they are known; what is given to the code and written over counts twice, as in another plan
    it may have another use to come."""

    peak: int
    kernels: tuple[tuple[int, tuple[int, ...]], ...] = ()


class _Written(Exception):
    """Inductor has written its code, which is kept here; it goes no further. `places`: which compute of the plan makes
    a buffer. `lowering`: what the code was written of."""

    def __init__(self, graph: GraphLowering, form: Form | None) -> None:
        self.name = NAMES[bool(graph.is_backward)]
        code = write(graph)
        self.source = str(code[0].value)
        self.lowering = None if form is None else Lowering(form, graph, code)
        self.strides = [_strides(graph, output) for output in graph.graph_outputs or []]
        self.places: dict[str, int] = {}
        for name, buffer in graph.name_to_buffer.items():
            origin = buffer.get_origin_node()
            place = None if origin is None else origin.meta.get(PLACE)
            if place is not None:
                self.places[name] = place
                if isinstance(buffer, ir.MultiOutput):  # the op itself has none: it makes several
                    self.places[buffer.input_name(0)] = place


class _Silent:
    """Stands for whatever compiles kernels, and for each kernel."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *_: Any, **__: Any) -> _Silent:
        return self

    def __getattr__(self, _: str) -> _Silent:
        return self


class _Watch(TorchDispatchMode):
    """Records the most bytes that are alive at once, workspace among them."""

    def __init__(self) -> None:
        super().__init__()
        self.meter, self.peak = Meter(), 0
        self.lines: dict[tuple[str, int], int] = {}  # the most at each line of the code

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.meter.made(result)
        held = self.meter.count() + workspace_of(func, args, kwargs or {})
        self.peak = max(self.peak, held)
        if line := _line():
            self.lines[line] = max(held, self.lines.get(line, 0))
        return result

    def written_over(self, given: torch.Tensor) -> None:
        if line := _line():
            self.lines[line] = self.meter.count() + given.untyped_storage().nbytes()

    def kernels(self, written: _Written) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The bytes while each kernel of the code runs, what is allocated for it among them, and the computes of the
        plan whose results it is the first to touch. What runs for no compute is the next one's."""
        known: set[str] = set()
        held = 0
        for number, line in enumerate(written.source.splitlines(), 1):
            held = max(held, self.lines.get((written.name, number), 0))
            if PART.search(line):
                known.update(BUFFER.findall(line))
            if "(" not in line or NO_KERNEL.search(line):
                continue
            new = [name for name in BUFFER.findall(line) if name not in known]
            known.update(new)
            places = tuple(dict.fromkeys(written.places[name] for name in new if name in written.places))
            if places and held:
                yield held, places
                held = 0


def _line() -> tuple[str, int] | None:
    """The line of the code that runs now."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename in NAMES:
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def look(split: Split, held: Sequence[bool], ready: bool = False) -> HeldByCode:
    """What the code of a step holds. `held`: for each forward output, whether the caller goes on holding it. `ready`:
    the code is written as it would be compiled, and handed to Inductor for that. Otherwise Inductor writes it anew."""
    names = [output.name if isinstance(output, fx.Node) else "" for output in _outputs(split[0])]
    given = [node.meta["val"] for node in split[0].graph.find_nodes(op="placeholder")]
    forward = _write(split[0], given, [place for place, own in enumerate(held) if own], False, ready)
    strides = dict(zip(names, forward.strides, strict=True))
    wanted = split[1].graph.find_nodes(op="placeholder")
    passed = [_restrided(node.meta["val"], strides.get(node.name)) for node in wanted]
    returned = [place for place, output in enumerate(_outputs(split[1])) if isinstance(output, fx.Node)]
    with mock.patch(DONATED, return_value=donated(*split, len(held))):
        backward = _write(split[1], passed, returned, True, ready)
    with FakeTensorMode(), _Watch() as watch, torch.no_grad():
        resident = [without_data(value) for value in given]
        watch.meter.watch(resident)
        made = list(_program(forward, watch)(list(resident)))
        kept = [value for value, own in zip(made, held, strict=False) if own]
        known = dict(zip(names, made, strict=True))
        saved = {node.name: known[node.name] for node in wanted if node.name in known}
        arguments = [
            saved[node.name] if node.name in saved else without_data(value)
            for node, value in zip(wanted, passed, strict=True)
        ]
        watch.meter.watch(arguments)
        given_on = [
            argument
            for node, argument in zip(wanted, arguments, strict=True)
            if is_tangent(node) and stays(sum(tensor.nbytes for tensor in tensors_of(argument)))
        ]
        del made, known, saved
        gradients = _program(backward, watch)(arguments)
        del kept, given_on, gradients, resident
    for module, written in zip(split, (forward, backward), strict=True):
        hand(module, written.lowering)
    kernels = [kernel for written in (forward, backward) for kernel in watch.kernels(written)]
    return HeldByCode(watch.peak, tuple(kernels))


def _write(module: fx.GraphModule, inputs: Sequence[Any], visible: list[int], late: bool, ready: bool) -> _Written:
    """The code that Inductor makes of a graph."""
    forms: list[Form | None] = []

    def lower(module: fx.GraphModule, *more: Any, **given: Any) -> GraphLowering:
        forms.append(form_of(module, given) if ready else None)
        return GraphLowering(module, *more, **given)

    def stop(graph: GraphLowering) -> None:
        raise _Written(graph, forms[-1])

    module = copy_of(module)
    output_of(module).meta["user_visible_output_idxs"] = visible
    options: Any = {"cudagraphs": compile_fx.BoxedBool(False), "is_backward": late, "graph_id": 0}
    # kernels of vectors too take half as long again
    plain = nullcontext() if ready else inductor_config.patch({"cpp.simdlen": 1})
    begin = mock.patch.object(compile_fx, "GraphLowering", lower)
    end = mock.patch.object(GraphLowering, "compile_to_module", stop)
    with begin, end, without_modes(), DebugContext(), plain:
        try:
            compile_fx._InProcessFxCompile().codegen_and_compile(module, inputs, (), options)
        except _Written as done:
            return done
    raise RuntimeError("Inductor wrote no code")


def _program(written: _Written, watch: _Watch) -> Callable[[list[Any]], Any]:
    """The code as a function that makes tensors without data and runs no kernel of its own."""
    names: dict[str, Any] = {"__name__": "generated", "written_over": watch.written_over}
    source = WRITTEN_OVER.sub(r"; written_over(\1); del \1", written.source)
    with mock.patch(ASYNC_COMPILE, _Silent):
        exec(compile(source, written.name, "exec"), names)
    for name in list(names):
        if name.startswith("empty_strided_"):
            names[name] = _empty_on(name.removeprefix("empty_strided_").removesuffix("_pinned"))
        elif name.startswith("assert_"):
            names[name] = _Silent()
    names["reinterpret_tensor"] = _reinterpreted
    found: Callable[[list[Any]], Any] = names["call"]
    return found


def _empty_on(device: str) -> Callable[..., torch.Tensor]:
    return lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype, device=device)


def _reinterpreted(tensor: torch.Tensor, size: Any, stride: Any, offset: int = 0) -> torch.Tensor:
    return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)


def _restrided(value: Any, strides: list[int] | None) -> Any:
    """What the backward pass is given, in the layout in which Inductor's forward pass returns it."""
    if not isinstance(value, torch.Tensor) or strides is None or list(value.stride()) == strides:
        return value
    return value.as_strided(value.shape, strides)


def _strides(graph: GraphLowering, output: Any) -> list[int] | None:
    """The strides of an output in Inductor's layout; None for what is no tensor."""
    if not isinstance(output, ir.IRNode) or not output.has_tensor_output():
        return None
    return [hint_of(graph.sizevars, length) for length in output.get_stride()]


def _outputs(module: fx.GraphModule) -> list[Any]:
    return list(output_of(module).args[0])
