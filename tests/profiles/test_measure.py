"""Single ops in ONNX Runtime: valid operands, workspace, and refusals."""

from __future__ import annotations

import itertools
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnxruntime import InferenceSession

from profiles import device as devices
from profiles import measure as measuring
from profiles.bench import OpBench
from profiles.feeds import ALIGNMENT, operands
from profiles.measure import FEW, LEAST_RUNS, measure, spread_of, undisturbed
from profiles.running import NO_KERNEL, CannotRun, bind, run, session, single
from tests.profiles.making import constant, floats, signature, truth, whole

IMAGE = floats(2, 3, 8, 8)
ADD = {"reduction": "add"}

VALID = [
    signature("Gather", [floats(10, 3), whole(4)], [floats(4, 3)]),
    signature("Gather", [floats(3, 10), whole(4)], [floats(3, 4)], axis=1),
    signature("GatherElements", [floats(3, 5), whole(3, 2)], [floats(3, 2)], axis=1),
    signature("GatherND", [floats(3, 5), whole(4, 1)], [floats(4, 5)]),
    signature("ScatterElements", [floats(3, 5), whole(3, 2), floats(3, 2)], [floats(3, 5)], axis=1, **ADD),
    signature("ScatterND", [floats(7, 5), whole(4, 1), floats(4, 5)], [floats(7, 5)], **ADD),
    signature("OneHot", [whole(6), constant([4]), constant([0.0, 1.0], "f")], [floats(6, 4)]),
    signature(
        "MaxUnpool", [floats(1, 2, 3, 3), whole(1, 2, 3, 3)], [floats(1, 2, 6, 6)], kernel_shape=[2, 2], strides=[2, 2]
    ),
    signature("SoftmaxCrossEntropyLoss", [floats(4, 5), whole(4)], [floats()]),
    signature("BatchNormalization", [IMAGE, *[floats(3)] * 4], [IMAGE, floats(3), floats(3)], training_mode=1),
    signature("BatchNormalization", [IMAGE, *[floats(3)] * 4], [IMAGE]),
    signature("Sqrt", [IMAGE], [IMAGE]),
    signature("Log", [IMAGE], [IMAGE]),
    signature("Pow", [IMAGE, constant(3.5, "f")], [IMAGE]),
    signature("Div", [IMAGE, IMAGE], [IMAGE]),
    signature("Dropout", [IMAGE, constant(0.5, "f"), constant(True, bool)], [IMAGE, truth(2, 3, 8, 8)], seed=1),
    signature("FusedMatMul", [floats(2, 3), floats(3, 4)], [floats(2, 4)], opset=1, domain="com.microsoft", alpha=0.5),
]


@pytest.fixture(scope="module")
def cpu():
    return devices.find("cpu", 1)


@pytest.mark.parametrize("made", VALID, ids=str)
def test_operands_are_valid_for_the_op(made, cpu):
    content, feeds = single(made, operands(made))
    running = session(content, cpu)
    binding = bind(running, feeds, cpu)
    run(running, binding)
    for result in binding.copy_outputs_to_cpu():
        assert np.isfinite(result.astype(float)).all()


def test_operands_depend_on_the_seed_alone_and_stand_as_onnxruntimes_own():
    first, again, other = (operands(VALID[4], seed) for seed in (0, 0, 1))
    for array, same, different in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(array, same)
        assert (array != different).any()
        assert array.ctypes.data % ALIGNMENT == 0


def test_an_op_is_timed(cpu):
    timing, _, _ = measure(signature("Relu", [IMAGE], [IMAGE]), cpu, seconds=0.01)
    assert timing.ns > 0
    assert timing.runs >= FEW  # on a busy machine no more may fit


def test_what_a_session_costs_by_itself_is_what_no_op_of_its_chain_costs(cpu, monkeypatch):
    """A stopwatch that reads 9,000 ns for a session and 150 for each op of it, with others' work on top of some laps.

    Real clocks say nothing to rely on here: on a busy machine a run of next to nothing takes three times as long.
    """
    disturbed = itertools.cycle([0, 700, 0])

    def stopwatch(once: partial[None], alone: bool) -> int:
        running = once.args[0]
        once()
        return 9_000 + 150 * ops_of(running) + next(disturbed)

    monkeypatch.setattr(measuring, "lap", stopwatch)
    assert measuring.session_ns(cpu) == 9_000


def ops_of(running: InferenceSession) -> int:
    """The ops of a chain, by the name of its result."""
    return int(running.get_outputs()[0].name.removeprefix("v"))


def test_a_session_costs_time_by_itself(cpu):
    with OpBench(cpu) as bench:
        assert bench.session_ns() > 0


def test_workspace_is_what_the_kernel_allocates_besides_its_operands(cpu):
    """ConvTranspose first writes M * kernel columns for every input place: 16 * 9 * 256 floats for one image.

    Whatever ran before in the same process, smaller or larger, the answer is the same.
    """
    plain = signature("Relu", [IMAGE], [IMAGE])
    large = signature("Relu", [floats(1000, 1000)], [floats(1000, 1000)])
    made = signature(
        "ConvTranspose", [floats(1, 32, 16, 16), floats(32, 16, 3, 3)], [floats(1, 16, 16, 16)], pads=[1, 1, 1, 1]
    )
    with OpBench(cpu) as bench:
        assert [bench.measure(each, 0.0).workspace for each in (plain, made, large, made, plain)] == [
            0,
            147456,
            0,
            147456,
            0,
        ]


def test_a_process_that_dies_is_a_refusal_and_the_next_op_gets_another(cpu):
    plain = signature("Relu", [IMAGE], [IMAGE])
    with OpBench(cpu) as bench:
        bench.measure(plain, 0.0)
        assert bench.process is not None
        bench.process.kill()
        bench.process.join()
        with pytest.raises(CannotRun, match="died"):
            bench.measure(plain, 0.0)
        assert bench.measure(plain, 0.0).workspace == 0


def test_a_missing_kernel_is_a_refusal(cpu):
    made = signature("ReluGrad", [IMAGE, IMAGE], [IMAGE], opset=1, domain="com.microsoft")
    with pytest.raises(CannotRun, match=NO_KERNEL) as refused:
        measure(made, cpu, seconds=0.01)
    assert not refused.value.memory


def test_a_failing_kernel_is_a_refusal(cpu):
    made = signature("MatMul", [floats(2, 3), floats(4, 5)], [floats(2, 5)])
    with pytest.raises(CannotRun):
        measure(made, cpu, seconds=0.01)


@given(st.lists(st.integers(1, 1000), min_size=10, max_size=60))
def test_spread_holds_the_medians_order_statistics(times):
    ordered, count = sorted(times), len(times)
    low, high = int(np.floor(count / 2 - 0.98 * count**0.5)), int(np.ceil(count / 2 + 0.98 * count**0.5))
    want = (ordered[min(high, count - 1)] - ordered[max(low, 0)]) / 2 / max(1, float(np.median(times)))
    assert spread_of(times) == pytest.approx(want)


def test_interrupted_runs_do_not_count():
    assert sorted(undisturbed([(0, 10)] * 6 + [(3, 99)] * 20)) == [10] * 6
    assert undisturbed([(2, 99), (1, 10)] * 20) == [10] * LEAST_RUNS


def test_a_script_is_not_run_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Users' scripts that measure need no `if __name__ == "__main__"`."""
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit('run again')")
    module = ModuleType("__main__")
    module.__file__ = str(script)
    monkeypatch.setitem(sys.modules, "__main__", module)
    with OpBench(devices.find("cpu", 1)) as bench:
        assert bench.probe().ns > 0
    assert sys.modules["__main__"] is module
