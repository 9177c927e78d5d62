"""Does a task in the process it is given to: prepares the model, or solves, emits and verifies one job.

Invariant: everything is written into the task's folder, its record last; a failure is an error, never a record.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from time import monotonic, process_time
from typing import Any

from profiles import costfile
from remat_cli.actions import emitting, profiling, verifying
from remat_cli.actions.answering import WholeQuestion, answer_whole
from remat_cli.actions.interrupts import listening
from remat_cli.actions.questions import Question, kind_named
from remat_cli.api.grad import grad
from remat_cli.batch.tasks import RECORD, Record, Task, record_of
from remat_cli.errors import BadInput
from remat_cli.events import EventQueue
from remat_cli.formats.files import sha256, write_whole
from remat_cli.model.quantities import parse_budget
from remat_cli.onnx_graph.stored import places_beside
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.so_far import SoFar
from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans.keeping import keep
from remat_cli.plans.planned import Planned
from remat_cli.results.answers import is_proved
from remat_cli.results.memory import user_memory
from remat_cli.results.store import Store, folder, key_of
from remat_cli.results.versions import versions
from remat_cli.saying.progress import SearchWords
from remat_cli.saying.refusals import why_not
from remat_cli.saying.report import as_object
from remat_cli.units import show_time
from solvers.clock import limited
from solvers.problem import Limits, Progress

KEPT_MODELS = 2  # models that are kept in memory between jobs
TOLD_FIELDS = (  # the fields of `solve`'s answer in a job's result
    *("status", "method", "budget", "peak", "cost", "baseline_peak", "baseline_cost", "overhead", "bound"),
    *("bound_any_order", "gap", "session", "runtime", "live", "arena", "default_arena", "session_itself"),
    *("stopped", "made_by", "notes"),
)
Seconds = dict[str, float]


def done(task: Task) -> Record:
    """Do the task and write its record."""
    where = Path(task["folder"])
    where.mkdir(parents=True, exist_ok=True)
    (where / RECORD).unlink(missing_ok=True)
    _check_unchanged(task)
    record = _prepared(task) if task["kind"] == "prepare" else _solved(task)
    write_whole(where / RECORD, json.dumps(record, indent=1) + "\n")
    return record


def _check_unchanged(task: Task) -> None:
    """Refuse a model or costs that have changed since the batch began."""
    for name, digest in (("path", "sha256"), ("costs", "costs_sha256")):
        if task.get(name) is None:
            continue
        path = Path(task[name])
        try:
            now = sha256(path)
        except OSError as error:
            raise BadInput(f"cannot read {path}: {error.strerror}") from error
        if now != task[digest]:
            raise BadInput(f"{path} has changed since the batch began; run it again")


def _prepared(task: Task) -> Record:
    """The training graph, if it is to be made, and the costs, if they are to be found."""
    where, path, outputs = Path(task["folder"]), Path(task["path"]), []
    seconds: Seconds = {}
    if task["grad"] is not None:
        with _timed(seconds, "grad"):
            model = grad(path, **{name.replace("-", "_"): value for name, value in task["grad"].items()})
            path = where / f"{task['stem']}.train.onnx"
            write_whole(path, model.SerializeToString(deterministic=True))
        outputs.append(path.name)
    if task["profile"] is not None or task["estimate"] is not None:
        with _timed(seconds, "profile"):
            asked = _costs_asked(task)
            costs = costfile.beside(where / path.name)
            found = profiling.profile(path, asked)
            costs.unlink(missing_ok=True)
            profiling.write(found, path, costs)
        outputs.append(costs.name)
    return record_of(task, {"seconds": seconds}, outputs, [], True)


def _costs_asked(task: Task) -> profiling.ProfileQuestion:
    said = task["profile"] or {}
    return profiling.ProfileQuestion(
        device=said.get("device", "auto"),
        estimate=task["estimate"],
        threads=said.get("threads"),
        seconds=said.get("time-limit", profiling.ProfileQuestion().seconds),
        dims={} if task["grad"] is not None else task["dims"],
    )


def _solved(task: Task) -> Record:
    where = Path(task["folder"])
    seconds: Seconds = {}
    spent = process_time()
    question = _question(task)
    with _timed(seconds, "load"):
        subject = _subject(task)
    plan, kept = where / f"{task['stem']}.plan.json", None
    with _timed(seconds, "solve"), listening() as interrupts:
        found = _asked(task, subject, question, interrupts)
        if found.found:
            found, kept = keep(found, plan, subject)
    result = {name: value for name, value in as_object(found, None).items() if name in TOLD_FIELDS}
    result |= {"cached": found.cached, "plan": None, "model": None, "verified": None, "why": "", "seconds": seconds}
    outputs, inputs = [], []
    if kept is not None:
        planned = Planned(kept.plan, found.subject, plan)
        outputs.append(plan.name)
        result["plan"] = plan.name
        if subject.graph is not None and (task["emit"] or task["verify"]):
            inputs = sorted({subject.path.parent / one.value for one in places_beside(subject.graph.model)})
            outputs += _emitted(task, planned, where / f"{task['stem']}.remat.onnx", result, inputs)
    else:
        result["why"] = why_not(found)
    result["processor"] = round(process_time() - spent, 3)  # without the processes that verify
    return record_of(task, result, outputs, inputs, is_proved(found.status, found.method))


def _question(task: Task) -> Question:
    return Question(
        budget=parse_budget(task["budget"]),
        method=task["method"],
        reorder=task["reorder"],
        options=task["options"],
        session=kind_named(task["runtime"]),
    )


def _subject(task: Task) -> Subject:
    dims = tuple(sorted(task["dims"].items()))
    return _loaded(task["path"], task["sha256"], task["costs"], task["costs_sha256"], dims, _question(task).session)


@lru_cache(KEPT_MODELS)
def _loaded(path: str, _: str, costs: str | None, __: str | None, dims: Any, session: Any) -> Subject:
    return load_subject(Path(path), Path(costs) if costs else None, dict(dims), session)


def _asked(task: Task, subject: Subject, question: Question, stopped: Callable[[], bool]) -> Answer:
    search, events = SearchWords(subject.before().cost), EventQueue[Progress]()
    memory = user_memory(task["seconds"], task.get("force", False), _say)
    clock = limited(task["seconds"], task["work"]).unless(stopped)
    limits, known = Limits(clock, task["gap"], task["seed"]), SoFar(events=events)
    asked = WholeQuestion(subject=subject, question=question, limits=limits, memory=memory, so_far=known)
    with events.read_by(lambda progress: print(search.heard(progress), file=sys.stderr, flush=True)):
        return answer_whole(asked).found


def _say(words: str) -> None:
    print(f"remat: {words}", file=sys.stderr, flush=True)


def _emitted(task: Task, planned: Planned, model: Path, result: dict[str, Any], inputs: list[Path]) -> list[str]:
    """The rewritten model, checked against its plan if that is asked; it is kept only then if the check passes."""
    with _timed(result["seconds"], "emit"):
        emitted = emitting.emit(planned)
        emitting.write(emitted, model)
    if task["verify"]:
        with _timed(result["seconds"], "verify"):
            result |= _verified(task, planned, emitted, model, inputs)
    if not task["emit"]:
        model.unlink()
        return []
    result["model"] = model.name
    return [model.name]


def _verified(
    task: Task, planned: Planned, emitted: emitting.Emitted, model: Path, inputs: list[Path]
) -> dict[str, Any]:
    """The verification of both models; it is reused if the very same two were verified before."""
    assert planned.path is not None
    store = Store(folder(), _say)
    what = {"sha256": task["sha256"], "plan": sha256(planned.path), "data": [sha256(path) for path in inputs]}
    key = key_of({"verified": what, "seed": task["seed"], "versions": versions()})
    before = None if task.get("force") else store.get(key)
    if before is not None and isinstance(before.get("faults"), list):
        faults = [str(fault) for fault in before["faults"]]
    else:
        trial = verifying.Trial(seed=task["seed"], timeout=task["timeout"])
        found = verifying.tried(planned, model, emitted.promise, trial)
        faults = [*found.faults, *found.unknown]
        if not faults:
            store.keep(key, {"verified": task["title"], "versions": versions()}, {"faults": faults})
    return {"verified": not faults, "why": "; ".join(faults)}


@contextmanager
def _timed(seconds: Seconds, name: str) -> Iterator[None]:
    begun = monotonic()
    try:
        yield
    finally:
        seconds[name] = round(monotonic() - begun, 3)
        print(f"{name}: {show_time(seconds[name] * 1e9)}", file=sys.stderr, flush=True)
