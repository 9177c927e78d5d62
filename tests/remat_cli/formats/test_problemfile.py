"""Problem files: what is written is read back the same; whatever is wrong is named."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remat_cli.errors import BadInput
from remat_cli.formats.problemfile import dumps, loads, read, spelled, write
from remat_cli.model.problem_of import Named
from remat_cli.planning.loading import load_subject
from solvers.faults import faults
from solvers.problem import RESIDENT, Kind, Node, Problem
from tests.solvers.viewed_problems import random_problem


def named(problem: Problem) -> Named:
    nodes = tuple(f'op {k} "ü"' for k in range(len(problem.nodes)))
    return Named(problem, nodes, tuple(f"v{k}" for k in range(len(problem.sizes))))


@given(st.integers(0, 10**6), st.integers(1, 9))
def test_round_trip(seed: int, count: int) -> None:
    problem = named(random_problem(seed, count))
    assert loads(dumps(problem)) == problem


NODES = (
    Node(5, (), (0, 1), workspace=7, once=True, kind=Kind.COMPUTE, takes=((0, 64), (3, 0)), fused=0, early=(3, 4)),
    Node(0, (0,), (2,), views=((2, 0),), kind=Kind.VIEW),
    Node(1, (2,), (3,), overwrites=((3, 2),), backward=True, fused=0),
    Node(1, (), (4,), views=((4, RESIDENT),)),
    Node(1, (4,), (5,), once=True, updates=((5, 3),)),
)
EVERY = Named(Problem(NODES, (4, 8, 4, 4, 9, 0), (3, 4, 5), 11, frozenset({1}), True, frozenset({2})), (), ())


def test_round_trip_of_every_field(tmp_path: Path) -> None:
    problem = replace(named(EVERY.problem), rewritten=True, aside=5)
    write(problem, tmp_path / "p.problem.json")
    assert read(tmp_path / "p.problem.json") == problem


@pytest.mark.parametrize("kind", [Node, Problem, Named])
def test_no_field_is_forgotten(kind: type) -> None:
    """A field that is added must be told apart from its default above, or this fails; and then be read back there."""
    things = {Node: NODES, Problem: (EVERY.problem,), Named: (replace(EVERY, rewritten=True, aside=5),)}[kind]
    for field in fields(kind):
        if field.default is not MISSING:
            assert any(getattr(thing, field.name) != field.default for thing in things), field.name


@dataclass(frozen=True)
class Later:
    share: float = 0.0


def test_a_type_that_files_cannot_say_is_no_silent_loss() -> None:
    with pytest.raises(NotImplementedError, match="float"):
        spelled(get_type_hints(Later)["share"], 0.5, ())


@pytest.mark.parametrize("name", ["torch_gpt2_eager.onnx", "torch_cnn.onnx", "ort_mlp.onnx"])
def test_a_model_and_its_problem_file_are_the_same_question(name: str, data: Path, tmp_path: Path) -> None:
    subject = load_subject(data / name, None, {})
    assert any(node.takes for node in subject.problem.nodes)
    write(subject.named, tmp_path / "p.problem.json")
    bare = load_subject(tmp_path / "p.problem.json", None, {})
    assert bare.named == subject.named
    assert bare.before() == subject.before()


def test_the_contract_s_example() -> None:
    text = """
    {"format": "remat-problem/1", "resident": 0,
     "values": [{"name": "a", "bytes": 4096}],
     "nodes": [{"name": "conv1", "cost": 125000, "reads": [], "writes": ["a"], "workspace": 0, "once": false,
                "phase": "forward"}],
     "outputs": ["a"]}"""
    assert loads(text) == Named(Problem((Node(125000, (), (0,)),), (4096,), (0,)), ("conv1",), ("a",))


def test_published_instances_are_read(data: Path) -> None:
    paths = sorted(data.rglob("*.problem.json"))
    assert len(paths) >= 11
    for path in paths:
        assert not list(faults(read(path).problem))


GOOD: dict[str, Any] = {
    "format": "remat-problem/1",
    "resident": 1,
    "values": [{"name": "a", "bytes": 4}, {"name": "b", "bytes": 4}],
    "nodes": [
        {"name": "one", "cost": 1, "reads": [], "writes": ["a"]},
        {"name": "two", "cost": 1, "reads": ["a"], "writes": ["b"]},
    ],
    "outputs": ["b"],
}
A, ONE, TWO = ["values", 0], ["nodes", 0], ["nodes", 1]
REMOVE = object()

# what is wrong: (where, what stands there, words of the message)
BAD: dict[str, tuple[list[Any], Any, str]] = {
    "another format": (["format"], "remat-problem/2", "remat-problem/2"),
    "no format": (["format"], REMOVE, "format"),
    "no values": (["values"], REMOVE, "values"),
    "values are no list": (["values"], {}, "values"),
    "a value is no object": (A, "a", r"values.0."),
    "a value without a name": ([*A, "name"], "", "value 0"),
    "a value twice": ([*A, "name"], "b", "'b'"),
    "a negative size": ([*A, "bytes"], -4, "values.0..bytes.*-4"),
    "a size with a fraction": ([*A, "bytes"], 4.5, "values.0..bytes.*4.5"),
    "an absurd size": ([*A, "bytes"], 10**30, "values.0..bytes"),
    "a size in words": ([*A, "bytes"], "4MB", "4MB"),
    "an unknown field": ([*ONE, "costs"], 3, "'one'|node 0.*costs"),
    "a negative cost": ([*ONE, "cost"], -1, "'one'.*-1"),
    "no cost": ([*ONE, "cost"], REMOVE, "'one'.*cost"),
    "a cost that is true": ([*ONE, "cost"], True, "'one'.*True"),
    "a negative workspace": ([*TWO, "workspace"], -1, "'two'"),
    "a negative resident size": (["resident"], -1, "resident"),
    "two nodes of one name": ([*TWO, "name"], "one", "'one'"),
    "an unknown value read": ([*TWO, "reads"], ["z"], "'two'.*'z'"),
    "a value read before it is written": ([*ONE, "reads"], ["b"], "'one'.*'b'.*before"),
    "a cycle of one": ([*ONE, "reads"], ["a"], "'one'.*'a'"),
    "written twice": ([*TWO, "writes"], ["a"], "'two'.*'a'.*'one'"),
    "written twice by one node": ([*TWO, "writes"], ["b", "b"], "'two'.*twice"),
    "an unknown output": (["outputs"], ["z"], "'z'"),
    "an output nobody writes": ([*TWO, "writes"], [], "'b'.*no node"),
    "an output twice": (["outputs"], ["b", "b"], "twice"),
    "once is a number": ([*ONE, "once"], 1, "'one'.*once"),
    "an unknown phase": ([*ONE, "phase"], "sideways", "sideways"),
    "the phase by its name in the program": ([*ONE, "backward"], True, "'one'.*backward.*means nothing"),
    "an unknown kind": ([*ONE, "kind"], "soft", "soft"),
    "a view of what is not read": ([*TWO, "views"], [["b", "b"]], "'two'.*views"),
    "a view that is no pair": ([*TWO, "views"], [["b"]], "views"),
    "written over a weight": ([*TWO, "overwrites"], [["b", None]], "overwrites"),
    "an optional value nobody knows": (["optional"], ["q"], "'q'"),
    "an inner value nobody knows": (["inner"], ["q"], "inner.*'q'"),
    "an input taken without its size": ([*ONE, "takes"], [[3]], "'one'.*takes.*2 things"),
    "an input of a negative size": ([*ONE, "takes"], [[3, -1]], "'one'.*takes.*-1"),
    "a kernel without a number": ([*ONE, "fused"], "relu", "'one'.*fused.*'relu'"),
    "a piece of workspace in words": ([*ONE, "early"], ["4MB"], "'one'.*early.*'4MB'"),
    "rewritten is a number": (["rewritten"], 1, "rewritten"),
}


@pytest.mark.parametrize("place, thing, words", BAD.values(), ids=BAD)
def test_bad_problems(place: list[Any], thing: Any, words: str) -> None:
    data = json.loads(json.dumps(GOOD))
    loads(json.dumps(data))
    inner = data
    for key in place[:-1]:
        inner = inner[key]
    if thing is REMOVE:
        del inner[place[-1]]
    else:
        inner[place[-1]] = thing
    with pytest.raises(BadInput, match=words) as caught:
        loads(json.dumps(data), "p.problem.json")
    assert str(caught.value).startswith("p.problem.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "null", '{"format": 1, "format": 2}', "[" * 100_000, json.dumps(GOOD)[:-9], "NaN"]
)
def test_what_is_not_a_problem_at_all(text: str) -> None:
    with pytest.raises(BadInput, match=r"^p\.problem\.json"):
        loads(text, "p.problem.json")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        read(tmp_path / "none.problem.json")
    (tmp_path / "binary.problem.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="not even text"):
        read(tmp_path / "binary.problem.json")
