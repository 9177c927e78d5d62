"""Sessions made, failed, run, dropped, forked and shared among threads in random orders: `odd_orders.py SEED COUNT`.

It ends with exit code 0 if every run gave what the model gives in a strict session; a crash ends the process.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import remat_cli as remat
from remat_cli.model.sessions import DEFAULT
from remat_cli.runtime import session as sessions
from remat_cli.training.state import initial_state, values_of

FORWARD = Path(__file__).parents[2] / "data" / "torch" / "conv_train_whole.onnx"
BATCH = {"x": np.linspace(-1, 1, 4 * 3 * 8 * 8, dtype=np.float32).reshape(4, 3, 8, 8), "labels": np.arange(4)}
KINDS = ["planned", "strict", "default", "step"]
ACTIONS = 12  # in each order


@cache
def step(precision: str) -> onnx.ModelProto:
    """In bfloat16 no session can be made: a CPU has no kernels for it."""
    return remat.grad(FORWARD, optimizer="sgd", precision=precision)


@cache
def feeds() -> dict[str, Any]:
    return BATCH | initial_state(values_of(onnx.load(FORWARD)), step("float32"))


@cache
def expected() -> float:
    return float(sessions.session_of(step("float32").SerializeToString(), Path()).run(["loss"], feeds())[0])


def made(kind: str, precision: str, threads: int) -> Callable[[], float]:
    """Something that gives the loss of the first step when it is called."""
    content = step(precision).SerializeToString()
    if kind == "step":
        bound = remat.step(step(precision), FORWARD, learning_rate=0.0)
        return lambda: bound(BATCH)
    if kind == "planned":
        session = sessions.planned(content, threads=threads, folder=Path())
    elif kind == "strict":
        session = sessions.session_of(content, Path(), threads=threads)
    else:
        session = sessions.session_of(content, Path(), threads=threads, kind=DEFAULT)
    return lambda: float(session.run(["loss"], feeds())[0])


def forked(work: Callable[[], object]) -> None:
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "a child was ended"


def order(draw: random.Random) -> None:
    """Some actions; whatever lives at the end goes then."""
    alive: list[Callable[[], float]] = []
    threads: list[threading.Thread] = []
    wrong: list[float] = []

    def run(one: Callable[[], float]) -> None:
        if abs((loss := one()) - expected()) > 1e-4:
            wrong.append(loss)

    for _ in range(ACTIONS):
        match draw.choice(["make", "make", "fail", "run", "run", "drop", "collect", "thread", "wrong", "fork"]):
            case "make":
                alive.append(made(draw.choice(KINDS), "float32", draw.choice([1, 2])))
            case "fail":
                with pytest.raises(Exception, match="Could not find an implementation"):
                    made(draw.choice(KINDS), "bfloat16", 1)
            case "run" if alive:
                run(draw.choice(alive))
            case "drop" if alive:
                alive.pop(draw.randrange(len(alive)))
            case "collect":
                gc.collect()
            case "thread" if alive:
                one = draw.choice(alive)
                threads.append(threading.Thread(target=lambda one=one: [run(one) for _ in range(3)]))
                threads[-1].start()
            case "wrong":
                session = sessions.planned(step("float32").SerializeToString(), folder=Path())
                with pytest.raises(Exception, match="index"):
                    session.run(["loss"], {**feeds(), "labels": np.full(4, 99)})
            case "fork":
                for one in threads:
                    one.join()
                forked(lambda: made("planned", "float32", 1)())
    for one in threads:
        one.join()
    assert not wrong, wrong


def main() -> None:
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(count):
        order(random.Random(seed * 1000 + number))
    print("done")


if __name__ == "__main__":
    main()
