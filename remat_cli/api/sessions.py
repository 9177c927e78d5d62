"""`remat.session`: of a plan in a file or in memory, the session that keeps its promise.

Invariant: for a plan in a file nothing is imported here that reads models or plans: another process does that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from profiles.device import quiet_runtime
from profiles.system import let_go
from remat_cli.actions.session_parts import SessionParts, written_elsewhere
from remat_cli.api.plain import CPU, items_of, path_of, warn
from remat_cli.arguments import switch
from remat_cli.errors import Usage, meant
from remat_cli.formats.weights import Weights
from remat_cli.model.sessions import KINDS
from remat_cli.runtime.in_place import in_place
from remat_cli.runtime.session import planned, refusals_in_words, session_of
from remat_cli.runtime.table import PlacesTable

if TYPE_CHECKING:
    from remat_cli.api.given import Plan


def session(plan: Plan, *, providers: Sequence[Any] = CPU, keep_state: bool = False) -> Any:
    """An onnxruntime.InferenceSession on the rewritten model that keeps the plan's promise: of the plan's kind.

    - `plan`: what `solve` gave, or its file's path.
    - `providers`: as onnxruntime takes them. On a CPU every value lies where the plan says, or where the first run
      shows that it can, if the plan's costs are estimates; others keep their own arenas.
    - `keep_state`: outputs that the plan holds once are written over the arrays given for their inputs, which `run`
      gives back as those outputs. With this they are not, and both are held, in so much more memory.

    It runs on as many threads as the costs are for, since kernels work in memory of each thread's own.

    Example:

        session = remat.session("train.plan.json")
        loss, *rest = session.run(None, feeds)
    """
    wanted, keep_state = providers_of(providers), switch(keep_state, "keep_state")
    with parts_of(plan) as parts:
        if wanted == CPU and not keep_state:
            warn(parts.notes)
        return session_on(parts, wanted, keep_state)


@contextmanager
def parts_of(plan: Plan) -> Iterator[SessionParts]:
    """The parts of the plan's session, whose files stand for as long as the context."""
    with TemporaryDirectory(prefix="remat-", ignore_cleanup_errors=True) as made:
        folder, found = Path(made), None
        if isinstance(plan, str | os.PathLike) and not os.fspath(plan).endswith(".onnx"):
            found = written_elsewhere(path_of(plan, "a plan"), folder)
        yield found or _written_here(plan, folder)


def _written_here(plan: Plan, folder: Path) -> SessionParts:
    """Of a plan in memory, or where no other process can be had."""
    from remat_cli.actions.session_writing import write_parts
    from remat_cli.api.given import plan_of

    return write_parts(plan_of(plan), folder)


def session_on(parts: SessionParts, providers: tuple[Any, ...], keep_state: bool) -> Any:
    """The session that is made of these parts."""
    with refusals_in_words():
        made = _session(parts, providers)
    let_go()
    return made if providers != CPU else in_place(made, parts.in_place, apart=keep_state)


def providers_of(providers: Any) -> tuple[Any, ...]:
    """Providers, of which one may stand alone."""
    wanted = (providers,) if isinstance(providers, str) else items_of(providers, "providers")
    if not wanted:
        raise Usage("providers name at least one, such as 'CPUExecutionProvider'")
    known = quiet_runtime().get_available_providers()
    names = [str(one[0]) if isinstance(one, tuple) and one else str(one) for one in wanted]
    if unknown := [name for name in names if name not in known]:
        raise Usage(f"onnxruntime has no provider '{unknown[0]}' here; {meant(unknown[0], known)}")
    return wanted


def _session(parts: SessionParts, providers: Sequence[Any]) -> Any:
    folder, threads = Path(parts.tensors), parts.threads
    if not parts.placed or tuple(providers) != CPU:
        return session_of(parts.model, folder, providers, threads, KINDS[parts.runtime])
    places = PlacesTable.read(Path(parts.places).read_bytes()) if parts.places else None
    weights = Weights.of(parts.weights) if parts.weights else None
    return planned(parts.model, places, threads=threads, folder=folder, weights=weights)
