"""Real files, mutated: bytes flipped, cut, doubled and swapped, and structures changed where there are any.

Invariant: one seed gives one file on every machine.
"""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import Any

import onnx

ODD: tuple[Any, ...] = (None, True, -1, 0, 2**63, 2**200, 1e400, "", "a", "\0", "\ud800", [], {}, [[]], "9" * 5000)

SHARP = (b"\xff", b"\x00", b"[", b"{", b"&a ", b"*a", b"!!int ", b"- ", b"9" * 30)


def mutated(random: Random, content: bytes) -> bytes:
    """A few changes, anywhere."""
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 5, 20))):
        at, many = random.randrange(len(data) + 1), random.choice((1, 1, 4, 64))
        match random.randrange(5):
            case 0:
                data[at : at + many] = random.randbytes(many)
            case 1:
                del data[at : at + many]
            case 2:
                data[at:at] = data[at : at + many] * random.choice((1, 3))
            case 3:
                del data[max(at, 1) :]
            case _:
                data[at : at + 1] = random.choice(
                    (b"\xff", b"\x00", b"[", b"{", b"&a ", b"*a", b"!!int ", b"- ", b"9" * 30)
                )
        if not data:
            return b""
    return bytes(data)


def twisted(random: Random, content: bytes) -> bytes:
    """JSON with something in it replaced by what does not belong there."""
    found = json.loads(content)
    for _ in range(random.choice((1, 1, 3))):
        _twist(random, found)
    return json.dumps(found).encode()


def _twist(random: Random, thing: Any) -> None:
    while True:
        places = list(thing) if isinstance(thing, dict) else list(range(len(thing)))
        if not places:
            return
        place = random.choice(places)
        if isinstance(thing[place], dict | list) and random.random() < 0.8:
            thing = thing[place]
            continue
        if random.random() < 0.2:
            del thing[place]
        else:
            thing[place] = deepcopy(random.choice(ODD))
        return


def warped(random: Random, model: onnx.ModelProto) -> bytes:
    """A model whose encoding is sound and whose content is not."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    for _ in range(random.choice((1, 1, 2, 4))):
        _warp(random, found.graph)
    return found.SerializeToString()


def _warp(random: Random, graph: onnx.GraphProto) -> None:
    node = random.choice(graph.node)
    kinds = (*(other.op_type for other in graph.node), "If", "Loop", "Conv", "Concat", "Nothing")
    named = [*graph.input, *graph.output, *graph.value_info]
    names = (*(value.name for value in named), "", "nowhere", "a\nb", "\0")
    match random.randrange(9):
        case 0 if node.input:
            node.input[random.randrange(len(node.input))] = random.choice(names)
        case 1 if node.output:
            node.output[random.randrange(len(node.output))] = random.choice(names)
        case 2:
            node.op_type = random.choice(kinds)
        case 3 if node.attribute:
            _warp_attribute(random, random.choice(node.attribute))
        case 4 if node.attribute:
            del node.attribute[random.randrange(len(node.attribute))]
        case 5 if graph.initializer:
            tensor = random.choice(graph.initializer)
            tensor.dims[:] = [random.choice(NUMBERS) for _ in range(random.randrange(4))]
        case 6 if graph.initializer:
            tensor = random.choice(graph.initializer)
            tensor.data_type = random.choice((0, 1, 7, 8, 16, 99))
        case 7 if named:
            shape = random.choice(named).type.tensor_type.shape
            for dim in shape.dim:
                dim.dim_value = random.choice(NUMBERS)
        case _:
            del node.input[random.randrange(len(node.input) + 1) :]


def _warp_attribute(random: Random, attribute: onnx.AttributeProto) -> None:
    attribute.i = random.choice(NUMBERS)
    attribute.ints[:] = [random.choice(NUMBERS) for _ in range(random.randrange(5))]
    attribute.type = random.choice((attribute.type, attribute.type, onnx.AttributeProto.INT, onnx.AttributeProto.INTS))


NUMBERS = (0, 1, 2, 3, 7, -1, -(2**63), 2**31, 2**62, 2**63 - 1)
