"""The padding of ops whose windows slide over places: convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence

Sizes = Sequence[int]  # of each axis of places


def explicit_pads(
    auto: str, given: Sizes | None, size: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes
) -> tuple[int, ...]:
    """The padding before all axes and then after them, as `auto_pad` and `pads` tell it.

    Under SAME as many windows fit as the stride goes into the size, rounded up; SAME_UPPER has an odd place at the end.
    """
    if not auto.startswith("SAME"):
        return (0,) * 2 * len(size) if auto == "VALID" or not given else tuple(given)
    axes = zip(size, kernel, strides, dilations)
    total = [max((-(-x // s) - 1) * s + d * (k - 1) + 1 - x, 0) for x, k, s, d in axes]
    smaller, larger = [pad // 2 for pad in total], [pad - pad // 2 for pad in total]
    return (*smaller, *larger) if auto == "SAME_UPPER" else (*larger, *smaller)
