"""`remat solve` by its contract: files, exit codes, figures."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from solvers.registry import METHODS
from tests.cli.running import Command, Ran
from tests.remat_cli.kinds import model as kind

KEYS = [
    *("status", "method", "budget", "peak", "cost", "baseline_peak", "baseline_cost", "overhead", "emitted_cost"),
    *("bound", "bound_any_order", "gap", "resident", "recomputed", "seconds", "plan", "notes"),
    *("session", "runtime", "live", "arena", "default_arena", "session_itself"),
    *("wall_seconds", "stopped", "made_by", "found_by", "bound_by", "parts", "cached", "breakdown"),
]
EXPECTED = {
    name: {
        int(budget): cost
        for budget, cost in json.loads(text)["optimum by budget, over all orders with repeats"].items()
    }
    for name in ("linear4", "linear8")
    if (text := (Path(__file__).parents[1] / "data" / "checkmate" / f"{name}.expected.json").read_text())
}


@pytest.mark.parametrize("name, budget, cost", [(n, b, c) for n, table in EXPECTED.items() for b, c in table.items()])
def test_unit_chains_reach_their_optimum(remat: Command, data: Path, name: str, budget: int, cost: int) -> None:
    ran = remat("solve", data / "checkmate" / f"{name}.problem.json", "--budget", budget, "--json", "-o", "x.plan.json")
    assert ran.code == 0
    assert list(ran.object) == KEYS
    assert (ran.object["status"], ran.object["cost"], ran.object["bound"]) == ("optimal", cost, cost)
    assert ran.object["peak"] <= budget


def test_a_share_of_the_peak(remat: Command, data: Path) -> None:
    ran = remat("solve", data / "checkmate" / "linear8.problem.json", "--budget", "50%", "--json", "-o", "x.plan.json")
    assert ran.object["budget"] == ran.object["baseline_peak"] // 2


def test_infeasible_is_proved_and_explained(remat: Command, data: Path) -> None:
    ran = remat("solve", data / "checkmate" / "linear8.problem.json", "--budget", 2, "--json", "-o", "x.plan.json")
    assert ran.code == 4
    assert (ran.object["status"], ran.object["least_peak"], ran.object["plan"]) == ("infeasible", 3, None)
    assert "at least 3B" in ran.err
    assert not Path("x.plan.json").exists()


def test_no_plan_is_not_a_proof(remat: Command, data: Path) -> None:
    ran = remat("solve", data / "checkmate" / "linear8.problem.json", "--budget", 5, "--method", "checkpoint-all")
    assert ran.code == 5
    assert "checkpoint-all found no plan of linear8.problem.json within 5B" in ran.err


def test_the_plan_stands_beside_the_model(remat: Command, data: Path, tmp_path: Path) -> None:
    shutil.copy(data / "checkmate" / "linear4.problem.json", tmp_path)
    assert remat("solve", "linear4.problem.json", "--budget", 5).code == 0
    assert Path("linear4.5B.plan.json").is_file()


def test_the_same_question_gives_the_same_bytes(remat: Command, data: Path) -> None:
    for name in ("a", "b"):
        assert (
            remat(
                "solve", data / "checkmate" / "linear8.problem.json", "--budget", 4, "-q", "-o", f"{name}.plan.json"
            ).code
            == 0
        )
    assert Path("a.plan.json").read_bytes() == Path("b.plan.json").read_bytes()


def test_all_methods_in_a_table(remat: Command, data: Path) -> None:
    ran = remat("solve", data / "checkmate" / "linear4.problem.json", "--budget", 5, "--method", "all", "--csv")
    assert ran.code == 0
    head, *rows = [line.split(",") for line in ran.out.splitlines()]
    assert head[:2] == ["method", "peak"]
    assert {row[0] for row in rows} >= {"milp", "checkpoint-all"}
    assert all(int(row[1]) <= 5 for row in rows if row[-1] == "yes")


def test_show_replays_the_plan(remat: Command, data: Path) -> None:
    solved = remat(
        "solve", data / "checkmate" / "linear8.problem.json", "--budget", 4, "--json", "-o", "x.plan.json"
    ).object
    shown = remat("show", "x.plan.json", "--json").object
    assert (shown["peak"], shown["cost"]) == (solved["peak"], solved["cost"])
    assert sum(row["times"] for row in shown["recomputed"]) == solved["recomputed"]
    text = remat("show", "x.plan.json", "--statements").out
    assert text.count("compute ") == 17 + solved["recomputed"]


def test_the_methods_as_json(remat: Command) -> None:
    listed = remat("solve", "--list", "--json").object
    assert list(listed) == list(METHODS)
    assert listed["rotor"]["options"] == ["slots"]


def test_the_least_peak_needs_no_budget_and_keeps_its_word(remat: Command, data: Path) -> None:
    shutil.copy(data / "torch_mlp.onnx", "m.onnx")
    solved = remat("solve", "m.onnx", "--minimize", "peak", "--work-limit", "50k", "--json", "-o", "m.plan.json")
    assert solved.code == 0, solved.err
    emitted = remat("emit", "m.plan.json", "--json").object
    assert emitted["peak"]["strict"] == solved.object["live"] <= solved.object["arena"] <= solved.object["budget"]


def test_each_step_of_the_search_on_request(remat: Command, data: Path) -> None:
    def solve(*more: str) -> Ran:
        return remat(
            "solve", data / "checkmate" / "linear8.problem.json", "--budget", 4, "--json", "-o", "x.plan.json", *more
        )

    plain, said = solve(), solve("-v")
    assert (plain.err, len(plain.out.splitlines())) == ("", 1)
    assert "plan +" in said.err
    assert len(said.out.splitlines()) == 1
    assert solve("-v", "-q").err == ""


def test_the_solvers_own_log_goes_to_stderr(data: Path, tmp_path: Path) -> None:
    question = [
        "solve",
        data / "checkmate" / "linear8.problem.json",
        "--budget",
        "4",
        "--json",
        "-o",
        tmp_path / "x.plan.json",
        "-vv",
    ]
    ran = subprocess.run([sys.executable, "-m", "remat_cli", *question], capture_output=True, text=True, check=True)
    assert "SCIP Status" in ran.stderr or "presolving" in ran.stderr
    assert json.loads(ran.stdout)["status"] == "optimal"


@pytest.mark.slow
def test_a_command_ends_in_time_whatever_it_is_doing(tmp_path: Path) -> None:
    """Much too little time for 20,000 ops: one line, the code for no plan or for its proof, and no file."""
    count = 20_000
    nodes = [
        {"name": f"n{i}", "cost": 1, "reads": [f"v{i // 2}"] if i else [], "writes": [f"v{i}"]} for i in range(count)
    ]
    values = [{"name": f"v{i}", "bytes": 1} for i in range(count)]
    problem = {
        "format": "remat-problem/1",
        "values": values,
        "nodes": nodes,
        "outputs": [f"v{i}" for i in range(count)],
    }
    (tmp_path / "m.problem.json").write_text(json.dumps(problem))
    command = [sys.executable, "-m", "remat_cli", "solve", "m.problem.json", "--budget", "19999"]
    asked = [*command, "--time-limit", "1ms", "--json"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["status"]) in ((5, "unknown"), (4, "infeasible"))
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "m.plan.json").exists()


def test_a_budget_of_a_few_bytes_was_meant_in_gigabytes(remat: Command) -> None:
    remat("zoo", "mlp", "-o", "m.onnx", "-q")
    remat("grad", "m.onnx", "-o", "t.onnx", "-q")
    ran = remat("solve", "t.onnx", "--budget", "16")
    assert ran.code == 4
    assert "did you mean 16% or 16GB?" in ran.err


def test_a_share_of_next_to_nothing_was_meant_so(remat: Command, tmp_path: Path) -> None:
    nodes = [onnx.helper.make_node("Exp", ["x"], ["a"]), onnx.helper.make_node("Mul", ["x", "a"], ["y"])]
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in "xy")
    graph = onnx.helper.make_graph(nodes, "g", [x], [y])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)]), tmp_path / "m.onnx")
    ran = remat("solve", "m.onnx", "--budget", "50%")
    assert ran.code == 4
    assert "did you mean" not in ran.err


def test_a_kernel_that_estimates_know_nothing_of_is_named(remat: Command, tmp_path: Path) -> None:
    sizes = {"x": [1, 2, 8, 8], "weight": [4, 2, 3, 3], "offset": [1, 18, 6, 6], "y": [1, 4, 6, 6]}
    *given, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in sizes.items())
    node = onnx.helper.make_node("DeformConv", ["x", "weight", "offset"], ["y"], name="bent", kernel_shape=[3, 3])
    graph = onnx.helper.make_graph([node], "g", given, [y])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)]), tmp_path / "m.onnx")
    assert (
        "note: Estimates do not know what DeformConv 'bent' works in" in remat("solve", "m.onnx", "--budget", "1MB").out
    )


@pytest.mark.parametrize("budget", ["100%", "90%"])
def test_what_estimates_know_nothing_of_is_named(budget: str, tmp_path: Path, remat: Command) -> None:
    """Without a profile an If is taken to work in nothing: also of a model that is said to fit as it is."""
    path = tmp_path / "m.onnx"
    path.write_bytes(kind("if_narrow").SerializeToString())
    done = remat("solve", path, "--budget", budget, "--work-limit", "5M")
    assert "note: Estimates do not know what the subgraphs of " in done.out
    assert "If 'n" in done.out


@pytest.mark.parametrize(
    "asked, name",
    [
        (["--budget", "90%"], "m.90%"),
        (["--budget", "2.5MB"], "m.2.5MB"),
        (["--budget", "2048KiB"], "m.2MiB"),
        (["--budget", "2000001"], "m.2000001B"),
        (["--budget", "90%", "--runtime", "stock"], "m.90%.stock"),
        (["--budget", "90%", "--session", "default"], "m.90%.stock"),
        (["--budget", "90%", "--method", "evict"], "m.90%.evict"),
        (["--method", "min-cut"], "m.min-cut"),
        (["--minimize", "peak", "--max-overhead", "10%"], "m.least-10%"),
    ],
)
def test_a_name_tells_the_budget(asked: list[str], name: str, remat: Command, data: Path, tmp_path: Path) -> None:
    shutil.copy(data / "torch_cnn.onnx", tmp_path / "m.onnx")
    ran = remat("solve", "m.onnx", *asked, "--work-limit", "20K", "--json")
    assert ran.code == 0, ran.err
    assert Path(ran.object["plan"]).name == f"{name}.plan.json"
    emitted = remat("emit", ran.object["plan"], "--json").object
    assert Path(emitted["model"]).name == f"{name}.remat.onnx"


def test_a_worse_search_leaves_the_better_plan_and_gives_it(remat: Command, data: Path, tmp_path: Path) -> None:
    """A plan of a long search, whose costs were less than any search now comes to, and one of a short one."""
    shutil.copy(data / "torch_cnn.onnx", tmp_path / "m.onnx")
    asked = ("solve", "m.onnx", "--budget", "72%", "--json", "--force", "-o", "m.plan.json")
    better = remat(*asked, "--work-limit", "2M").object
    kept = Path("m.plan.json").read_bytes()
    again = remat(*asked, "--work-limit", "1", "--seed", 5)
    assert again.code == 0, again.err
    assert (again.object["cost"], again.object["arena"]) == (better["cost"], better["arena"])
    assert Path("m.plan.json").read_bytes() == kept
    assert any("stays" in note for note in again.object["notes"])
    other = remat("solve", "m.onnx", "--budget", "90%", "--json", "--work-limit", "20K", "-o", "m.plan.json").object
    assert any("held a plan for another question" in note for note in other["notes"])
    Path("m.plan.json").write_bytes(kept[: len(kept) // 2])
    again = remat(*asked, "--work-limit", "20K")
    assert any("held something else than a plan" in note for note in again.object["notes"])


def test_what_needs_no_search_is_answered_before_any_clock(remat: Command, data: Path) -> None:
    model = data / "checkmate" / "linear8.problem.json"
    asked = ("solve", model, "--budget", "5", "-o", "kept.plan.json", "-q")
    assert remat(*asked).code == 0
    for again in (("solve", model, "--budget", "200%", "-o", "whole.plan.json", "-q"), asked):
        command = [sys.executable, "-m", "remat_cli", *map(str, again), "--time-limit", "0.001s"]
        assert subprocess.run(command, check=False).returncode == 0
