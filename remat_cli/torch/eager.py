"""What eager holds in a backward pass beside the compiled graphs, as a loss outside of the compiled module does: what
it saved, and the gradients that come and go. What its kernels work in is not seen, nor what its forward pass lets go
of, so a step may hold more than is counted.

Invariant: it only observes. What is saved is not unpacked, so that no hook of the user's runs, and no error of this
module reaches the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from remat_cli.torch.metering import Meter
from remat_cli.torch.private import disable, identity_of, saved_by
from remat_cli.torch.reading import plain_tensors_of

Roots = Sequence[Any]
_waiting: list[Callable[[Roots], None]] = []


def before_backward(call: Callable[[Roots], None]) -> None:
    """Have it called with the roots of the next backward pass, once, before anything of that runs. torch has no hook
    for that moment: until then a function of ours stands for `torch.autograd.backward`."""
    if not _waiting:
        _stand_in(torch.autograd.backward)
    if call not in _waiting:
        _waiting.append(call)


def _stand_in(original: Callable[..., None]) -> None:
    @disable
    def look_first(tensors: Any, *given: Any, **named: Any) -> None:
        if torch.autograd.backward is look_first:
            torch.autograd.backward = original
        calls = [*_waiting]
        _waiting.clear()
        for call in calls:
            with suppress(Exception):  # whatever it is, the training goes on
                call(tensors if isinstance(tensors, Sequence) else [tensors])
        original(tensors, *given, **named)

    torch.autograd.backward = look_first


class StepMeter(Meter):
    """`whole`: the highest count of live bytes together with what eager held, since it was heard of."""

    def __init__(self, given: Iterable[Any] = ()) -> None:
        super().__init__(given)
        self.eager, self.whole = Meter(), 0

    def made(self, value: Any, workspace: int = 0) -> None:
        super().made(value, workspace)
        if self.eager.alive and self.most + workspace + self.eager.most > self.whole:
            self.whole = max(self.whole, self._count_both() + workspace)

    def _count_both(self) -> int:
        own, _ = self.count(), self.eager.count()
        return own + sum(size for key, (_, size) in self.eager.alive.items() if key not in self.alive)

    def watch_eager(self, value: Any) -> None:
        """Count these as well, as far as no graph made them."""
        self.eager.watch([tensor for tensor in plain_tensors_of(value) if not self.knows(tensor)])
        self.made(())

    def follow(self, roots: Roots) -> None:
        """Count what eager saved for the backward pass of these, and the gradients of each of its nodes; but not leaves
        that get gradients, which live without it."""
        saved, leaves = list[torch.Tensor](), set[int]()
        for node in _nodes(roots):
            if hasattr(node, "variable"):
                leaves |= {identity_of(tensor.untyped_storage()) for tensor in plain_tensors_of(node.variable)}
                continue
            saved += plain_tensors_of(saved_by(node))
            if not isinstance(node, BackwardCFunction):  # a graph's own would hold its gradients for longer then
                node.register_hook(self._hear)
        self.watch_eager([tensor for tensor in saved if identity_of(tensor.untyped_storage()) not in leaves])

    def _hear(self, results: Any, given: Any) -> None:
        """A node of the backward pass ran. What it saved is still held."""
        with suppress(Exception):  # whatever it is, the training goes on
            self.watch_eager([results, given])


def _nodes(roots: Roots) -> Iterator[Any]:
    """The nodes of the autograd graph of these roots: tensors or edges."""
    nodes = [getattr(root, "grad_fn", None) or getattr(root, "node", None) for root in roots]
    seen = set()
    while nodes:
        node = nodes.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            nodes += [following for following, _ in node.next_functions]
