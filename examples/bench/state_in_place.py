"""Ten AdamW steps of a model with its state held once, with both copies, and by PyTorch: memory, time and losses.

Needs torch. Names are those of `examples/pytorch/models.py`, and `gpt2-wide` and `gpt2-small`, whose state is most of
what they hold. Each way runs in a process of its own, on one thread. Bytes are what the process holds more at the most:
`whole` than before it had a model, the reading of the plan and the making of the session among it; `steps` than with
the session (for PyTorch: the module) ready. Parameters and batch count in both. `told` is what `solve` says of the
process. Seconds are a processor's, the median of the later steps. `budget` is a share of the step with both copies.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "pytorch")]

WAYS = ("once", "both", "pytorch")
RATE = 1e-3
WARM = 3  # steps before time is taken: the first finds places for values


def examples() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """For each name, how its module is made, and a batch."""
    import torch
    from models import EXAMPLES, GPT2

    def words(batch: int, length: int, vocabulary: int) -> tuple[Any, Any]:
        ids = torch.randint(0, vocabulary, (batch, length + 1))
        return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()

    return {
        **{name: (example.make, example.batch) for name, example in EXAMPLES.items()},
        "gpt2-wide": (partial(GPT2, 4000, 256, 64, 6), partial(words, 4, 64, 4000)),
        "gpt2-small": (partial(GPT2, 50257, 768, 128, 12), partial(words, 1, 128, 50257)),
    }


def made(name: str, seed: int, steps: int) -> tuple[Any, list[Any]]:
    import torch

    torch.manual_seed(seed)
    module, batch = examples()[name]
    return module().train(), [batch() for _ in range(steps)]


def prepare(name: str, folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """Write the model, its plan and the batches; what the plan says."""
    import numpy as np
    import torch

    import remat_cli as remat

    module, batches = made(name, asked.seed, asked.steps)
    np.savez(folder / "batches.npz", **{f"{k}.{place}": v for k, b in enumerate(batches) for place, v in enumerate(b)})
    torch.onnx.export(
        module,
        batches[0][:1],
        str(folder / "forward.onnx"),
        dynamo=True,
        optimize=False,
        verbose=False,
        external_data=False,
    )
    step = remat.grad(folder / "forward.onnx", optimizer="adamw", learning_rate=RATE)
    costs = remat.profile(step, threads=1, time_limit=asked.profile)
    plan = remat.solve(step, budget=asked.budget, costs=costs, time_limit=asked.seconds, seed=asked.seed, cache=False)
    plan.save(folder / "m.plan.json")
    return {
        "parameters": sum(parameter.nelement() for parameter in module.parameters()),
        "both_copies_live": plan.recorded.baseline_peak,
        "budget": plan.budget,
        "told": plan.recorded.promises.arena,
        "overhead": round(plan.overhead, 4),
    }


def batches_in(folder: Path) -> list[Sequence[Any]]:
    import numpy as np

    with np.load(folder / "batches.npz") as stored:
        count = len(stored.files) // 2
        return [(stored[f"{k}.0"], stored[f"{k}.1"]) for k in range(count)]


def by_remat(way: str, folder: Path) -> tuple[int, Callable[[Any], float]]:
    """The bytes of its state, and a step."""
    import numpy as np

    import remat_cli as remat

    step = remat.step(folder / "m.plan.json", folder / "forward.onnx", keep_state=way == "both")
    for value in step._state.values():
        np.add(value, 0, out=value)  # zeros are not held before they are written
    return sum(value.nbytes for value in step._state.values()), step


def by_pytorch(name: str, seed: int) -> tuple[int, Callable[[Any], float]]:
    import torch
    from torch.nn import functional

    module, _ = made(name, seed, 0)
    optimizer = torch.optim.AdamW(module.parameters(), RATE)

    def step(batch: Any) -> float:
        x, labels = (torch.from_numpy(part) for part in batch)
        optimizer.zero_grad()
        logits = module(x)
        loss = functional.cross_entropy(logits.movedim(-1, 1) if logits.dim() == 3 else logits, labels)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    held = [*module.parameters(), *module.buffers()]
    return sum(value.nelement() * value.element_size() for value in held), step


def run(way: str, name: str, folder: Path, seed: int) -> dict[str, Any]:
    """Ten steps in this process, which has no model yet."""
    from remat_cli.checking.weight import resident_now, resident_peak

    batches = batches_in(folder)
    data = sum(part.nbytes for part in batches[0])
    if way == "pytorch":
        import torch
        from models import EXAMPLES  # noqa: F401  what it imports is no model's

        torch.set_num_threads(1)
        torch.nn.functional.linear(torch.ones(8, 8), torch.ones(8, 8, requires_grad=True)).sum().backward()
    else:
        import remat_cli.api.step  # noqa: F401
        from remat_cli.runtime.session import session_of  # noqa: F401

    first = resident_now()
    held, step = by_pytorch(name, seed) if way == "pytorch" else by_remat(way, folder)
    made_it = resident_peak()
    begun = resident_now()
    losses, seconds = [], []
    for batch in batches:
        started = time.process_time()
        losses.append(step(batch))
        seconds.append(time.process_time() - started)
    most = resident_peak()
    return {
        "whole": max(most, made_it) - first + data,
        "steps": most - begun + held + data,
        "seconds": round(statistics.median(seconds[WARM:]), 4),
        "losses": [loss.hex() for loss in losses],
    }


def child(words: Sequence[str]) -> dict[str, Any]:
    """What a process of its own answers."""
    own = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    ran = subprocess.run([sys.executable, __file__, *words], env=own, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{ran.stderr[-2000:]}")
    return dict(json.loads(ran.stdout.splitlines()[-1]))


KEY = ("model",)


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*")
    _limits(parser)


def _limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--budget", default="60%")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", type=float, default=10.0, help="seconds to measure ops")
    parser.add_argument("--seconds", type=float, default=20.0, help="seconds to solve")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    limits = {name: getattr(asked, name) for name in ("budget", "steps", "seed", "profile", "seconds")}
    given = [word for key, value in limits.items() for word in (f"--{key}", str(value))]
    for name in asked.names or list(examples()):
        with tempfile.TemporaryDirectory() as folder:
            told = child([folder, name, *given])
            ways = {way: child([folder, name, "--way", way, *given]) for way in WAYS}
        losses = {way: ways[way].pop("losses") for way in WAYS}
        apart = [
            abs(float.fromhex(a) - float.fromhex(b)) for a, b in zip(losses["once"], losses["pytorch"], strict=True)
        ]
        same = losses["once"] == losses["both"]
        yield {"model": name, **told, **ways, "same_losses": same, "from_pytorch": float(f"{max(apart):.1e}")}


def _in_a_process() -> None:
    """What `child` asks for: the model and its plan, or steps in one of the ways."""
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("name")
    options.add_argument("--way", choices=WAYS)
    _limits(options)
    asked = options.parse_args()
    way = asked.way
    print(
        json.dumps(run(way, asked.name, asked.folder, asked.seed) if way else prepare(asked.name, asked.folder, asked))
    )


if __name__ == "__main__":
    _in_a_process()
