"""Llama (Touvron et al., 2023), with grouped queries and the sizes of Llama 3.2: 1B."""

from __future__ import annotations

import numpy as np

from remat_cli.errors import Usage
from remat_cli.zoo.layers import Net
from remat_cli.zoo.transformer import Tokens, TransformerSize, tied_output, weigh

SIZE, TOKENS = TransformerSize(2048, 16, 32), Tokens(batch=4, seq=1024, vocabulary=128_256, positions=131_072)
SHARED = 4  # queries of a key
WIDER = 4  # times as many features within the gated layer
BASE = 500_000.0  # of the rotation's wave lengths
STD = 0.02


def llama(net: Net, size: TransformerSize = SIZE, tokens: Tokens = TOKENS) -> str:
    """Token ids in, next-token logits out; the output layer shares the embedding's weight."""
    if size.heads % _keys(size) or size.hidden % (2 * size.heads):
        raise Usage(
            f"{size.heads} heads of {size.hidden} features: {SHARED} share a key, and each needs an even number"
        )
    words = net.weight("embed_tokens.weight", (tokens.vocabulary, size.hidden), std=STD)
    ids = net.tokens((tokens.batch, tokens.seq))
    x = net.op("Gather", [words, ids], "embedded")
    mask = net.constant("causal_mask", np.tril(np.ones((tokens.seq, tokens.seq), bool)))
    lowest, turn = net.constant("masked", -1e4), _rotation(net, tokens.seq, size.hidden // size.heads)
    for number in range(size.layers):
        name = f"layers.{number}"
        y = net.rms_norm(x, f"{name}.input_layernorm", 1e-5)
        y = _attend(net, y, f"{name}.self_attn", size, (turn, (mask, lowest)))
        x = net.add(x, y, f"{name}.self_attn.add")
        y = net.rms_norm(x, f"{name}.post_attention_layernorm", 1e-5)
        x = net.add(x, _gated(net, y, f"{name}.mlp", size.hidden), f"{name}.mlp.add")
    return tied_output(net, net.rms_norm(x, "norm", 1e-5), words)


def _keys(size: TransformerSize) -> int:
    return max(1, size.heads // SHARED)


def _rotation(net: Net, seq: int, size: int) -> tuple[str, str]:
    """Cosines and sines of each position's angles."""
    waves = BASE ** (-np.arange(0, size, 2) / size)
    angles = np.outer(np.arange(seq), np.concatenate([waves, waves]))
    return net.constant("rotary.cos", np.cos(angles)), net.constant("rotary.sin", np.sin(angles))


def _attend(net: Net, x: str, name: str, size: TransformerSize, fixed: tuple[tuple[str, str], tuple[str, str]]) -> str:
    """`fixed`: the rotation of queries and keys, and the mask."""
    (batch, seq, hidden), each = net.shapes[x], size.hidden // size.heads
    turn, mask = fixed
    heads = []
    for part, many in (("q", size.heads), ("k", _keys(size)), ("v", _keys(size))):
        y = net.product(x, f"{name}.{part}_proj", many * each, STD)
        y = net.reshape(y, f"{name}.{part}.heads", (batch, seq, many, each))
        heads.append(net.transpose(y, f"{name}.{part}.first", [0, 2, 1, 3]))
    query, key = (_turned(net, y, turn) for y in heads[:2])
    key, value = (_repeated(net, y, size.heads) for y in (key, heads[2]))
    y = weigh(net, (query, net.transpose(key, f"{key}.last", [0, 1, 3, 2]), value), name, mask)
    return net.product(y, f"{name}.o_proj", hidden, STD)


def _turned(net: Net, x: str, turn: tuple[str, str]) -> str:
    """Each half of the features turned towards the other, by the position's angles."""
    low, high = net.node("Split", [x], [f"{x}.low", f"{x}.high"], axis=-1, num_outputs=2)
    other = net.concat([net.op("Neg", [high], f"{high}.neg"), low], f"{x}.turned", axis=3)
    return net.add(net.multiply(x, turn[0], f"{x}.cos"), net.multiply(other, turn[1], f"{x}.sin"), f"{x}.rotary")


def _repeated(net: Net, x: str, heads: int) -> str:
    """Each key or value for all the queries that share it."""
    batch, few, seq, size = net.shapes[x]
    many = heads // few
    apart = net.reshape(x, f"{x}.apart", (batch, few, 1, seq, size))
    times = net.constant(f"{x}.times", np.array([1, 1, many, 1, 1], np.int64))
    wide = net.op("Expand", [apart, times], f"{x}.expanded")
    return net.reshape(wide, f"{x}.repeated", (batch, heads, seq, size))


def _gated(net: Net, x: str, name: str, hidden: int) -> str:
    gate = net.swish(net.product(x, f"{name}.gate_proj", WIDER * hidden, STD))
    up = net.product(x, f"{name}.up_proj", WIDER * hidden, STD)
    return net.product(net.multiply(gate, up, f"{name}.gated"), f"{name}.down_proj", hidden, STD)
