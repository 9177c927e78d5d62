"""Sessions with places of their own, against the strict session in the stock arena: same bytes, whatever happens."""

from __future__ import annotations

import gc
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

import remat_cli as api
from remat_cli.runtime import session as sessions
from remat_cli.runtime.placed import library
from remat_cli.runtime.planned import MOST_SIZES
from solvers.placement.placed import Placement
from tests.cli.running import Command
from tests.remat_cli.strict_session import feeds

DATA = Path(__file__).parents[2] / "data"
UNET, CNN = DATA / "torch_unet_convt.onnx", DATA / "torch_cnn.onnx"
pytestmark = pytest.mark.skipif(
    library() is None and shutil.which("cc") is None, reason="no compiler, and so no allocator"
)


def fed(path: Path, seed: int = 0) -> dict[str, Any]:
    return feeds(onnx.load(path), seed)


def stock(path: Path, given: dict[str, Any]) -> list[Any]:
    return sessions.session_of(str(path), path.parent).run(None, given)


def same(ours: list[Any], theirs: list[Any]) -> bool:
    return all(one.tobytes() == two.tobytes() for one, two in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("path", [UNET, CNN], ids=["unet", "cnn"])
def test_the_same_bytes_in_the_places_found_by_the_first_run(path: Path) -> None:
    given = fed(path)
    expected = stock(path, given)
    planned = sessions.planned(path)
    for _ in range(3):
        assert same(planned.run(None, given), expected)
    assert planned.missed.requests == 0
    assert planned.placement.block == planned.placement.bound


def test_what_a_run_returned_stays_as_it_was() -> None:
    """Outputs lie in the block: later runs must leave alone what is still held, and use again what is not."""
    given = [fed(CNN, seed) for seed in range(4)]
    expected = [stock(CNN, one) for one in given]
    planned = sessions.planned(CNN)
    kept = [planned.run(None, one) for one in given]
    del kept[2]
    gc.collect()
    kept.append(planned.run(None, given[2]))
    for ours, which in zip(kept, (0, 1, 3, 2), strict=True):
        assert same(ours, expected[which])
    assert planned.missed.requests == 0


def test_results_outlive_their_session() -> None:
    given = fed(CNN)
    expected = stock(CNN, given)
    planned = sessions.planned(CNN)
    planned.run(None, given)
    kept = planned.run(None, given)
    del planned
    gc.collect()
    again = sessions.planned(CNN)
    again.run(None, given)
    again.run(None, given)
    assert same(kept, expected)


def test_a_wrong_plan_costs_memory_only() -> None:
    """Sizes that never come and places that overlap: counted, and right all the same; then the run is traced."""
    given = fed(CNN)
    expected = stock(CNN, given)
    honest = sessions.planned(CNN)
    honest.run(None, given)
    sizes = [size for size, _ in honest.placement.allocations]
    heap = Placement(max(sizes), 0, tuple((size, 0) for size in sizes))  # all at one place
    odd = Placement(64, 0, ((12345, 0),) * 9)
    for wrong in (heap, odd):
        planned = sessions.planned(CNN, wrong)
        assert same(planned.run(None, given), expected)
        once = planned.missed_in_all.requests
        assert once > 0
        for _ in range(2):
            assert same(planned.run(None, given), expected)
        assert planned.missed_in_all.requests == once
        assert planned.placement.block == honest.placement.block


def test_a_kernel_may_ask_in_another_order_and_for_less_than_was_measured() -> None:
    """What kernels work in is known to 256 bytes, and not in which order it is asked for."""
    given = fed(CNN)
    expected = stock(CNN, given)
    honest = sessions.planned(CNN)
    honest.run(None, given)
    tops = np.cumsum([0] + [-(-size // 256) * 256 for size, _ in honest.placement.allocations]).tolist()
    apart = [(size, top) for (size, _), top in zip(honest.placement.allocations, tops, strict=False)]
    swapped = [apart[k ^ 1] if k ^ 1 < len(apart) else apart[k] for k in range(len(apart))]
    coarse = [(-(-size // 256) * 256, top) for size, top in apart]
    for pairs in (swapped, coarse):
        planned = sessions.planned(CNN, Placement(tops[-1], 0, tuple(pairs)))
        for _ in range(2):
            assert same(planned.run(None, given), expected)
        assert planned.missed_in_all.requests == 0


def test_two_plans_in_threads_beside_sessions_without() -> None:
    given = {path: [fed(path, seed) for seed in range(3)] for path in (UNET, CNN)}
    expected = {path: [stock(path, one) for one in given[path]] for path in given}
    planned = {path: sessions.planned(path) for path in given}
    plain = sessions.session_of(str(CNN), CNN.parent)
    for path, one in planned.items():
        one.run(None, given[path][0])

    def work(number: int) -> bool:
        path, seed = (UNET, CNN)[number % 2], number % 3
        mine = planned[path].run(None, given[path][seed])
        other = plain.run(None, given[CNN][seed])
        return same(mine, expected[path][seed]) and same(other, expected[CNN][seed])

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(36)))
    assert all(one.missed.requests == 0 for one in planned.values())


def wide(rows: int | str) -> bytes:
    """A model whose values take some MB, and whose output is one number."""
    nodes = [make_node("Exp", ["x"], ["a"]), make_node("Sqrt", ["a"], ["b"]), make_node("Add", ["a", "b"], ["c"])]
    nodes.append(make_node("ReduceMax", ["c"], ["y"], keepdims=0))
    x, y = make_tensor_value_info("x", 1, [rows, 1024]), make_tensor_value_info("y", 1, [])
    graph = make_graph(nodes, "wide", [x], [y])
    return make_model(graph, opset_imports=[make_opsetid("", 18)], ir_version=9).SerializeToString()


def anonymous() -> int:
    """Bytes that this process holds of no file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


def test_sessions_that_run_one_after_another_hold_one_block() -> None:
    rows = (4096, 2048, 4096, 6144)  # of 4 KB: blocks of 32 to 100 MB
    given = [{"x": np.full((size, 1024), 0.5, np.float32)} for size in rows]
    made = [sessions.planned(wide(size), threads=1, folder=Path()) for size in rows]
    expected = [one.run(None, feed)[0].tobytes() for one, feed in zip(made, given, strict=True)]
    for one, feed in zip(made, given, strict=True):
        one.run(None, feed)  # by now all have places
    gc.collect()
    before = anonymous()
    for _ in range(2):
        for one, feed, right in zip(made, given, expected, strict=True):
            assert one.run(None, feed)[0].tobytes() == right
    assert anonymous() - before < 1 << 22
    assert all(one.missed.requests == 0 for one in made)
    largest = max(one.placement.block for one in made)
    held = anonymous()
    del made[3], one
    gc.collect()
    assert held - anonymous() > 0.9 * largest  # whose block went with it: the others hold none
    assert made[0].run(None, given[0])[0].tobytes() == expected[0]


def test_each_size_of_inputs_has_places_and_one_large_input_holds_nothing_for_long() -> None:
    sizes = (1024, 2048, 8192)
    given = {rows: {"x": np.full((rows, 1024), 0.5, np.float32)} for rows in sizes}
    session = sessions.planned(wide("rows"), threads=1, folder=Path())
    for feed in given.values():
        for _ in range(2):
            session.run(None, feed)
    before = session.missed_in_all
    for feed in (*given.values(), *reversed(given.values())):
        expected = np.exp(feed["x"])
        (found,) = session.run(None, feed)
        np.testing.assert_allclose(found, (expected + np.sqrt(expected)).max(), rtol=1e-5)
    assert session.missed_in_all == before  # each size as it was learnt
    large = anonymous()
    for _ in range(20):
        session.run(None, given[1024])
    value = 4096 * 8192
    assert large - anonymous() > 1.5 * value  # of two values and more


def test_more_sizes_than_are_remembered_have_memory_of_their_own() -> None:
    session = sessions.planned(wide("rows"), threads=1, folder=Path())
    for rows in range(1, MOST_SIZES + 4):
        feed = {"x": np.full((rows, 1024), 0.5, np.float32)}
        for _ in range(2):
            (found,) = session.run(None, feed)
        expected = np.exp(feed["x"])
        np.testing.assert_allclose(found, (expected + np.sqrt(expected)).max(), rtol=1e-5)


def test_outputs_bound_by_the_caller() -> None:
    given = fed(CNN)
    expected = stock(CNN, given)
    planned = sessions.planned(CNN)
    for _ in range(4):
        binding = planned.io_binding()
        for name, array in given.items():
            binding.bind_cpu_input(name, array)
        bound = [np.empty_like(one) for one in expected]
        for output, array in zip(planned.get_outputs(), bound, strict=True):
            binding.bind_output(output.name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        planned.run_with_iobinding(binding)
        assert same(bound, expected)
    assert planned.missed.requests == 0


def test_without_the_allocator_there_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "library", lambda: None)
    given = fed(CNN)
    with pytest.warns(UserWarning, match="Linux alone"):
        planned = sessions.planned(CNN)
    assert same(planned.run(None, given), stock(CNN, given))


def test_a_plan_by_measured_costs_is_as_planned_from_the_first_run_on(tmp_path: Path, remat: Command) -> None:
    """On one thread, whatever the machine has; with sizes that fill no whole chunk of the arena."""
    shapes = {"a": (5, 3, 3, 3), "b": (7, 5)}
    weights = [from_array(np.full(shape, 0.1, np.float32), name) for name, shape in shapes.items()]
    nodes = [
        make_node("Conv", ["x", "a"], ["h"]),
        make_node("Relu", ["h"], ["r"]),
        make_node("Einsum", ["r", "b"], ["c"], equation="bchw,oc->bohw"),
        make_node("GlobalAveragePool", ["c"], ["g"]),
        make_node("Flatten", ["g"], ["y"]),
    ]
    x, y = (
        make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", (3, 3, 17, 13)), ("y", (3, 7)))
    )
    graph = make_graph(nodes, "g", [x], [y], weights)
    onnx.save(make_model(graph, opset_imports=[make_opsetid("", 21)]), tmp_path / "m.onnx")
    remat("grad", tmp_path / "m.onnx", "-q")
    model = tmp_path / "m.train.onnx"
    assert "Einsum" in {node.op_type for node in onnx.load(model).graph.node}
    remat("profile", model, "--threads", "1", "--no-whole", "-q")
    plan = remat("solve", model, "--budget", "100%", "--json").object["plan"]
    running = api.session(plan)
    assert running.get_session_options().intra_op_num_threads == 1
    running.run(None, fed(model))
    assert running.missed_in_all.requests <= 1  # of 47: an Einsum's operand, transposed before its place is free
