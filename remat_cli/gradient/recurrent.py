"""Replaces LSTM, GRU and RNN by ops for each time step, because their nodes do not give the gates that a gradient
needs.

Invariant: the product with the inputs is one for all time steps; only what depends on the last state is computed step
by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from remat_cli.gradient.tape import Taped
from remat_cli.gradient.tensor import Tensor

State = tuple[Tensor, ...]
Cell = Callable[[Tensor, State], State]
PLAIN = {"clip": None, "input_forget": 0, "layout": 0}


def lstm(tracer: Any, step: Taped, active: bool) -> list[Tensor] | None:
    _check(step, [b"Sigmoid", b"Tanh", b"Tanh"], "peepholes" if step.optional(7) else "")
    return _run(step, _lstm_cell, 4, 2) if active else None


def gru(tracer: Any, step: Taped, active: bool) -> list[Tensor] | None:
    _check(step, [b"Sigmoid", b"Tanh"])
    return _run(step, _gru_cell, 3, 1) if active else None


def rnn(tracer: Any, step: Taped, active: bool) -> list[Tensor] | None:
    kind = (step.get("activations") or [b"Tanh"])[0]
    _check(step, [kind if kind in (b"Tanh", b"Relu") else b"Tanh"])
    return _run(step, _rnn_cell, 1, 1) if active else None


def _check(step: Taped, activations: Sequence[bytes], extra: str = "") -> None:
    """Refuse settings that the cells below do not support."""
    odd = [name for name, value in PLAIN.items() if step.get(name, value) != value]
    directions = 2 if step.get("direction") == "bidirectional" else 1
    if step.get("activations", list(activations) * directions) != list(activations) * directions:
        odd.append("activations")
    if step.optional(4) is not None:
        odd.append("sequence_lens")
    if extra:
        odd.append(extra)
    if odd:
        raise step.refuse(f"its {', '.join(odd)} cannot be handled")


def _run(step: Taped, cell: Callable[[Taped, int, Tensor, Tensor], Cell], gates: int, states: int) -> list[Tensor]:
    reversals = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[
        step.get("direction", "forward")
    ]
    tape = step.tape
    with tape.recording():
        runs = [_direction(step, cell, gates, states, d, reverse) for d, reverse in enumerate(reversals)]
        sequences = [tape.op("Concat", *(_lead(h, 2) for h in hidden), axis=0) for hidden, _ in runs]
        finals = [[_lead(last[i], 1) for _, last in runs] for i in range(states)]
        return [_join(sequences, 1), *(_join(parts, 0) for parts in finals)]


def _join(parts: Sequence[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else parts[0].tape.op("Concat", *parts, axis=axis)


def _lead(tensor: Tensor, ones: int) -> Tensor:
    return tensor.reshape(*[1] * ones, *tensor.shape)


def _direction(
    step: Taped, cell: Callable[[Taped, int, Tensor, Tensor], Cell], gates: int, states: int, d: int, reverse: bool
) -> tuple[list[Tensor], State]:
    """The hidden state after each step, in the order of the sequence, and the last states."""
    x, w, r = (step.input(i) for i in range(3))
    steps, batch, features = x.shape
    hidden = r.shape[2]
    weight = w.slice(0, d, d + 1).reshape(gates * hidden, features)
    share = step.tape.op("Gemm", x.reshape(steps * batch, features), weight, transB=1)
    zeros = x.like(0.0).expand(2 * gates * hidden)
    given = step.optional(3)
    biases = given.slice(0, d, d + 1).reshape(2 * gates * hidden) if given else zeros
    shares = share.reshape(steps, batch, gates * hidden)
    advance = cell(step, hidden, r.slice(0, d, d + 1).reshape(gates * hidden, hidden), biases)
    state = tuple(_initial(step, 5 + i, d, batch, hidden) for i in range(states))
    outputs: list[Tensor] = []
    for t in reversed(range(steps)) if reverse else range(steps):
        state = advance(shares.slice(0, t, t + 1).reshape(batch, gates * hidden), state)
        outputs.append(state[0])
    return outputs[::-1] if reverse else outputs, state


def _initial(step: Taped, index: int, d: int, batch: int, hidden: int) -> Tensor:
    given = step.optional(index)
    if given is None:
        return step.x.like(0.0).expand(batch, hidden)
    return given.slice(0, d, d + 1).reshape(batch, hidden)


def _parts(tensor: Tensor, hidden: int) -> list[Tensor]:
    return [tensor.slice(1, at, at + hidden) for at in range(0, tensor.shape[1], hidden)]


def _lstm_cell(step: Taped, hidden: int, r: Tensor, biases: Tensor) -> Cell:
    bias = biases.slice(0, 0, 4 * hidden) + biases.slice(0, 4 * hidden, 8 * hidden)

    def advance(share: Tensor, state: State) -> State:
        h, c = state
        total = step.tape.op("Gemm", h, r, share + bias, transB=1)
        i, o, f, g = _parts(total, hidden)
        c = f.apply("Sigmoid") * c + i.apply("Sigmoid") * g.apply("Tanh")
        return o.apply("Sigmoid") * c.apply("Tanh"), c

    return advance


def _gru_cell(step: Taped, hidden: int, r: Tensor, biases: Tensor) -> Cell:
    of_input, of_state = biases.slice(0, 0, 3 * hidden), biases.slice(0, 3 * hidden, 6 * hidden)
    after = bool(step.get("linear_before_reset", 0))
    r_gates, r_new = r.slice(0, 0, 2 * hidden), r.slice(0, 2 * hidden, 3 * hidden)
    b_gates, b_new = of_state.slice(0, 0, 2 * hidden), of_state.slice(0, 2 * hidden, 3 * hidden)

    def advance(share: Tensor, state: State) -> State:
        (h,) = state
        z_in, r_in, n_in = _parts(share + of_input, hidden)
        z_state, r_state = _parts(step.tape.op("Gemm", h, r_gates, b_gates, transB=1), hidden)
        z, reset = (z_in + z_state).apply("Sigmoid"), (r_in + r_state).apply("Sigmoid")
        read = h if after else reset * h
        new = step.tape.op("Gemm", read, r_new, b_new, transB=1)
        candidate = (n_in + (reset * new if after else new)).apply("Tanh")
        return (candidate - z * candidate + z * h,)

    return advance


def _rnn_cell(step: Taped, hidden: int, r: Tensor, biases: Tensor) -> Cell:
    bias = biases.slice(0, 0, hidden) + biases.slice(0, hidden, 2 * hidden)
    kind = (step.get("activations") or [b"Tanh"])[0].decode()

    def advance(share: Tensor, state: State) -> State:
        return (step.tape.op("Gemm", state[0], r, share + bias, transB=1).apply(kind),)

    return advance
