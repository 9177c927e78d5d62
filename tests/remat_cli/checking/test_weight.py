"""What the process holds, counted while something large comes and goes."""

from __future__ import annotations

import numpy as np

from remat_cli.checking.weight import resident_now, resident_peak

LARGE = 80_000_000


def test_what_came_and_went_is_in_the_peak() -> None:
    before = resident_now()
    held = np.ones(LARGE, dtype=np.uint8)
    del held
    assert 0.95 * LARGE <= resident_peak() - before <= 1.2 * LARGE
    assert resident_peak() - before >= 0.95 * LARGE  # it is still the most there was
