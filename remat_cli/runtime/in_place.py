"""Runs in which outputs are written over the inputs whose places they take.

Invariant: the arrays that are given for those inputs hold the outputs afterwards, and no other memory does; a run that
fails may have written some of them. A session asks its allocator for the same where outputs are written into other
arrays of the caller's instead, so a plan's places are those of both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from remat_cli.errors import Usage, meant


def in_place(session: Any, pairs: Mapping[str, str], apart: bool = False) -> Any:
    """The session, whose `run` from now on writes each of the outputs over the array given for its input.

    `apart`: into a new array instead.
    """
    if pairs:
        session.run = partial(_run, session, _fresh if apart else run_in_place, dict(pairs))
    return session


def _run(
    session: Any,
    how: Callable[..., dict[str, Any]],
    pairs: Mapping[str, str],
    names: Sequence[str] | None,
    feeds: Mapping[str, Any],
    options: Any = None,
) -> list[Any]:
    every = [output.name for output in session.get_outputs()]
    taken = [entry.name for entry in session.get_inputs()]
    known = {*every, *taken, *(entry.name for entry in session.get_overridable_initializers())}
    if wrong := [name for name in (*(names or ()), *feeds) if name not in known]:
        raise Usage(f"the model has no '{wrong[0]}'; {meant(wrong[0], [*taken, *every])}")
    if missing := [name for name in taken if name not in feeds]:
        raise Usage(f"the model takes '{missing[0]}' too, and no array is given for it")
    made = how(session, feeds, pairs, options)
    return [made[name] for name in names or every]


def run_in_place(
    session: Any, feeds: Mapping[str, Any], pairs: Mapping[str, str], options: Any = None
) -> dict[str, Any]:
    """Every output by its name; those of `pairs` are the very arrays of their inputs."""
    state = {name: _writable(name, feeds[name]) for name in pairs.values()}
    arrays = {name: _native(given) for name, given in feeds.items()}
    _check_apart(arrays, state)
    return _bound(session, arrays, {output: state[old] for output, old in pairs.items()}, options)


def _fresh(session: Any, feeds: Mapping[str, Any], pairs: Mapping[str, str], options: Any = None) -> dict[str, Any]:
    """Every output by its name; those of `pairs` in arrays of their own."""
    arrays = {name: _native(given) for name, given in feeds.items()}
    return _bound(session, arrays, {output: np.empty_like(arrays[old]) for output, old in pairs.items()}, options)


def _bound(session: Any, arrays: Mapping[str, Any], written: Mapping[str, np.ndarray], options: Any) -> dict[str, Any]:
    """`written`: the arrays that these outputs are written into."""
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import RuntimeException

    binding = session.io_binding()
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        if output.name in written:
            over = onnxruntime.OrtValue.ortvalue_from_numpy(written[output.name])
            binding.bind_ortvalue_output(output.name, over)
        else:
            binding.bind_output(output.name)
    try:
        session.run_with_iobinding(binding, options)
    except RuntimeError as error:  # with bound buffers the runtime's own errors are not raised as such
        raise RuntimeException(str(error)) from error
    made = dict(zip([output.name for output in session.get_outputs()], binding.get_outputs(), strict=True))
    return {name: written[name] if name in written else value.numpy() for name, value in made.items()}


def _native(given: Any) -> np.ndarray:
    """The array in one piece and in this machine's byte order, copied only if it is not."""
    array = np.asarray(given, order="C")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _writable(name: str, given: Any) -> np.ndarray:
    if not isinstance(given, np.ndarray):
        raise Usage(f"'{name}' is updated in place: give it as a numpy array, not as {type(given).__name__}")
    if not (given.flags.c_contiguous and given.flags.writeable and given.dtype.isnative):
        raise Usage(f"'{name}' is updated in place: give it as a numpy array in one piece that may be written over")
    return given


def _check_apart(feeds: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray]) -> None:
    """Nothing else may lie where an output is written."""
    spans = sorted((*np.lib.array_utils.byte_bounds(array), name) for name, array in feeds.items() if array.nbytes)
    end, before = 0, ""
    for start, stop, name in spans:
        if start < end and (name in state or before in state):
            raise Usage(f"'{before}' and '{name}' are one array, and one of them is updated in place: give copies")
        if stop > end:
            end, before = stop, name
