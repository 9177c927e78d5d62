"""Model-local functions: counted before they are written out, and written out.

Invariant: a file of functions that call each other without end is refused in time; what is written out is what the
calls mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx
from onnx import helper, inliner

from remat_cli.errors import BadInput
from remat_cli.limits import FUNCTION_NODES
from remat_cli.onnx_graph.walk import nodes_within

FunctionKey = tuple[str, str, str]  # domain, name, overload


def inline_local(model: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    """The model with its functions written out; those written against other opset versions are converted. Calls get the
    defaults that they leave out, which onnx's own inliner ignores."""
    refuse_endless(model, path)
    if unsaid := _give_defaults(model):
        raise BadInput(
            f"{path}: a function hands on its attribute {unsaid!r}, which a call does not give: give it there"
        )
    try:
        inlined = inliner.inline_local_functions(model)
        if _calls(inlined):
            inlined = inliner.inline_local_functions(with_types(model), convert_version=True)
            del inlined.graph.value_info[:]
            inlined.graph.value_info.extend(model.graph.value_info)
    except (RuntimeError, ValueError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise BadInput(
            f"{path}: its model-local functions cannot be inlined: {' '.join(str(error).split())}"
        ) from error
    if left := _calls(inlined):
        raise BadInput(f"{path}: function {left[0]!r} cannot be inlined; export the model without it")
    del inlined.functions[:]
    return inlined


def with_types(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the type of every value that functions may read, weights included, because the inliner needs
    them."""
    typed = onnx.shape_inference.infer_shapes(model)
    known = {value.name for value in typed.graph.value_info}
    for tensor in typed.graph.initializer:
        if tensor.name not in known:
            typed.graph.value_info.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return typed


def refuse_endless(model: onnx.ModelProto, path: Path) -> None:
    """Refuse a model whose functions make too many nodes, or call each other in a circle."""
    if _count_written_out(model) > FUNCTION_NODES:
        raise BadInput(f"{path}: with its functions written out it has more than {FUNCTION_NODES} nodes, or no end")


def _count_written_out(model: onnx.ModelProto) -> int:
    """How many nodes the model has once its functions are written out, as far as the limit; beyond it for a circle."""
    bodies = {(function.domain, function.name, function.overload): function.node for function in model.functions}
    known: dict[FunctionKey, int] = {}
    waiting = list(bodies)
    while waiting:
        name = waiting[-1]
        calls = [call for call in _names(bodies[name]) if call in bodies]
        missing = [call for call in calls if call not in known]
        if len(waiting) > len(bodies) * (len(bodies) + 1):
            return FUNCTION_NODES + 1  # functions that call each other in a circle
        if missing:
            waiting += missing
            continue
        known[name] = min(_total(bodies[name], known), FUNCTION_NODES + 1)
        waiting.pop()
    return _total(model.graph.node, known)


def _total(nodes: Iterable[onnx.NodeProto], known: dict[FunctionKey, int]) -> int:
    return sum(known.get(name, 1) for name in _names(nodes))


def _names(nodes: Iterable[onnx.NodeProto]) -> list[FunctionKey]:
    return [(node.domain, node.op_type, node.overload) for node in nodes_within(nodes)]


def _calls(model: onnx.ModelProto) -> list[str]:
    functions = {(function.domain, function.name) for function in model.functions}
    return [node.op_type for node in model.graph.node if (node.domain, node.op_type) in functions]


def _give_defaults(model: onnx.ModelProto) -> str | None:
    """Complete all calls. The result names an attribute that cannot be completed, because a body hands it on and a
    caller may leave it out."""
    bodies = (model.graph.node, *(function.node for function in model.functions))
    calls: dict[FunctionKey, list[onnx.NodeProto]] = {}
    for body in bodies:
        for node in nodes_within(body):
            calls.setdefault((node.domain, node.op_type, node.overload), []).append(node)
    for function in model.functions:
        for call in calls.get(_key(function), ()):
            given = {attribute.name for attribute in call.attribute}
            call.attribute.extend(one for one in function.attribute_proto if one.name not in given)
    defaults = {_key(function): {one.name for one in function.attribute_proto} for function in model.functions}
    for function in model.functions:
        handed = set(_attributes_handed_on(function, defaults))
        for call in calls.get(_key(function), ()):
            if missing := handed - {attribute.name for attribute in call.attribute}:
                return min(missing)
    return None


def _attributes_handed_on(function: onnx.FunctionProto, defaults: dict[FunctionKey, set[str]]) -> Iterator[str]:
    """Attributes of the function's own that its body hands to calls which have another default for them."""
    for node in nodes_within(function.node):
        known = defaults.get((node.domain, node.op_type, node.overload), set())
        yield from (one.ref_attr_name for one in node.attribute if one.ref_attr_name and one.name in known)


def _key(function: onnx.FunctionProto) -> FunctionKey:
    return function.domain, function.name, function.overload
