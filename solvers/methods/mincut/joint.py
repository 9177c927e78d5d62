"""The joint graph of a training step, as the fusion-aware minimum cut sees it, and which of its values may be rebuilt.

Yu and He, "Transcending runtime-memory tradeoffs in checkpointing by being fusion aware" (MLSys 2023), section 3, with
the rules by which PyTorch applies it.

Invariant: vertices stand in topological order; classes follow from structure.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass

FAR = 10**9  # the distance of a vertex that the backward pass never reaches
LONG_CHAIN = 100


@dataclass(frozen=True, slots=True)
class Vertex:
    """One value, or an op of several values, which is no tensor itself but as large as they are.

    `reads`: vertices; `arguments`: with repeats.
    """

    bytes: int
    reads: tuple[int, ...]
    tensor: bool = True
    fusible: bool = False
    epilogue: bool = False  # compute-bound, but readers can be fused with the end of its kernel
    concat: bool = False
    view: bool = False
    recomputable: bool = False
    random: bool = False
    compute: bool = False
    given: bool = False  # an input of the step: it is there from the start, and never computed
    free: bool = False  # a parameter: it is there throughout, and costs nothing to save
    tangent: bool = False
    element: bool = False  # picks one value out of an op of several
    late: bool = False  # made in the backward pass, though not from gradients
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Bans:
    """PyTorch's five bans, each on or off."""

    used_far_apart: bool = True
    long_chains: bool = True
    materialized_backward: bool = True
    not_listed: bool = True
    reductions: bool = True


DEFAULT = Bans()
AGGRESSIVE = Bans(used_far_apart=False, long_chains=False, materialized_backward=False, not_listed=False)


class JointGraph:
    """Vertices with their users and classes: forward, the backward pass's own, and those that follow from the
    tangents."""

    def __init__(
        self,
        vertices: Sequence[Vertex],
        forward_outputs: Sequence[int],
        backward_outputs: Sequence[int],
        outputs: Collection[int] | None = None,
    ) -> None:
        """`outputs`: the step's outputs, where the two lists do not name them all."""
        self.vertices = tuple(vertices)
        self.outputs = set(outputs) if outputs is not None else {*forward_outputs, *backward_outputs}
        self.users: list[list[int]] = [[] for _ in vertices]
        for index, vertex in enumerate(vertices):
            for read in dict.fromkeys(vertex.reads):
                self.users[read].append(index)
        self.closure = [vertex.tangent for vertex in vertices]  # reached from the tangents
        for index, vertex in enumerate(vertices):
            self.closure[index] = self.closure[index] or any(self.closure[read] for read in vertex.reads)
        self.forward = self._forward(forward_outputs)
        self.backward = [closed or i in set(backward_outputs) for i, closed in enumerate(self.closure)]
        self.distance = self._distances()
        self.rank = [-1] * len(vertices)  # index among the forward vertices
        for place, index in enumerate(index for index, there in enumerate(self.forward) if there):
            self.rank[index] = place

    def _forward(self, outputs: Sequence[int]) -> list[bool]:
        found = [vertex.given and not vertex.tangent for vertex in self.vertices]
        for index in outputs:
            found[index] = True
        for index in range(len(self.vertices) - 1, -1, -1):
            if found[index]:
                for read in self.vertices[index].reads:
                    found[read] = True
        return found

    def _distances(self) -> list[int]:
        """The distance of each vertex from the backward pass: 0 in it, otherwise one more than the nearest user's."""
        distance = [0] * len(self.vertices)
        for index in range(len(self.vertices) - 1, -1, -1):
            if self.forward[index]:
                distance[index] = min([FAR, *(distance[user] + 1 for user in self.users[index])])
        return distance

    def fuses(self, first: int, second: int) -> bool:
        """Whether `second` can run in the kernel that makes `first`; a concatenation can take any kernel's result."""
        user = self.vertices[second]
        maker = self.vertices[first]
        return user.concat or ((maker.fusible or maker.epilogue) and user.fusible)

    def materialized(self, index: int) -> bool:
        """Whether the value is written to memory even if nobody saves it."""
        if self.vertices[index].given or index in self.outputs:
            return True
        return not all(self.fuses(index, user) for user in self.users[index])


def weight(joint: JointGraph, index: int) -> int | None:
    """The cost of saving the value: bytes, biased towards the backward pass, twice as many if it is not written
    anyway."""
    vertex = joint.vertices[index]
    if not vertex.tensor:
        return None
    if vertex.free:
        return 0
    bytes_ = int(vertex.bytes * 1.1 ** max(min(joint.distance[index], 100), 1))
    bytes_ += vertex.late  # of two values of one size, the one that the forward pass makes anyway is preferred
    return bytes_ if joint.materialized(index) else 2 * bytes_


def banned(joint: JointGraph, options: Bans) -> set[int]:
    """The values that must not be recomputed. A view is never among them: it takes no computing."""
    found: set[int] = set()
    for index, vertex in enumerate(joint.vertices):
        if joint.closure[index] or vertex.view:
            continue
        if vertex.given or (joint.forward[index] and _is_banned(joint, index, options)):
            found.add(index)
    if options.used_far_apart:
        _ban_used_far_apart(joint, found)
    if options.long_chains:
        _ban_long_chains(joint, found)
    return found


def _is_banned(joint: JointGraph, index: int, options: Bans) -> bool:
    vertex = joint.vertices[index]
    if vertex.element:
        return False
    if vertex.random or vertex.compute or (options.not_listed and not vertex.recomputable):
        return True
    results = [index] if vertex.tensor else [index, *joint.users[index]]
    if options.materialized_backward and any(_materialized_backward(joint, result) for result in results):
        return True
    read = sum(joint.vertices[argument].bytes for argument in vertex.arguments)
    return options.reductions and vertex.bytes * 4 < read


def _materialized_backward(joint: JointGraph, index: int) -> bool:
    """Whether the backward pass reads the value, or a view of it, in an op that it cannot fuse with.

    PyTorch looks through views, a transposed matrix among them; here that is an op, `late`.
    """
    look, seen = [index], {index}
    while look:
        at = look.pop()
        if at in joint.outputs:
            return True
        for user in joint.users[at]:
            if not joint.forward[user] and not joint.fuses(at, user):
                return True
            turned = joint.vertices[user].late and joint.fuses(at, user) and not joint.closure[user]
            if (joint.vertices[user].view or turned) and user not in seen:
                seen.add(user)
                look.append(user)
    return False


def _ban_used_far_apart(joint: JointGraph, found: set[int]) -> None:
    """Ban a fusible user beyond the first use that cannot fuse, because it would keep the value waiting."""
    for index, there in enumerate(joint.forward):
        users = [user for user in joint.users[index] if joint.forward[user]] if there else []
        if not users:
            continue
        first = _first_unfusible(joint, users, max(joint.rank[user] for user in users))
        for user in users:
            if joint.rank[user] > first and joint.fuses(index, user) and not joint.vertices[user].view:
                found.add(user)


def _first_unfusible(joint: JointGraph, start: Sequence[int], limit: int) -> int:
    queue = [(joint.rank[index], index, True) for index in start]
    heapq.heapify(queue)
    seen = set(queue)
    while queue:
        rank, index, fused = heapq.heappop(queue)
        if not fused:
            return rank
        for user in joint.users[index]:
            if joint.forward[user] and joint.rank[user] <= limit:
                entry = (joint.rank[user], user, joint.fuses(index, user))
                if entry not in seen:
                    seen.add(entry)
                    heapq.heappush(queue, entry)
    return limit


def _ban_long_chains(joint: JointGraph, found: set[int]) -> None:
    """Ban values so that a fusible chain of more than a hundred ops is cut."""
    visited: set[int] = set()
    for start, there in enumerate(joint.forward):
        if not there:
            continue
        queue = [(joint.rank[start], start)]
        while queue:
            rank, at = heapq.heappop(queue)
            if at in visited:
                continue
            visited.add(at)
            if rank > joint.rank[start] + LONG_CHAIN and not queue:
                if not joint.vertices[at].view:
                    found.add(at)
                break
            for user in joint.users[at]:
                if joint.forward[user] and joint.fuses(at, user) and user not in found:
                    heapq.heappush(queue, (joint.rank[user], user))
