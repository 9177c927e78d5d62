"""What fills the memory during one compute of a plan, by the role of each tensor.

Invariant: the parts add up to the bytes in use that `simulate` reports for that compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans.roles import Role, roles_of
from remat_cli.plans.timeline import Timeline, timeline
from solvers.plan import Plan
from solvers.problem import Problem


@dataclass(frozen=True, slots=True)
class Anatomy:
    """The role of each value, and the bytes of each role among inputs and weights."""

    fixed: Mapping[Role, int]
    values: tuple[Role, ...]

    @property
    def known(self) -> tuple[Role, ...]:
        """The roles that this subject can tell apart."""
        bare = Role.FIXED in self.fixed
        apart = (Role.PARAMETERS, Role.STATE, Role.INPUTS, Role.CONSTANTS)
        return tuple(role for role in Role if (role not in apart if bare else role is not Role.FIXED))

    def late(self, problem: Problem) -> list[int]:
        """The ops of the backward pass: those that make a value with a backward role."""
        early = (Role.ACTIVATIONS, Role.CONSTANTS)
        return [
            index
            for index, node in enumerate(problem.nodes)
            if node.backward and not (node.writes and all(self.values[value] in early for value in node.writes))
        ]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Bytes by role during the compute of `node`; `sizes` has an entry for every role that can be told apart."""

    node: str
    step: int
    sizes: Mapping[Role, int]

    @property
    def total(self) -> int:
        return sum(self.sizes.values())

    def as_object(self) -> dict[str, Any]:
        return {"at": self.node, "total": self.total, **{role.key: size for role, size in self.sizes.items()}}


def anatomy(subject: Subject) -> Anatomy:
    """The anatomy of a model is read from its graph; that of a bare problem from its phases and outputs."""
    problem, graph = subject.problem, subject.graph
    if graph is None:
        late = {value for node in problem.nodes if node.backward for value in node.writes}
        ends = late.intersection(problem.outputs)
        roles = (
            Role.GRADIENTS if value in ends else Role.TEMPORARIES if value in late else Role.ACTIVATIONS
            for value in range(len(problem.sizes))
        )
        return Anatomy({Role.FIXED: problem.resident}, tuple(roles))
    found = roles_of(graph)
    fixed: dict[Role, int] = {}
    for name in dict.fromkeys((*graph.inputs, *graph.weights)):
        fixed[found[name]] = fixed.get(found[name], 0) + graph.values[name].bytes
    return Anatomy(fixed, tuple(found[name] for name in subject.values))


def at_peak(subject: Subject, line: Timeline, parts: Anatomy) -> Breakdown:
    """What fills the memory at the peak; where nothing runs, the inputs and weights alone."""
    if not line.order:
        return Breakdown("", 0, {role: parts.fixed.get(role, 0) for role in parts.known})
    return during(subject, line, line.peak_step, parts)


def during(subject: Subject, line: Timeline, step: int, parts: Anatomy) -> Breakdown:
    """What fills the memory during one compute."""
    sizes = {role: parts.fixed.get(role, 0) for role in parts.known}
    for block in line.held(step):
        sizes[parts.values[block.value]] += block.bytes
    sizes[Role.WORKSPACE] += subject.problem.nodes[line.order[step]].workspace
    return Breakdown(subject.nodes[line.order[step]], step, sizes)


def at_peaks(subject: Subject, plan: Plan | None) -> tuple[Breakdown, Breakdown | None]:
    """At the peak of the file as it stands, and at the plan's, if there is one."""
    whole = subject.whole or subject
    before = at_peak(whole, timeline(whole.problem, subject.as_it_is()[0]), anatomy(whole))
    return before, None if plan is None else at_peak(subject, timeline(subject.problem, plan), anatomy(subject))
