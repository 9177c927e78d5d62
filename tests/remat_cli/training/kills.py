"""Steps that are killed, or interrupted, in the middle: nothing they leave is taken for whole and is not.

By hand: `python -m tests.remat_cli.training.kills SEED COUNT` does both so often, and counts aloud. Of seed 0, 100
of each: killed, whole 100 times; interrupted, whole 13 times and refused 87 times; after 639 updates.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx

import remat_cli as remat
from remat_cli.training import checkpoint

FORWARD = Path(__file__).parents[2] / "data" / "torch" / "language_train_whole.onnx"
LONGEST = 0.3  # seconds between a step that is ready and its end


def batch(number: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(number)
    return random.integers(0, 12, (2, 6)), random.integers(0, 12, (2, 6))


def digest(state: Mapping[str, np.ndarray]) -> str:
    found = hashlib.sha256()
    for name in sorted(state):
        found.update(name.encode() + state[name].tobytes())
    return found.hexdigest()


class Kills:
    """`witness` holds both copies and is never stopped: `known` are its states by their number of updates."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings(action="ignore"):
            self.model: onnx.ModelProto = remat.grad(FORWARD, optimizer="adamw")
        self.path = folder / "step.npz"
        self.witness = remat.step(self.model, FORWARD, keep_state=True)
        self.known = [digest(self.witness._state)]
        self.step = remat.step(self.model, FORWARD)
        self.step.save(self.path)

    def at(self, updates: int) -> str:
        while len(self.known) <= updates:
            self.witness(batch(len(self.known) - 1))
            self.known.append(digest(self.witness._state))
        return self.known[updates]

    def kill(self, random: Random) -> str:
        """A process that trains on from the checkpoint and writes it after each step, killed at any time."""
        ready, tell = os.pipe()
        child = os.fork()
        if not child:
            self._train(tell)
        os.read(ready, 1)
        time.sleep(random.uniform(0, LONGEST))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        os.close(tell)
        held = checkpoint.read(self.path)
        return "whole" if digest(held.state) == self.at(held.counts[1]) else "wrong"

    def _train(self, tell: int) -> None:
        step = remat.step(self.model, FORWARD)
        step.load(self.path)
        os.write(tell, b"x")
        while True:
            step(batch(step.updates))
            step.save(self.path)

    def interrupt(self, random: Random) -> str:
        """Ctrl-C in this process: the step goes on from where it is said to be, or refuses to."""
        self.step.load(self.path)
        before = signal.signal(signal.SIGALRM, _stop)
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, LONGEST / 3))
            while True:
                self.step(batch(self.step.updates))
        except KeyboardInterrupt:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        try:
            self.step.save(self.path)
        except remat.Usage:
            return "refused"
        return "whole" if digest(self.step._state) == self.at(self.step.updates) else "wrong"


def _stop(*_: Any) -> None:
    raise KeyboardInterrupt


def main(seed: int, count: int) -> None:
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        kills = Kills(Path(folder))
        for number in range(count):
            random = Random(f"{seed} {number}")
            seen[f"killed: {kills.kill(random)}"] += 1
            seen[f"interrupted: {kills.interrupt(random)}"] += 1
        print(dict(sorted(seen.items())), f"after {len(kills.known) - 1} updates")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
