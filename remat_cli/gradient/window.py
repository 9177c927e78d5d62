"""The window of a convolution or pooling: kernel, strides, dilations and pads made explicit.

Invariant: `auto_pad` and left-out attributes are gone; all tuples have one entry per spatial axis.
"""

from __future__ import annotations

from dataclasses import dataclass

from remat_cli.gradient.tape import Taped


@dataclass(frozen=True, slots=True)
class Window:
    size: tuple[int, ...]  # the size of the padded side: a convolution's input
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def pads(self) -> list[int]:
        return [*self.before, *self.after]

    @property
    def reach(self) -> tuple[int, ...]:
        """The distance between the kernel's first and last element."""
        return tuple(d * (k - 1) for d, k in zip(self.dilations, self.kernel))

    def left_over(self, out: tuple[int, ...]) -> list[int]:
        """Rows at the end that no window touches."""
        spans = zip(self.size, out, self.strides, self.before, self.after, self.reach)
        return [x - ((y - 1) * s - before - after + reach + 1) for x, y, s, before, after, reach in spans]

    def untouched(self) -> bool:
        return not any(self.pads)

    @property
    def pointwise(self) -> bool:
        """One element at a time, without padding."""
        return self.untouched() and set(self.kernel) == {1}


def window(op: Taped, size: tuple[int, ...], kernel: tuple[int, ...]) -> Window:
    """The window of an op that slides over `size`."""
    rank = len(size)
    strides = tuple(op.get("strides") or [1] * rank)
    dilations = tuple(op.get("dilations") or [1] * rank)
    pads = tuple(op.get("pads") or [0] * 2 * rank)
    auto = op.get("auto_pad", b"NOTSET")
    auto = auto.decode() if isinstance(auto, bytes) else auto
    if auto == "VALID":
        pads = (0,) * 2 * rank
    elif auto.startswith("SAME"):
        reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel)]
        total = [max((-(-x // s) - 1) * s + r - x, 0) for x, s, r in zip(size, strides, reach)]
        smaller, larger = [t // 2 for t in total], [t - t // 2 for t in total]
        pads = (*smaller, *larger) if auto == "SAME_UPPER" else (*larger, *smaller)
    if min((*kernel, *strides, *dilations), default=1) < 1 or {len(kernel), len(strides), len(dilations)} != {rank}:
        raise op.refuse(f"a window of {list(kernel)} by strides {list(strides)} cannot slide over {list(size)}")
    return Window(size, kernel, strides, dilations, pads[:rank], pads[rank:])
