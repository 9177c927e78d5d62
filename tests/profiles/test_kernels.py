"""What CPU kernels allocate, by formula, against what they were seen to allocate."""

from __future__ import annotations

import pytest

from profiles import device as devices
from profiles.bench import OpBench, expected_peak
from profiles.kernels import FORMULAS, NOTHING, SEGMENT, is_known, scratch
from tests.profiles.kernel_calls import AT_MOST, IN_NOTHING, TO_THE_BYTE, Call, made_of
from tests.profiles.making import floats, signature, truth, whole
from tests.sampling import few

PAD = {"pads": [1, 1, 1, 1]}
ROWS = [
    signature("Conv", [floats(2, 3, 32, 32), floats(8, 3, 3, 3)], [floats(2, 8, 32, 32)], **PAD),
    signature("Conv", [floats(2, 16, 32, 32), floats(8, 16, 1, 1)], [floats(2, 8, 32, 32)]),
    signature("Conv", [floats(3, 4, 32, 32), floats(16, 4, 32, 32)], [floats(3, 16, 3, 3)], **PAD),
    signature("Conv", [floats(3, 64, 8, 8), floats(128, 64, 3, 3)], [floats(3, 128, 8, 8)], **PAD),
    signature("ConvTranspose", [floats(2, 32, 8, 8), floats(32, 16, 3, 3)], [floats(2, 16, 8, 8)], **PAD),
    signature("Einsum", [floats(2, 32, 16), floats(2, 288, 16)], [floats(32, 288)], equation="nkp,ncp->kc"),
    signature(
        "Einsum",
        [floats(2, 16, 8, 8), floats(2, 8, 8, 2, 8, 2)],
        [floats(16, 8, 2, 2)],
        equation="nkuv,ncuxvy->kcxy",
    ),
    signature("Where", [truth(4, 32, 16, 16), floats(), floats(4, 32, 16, 16)], [floats(4, 32, 16, 16)]),
    signature("Where", [truth(1, 32, 1), floats(), floats(1, 32, 128)], [floats(1, 32, 128)]),
    signature("Where", [truth(64), whole(64), whole()], [whole(64)]),
    signature("LogSoftmax", [floats(2, 5, 32, 32)], [floats(2, 5, 32, 32)], axis=1),
    signature("Softmax", [floats(2, 5, 32)], [floats(2, 5, 32)], axis=-1),
    signature("Add", [floats(64), floats(64)], [floats(64)]),
    signature("MatMul", [floats(64, 64), floats(64, 64)], [floats(64, 64)]),
]


@pytest.mark.parametrize("made", ROWS, ids=str)
def test_formulas_are_the_kernels(made, bench):
    assert scratch(made) == bench.measure(made, 0.0).workspace


def test_a_convolution_works_in_a_segment_for_each_thread():
    """One where there is one; where there are more threads than a small convolution is worth, at most one for each."""
    made = signature("Conv", [floats(2, 16, 32, 32), floats(8, 16, 3, 3)], [floats(2, 8, 32, 32)], **PAD)
    with OpBench(devices.find("cpu", 1)) as single, OpBench(devices.find("cpu", 4)) as many:
        assert scratch(made, 1) == single.measure(made, 0.0).workspace == SEGMENT
        assert SEGMENT < many.measure(made, 0.0).workspace <= scratch(made, 4)


@pytest.mark.parametrize(
    "calls", few([TO_THE_BYTE[::2], TO_THE_BYTE[1::2], IN_NOTHING], 1), ids=["some memory", "more of these", "none"]
)
def test_formulas_are_what_each_kernel_allocates(calls, bench):
    wrong = {str(made): (seen, scratch(made)) for made, seen in _seen(calls, bench) if seen != scratch(made)}
    assert not wrong


def test_what_is_no_formula_of_the_kernel_is_an_upper_bound(bench):
    assert not [str(made) for made, seen in _seen(AT_MOST, bench) if seen > scratch(made)]


def test_what_is_said_to_need_nothing_was_seen_to():
    assert NOTHING - {"Constant"} <= {op for op, *_ in IN_NOTHING}
    assert FORMULAS.keys() - {made.op_type for made in ROWS} <= {op for op, *_ in (*TO_THE_BYTE, *AT_MOST)} | {
        "RMSNormalization",
        "SimplifiedLayerNormalization",
    }


def test_of_other_ops_it_is_said_that_nobody_knows():
    assert not is_known("", "DeformConv")
    assert not is_known("my.own", "Add")
    assert is_known("", "Reshape")


def _seen(calls: list[Call], bench):
    """Each call's signature, and what it was seen to allocate; the small ones first, so that no peak hides another."""
    for made in sorted(map(made_of, calls), key=expected_peak):
        yield made, bench.measure(made, 0.0).workspace


@pytest.fixture(scope="module")
def bench():
    with OpBench(devices.find("cpu", 2)) as found:
        yield found
