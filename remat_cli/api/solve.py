"""`remat.solve`: a plan within a budget; and `remat.check`, of the proof that may come with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import onnx

from profiles.costs import Costs
from remat_cli import usual
from remat_cli.actions import certifying, solving
from remat_cli.actions.answering import WholeQuestion, answer_whole
from remat_cli.actions.certifying import Proved
from remat_cli.actions.interrupts import stoppable
from remat_cli.actions.questions import Question
from remat_cli.api import given
from remat_cli.api.given import File, Model, Plan, warn
from remat_cli.api.keywords import MethodOptions
from remat_cli.arguments import switch
from remat_cli.errors import Interrupted
from remat_cli.events import EventQueue
from remat_cli.formats import certificatefile
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.model.sessions import STRICT
from remat_cli.notes.kinds import ROUTINE
from remat_cli.notes.words import sentences
from remat_cli.planning.loading import is_model, load_subject
from remat_cli.planning.search.so_far import SoFar
from remat_cli.plans.keeping import plan_file
from remat_cli.plans.planned import Planned
from solvers.problem import Limits, Progress
from solvers.registry import DEFAULT


def solve(
    model: Model,
    *,
    budget: int | str | None = None,
    method: str = DEFAULT,
    runtime: str = "remat",
    session: str | None = None,
    costs: File | Costs | None = None,
    minimize: str = "cost",
    max_overhead: float | str | None = None,
    reorder: bool | None = None,
    known: Sequence[Plan] | Plan = (),
    dims: Mapping[str, int] | None = None,
    in_place: Mapping[str, str] | bool | None = None,
    pieces: str = "off",
    largest_value: int | str | None = None,
    time_limit: float | str | None = None,
    work_limit: int | str | None = None,
    gap: float | str = usual.GAP,
    seed: int = 0,
    cache: bool = True,
    certificate: File | None = None,
    report: Callable[[Progress], None] | None = None,
    **options: Unpack[MethodOptions],
) -> Planned:
    """The fastest plan of a training graph within a memory budget.

    - `model`: a path, or an onnx.ModelProto. `costs`: what its ops cost, as `profile` gives it, or a file of it; by
      default the file beside the model, or estimates for a CPU. `dims`: sizes of symbolic dimensions.
    - `budget`: bytes, "16GB", or "70%" of what the model holds as it is.
    - `method`: one of `remat solve --list`; `options`: the method's own, such as `slots` of "rotor". `reorder`: whether
      "milp" may take another order. `known`: plans to beat.
    - `runtime`: what runs the plan: "remat", the session that `remat.session` makes, or "stock", ONNX Runtime with its
      default options. `session`: the same by an older name, "strict" or "default".
    - `minimize`: "cost", or "peak" for the least memory, with `max_overhead` as the share of time that it may add.
    - `in_place`: outputs that are written over inputs, as {"weight": "weight_new"}; by default those of a step that
      `grad` made; True: also those that are found in another graph; False: none. Runs then change the arrays that
      they are given for these inputs.
    - `pieces`: which ops are cut first: "auto", "exact" (so that the bits are the same), "off", or values with how many
      pieces each, as "logits=16". `largest_value`: so that no op makes a larger value, in bytes or as "1GiB".
    - `time_limit`: in seconds or words ("5m"), by default 60; `work_limit`: in moves of the search, the same on every
      machine, by default instead of a time. `gap`: how close to the bound is near enough. `seed`: of random choices.
    - `cache`: what was found before is not looked for again, and what is found is kept.
    - `certificate`: where to write what proves the bounds, for `check`; it takes a part of the time.
    - `report`: called with better plans as they are found, in a thread of its own.

    Raises Infeasible where it is proved that there is none, NoPlan where none was found; at Ctrl-C Interrupted, a
    KeyboardInterrupt whose `plan` is the best by then.

    Example:

        plan = remat.solve("train.onnx", budget="70%", time_limit="2m")
        print(plan.peak, plan.overhead)
    """
    given.check_keywords(options, solve, MethodOptions)
    question = Question(
        budget=given.budget_of(budget),
        method=method,
        minimize=minimize,
        max_overhead=None if max_overhead is None else given.share_of(max_overhead, "max_overhead"),
        known=tuple(plan.recorded for plan in given.plans_of(known)),
        reorder=None if reorder is None else switch(reorder, "reorder"),
        options={name: value for name, value in options.items() if value is not None},
        session=given.kind_of(runtime, session),
    )
    question.check()
    clock = given.clock_of(time_limit, work_limit)
    subject = load_subject(
        given.model_of(model),
        given.costs_of(costs),
        given.sizes_of(dims),
        question.session,
        in_place=given.pairs_of(in_place),
    )
    limits, heard = Limits(clock, given.share_of(gap, "gap"), given.seed_of(seed)), given.heard_by(report)
    events: EventQueue[Progress] = EventQueue()
    proof = None if certificate is None else given.path_of(certificate, "certificate")
    check_place(proof, FileKind.CERTIFICATE, subject.path)
    memory = given.memory_of(cache, clock.seconds)
    asked = WholeQuestion(
        subject=subject,
        question=question,
        limits=limits,
        memory=memory,
        cuts=given.pieces_of(pieces, largest_value),
        proving=proof is not None,
        so_far=SoFar(events=events),
    )
    with stoppable() as interrupts, events.read_by(heard):
        stopping = clock.unless(interrupts).unless(events.broken)
        answered = answer_whole(replace(asked, limits=replace(limits, clock=stopping)))
        if proof is not None and answered.certificate is not None:
            certificatefile.write(answered.certificate, proof)
    found = answered.found
    if interrupts.asked:
        raise Interrupted(Planned(plan_file(found), found.subject) if found.found else None)
    if (error := solving.refusal(found)) is not None:
        raise error
    warn(sentences(note for note in found.notes if note.kind not in ROUTINE), depth=3)
    return Planned(plan_file(found), found.subject)


def check(certificate: File, plan: Plan | Model, *, costs: File | Costs | None = None) -> Proved:
    """What a certificate proves, in whole numbers and without any solver.

    - `certificate`: the file that `solve(certificate=...)` wrote.
    - `plan`: the plan that it came with, or the model, where it says that there is no plan; `costs` go with a model.

    Raises Mismatch for what does not follow.

    Example:

        print(remat.check("step.cert.json", "step.plan.json").bound)
    """
    proof = certificatefile.read(given.path_of(certificate, "certificate"))
    if isinstance(plan, onnx.ModelProto) or (isinstance(plan, str | os.PathLike) and is_model(Path(plan))):
        subject = load_subject(given.model_of(plan), given.costs_of(costs), {}, STRICT)
        return certifying.check_certificate(proof, subject, STRICT)
    return certifying.check_plan(proof, given.plan_of(plan))
