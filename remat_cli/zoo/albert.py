"""ALBERT (Lan et al., 2019): BERT whose layers share their weights, and whose embedding is factored in two."""

from __future__ import annotations

import numpy as np

from remat_cli.zoo.layers import Net
from remat_cli.zoo.transformer import BASE, PARTS, Tokens, TransformerSize, attend, embed, tied_output

TOKENS = Tokens(vocabulary=30000)


def albert(net: Net, size: TransformerSize = BASE, tokens: Tokens = TOKENS, embedding: int = 128) -> str:
    """A masked language model, without padding mask."""
    words = net.weight("embeddings.word_embeddings.weight", (tokens.vocabulary, embedding), std=0.02)
    places = net.weight("embeddings.position_embeddings.weight", (tokens.positions, embedding), std=0.02)
    x = embed(net, words, places, tokens)
    kinds = net.weight("embeddings.token_type_embeddings.weight", (2, embedding), std=0.02)
    first = net.constant("embeddings.token_type", np.array(0, np.int64))
    x = net.add(x, net.op("Gather", [kinds, first], "embeddings.token_type_embeddings", (embedding,)), "embeddings.sum")
    x = net.layer_norm(x, "embeddings.LayerNorm", 1e-12)
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
