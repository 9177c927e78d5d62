"""Reshapes that keep onnxruntime's optimizers from changing what a plan copies.

Invariant: a guard changes neither bytes nor shape and takes no memory. No two nodes of the result compute the same op
of the same inputs. No value has a single reader where it had several in the original.

Common-subexpression elimination, on by default, merges nodes that apply one op to equal inputs; it distinguishes two
Reshapes by their constants. The inputs of the first node of a recomputed segment are those of an earlier copy. So it
reads one of them through a Reshape to its own shape, with a constant that no other guard of that value has.

Fusions take a node whose result has a single reader. Where copies share the readers of a value among them, ops that the
original runs one by one could be fused (a Gelu, a layer norm), and give other bits. A guard prevents that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import product

from remat_cli.model.graph import Graph
from remat_cli.rewrite.copies import CopyNames, EmittedNode, Numbers, rename


class Guards:
    """Makes guards; `constants` are the initializers that they need. `inner`: values that fusions must find without a
    guard."""

    def __init__(self, graph: Graph, names: CopyNames, inner: Collection[str] = ()) -> None:
        self.graph = graph
        self.inner = inner
        self.names = names
        self.constants = Numbers(names, "__shape")
        self.count: Counter[str] = Counter()

    def guarded(self, steps: Sequence[EmittedNode]) -> list[EmittedNode]:
        """The steps, with a guard wherever an optimizer would see something that is not in the original."""
        return self._apart(self._unmerged(steps))

    def _unmerged(self, steps: Sequence[EmittedNode]) -> list[EmittedNode]:
        """A guard before each step that repeats an earlier one."""
        seen: set[tuple[object, ...]] = set()
        origin: dict[str, str] = {}
        result: list[EmittedNode] = []
        for step in steps:
            origin |= step.origin
            # two nodes that agree in this would be merged
            key = (step.op.name if step.op else None, tuple(step.node.input), step.reads)
            if key in seen and (name := self._guardable(step, origin)):
                guards, fresh = self._guard(name, origin.get(name, name))
                result += guards
                step = reading(step, {name: fresh})
            seen.add(key)
            result.append(step)
        return result

    def _apart(self, steps: Sequence[EmittedNode]) -> list[EmittedNode]:
        """A guard after each copy that has lost some of its value's several readers to other copies."""
        outputs = set(self.graph.outputs)
        before = Counter([*(name for op in self.graph.ops for name in op.reads), *outputs])
        after = Counter([*(name for step in steps for name in step.reads), *outputs])
        through: dict[str, str] = {}
        result: list[EmittedNode] = []
        for step in steps:
            result.append(reading(step, through))
            for name, value in step.origin.items() if step.op else ():
                bare = value in self.inner or value not in self.graph.values or name in outputs
                if 0 < after[name] < before[value] and not bare:
                    guards, through[name] = self._guard(name, value)
                    result += guards
        return result

    def _guardable(self, step: EmittedNode, origin: dict[str, str]) -> str | None:
        """The input to read through a guard: not a constant, which would be folded, if there is any other."""
        weights = set(self.graph.weights)
        inputs = [name for name in step.node.input if name and origin.get(name, name) not in self.inner]
        moving = [name for name in inputs if name not in weights]
        known = [name for name in (*moving, *inputs) if origin.get(name, name) in self.graph.values]
        return known[0] if known else None

    def _guard(self, name: str, value: str) -> tuple[list[EmittedNode], str]:
        shape = self.graph.values[value].shape
        self.count[value] += 1
        steps, read = [], name
        for target in _way_round(shape, self.count[value] - 1):
            shown = [self.constants.name_of(target)]
            stem, number = f"{value}__guard", self.count[value]
            steps.append(self.names.added("Reshape", [read], stem, number, constants=shown, of=value))
            read = steps[-1].made
        return steps, read


def reading(step: EmittedNode, through: Mapping[str, str]) -> EmittedNode:
    """The step with the values it reads renamed."""
    changed = {name: through[name] for name in step.reads if name in through}
    if not changed:
        return step
    node = deepcopy(step.node)
    rename(node, changed)
    return EmittedNode(node, step.op, step.origin, tuple(changed.get(name, name) for name in step.reads))


def _way_round(shape: tuple[int, ...], number: int) -> list[tuple[int, ...]]:
    """The `number`-th way to reshape a tensor into its own shape: in one step, or through leading ones."""
    for place, target in enumerate(_spellings(shape)):
        if place == number:
            return [target]
    return [(1,) * (number + 1) + shape, shape]


def _spellings(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Shape constants that all mean this shape: any dimension copied (0), at most one inferred (-1)."""
    yield shape
    if not shape or 0 in shape:
        return
    for inferred in range(len(shape)):
        for copied in product((False, True), repeat=len(shape)):
            if not copied[inferred]:
                rest = [0 if copy else size for copy, size in zip(copied, shape, strict=True)]
                yield (*rest[:inferred], -1, *rest[inferred + 1 :])
