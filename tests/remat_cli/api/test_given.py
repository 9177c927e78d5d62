"""What a program gets wrong, of every function: each is answered in words, never by an error of Python's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import remat_cli as remat
from remat_cli.plans.planned import Planned

DATA = Path(__file__).parents[2] / "data"
CNN, FORWARD = DATA / "torch_cnn.onnx", DATA / "torch" / "language_train_whole.onnx"
IDS = np.zeros((2, 6), int)


class Weights:
    """A thing with a truth of its own, as tensors are."""

    def __bool__(self) -> bool:
        raise RuntimeError("ambiguous")

    def __repr__(self) -> str:
        return "weights"


class Hollow:
    """A thing that looks as if it held others, and holds none, as a tensor of one number."""

    def __repr__(self) -> str:
        return "a hollow one"  # in the names of tests, which each process must give alike

    def __iter__(self) -> Any:
        raise TypeError("iteration over a 0-d tensor")


@pytest.fixture(scope="module")
def plan() -> Planned:
    return remat.solve(CNN, budget="90%", method="evict", work_limit=100_000)


@pytest.fixture(scope="module")
def step() -> remat.Step:
    return remat.step(remat.grad(FORWARD, optimizer="sgd"), FORWARD)


Call = Callable[[], object]


def refused(call: Call, words: str) -> None:
    with pytest.raises(remat.RematError, match=words):
        call()


@pytest.mark.parametrize(
    "given, words",
    [
        ({"class_axis": "last"}, "class_axis is a whole number"),
        ({"wrt": [Weights()]}, "wrt are names, not Weights"),
        ({"params": [Weights()]}, "are names, not Weights"),
        ({"ties": ["a", "b"]}, "ties are pairs of names"),
        ({"batch": "4"}, "batch is a whole number"),
        ({"shapes": {"x": 3}}, "is a list"),
        ({"shapes": [3]}, "shapes are by name"),
        ({"dims": {"batch": "x"}}, "is a whole number"),
        ({"outputs": 3}, "outputs is a list"),
        ({"optimizer": dict}, "is a class"),
        ({"optimizer": "admw"}, "did you mean adamw"),
        ({"optimizer": "sgd", "learning_rate": -1}, "learning_rate is at least 0"),
        ({"optimizer": "sgd", "learning_rate": float("nan")}, "learning_rate is at least 0"),
        ({"optimizer": "sgd", "learning_rate": True}, "learning_rate is True, not a number"),
        ({"optimizer": "sgd", "clip": np.bool_(True)}, "not a number"),
        ({"optimizer": "sgd", "clip": "norm"}, "clip is 'norm', not a number"),
        ({"optimizer": "sgd", "groups": [{}]}, "groups are settings by a pattern"),
        ({"optmizer": "sgd"}, "did you mean optimizer"),
        ({"optimizer": "sgd", "learning_rate": 10**400}, "not a number"),
        ({"train": "off"}, "train is True or False, not 'off'"),
        ({"as_exported": None}, "as_exported is True or False"),
        ({"accumulate": 4}, "accumulate is True or False"),
        ({"freeze_bn": "no"}, "freeze_bn is True or False"),
        ({"precision": ["float16"]}, "precision is a word"),
        ({"wrt": Hollow()}, "wrt is a list"),
    ],
    ids=str,
)
def test_grad(given: dict[str, Any], words: str) -> None:
    refused(lambda: remat.grad(FORWARD, **given), words)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"budget": 0.8}, "did you mean '80%'"),
        ({"budget": [1]}, r"budget is a number or words, not \[1\]"),
        ({"budget": "80%", "method": "evct"}, "did you mean evict"),
        ({"budget": "80%", "method": None}, "there is no method 'None'"),
        ({"budget": "80%", "costs": {}}, "costs are what profile gives"),
        ({"budget": "80%", "known": 3}, "known is a list"),
        ({"budget": "80%", "dims": [3]}, "dims are sizes by name"),
        ({"budget": "80%", "in_place": ["a"]}, "in_place is True"),
        ({"budget": "80%", "time_limit": [1]}, "time_limit is a number or words"),
        ({"budget": "80%", "work_limit": "lots"}, "write 5M"),
        ({"budget": "80%", "gap": "small"}, "gap: .* is not a share"),
        ({"budget": "80%", "seed": "a"}, "seed is a whole number"),
        ({"budget": "80%", "seed": 2**40}, "seed is at most"),
        ({"budget": "80%", "certificate": 3}, "certificate is a path"),
        ({"budget": float("nan")}, "is not a size"),
        ({"budget": 10**400}, "more than 30 digits"),
        ({"budget": "80%", "time_limit": 10**400}, "more than 30 digits"),
        ({"budget": "80%", "method": ["evict"]}, "there is no method"),
        ({"budget": "80%", "session": ["strict"]}, "there is no session"),
        ({"budget": "80%", "session": "defalt"}, "say runtime='remat' or runtime='stock'"),
        ({"budget": "80%", "runtime": "stok"}, "did you mean stock"),
        ({"budget": "80%", "runtime": {}}, "there is no runtime"),
        ({"budget": "80%", "allocator": "planned"}, "allocator"),
        ({"budget": "80%", "pieces": True}, "pieces are auto, exact, off"),
        ({"budget": "80%", "report": "yes"}, "report is a function"),
        ({"budget": "80%", "report": []}, "report is a function"),
        ({"budget": "80%", "cache": "off"}, "cache is True or False, not 'off'"),
        ({"budget": "80%", "known": Hollow()}, "known is a list"),
        ({"budgt": "80%"}, "solve has no keyword 'budgt'; did you mean budget"),
        ({"budget": "80%", "method": "evict", "slots": 3}, "not an option of 'evict'"),
    ],
    ids=str,
)
def test_solve(given: dict[str, Any], words: str) -> None:
    refused(lambda: remat.solve(CNN, **given), words)


def test_models_and_plans_that_are_taken_for_each_other(plan: Planned) -> None:
    refused(lambda: remat.solve(plan, budget="80%"), "give the model that it is for")
    refused(lambda: remat.grad(plan), "give the model that it is for")
    for call in (remat.emit, remat.session, remat.verify):
        refused(lambda call=call: call(CNN), "is a model; give a plan for it")
    refused(lambda: remat.load_plan(3), "is a path")
    refused(lambda: remat.step(CNN, plan), "not of a plan|which of its inputs")
    refused(lambda: remat.step(FORWARD, "m.pt"), r"torch\.load")
    refused(lambda: plan.save(3), "a plan's file is a path")


def test_the_others(plan: Planned) -> None:
    for given in ({"threads": "4"}, {"batches": "4"}, {"time_limit": "soon"}, {"estimate": "v10"}):
        refused(lambda given=given: remat.profile(CNN, **given), "whole number|is a list|not a time|did you mean v100")
    for given in ({"budgets": 0.5}, {"budgets": []}, {"budgets": [None]}, {"methods": 3}, {"methods": "evct"}):
        refused(lambda given=given: remat.sweep(CNN, **given), "did you mean|at least one|is a number|is a list")
    for given in ({"budget": None}, {"budget": "8MB", "step": 0}, {"budget": "8MB", "optimizer": "lion"}):
        refused(lambda given=given: remat.max_batch(FORWARD, **given), "is a number|at least 1|no optimizer")
    refused(lambda: remat.max_batch(FORWARD, budget="8MB", learnin_rate=0.1), "did you mean learning_rate")
    for given in ({"feeds": [1]}, {"rtol": "x"}, {"timeout": "x"}, {"seed": None}):
        refused(lambda given=given: remat.verify(plan, **given), "feeds are|rtol is|not a time|whole number")
    refused(lambda: remat.session(plan, providers=[]), "providers name at least one")
    refused(lambda: remat.session(plan, providers=b"CPU"), "providers is a list")
    refused(lambda: remat.session(plan, providers="CPUExecutionProvidr"), "did you mean CPUExecutionProvider")
    refused(lambda: remat.in_pieces(CNN, largest_value="50%"), "not a number of bytes")
    refused(lambda: remat.check(3, plan), "certificate is a path")
    refused(lambda: remat.initial_state(3, remat.grad(FORWARD)), "not of a int")


def test_steps(step: remat.Step) -> None:
    before = {name: value.copy() for name, value in step.state_dict().items()}
    for batch in (None, "x", {1, 2}, ("a", "b"), ([[1], [1, 2]], IDS), (None, IDS), (i for i in (IDS, IDS))):
        refused(lambda batch=batch: step(batch), "a batch holds|the step takes|is no array")
    refused(lambda: step((IDS, IDS, IDS)), "in this order; 3 were given")
    refused(lambda: step((IDS, IDS - 7)), "labels hold -7")
    refused(lambda: step((IDS, IDS + 99)), "labels hold 99; there are 12 classes, counted from 0")
    refused(lambda: step((IDS + 999, IDS)), r"the op \w+ '.*' failed on this batch: (?!/)")
    refused(lambda: step({step.data[0]: IDS}), "it lacks 'labels'$")
    refused(lambda: step({step.data[0]: IDS, "labels": IDS, "mask": IDS}), "the step takes no 'mask'$")
    refused(lambda: remat.step(FORWARD), r"remat\.step\(plan, module\)")
    refused(lambda: remat.step(FORWARD, FORWARD, lr=1), "did you mean learning_rate")
    refused(lambda: step((IDS, IDS), outputs=3), "outputs are names")
    refused(lambda: step(IDS, IDS), r"a batch is given as one: step\(\(")
    refused(lambda: setattr(step, "learning_rate", "x"), "a learning rate is a number, at least 0")
    refused(lambda: step.save(3), "is a path")
    refused(lambda: step.load(3), "cannot read the checkpoint")
    refused(lambda: step.load(FORWARD), r"it is not what step\.save writes")
    refused(lambda: step.load_into(3), "into a PyTorch module, not a int")
    assert all((value == before[name]).all() for name, value in step.state_dict().items())
    assert np.isfinite(step((IDS, np.where(IDS == 0, -100, 0) * (np.arange(6) > 2))))


def test_one_may_stand_for_a_list(plan: Planned) -> None:
    assert remat.grad(FORWARD, wrt="lnf.bias").graph.output[-1].name == "lnf.bias_grad"
    assert remat.solve(CNN, budget="90%", known=plan, work_limit=20_000, gap="1%").cost <= plan.cost
    assert len(remat.sweep(CNN, budgets="90%", methods="evict", work_limit=100_000).points) == 1
    assert remat.session(plan, providers="CPUExecutionProvider").get_providers() == ["CPUExecutionProvider"]
