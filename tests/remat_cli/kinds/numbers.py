"""Random ops, half precision, quantized and recurrent ops."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tests.remat_cli.kinds.chain import FLOAT, Chain, Twist

FLOAT16, DOUBLE, BFLOAT16 = TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16


def noise(kind: str, **attributes: object) -> Twist:
    return lambda chain, value: chain.add("Add", [value, chain.add(kind, [value], **attributes)])


def uniform(chain: Chain, value: str) -> str:
    drawn = chain.add("RandomUniform", [], shape=[chain.rows, chain.width], seed=5.0)
    return chain.add("Mul", [value, drawn])


def bernoulli(chain: Chain, value: str) -> str:
    return chain.add("Mul", [value, chain.add("Bernoulli", [chain.add("Sigmoid", [value])], seed=7.0)])


def dropout(seed: int | None, mask: bool) -> Twist:
    def twist(chain: Chain, value: str) -> str:
        how = {} if seed is None else {"seed": seed}
        made = chain.add("Dropout", [value, chain.constant(0.3), chain.constant(True, np.bool_)], 1 + mask, **how)
        return chain.add("Mul", [made, chain.add("Cast", [chain.last[1]], to=FLOAT)]) if mask else made

    return twist


def dropout_asked(chain: Chain, value: str) -> str:
    """How much is dropped, and whether, are inputs."""
    for name, kind in (("ratio", FLOAT), ("training", TensorProto.BOOL)):
        chain.inputs.append(helper.make_tensor_value_info(name, kind, []))
    return chain.add("Dropout", [value, "ratio", "training"], 2, seed=5)


def multinomial(chain: Chain, value: str) -> str:
    drawn = chain.add("Multinomial", [value], sample_size=chain.width, seed=2.0)
    return chain.add("Tanh", [chain.add("Mul", [value, chain.add("Cast", [drawn], to=FLOAT)])])


def half_product(chain: Chain, value: str) -> str:
    weight = chain.constant(chain.numbers.standard_normal((chain.width, chain.width)) / 8, np.float16)
    half = chain.add("Cast", [value], to=FLOAT16)
    return chain.add("Cast", [chain.add("Tanh", [chain.add("MatMul", [half, weight])])], to=FLOAT)


def narrow_chain(kind: int) -> Twist:
    def twist(chain: Chain, value: str) -> str:
        made = chain.add("Cast", [value], to=kind)
        for op in ("Sigmoid", "Exp", "Neg"):
            made = chain.add(op, [made])
        return chain.add("Tanh", [chain.add("Cast", [made], to=FLOAT)])

    return twist


def half_saved(chain: Chain, value: str) -> str:
    """Kept in half precision, read in whole."""
    return chain.add("Cast", [chain.add("Cast", [value], to=FLOAT16)], to=FLOAT)


def there_and_back(chain: Chain, value: str) -> str:
    return chain.add("Cast", [chain.add("Cast", [value], to=DOUBLE)], to=FLOAT)


def _scale(chain: Chain) -> list[str]:
    return [chain.constant(1 / 64), chain.constant(0, np.int8)]


def quantized(chain: Chain, value: str) -> str:
    scale = _scale(chain)
    return chain.add("DequantizeLinear", [chain.add("QuantizeLinear", [value, *scale]), *scale])


def quantized_weight(chain: Chain, value: str) -> str:
    scale = _scale(chain)
    weight = chain.constant(chain.numbers.integers(-64, 64, (chain.width, chain.width)), np.int8)
    return chain.add("Tanh", [chain.add("MatMul", [value, chain.add("DequantizeLinear", [weight, *scale])])])


def quantized_product(chain: Chain, value: str) -> str:
    """What optimizers make an integer product of: quantized before, after, and both weights and input."""
    scale = _scale(chain)
    read = chain.add("DequantizeLinear", [chain.add("QuantizeLinear", [value, *scale]), *scale])
    weight = chain.constant(chain.numbers.integers(-64, 64, (chain.width, chain.width)), np.int8)
    made = chain.add("MatMul", [read, chain.add("DequantizeLinear", [weight, *scale])])
    return chain.add("DequantizeLinear", [chain.add("QuantizeLinear", [made, *scale]), *scale])


def linear_product(chain: Chain, value: str) -> str:
    scale = _scale(chain)
    weight = chain.constant(chain.numbers.integers(-64, 64, (chain.width, chain.width)), np.int8)
    read = chain.add("QuantizeLinear", [value, *scale])
    made = chain.add("QLinearMatMul", [read, *scale, weight, *scale, *scale])
    return chain.add("DequantizeLinear", [made, *scale])


def dynamic(chain: Chain, value: str) -> str:
    made = chain.add("DynamicQuantizeLinear", [value], 3)
    return chain.add("DequantizeLinear", [made, *chain.last[1:]])


def integer_product(chain: Chain, value: str) -> str:
    read, scale, zero = (chain.add("DynamicQuantizeLinear", [value], 3), *chain.last[1:])
    weight = chain.constant(chain.numbers.integers(-64, 64, (chain.width, chain.width)), np.int8)
    whole = chain.add("Cast", [chain.add("MatMulInteger", [read, weight, zero])], to=FLOAT)
    return chain.add("Tanh", [chain.add("Mul", [whole, chain.add("Mul", [scale, chain.constant(1 / 512)])])])


def recurrent(kind: str, gates: int, directions: int = 1, last_only: bool = False) -> Twist:
    """Over the rows as time, a batch of one or eight."""

    def twist(chain: Chain, value: str) -> str:
        batch, width = 8, chain.width
        steps, hidden = chain.rows // batch, width // directions
        rows = chain.add("Reshape", [value, chain.shape(steps, batch, width)])
        reads = [
            rows,
            chain.weight(directions, gates * hidden, width),
            chain.weight(directions, gates * hidden, hidden),
        ]
        how = {"hidden_size": hidden, "direction": "bidirectional" if directions == 2 else "forward"}
        made = chain.add(kind, reads, 3 if kind == "LSTM" else 2, **how)
        if last_only:
            last = chain.add("Reshape", [chain.last[1], chain.shape(1, batch, width)])
            return chain.add("Reshape", [chain.add("Add", [rows, last]), chain.shape(chain.rows, width)])
        turned = chain.add("Transpose", [made], perm=[0, 2, 1, 3])
        return chain.add("Reshape", [turned, chain.shape(chain.rows, width)])

    return twist


RANDOM: dict[str, Twist] = {
    "normal_like": noise("RandomNormalLike", seed=1.0),
    "normal_like_unseeded": noise("RandomNormalLike"),
    "uniform_like": noise("RandomUniformLike", seed=4.0),
    "uniform": uniform,
    "bernoulli": bernoulli,
    "multinomial": multinomial,
    "dropout": dropout(9, mask=False),
    "dropout_with_mask": dropout(9, mask=True),
    "dropout_unseeded": dropout(None, mask=True),
    "dropout_asked": dropout_asked,
}
HALF: dict[str, Twist] = {
    "half_product": half_product,
    "half_chain": narrow_chain(FLOAT16),
    "bfloat_chain": narrow_chain(BFLOAT16),
    "double_chain": narrow_chain(DOUBLE),
    "half_saved": half_saved,
    "there_and_back": there_and_back,
}
QUANTIZED: dict[str, Twist] = {
    "quantized": quantized,
    "quantized_weight": quantized_weight,
    "quantized_product": quantized_product,
    "linear_product": linear_product,
    "dynamic": dynamic,
    "integer_product": integer_product,
}
RECURRENT: dict[str, Twist] = {
    "lstm": recurrent("LSTM", 4),
    "lstm_both_ways": recurrent("LSTM", 4, 2),
    "lstm_last": recurrent("LSTM", 4, last_only=True),
    "gru": recurrent("GRU", 3),
    "rnn": recurrent("RNN", 1),
}
