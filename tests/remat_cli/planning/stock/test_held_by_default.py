"""What the process comes to hold in a default session, beside what the operating system counts in a process apart.

The first run leaves regions in the runtime's arena, and later runs ask for a block of their own beside them.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import remat_cli as remat
from remat_cli.checking.feeds import draw_feeds
from remat_cli.checking.processes import Bench
from remat_cli.model.sessions import DEFAULT
from remat_cli.planning.loading import load_subject
from remat_cli.plans.planned import Planned
from remat_cli.saying.showing import shown, summary
from tests.cli.running import Command
from tests.sampling import few

NEAR_SHARE = 0.15  # of what is held
ITSELF_BYTES = 5_000_000  # at most: what the runtime takes for itself, threads and code
WORK = 20_000


def held(plan: Planned, model: Path) -> int:
    """What a process grows by in two runs, with what it had of inputs before."""
    graph = load_subject(model, None, {}).graph
    assert graph is not None
    place = model.with_suffix(".made.onnx")
    onnx.save(remat.emit(plan), place)
    with Bench(draw_feeds(graph, 0), "cpu", 300, 1) as bench:
        reply = bench.weigh(place, DEFAULT)
    assert reply.grew is not None, reply
    return graph.resident + reply.grew


@pytest.mark.filterwarnings("ignore::remat_cli.RematWarning")
@pytest.mark.parametrize(
    ("network", "settings", "budget"),
    few(
        [
            ("unet", ("--batch", "2", "--image", "96", "--width", "8"), "90%"),
            ("cnn", ("--batch", "16"), "100%"),
            ("mobilenet-v2", ("--batch", "4", "--image", "64"), "100%"),
        ],
        1,
        several=True,
    ),
)
def test_the_process_holds_about_what_is_said(
    network: str, settings: tuple[str, ...], budget: str, remat: Command, tmp_path: Path
) -> None:
    assert remat("zoo", network, *settings, "-o", "forward.onnx", "-q").code == 0
    assert remat("grad", "forward.onnx", "-o", "train.onnx", "-q").code == 0
    model = tmp_path / "train.onnx"
    plan = solved(model, budget)
    promises = plan.recorded.promises
    said, found = promises.arena, held(plan, model)
    assert said is not None
    assert said >= (promises.live or 0)
    assert -NEAR_SHARE * found < found - said < NEAR_SHARE * found + ITSELF_BYTES


def solved(model: Path, budget: str) -> Planned:
    return remat.solve(model, budget=budget, runtime="stock", work_limit=WORK, cache=False)


def test_only_of_default_sessions_is_it_said_to_be_about(data: Path, remat: Command, tmp_path: Path) -> None:
    model = data / "torch_cnn.onnx"
    for runtime, near in (("stock", True), ("remat", False)):
        plan = tmp_path / f"{runtime}.plan.json"
        ran = remat("solve", model, "--budget", "90%", "--runtime", runtime, "--work-limit", str(WORK), "-o", plan)
        assert ran.code == 0, ran.err
        for words in (ran.out, summary(shown(plan))):
            named = "in a stock session" if near else "held by the process"
            line = next(line for line in words.splitlines() if line.startswith(named))
            assert ("about" in line) == near
    ran = remat("solve", model, "--budget", "100%", "--runtime", "stock", "-o", tmp_path / "same.plan.json")
    assert "fits as it is" in ran.out
    assert "the process holds about" in ran.out
