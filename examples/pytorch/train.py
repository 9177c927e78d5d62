"""Train modules of PyTorch twice, side by side: by PyTorch, and by remat at 60% of the memory. The losses must agree.

python examples/pytorch/train.py            # all six
python examples/pytorch/train.py gpt2 --steps 20 --budget 60%
python examples/pytorch/train.py cnn vit --runtime stock --steps 10 --budget 85%
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from models import EXAMPLES, Example
from onnx import helper
from torch import Tensor, nn
from torch.nn import functional

import remat_cli as remat

NEAR = 1e-4  # of a loss


class SameMasks(nn.Module):
    """A Dropout that drops what the training graph's node of that seed drops: no two libraries draw alike."""

    def __init__(self, node: onnx.NodeProto, ratio: float) -> None:
        super().__init__()
        self.node, self.ratio, self.session = node, ratio, None

    def forward(self, x: Tensor) -> Tensor:
        if self.session is None:
            self.session = self._session(x)
        return x * torch.from_numpy(self.session.run(None, {"x": np.ones(x.shape, np.float32)})[0])

    def _session(self, x: Tensor) -> Any:
        seed = next(attribute.i for attribute in self.node.attribute if attribute.name == "seed")
        settings = [helper.make_tensor("ratio", 1, [], [self.ratio]), helper.make_tensor("training", 9, [], [True])]
        graph = helper.make_graph(
            [helper.make_node("Dropout", ["x", "ratio", "training"], ["y"], seed=seed)],
            "mask",
            [helper.make_tensor_value_info("x", 1, list(x.shape))],
            [helper.make_tensor_value_info("y", 1, list(x.shape))],
            settings,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
        return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def with_masks(module: nn.Module, training: onnx.ModelProto) -> nn.Module:
    """A copy of the module whose Dropouts draw as the graph's do; both run them in one order."""
    drawn = iter([node for node in training.graph.node if node.op_type == "Dropout"])
    witness = copy.deepcopy(module)
    order: list[nn.Module] = []
    hooks = [m.register_forward_hook(lambda m, *_: order.append(m)) for m in witness.modules() if _drops(m)]
    with torch.no_grad():
        witness(torch.zeros(1, 4, dtype=torch.int64)) if hooks else None
    for hook in hooks:
        hook.remove()
    masks = {id(dropout): SameMasks(next(drawn), dropout.p) for dropout in order}
    for parent in list(witness.modules()):
        for name, child in list(parent.named_children()):
            if id(child) in masks:
                setattr(parent, name, masks[id(child)])
    return witness


def _drops(module: nn.Module) -> bool:
    return isinstance(module, nn.Dropout) and module.p > 0


def by_pytorch(module: nn.Module, example: Example, batches: list[tuple[Tensor, Tensor]]) -> Iterator[float]:
    kinds = {"momentum": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    extra = {"momentum": 0.9} if example.optimizer == "momentum" else {}
    optimizer = kinds[example.optimizer](module.parameters(), lr=example.rate, **extra)
    for x, labels in batches:
        logits = module(x)
        loss = functional.cross_entropy(logits.movedim(-1, 1) if logits.dim() == 3 else logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def compare(name: str, given: argparse.Namespace, folder: Path) -> bool:
    steps = given.steps
    torch.manual_seed(0)
    example = EXAMPLES[name]
    module, batches = example.make().train(), [example.batch() for _ in range(steps)]
    path = str(folder / f"{name}.onnx")

    torch.onnx.export(module, batches[0][:1], path, dynamo=True, optimize=False, verbose=False)
    training = remat.grad(path, optimizer=example.optimizer, learning_rate=example.rate)
    costs = remat.profile(training, threads=1, time_limit=given.profile) if given.profile else None
    plan = remat.solve(training, budget=given.budget, costs=costs, runtime=given.runtime, time_limit=given.time_limit)
    step = remat.step(plan, path)

    witness = with_masks(module, training)
    started = time.process_time()
    found = [step(batch) for batch in batches]
    took = time.process_time() - started
    expected = list(by_pytorch(witness, example, batches))
    step.load_into(module)

    off = max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(found, expected, strict=True))
    alike = off <= NEAR and _same_answer(module, witness, batches[0][0])
    print(
        f"{name:8} {given.runtime} runtime: loss {expected[0]:.4f} to {expected[-1]:.4f},"
        f" at most {off:.1e} off in {steps} steps;"
        f" memory {plan.peak / 1e6:.3g} of {plan.recorded.baseline_peak / 1e6:.3g} MB, time {plan.overhead:+.1%};"
        f" {1000 * took / steps:.0f} ms of CPU a step; {'the same' if alike else 'NOT THE SAME'}",
        flush=True,
    )
    return alike


def _same_answer(module: nn.Module, witness: nn.Module, x: Tensor) -> bool:
    """Both modules, as for inference: weights and running statistics came back."""
    with torch.no_grad():
        first, second = (net.eval()(x) for net in (module, _without_masks(witness)))
    return bool(torch.allclose(first, second, rtol=0.05, atol=0.05))


def _without_masks(witness: nn.Module) -> nn.Module:
    for parent in list(witness.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, SameMasks):
                setattr(parent, name, nn.Identity())
    return witness


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*EXAMPLES, "all"], default="all")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--budget", default="60%")
    parser.add_argument("--time-limit", type=float, default=30.0, help="Seconds to solve each.")
    parser.add_argument("--runtime", choices=("remat", "stock"), default="remat")
    parser.add_argument("--profile", type=float, default=0.0, help="Seconds to measure each; else costs are estimated.")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    names = list(EXAMPLES) if "all" in given.names else given.names
    with tempfile.TemporaryDirectory() as folder:
        alike = [compare(name, given, Path(folder)) for name in names]
    return 0 if all(alike) else 1


if __name__ == "__main__":
    sys.exit(main())
