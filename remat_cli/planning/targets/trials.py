"""Gathers the witnesses of a plan's model: the kernels that onnxruntime makes of it, and a run of it.

Invariant: each model is made once and run once. After a model that does not end within the longest time, none is run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

from remat_cli.checking.trying import Peaks, peaks
from remat_cli.model.signatures import feeds_of, ops_of
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.planning.targets.target import Target
from remat_cli.planning.time_plan import TRIAL_SECONDS
from remat_cli.rewrite import Rewritten
from solvers.plan import Plan

Key = tuple[Plan, int]  # a model's plan, and how much of it is hidden from the runtime's planner


@dataclass(slots=True)
class Trials:
    """The models of plans, as they were made for one target and measured there.

    `held`: the measured bytes of each model; None if it did not run. `endless`: a model had the longest time and did
    not end.
    """

    target: Target
    models: dict[Key, Rewritten] = field(default_factory=dict)
    held: dict[Key, Peaks | None] = field(default_factory=dict)
    endless: bool = False

    def model(self, subject: Subject, candidate: Candidate) -> Rewritten:
        """The plan's model, with the original's kernels if possible. `subject`: the one with all that default options
        fuse."""
        plan, hiding = key = _key_of(candidate)
        if key not in self.models:
            same = candidate.subject.problem.inner == subject.problem.inner
            first = candidate.model if same else None
            self.models[key] = self.target.rewrite_surely(subject, plan, hiding, first)
        return self.models[key]

    def peaks(self, candidate: Candidate, model: Rewritten, seconds: float) -> Peaks | None:
        """The measured memory of the model; None if it does not run in so many seconds."""
        graph, key = candidate.subject.graph, _key_of(candidate)
        assert graph is not None
        if key not in self.held and not self.endless:
            feeds, begun = feeds_of(graph, ops_of(graph)), monotonic()
            held = peaks(graph, model.model, feeds, candidate.subject.threads, seconds, self.target.session)
            self.held[key] = held
            self.endless = held is None and monotonic() - begun >= TRIAL_SECONDS
        return self.held.get(key)


def _key_of(candidate: Candidate) -> Key:
    return candidate.plan, (candidate.footprint.promise.hiding if candidate.footprint else None) or 0
