"""Manifests: their product, and what is wrong with one by its line."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from remat_cli.batch import schema
from remat_cli.batch.manifest import read
from remat_cli.errors import BadInput

WHOLE = """format: remat-batch/1
defaults: {method: auto, session: strict, time-limit: 30s, memory-limit: 2GiB}
models:
  - models/*.problem.json
  - {path: forward/net.onnx, name: net, grad: {loss: cross-entropy, batch: 4}, expect: {max-overhead: 5%}}
  - path: models/b.problem.json
    name: other
    budgets: [12]
    methods: [{name: milp, reorder: true}]
    defaults: {time-limit: 1m, seed: 3}
budgets: [90%, 70%]
methods: [auto, chen-greedy]
sessions: [strict, default]
expect: {max-overhead: 10%, max-peak: 1KB, verify: true}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("models/a.problem.json", "models/b.problem.json", "forward/net.onnx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    return tmp_path / "m.yaml"


def test_runtimes_are_named_as_on_the_command_line(place: Path) -> None:
    """The same jobs by the names of the sessions, which manifests had before."""
    place.write_text(WHOLE)
    before = read(place)
    place.write_text(
        WHOLE.replace("session: strict", "runtime: remat").replace(
            "sessions: [strict, default]", "runtimes: [remat, stock]"
        )
    )
    assert read(place) == before
    assert {job.runtime for job in before} == {"remat", "stock"}


def test_the_product(place: Path) -> None:
    place.write_text(WHOLE)
    jobs = read(place)
    assert len(jobs) == len({job.title for job in jobs}) == 3 * 2 * 2 * 2 + 1 * 1 * 2
    first, net, last = jobs[0], jobs[16], jobs[-1]
    assert (first.title, first.seconds, first.memory, first.expected.max_overhead) == (
        *("a/90%-auto-remat", 30, 2 * 2**30),
        0.1,
    )
    assert (first.expected.verify, net.expected.verify) == (None, True)  # a bare problem has nothing to verify
    assert (net.model.name, net.model.grad, net.expected.max_overhead, net.expected.max_peak) == (
        *("net", {"loss": "cross-entropy", "batch": 4}),
        *(0.05, 1000),
    )
    assert (last.title, last.reorder, last.options, last.seconds, last.seed) == (
        *("other/12-milp,reorder=true-stock", True),
        *({}, 60, 3),
    )


def test_models_of_one_name_have_their_folders_names_too(place: Path) -> None:
    (place.parent / "more").mkdir()
    (place.parent / "more" / "a.problem.json").write_text("{}")
    place.write_text("format: remat-batch/1\nmodels: ['*/*.problem.json']\nbudgets: [9]\n")
    assert {job.model.name for job in read(place)} == {"models__a", "more__a", "b"}


@pytest.mark.parametrize(
    "old, new, line, says",
    [
        ("remat-batch/1", "remat-batch/2", 1, "'remat-batch/2' is not 'remat-batch/1'"),
        ("seed: 3", "seeds: 3", 10, "'seeds' means nothing here; there are method"),
        ("seed: 3", "seed: -3", 10, "-3 is less than 0"),
        ("seed: 3", "seed: 3.0", 10, "3.0 is not a whole number"),
        ("seed: 3", "seed: 3000000000", 10, "3000000000 is more than 2147483647"),
        ("[12]", "[12, 1.5.GB]", 8, "'1.5.GB' is not a size"),
        ("[12]", "[]", 8, "the list is empty"),
        ("[12]", "[12, 12]", 8, "the same job twice"),
        ("[12]", "[null]", 8, "None is not a word or a whole number"),
        ("[12]", "12", 8, "12 is not a list"),
        ("time-limit: 1m", "time-limit: soon", 10, "'soon' is not a time"),
        ("name: milp,", "name: mlip,", 9, "there is no method 'mlip'"),
        ("reorder: true", "slots: 3", 9, "slots is no option of milp"),
        ("reorder: true", "reorder: 1", 9, "reorder means nothing to milp"),
        ("[auto, chen-greedy]", "[auto, {nome: x}]", 12, "'name' is missing"),
        ("models/b.problem.json", "models/c.problem.json", 6, "models/c.problem.json: there is no such file"),
        ("models/*.p", "model/*.p", 4, "model/*.problem.json: there is no such file"),
        ("name: other", "name: ../other", 7, "does not match"),
        ("name: other", "name: net", 6, "another model is called net too"),
        ("{loss: cross-entropy, batch: 4}", "{loss: cross-entropy, batch: many}", 5, "'many' is not a whole number"),
        ("max-peak: 1KB", "max-peak: 50%", 14, "'50%' is not a number of bytes"),
        ("[strict, default]", "[strict, lax]", 13, "'lax' is not one of strict, default"),
        ("budgets: [90%, 70%]", "budgets: [90%, 70%", 12, "not YAML"),
        ("budgets: [90%, 70%]", "budgets: &a [90%]", 11, "the anchor or alias 'a'"),
        ("budgets: [90%, 70%]", "models: [x]", 11, "'models' stands here twice"),
        ("budgets: [90%, 70%]\n", "", 1, "'budgets' is missing"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(place: Path, old: str, new: str, line: int, says: str) -> None:
    assert old in WHOLE
    place.write_text(WHOLE.replace(old, new, 1))
    with pytest.raises(BadInput) as refused:
        read(place)
    assert str(refused.value).startswith(f"{place}:{line}: ")
    assert says in str(refused.value)


@pytest.mark.parametrize("name", ["manifest", "report"])
def test_schemas_are_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema.schema_named(name))
