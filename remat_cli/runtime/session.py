"""Sessions of onnxruntime in which a rewritten model keeps its promises.

Invariant: what the strict session is, `profiles.strict` says alone; results are those of the original model in the same
session, bit for bit.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from profiles import cuda
from profiles.cuda import PROVIDERS, NoCuda
from profiles.device import quiet_runtime
from profiles.strict import strict_options
from remat_cli.errors import BadInput, Usage
from remat_cli.formats.weights import Weights
from remat_cli.model.sessions import STRICT, Session
from remat_cli.runtime.placed import MISSING, library
from remat_cli.runtime.table import PlacesTable
from solvers.placement.placed import Placement

CODE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")  # what the runtime's errors begin with
FATAL_LEVEL = 4  # of the runtime's levels: what goes wrong is raised, and not printed besides
SILENT_LEVEL = 3  # of the runtime's levels: only errors are printed
# of optimization; all of it is what a session with default options does
LEVELS = {"disabled": "DISABLE_ALL", "basic": "ENABLE_BASIC", "extended": "ENABLE_EXTENDED", "all": "ENABLE_ALL"}


@contextmanager
def refusals_in_words(doing: str = "make a session of the model") -> Iterator[None]:
    """What the runtime says where it cannot do that, as an error of ours: it lacks a kernel, or a device."""
    try:
        yield
    except NoCuda as error:
        raise Usage(str(error)) from error
    except Exception as error:
        if not type(error).__module__.startswith("onnxruntime."):
            raise
        words = CODE.sub("", " ".join(str(error).split()))
        raise BadInput(f"onnxruntime cannot {doing}: {words}") from error


def options_of(kind: Session, level: str = "all") -> Any:
    """The options of a session of that kind. `level`: of optimization, where the kind allows any."""
    if kind.keeps_order:
        return strict_options()
    options = quiet_runtime().SessionOptions()
    options.graph_optimization_level = level_named(level)
    return options


def level_named(name: str) -> object:
    return getattr(quiet_runtime().GraphOptimizationLevel, f"ORT_{LEVELS[name]}")


def session_of(
    model: bytes | str,
    folder: Path,
    providers: Sequence[Any] = ("CPUExecutionProvider",),
    threads: int = 0,
    kind: Session = STRICT,
) -> Any:
    """A session on a model, in memory or at a path, whose external tensors lie in `folder`; the runtime's own arena
    gives it memory. `threads`: 0 means all cores."""
    quiet_runtime()
    return cuda.session(model, _beside(options_of(kind), folder, threads), providers)


def _beside(options: Any, folder: Path | None, threads: int) -> Any:
    """The options for a model whose external tensors lie in `folder`; None where they lie beside the model's file."""
    options.intra_op_num_threads = threads
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    return options


def split_chunks(provider: str = PROVIDERS["cpu"]) -> None:
    """Make the process's arena split every chunk it hands out, so that a tensor takes what it asked for, rounded up to
    256 bytes, and no more: its peak can then be measured to the byte."""
    ort = quiet_runtime()
    name = {PROVIDERS["cpu"]: "Cpu", PROVIDERS["cuda"]: "Cuda"}[provider]
    cuda.ready(provider)
    memory = ort.OrtMemoryInfo(name, ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    settings = ort.OrtArenaCfg({"arena_extend_strategy": 0, "max_dead_bytes_per_chunk": 1})
    ort.create_and_register_allocator_v2(provider, memory, {}, settings)


def trace_to(trace: str | None, options: Any) -> Any:
    """The options with the runtime's trace on, into a file whose name begins with `trace`; unchanged where that is
    None."""
    if trace is not None:
        options.enable_profiling = True
        options.profile_file_prefix = trace
    return options


def planned(
    model: bytes | str | Path,
    placement: PlacesTable | Placement | None = None,
    device: str = "cpu",
    threads: int = 0,
    *,
    folder: Path | None = None,
    weights: Weights | None = None,
    trace: str | None = None,
) -> Any:
    """A strict session that puts every value where the plan says, an `onnxruntime.InferenceSession` in all else.

    `placement`: the plan's; without one, the first run is traced and the places are found then. Where the allocator was
    not built, a strict session with the stock arena, and a warning that says so. `folder`: of external tensors, where
    that is not the model's own. `weights`: those that it may let go of.
    """
    options = _beside(trace_to(trace, strict_options()), folder, threads)
    quiet_runtime()
    given = model if isinstance(model, bytes) else str(model)
    if library() is None:
        warnings.warn(MISSING, stacklevel=2)
        return cuda.session(given, options, [PROVIDERS[device]])
    from remat_cli.runtime.planned import PlannedSession

    return PlannedSession(given, placement, device, options, weights)


OLDEST, NEWEST = (1, 23), (1, 31)
DISTRIBUTIONS = ("onnxruntime-gpu", "onnxruntime")


def unknown_version() -> list[str]:
    """A note if the installed version is another, of whichever distribution."""
    found = installed_version()
    if found is None or OLDEST <= _numbers(found) <= NEWEST:
        return []
    oldest, newest = (".".join(map(str, version)) for version in (OLDEST, NEWEST))
    return [f"onnxruntime {found}: what sessions hold was checked with {oldest} to {newest}; `verify` measures it"]


def installed_version() -> str | None:
    """Of onnxruntime."""
    for name in DISTRIBUTIONS:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
