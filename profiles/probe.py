"""An op that is timed with every profile, to compare the machine's speed with that of earlier measurements.

Invariant: it is timed as the ops are, by the fastest of a few rounds, on as many threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from profiles.device import Device
from profiles.measure import sample
from profiles.running import bind, run, session
from profiles.stopwatch import Waiting, works_alone

SIDE = 256  # the side of both square factors
ROUNDS, SECONDS = 5, 0.03
OFF = 0.3  # relative change of its time; a quiet virtual machine varies by a fifth


@dataclass(frozen=True, slots=True)
class Probe:
    """`ns` of the fastest round. `waited`: the share of the time that threads waited for a processor. Short runs show
    less of it than runs of a whole graph, each of which others interrupt."""

    ns: int
    waited: float = 0.0


def probe(device: Device) -> Probe:
    told = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [SIDE, SIDE]) for name in "abc"]
    nodes = [helper.make_node("MatMul", ["a", "b"], ["p"]), helper.make_node("Tanh", ["p"], ["c"])]
    graph = helper.make_graph(nodes, "probe", told[:2], told[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
    running = session(model.SerializeToString(), device)
    binding = bind(running, {name: np.ones((SIDE, SIDE), np.float32) for name in "ab"}, device)
    waiting, alone = Waiting(), works_alone(device)
    fastest = min(sample(lambda: run(running, binding), SECONDS, alone).ns for _ in range(ROUNDS))
    return Probe(fastest, waiting.share())
