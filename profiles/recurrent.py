"""What the kernels of recurrent ops allocate while they run: formulas of their signatures, for `kernels.py`.

Invariant: to the byte for float32, by the order in which onnxruntime's kernels allocate.
"""

from __future__ import annotations

from profiles.signature import OpSignature, padded

SIZE = 4  # bytes of a number: there are no kernels for other types


def lstm(signature: OpSignature, _: int) -> int:
    """The states, the biases of the gates, the gates of all steps; and what is made and not asked for."""
    steps, batch, hidden = _sizes(signature)
    row, state = padded(SIZE * hidden), padded(SIZE * batch * hidden)
    biases = 4 * row if _has(signature, 3) else 0
    one = 2 * row + 3 * state + padded(4 * SIZE * steps * batch * hidden) + biases + _lengths(signature, batch)
    return _directions(signature, one) + sum(_states(signature) for place in (1, 2) if not _makes(signature, place))


def gru(signature: OpSignature, _: int) -> int:
    """The states, the biases for each row of the batch, the gates of all steps; and the last state, if not asked
    for."""
    steps, batch, hidden = _sizes(signature)
    state = padded(SIZE * batch * hidden)
    linear = bool(signature.options.get("linear_before_reset", 0))
    states = 2 + (3 + linear if _has(signature, 3) else 0) + linear
    one = states * state + padded(3 * SIZE * steps * batch * hidden) + _lengths(signature, batch)
    return _directions(signature, one) + (0 if _makes(signature, 1) else _states(signature))


def rnn(signature: OpSignature, _: int) -> int:
    """The products of all steps with the weights of the input; and all states, if they are not asked for."""
    steps, batch, hidden = _sizes(signature)
    every = 0 if _makes(signature, 0) else padded(SIZE * steps * _count(signature) * batch * hidden)
    return padded(SIZE * steps * batch * hidden) + every


def _sizes(signature: OpSignature) -> tuple[int, int, int]:
    """Steps, batch, hidden units."""
    x, weights = signature.inputs[0], signature.inputs[2]
    assert x is not None, "a recurrent op lacks its input"
    assert weights is not None, "a recurrent op lacks its weights"
    return x.shape[0], x.shape[1], weights.shape[2]


def _count(signature: OpSignature) -> int:
    return 2 if _said(signature) == "bidirectional" else 1


def _said(signature: OpSignature) -> str:
    said = signature.options.get("direction", b"forward")
    return said.decode() if isinstance(said, bytes) else str(said)


def _directions(signature: OpSignature, one: int) -> int:
    """Backwards, the input and all states are reversed first and at the end. Both directions are held at once."""
    steps, batch, hidden = _sizes(signature)
    x = signature.inputs[0]
    reverse = one + padded(x.bytes if x else 0) + padded(SIZE * steps * batch * hidden)
    return {"forward": one, "reverse": reverse}.get(_said(signature), one + reverse)


def _states(signature: OpSignature) -> int:
    _, batch, hidden = _sizes(signature)
    return padded(SIZE * _count(signature) * batch * hidden)


def _lengths(signature: OpSignature, batch: int) -> int:
    return 0 if _has(signature, 4) else padded(SIZE * batch)


def _has(signature: OpSignature, place: int) -> bool:
    return place < len(signature.inputs) and signature.inputs[place] is not None


def _makes(signature: OpSignature, place: int) -> bool:
    return place < len(signature.outputs) and signature.outputs[place] is not None
