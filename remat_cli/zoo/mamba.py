"""Mamba (Gu and Dao, 2023), its selective scan by doubling: as many steps as the length has binary digits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from remat_cli.zoo.layers import Net
from remat_cli.zoo.transformer import Tokens, tied_output

STATES, KERNEL = 16, 4
TOKENS = Tokens(batch=2, seq=512, vocabulary=50_280)
STD = 0.02


@dataclass(frozen=True, slots=True)
class MambaSize:
    hidden: int = 768
    layers: int = 24


SIZE = MambaSize()


def mamba(net: Net, size: MambaSize = SIZE, tokens: Tokens = TOKENS) -> str:
    """Token ids in, next-token logits out; the output layer shares the embedding's weight."""
    words = net.weight("embedding.weight", (tokens.vocabulary, size.hidden), std=STD)
    ids = net.tokens((tokens.batch, tokens.seq))
    x = net.op("Gather", [words, ids], "embedded")
    for number in range(size.layers):
        name = f"layers.{number}"
        x = net.add(x, _mix(net, net.rms_norm(x, f"{name}.norm", 1e-5), f"{name}.mixer"), f"{name}.add")
    return tied_output(net, net.rms_norm(x, "norm_f", 1e-5), words)


def _mix(net: Net, x: str, name: str) -> str:
    hidden = net.shapes[x][-1]
    inner, rank = 2 * hidden, -(-hidden // 16)
    both = net.product(x, f"{name}.in_proj", 2 * inner, STD)
    inside, gate = net.node("Split", [both], [f"{name}.inside", f"{name}.gate"], axis=-1, num_outputs=2)
    y = net.swish(_convolve_causally(net, inside, f"{name}.conv"))
    chosen = net.product(y, f"{name}.x_proj", rank + 2 * STATES, STD)
    lengths = net.constant(f"{name}.lengths", np.array([rank, STATES, STATES], np.int64))
    low, into, out = net.node("Split", [chosen, lengths], [f"{name}.low", f"{name}.into", f"{name}.out"], axis=-1)
    step = net.op("Softplus", [net.dense(low, f"{name}.dt_proj", inner, STD)], f"{name}.step")
    scanned = _scan(net, (y, step, into, out), name)
    z = net.add(scanned, net.multiply(y, _weight(net, f"{name}.D", inner), f"{name}.skip"), f"{name}.sum")
    return net.product(net.multiply(z, net.swish(gate), f"{name}.gated"), f"{name}.out_proj", hidden, STD)


def _weight(net: Net, name: str, *shape: int) -> str:
    return net.weight(name, shape, fill=1.0)


def _convolve_causally(net: Net, x: str, name: str) -> str:
    """Each feature with those of the last few tokens."""
    _, seq, inner = net.shapes[x]
    y = net.transpose(x, f"{name}.first", [0, 2, 1])
    weights = [net.weight(f"{name}.weight", (inner, 1, KERNEL), std=KERNEL**-0.5), net.weight(f"{name}.bias", (inner,))]
    y = net.op("Conv", [y, *weights], name, kernel_shape=[KERNEL], pads=[KERNEL - 1] * 2, group=inner)
    return net.transpose(_part(net, y, f"{name}.past", 2, (0, seq)), f"{name}.last", [0, 2, 1])


def _scan(net: Net, given: tuple[str, str, str, str], name: str) -> str:
    """state = exp(step * A) * state + step * into * x at each token; what comes out is the state by `out`."""
    x, step, into, out = given
    batch, seq, inner = net.shapes[x]
    rate = net.op("Exp", [_weight(net, f"{name}.A_log", inner, STATES)], f"{name}.rate")
    rate = net.op("Neg", [rate], f"{name}.A")
    wide = net.reshape(step, f"{name}.step.wide", (batch, seq, inner, 1))
    kept = net.op("Exp", [net.multiply(wide, rate, f"{name}.decay")], f"{name}.kept")
    fed = net.reshape(net.multiply(step, x, f"{name}.fed"), f"{name}.fed.wide", (batch, seq, inner, 1))
    state = net.multiply(fed, net.reshape(into, f"{name}.into.wide", (batch, seq, 1, STATES)), f"{name}.state")
    far = 1
    while far < seq:
        kept, state = _double(net, (kept, state), f"{name}.by{far}", far)
        far *= 2
    wide = net.reshape(out, f"{name}.out.wide", (batch, seq, STATES, 1))
    read = net.op("MatMul", [state, wide], f"{name}.read")
    return net.reshape(read, f"{name}.scanned", (batch, seq, inner))


def _double(net: Net, pair: tuple[str, str], name: str, far: int) -> tuple[str, str]:
    """What each token keeps and gets from twice as many before it."""
    kept, state = pair
    seq = net.shapes[state][1]

    def parts(which: str, between: tuple[int, int]) -> list[str]:
        named = (("kept", kept), ("state", state))
        return [_part(net, value, f"{name}.{what}.{which}", 1, between) for what, value in named]

    begun, before, after = parts("begin", (0, far)), parts("before", (0, seq - far)), parts("after", (far, seq))
    more = net.add(after[1], net.multiply(after[0], before[1], f"{name}.carried"), f"{name}.more")
    both = net.multiply(after[0], before[0], f"{name}.both")
    return net.concat([begun[0], both], f"{name}.kept"), net.concat([begun[1], more], f"{name}.state")


def _part(net: Net, x: str, name: str, axis: int, between: tuple[int, int]) -> str:
    limits = [net.constant(f"{name}.{what}", [place]) for what, place in zip(("from", "to"), between, strict=True)]
    return net.op("Slice", [x, *limits, net.constant(f"{name}.axis", [axis])], name)
