"""The witness of what is allocated: an earlier profile of the same process takes nothing from a later one."""

from __future__ import annotations

import torch

from tests.torch.allocator import allocated


def test_what_an_earlier_profile_saw_is_not_taken_from_a_later_one() -> None:
    kept: list[torch.Tensor] = []
    allocated(lambda: kept.extend(torch.empty(1 << 14) for _ in range(50)))
    kept.clear()
    unseen = [torch.empty(1 << 14) for _ in range(50)]  # in the places of those the profiler saw

    def run() -> None:
        unseen.clear()
        kept.extend(torch.empty(1 << 14) for _ in range(70))

    assert allocated(run) == 70 * 4 << 14
