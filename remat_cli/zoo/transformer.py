"""GPT-2 (Radford et al., 2019), BERT (Devlin et al., 2018), ViT (Dosovitskiy et al., 2020), and ALBERT (Lan et al.,
2019): BERT whose layers share their weights, and whose embedding is factored in two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from remat_cli.errors import Usage
from remat_cli.zoo.layers import IMAGES, Images, Net, as_pair, need_multiple

PARTS = ("query", "key", "value")


@dataclass(frozen=True, slots=True)
class TransformerSize:
    hidden: int = 768
    layers: int = 12
    heads: int = 12


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a language model reads: `seq` token ids at a time, of so many words and at so many positions."""

    batch: int = 8
    seq: int = 512
    vocabulary: int = 30522
    positions: int = 512


BASE = TransformerSize()
GPT_TOKENS, BERT_TOKENS = Tokens(seq=1024, vocabulary=50257, positions=1024), Tokens()


def gpt2(net: Net, size: TransformerSize = BASE, tokens: Tokens = GPT_TOKENS) -> str:
    """Token ids in, next-token logits out; the output layer shares the embedding's weight."""
    hidden, layers, heads = size.hidden, size.layers, size.heads
    words = net.weight("wte.weight", (tokens.vocabulary, hidden), std=0.02)
    x = embed(net, words, net.weight("wpe.weight", (tokens.positions, hidden), std=0.01), tokens)
    x = net.dropout(x, "drop")
    mask = net.constant("causal_mask", np.tril(np.ones((tokens.seq, tokens.seq), bool)))
    lowest = net.constant("masked", -1e4)
    std = 0.02 / (2 * layers) ** 0.5  # of the projections that add to the residual stream
    for number in range(layers):
        name = f"h.{number}"
        y = net.layer_norm(x, f"{name}.ln_1", 1e-5)
        parts = _split(net, net.dense(y, f"{name}.attn.c_attn", 3 * hidden, 0.02), f"{name}.attn")
        y = attend(net, parts, f"{name}.attn", heads, (mask, lowest))
        y = net.dropout(net.dense(y, f"{name}.attn.c_proj", hidden, std), f"{name}.attn.drop")
        x = net.add(x, y, f"{name}.attn.add")
        y = net.dense(net.layer_norm(x, f"{name}.ln_2", 1e-5), f"{name}.mlp.c_fc", 4 * hidden, 0.02)
        y = net.dense(net.gelu(y, "tanh"), f"{name}.mlp.c_proj", hidden, std)
        x = net.add(x, net.dropout(y, f"{name}.mlp.drop"), f"{name}.mlp.add")
    x = net.layer_norm(x, "ln_f", 1e-5)
    return tied_output(net, x, words)


def bert(net: Net, size: TransformerSize = BASE, tokens: Tokens = BERT_TOKENS, classes: int = 0) -> str:
    """A masked language model; with `classes`, a classifier of whole sequences on BERT's pooler. No padding mask."""
    hidden, layers, heads = size.hidden, size.layers, size.heads
    words, x = _embeddings(net, tokens, hidden)
    x = net.dropout(x, "embeddings.drop")
    for number in range(layers):
        name = f"encoder.layer.{number}"
        parts = [net.dense(x, f"{name}.attention.self.{part}", hidden, 0.02) for part in PARTS]
        y = attend(net, parts, f"{name}.attention.self", heads)
        y = net.dropout(net.dense(y, f"{name}.attention.output.dense", hidden, 0.02), f"{name}.attention.output.drop")
        x = net.layer_norm(net.add(x, y, f"{name}.attention.output.add"), f"{name}.attention.output.LayerNorm", 1e-12)
        y = net.gelu(net.dense(x, f"{name}.intermediate.dense", 4 * hidden, 0.02))
        y = net.dropout(net.dense(y, f"{name}.output.dense", hidden, 0.02), f"{name}.output.drop")
        x = net.layer_norm(net.add(x, y, f"{name}.output.add"), f"{name}.output.LayerNorm", 1e-12)
    if classes:
        x = _first_token(net, x, "pooler.first")
        x = net.linear(x, "pooler.dense", hidden, std=0.02)
        x = net.op("Tanh", [x], "pooler.activation")
        return net.linear(net.dropout(x, "drop"), "classifier", classes, std=0.02)
    x = net.gelu(net.dense(x, "cls.transform.dense", hidden, 0.02))
    x = net.layer_norm(x, "cls.transform.LayerNorm", 1e-12)
    return net.add(tied_output(net, x, words), net.weight("cls.bias", (tokens.vocabulary,)), "cls.decoder")


def vit(net: Net, size: TransformerSize = BASE, patch: int = 16, images: Images = IMAGES) -> str:
    hidden, layers, heads = size.hidden, size.layers, size.heads
    need_multiple(images.image, patch, "vit")
    (height, width), batch = as_pair(images.image), images.batch
    length = (height // patch) * (width // patch)
    x = net.conv_with_bias(net.input("input", images.shape), "conv_proj", hidden, patch, patch, 0)
    x = net.transpose(net.reshape(x, "patches", (batch, hidden, length)), "tokens", [0, 2, 1])
    shape = net.for_each(x, "class_token.shape", (1, hidden))
    token = net.op("Expand", [net.weight("class_token", (1, 1, hidden)), shape], "class_tokens")
    places = net.weight("encoder.pos_embedding", (1, length + 1, hidden), std=0.02)
    x = net.dropout(net.add(net.concat([token, x], "concat"), places, "encoder.add"), "encoder.dropout")
    for number in range(layers):
        name = f"encoder.layers.encoder_layer_{number}"
        y = net.dense(net.layer_norm(x, f"{name}.ln_1", 1e-6), f"{name}.self_attention.in_proj", 3 * hidden, 0.02)
        parts = _split(net, y, f"{name}.self_attention")
        y = attend(net, parts, f"{name}.self_attention", heads)
        y = net.dropout(net.dense(y, f"{name}.self_attention.out_proj", hidden, 0.02), f"{name}.dropout")
        x = net.add(x, y, f"{name}.self_attention.add")
        y = net.gelu(net.dense(net.layer_norm(x, f"{name}.ln_2", 1e-6), f"{name}.mlp.0", 4 * hidden, 0.02))
        y = net.dense(net.dropout(y, f"{name}.mlp.2"), f"{name}.mlp.3", hidden, 0.02)
        x = net.add(x, net.dropout(y, f"{name}.mlp.4"), f"{name}.mlp.add")
    x = _first_token(net, net.layer_norm(x, "encoder.ln", 1e-6), "class_token.final")
    return net.linear(x, "heads.head", images.classes, std=0.02)


def embed(net: Net, words: str, places: str, tokens: Tokens) -> str:
    positions, seq = net.shapes[places][0], tokens.seq
    if seq > positions:
        raise Usage(f"this model has {positions} positions; it cannot read sequences of {seq}")
    ids = net.tokens((tokens.batch, seq))
    if seq < positions:
        start, end = net.constant("positions.start", [0]), net.constant("positions.end", [seq])
        places = net.op("Slice", [places, start, end], "positions")
    return net.add(net.op("Gather", [words, ids], "tokens"), places, "embedded")


def _embeddings(net: Net, tokens: Tokens, width: int) -> tuple[str, str]:
    """BERT's: the words' weight, and the sum of words, positions and the first of two kinds of sentences."""
    words = net.weight("embeddings.word_embeddings.weight", (tokens.vocabulary, width), std=0.02)
    places = net.weight("embeddings.position_embeddings.weight", (tokens.positions, width), std=0.02)
    x = embed(net, words, places, tokens)
    kinds = net.weight("embeddings.token_type_embeddings.weight", (2, width), std=0.02)
    first = net.constant("embeddings.token_type", np.array(0, np.int64))
    x = net.add(x, net.op("Gather", [kinds, first], "embeddings.token_type_embeddings"), "embeddings.sum")
    return words, net.layer_norm(x, "embeddings.LayerNorm", 1e-12)


def _split(net: Net, x: str, name: str) -> Sequence[str]:
    return net.node("Split", [x], [f"{name}.{part}" for part in PARTS], axis=-1, num_outputs=3)


def attend(net: Net, parts: Iterable[str], name: str, heads: int, mask: tuple[str, str] | None = None) -> str:
    """softmax(QK' / sqrt(d)) V over `heads` heads; `mask` is which scores count, and what the others become.

    `parts`: query, key and value.
    """
    query, key, value = parts
    batch, seq, hidden = net.shapes[query]
    if hidden % heads:
        raise Usage(f"{hidden} features do not divide among {heads} heads")
    size = hidden // heads
    query, key, value = (net.reshape(x, f"{x}.heads", (batch, seq, heads, size)) for x in (query, key, value))
    query, value = (net.transpose(x, f"{x}.first", [0, 2, 1, 3]) for x in (query, value))
    key = net.transpose(key, f"{key}.last", [0, 2, 3, 1])
    return weigh(net, (query, key, value), name, mask)


def weigh(net: Net, heads: tuple[str, str, str], name: str, mask: tuple[str, str] | None = None) -> str:
    """The same of queries and values that stand head by head, and of keys that are transposed; heads are joined."""
    query, key, value = heads
    batch, many, seq, size = net.shapes[query]
    x = net.op("MatMul", [query, key], f"{name}.products")
    x = net.multiply(x, net.constant(f"{name}.scale", size**-0.5), f"{name}.scores")
    if mask:
        x = net.op("Where", [mask[0], x, mask[1]], f"{name}.masked")
    x = net.dropout(net.op("Softmax", [x], f"{name}.softmax", axis=-1), f"{name}.softmax.drop")
    x = net.op("MatMul", [x, value], f"{name}.weighted")
    return net.reshape(net.transpose(x, f"{name}.back", [0, 2, 1, 3]), f"{name}.joined", (batch, seq, many * size))


def _first_token(net: Net, x: str, name: str) -> str:
    return net.op("Gather", [x, net.constant(f"{name}.index", np.array(0, np.int64))], name, axis=1)


def tied_output(net: Net, x: str, words: str) -> str:
    return net.op("MatMul", [x, net.transpose(words, "lm_head.weight", [1, 0])], "lm_head")


TOKENS = Tokens(vocabulary=30000)


def albert(net: Net, size: TransformerSize = BASE, tokens: Tokens = TOKENS, embedding: int = 128) -> str:
    """A masked language model, without padding mask."""
    words, x = _embeddings(net, tokens, embedding)
    x = net.dense(x, "encoder.embedding_hidden_mapping_in", size.hidden, 0.02)
    for number in range(size.layers):
        x = _layer(net, x, f"encoder.layer.{number}", size.hidden, size.heads)
    x = net.gelu(net.dense(x, "predictions.dense", embedding, 0.02), "tanh")
    x = net.layer_norm(x, "predictions.LayerNorm", 1e-12)
    return net.add(
        tied_output(net, x, words), net.weight("predictions.bias", (tokens.vocabulary,)), "predictions.decoder"
    )


def _layer(net: Net, x: str, name: str, hidden: int, heads: int) -> str:
    shared = "encoder.shared"
    parts = [net.dense(x, f"{name}.attention.{part}", hidden, 0.02, f"{shared}.attention.{part}") for part in PARTS]
    y = attend(net, parts, f"{name}.attention", heads)
    y = net.dropout(net.dense(y, f"{name}.attention.dense", hidden, 0.02, f"{shared}.attention.dense"), f"{name}.drop1")
    x = net.add(x, y, f"{name}.attention.add")
    x = net.layer_norm(x, f"{name}.attention.LayerNorm", 1e-12, f"{shared}.attention.LayerNorm")
    y = net.gelu(net.dense(x, f"{name}.ffn", 4 * hidden, 0.02, f"{shared}.ffn"), "tanh")
    y = net.dropout(net.dense(y, f"{name}.ffn_output", hidden, 0.02, f"{shared}.ffn_output"), f"{name}.drop2")
    return net.layer_norm(net.add(x, y, f"{name}.ffn.add"), f"{name}.LayerNorm", 1e-12, f"{shared}.LayerNorm")
