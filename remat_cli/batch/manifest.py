"""A batch manifest: models, and their product with budgets, methods and sessions, as jobs.

Invariant: what is read can be asked: every name, size, time and option has been looked at, and what is wrong with one
is said with its line. No two jobs write to one folder.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from remat_cli.batch import schema
from remat_cli.batch.expect import Expected
from remat_cli.batch.schema import Place, Tree
from remat_cli.errors import BadInput, meant
from remat_cli.formats.files import stem_of
from remat_cli.model.quantities import parse_budget, parse_bytes, parse_count, parse_seconds, parse_share
from remat_cli.model.sessions import RUNTIME_OF, STRICT
from remat_cli.usual import GAP, SOLVE_TIME
from solvers.clock import FOREVER_SECONDS
from solvers.options import Orders, options_of
from solvers.registry import DEFAULT, METHODS

SHOWN_FAULTS = 8  # the most faults that an error lists
SLACK_SECONDS = 900.0  # seconds that a job may take beyond twice its search, if no timeout is given
LONG_SECONDS = 4 * 3600.0  # seconds that it may take if its search is limited in work
Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """`shown`: its path as the manifest has it; `name`: of its folder in the output. `grad`, `profile`: how, if so."""

    name: str
    path: Path
    shown: str
    grad: Mapping[str, Any] | None
    profile: Mapping[str, Any] | None
    estimate: str | None
    costs: Path | None
    dims: Mapping[str, int]

    @property
    def prepared(self) -> bool:
        """Whether something is made of it before anything is solved."""
        return self.grad is not None or self.profile is not None or self.estimate is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One question about one model. `folder`: of its outputs, in the model's. `timeout`: seconds for all of it."""

    model: Model
    folder: str
    budget: str
    method: str
    options: Mapping[str, Any]
    reorder: bool | None
    runtime: str
    seconds: float
    work: int | None
    gap: float
    seed: int
    emit: bool
    timeout: float
    memory: int | None
    expected: Expected

    @property
    def title(self) -> str:
        return f"{self.model.name}/{self.folder}"


def read(path: Path) -> list[Job]:
    """The jobs of a manifest, models in its order, or of their names within a glob."""
    tree = schema.read(path)
    wrong = list(schema.faults(tree.value, schema.schema_named("manifest")))
    if wrong:
        words = [str(tree.refuse(*fault)) for fault in wrong[:SHOWN_FAULTS]]
        raise BadInput(
            "\n".join([*words, *([f"and {len(wrong) - SHOWN_FAULTS} more"] if len(wrong) > SHOWN_FAULTS else [])])
        )
    return list(_Reading(tree).jobs())


class _Reading:
    """The settings of the whole manifest, and the settings of a model that override them."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.folder = tree.path.parent

    def jobs(self) -> Iterator[Job]:
        entries: list[tuple[Place, Any]] = [
            (("models", number), entry) for number, entry in enumerate(self.tree.value["models"])
        ]
        found = [(place, entry, path) for place, entry in entries for path in self._paths(place, entry)]
        names = self._names(found)
        for (place, entry, path), name in zip(found, names, strict=True):
            yield from self._jobs_of(place, {} if isinstance(entry, str) else entry, path, name)

    def _paths(self, place: Place, entry: Any) -> list[Path]:
        pattern = entry if isinstance(entry, str) else entry["path"]
        if not any(letter in pattern for letter in "*?["):
            path = self.folder / pattern
            if not path.is_file():
                raise self.tree.refuse(place, f"{pattern}: there is no such file")
            return [path]
        if Path(pattern).is_absolute():
            raise self.tree.refuse(place, f"{pattern}: a glob begins at the manifest's folder")
        found = sorted(path for path in self.folder.glob(pattern) if path.is_file())
        if not found:
            raise self.tree.refuse(place, f"{pattern}: there is no such file")
        return found

    def _names(self, found: list[tuple[Place, Any, Path]]) -> list[str]:
        """Folders of the models: their names, with those of their folders where models are called the same."""
        given = [None if isinstance(entry, str) else entry.get("name") for _, entry, _ in found]
        stems = [name or stem_of(path) for name, (_, _, path) in zip(given, found, strict=True)]
        several = {stem for stem, count in Counter(stems).items() if count > 1}
        names = [
            stem if given[number] or stem not in several else self._longer(found[number][2])
            for number, stem in enumerate(stems)
        ]
        for number, name in enumerate(names):
            if name in names[:number]:
                words = f"another model is called {name} too, whose outputs it would write over; give one a name"
                raise self.tree.refuse(found[number][0], words)
        return names

    def _longer(self, path: Path) -> str:
        where = path.relative_to(self.folder) if path.is_relative_to(self.folder) else Path(*path.parts[1:])
        return "__".join([*where.parts[:-1], stem_of(path)])

    def _jobs_of(self, place: Place, entry: Mapping[str, Any], path: Path, name: str) -> Iterator[Job]:
        """The product, for one model."""
        settings, where = self._settings(place, entry)
        model = self._model(place, entry, path, name, settings, where)
        expected = self._expected(place, entry, path)
        budgets = self._list("budgets", place, entry, [])
        methods = self._list("methods", place, entry, [(("defaults", "method"), settings.get("method", DEFAULT))])
        runtimes = self._runtimes(place, entry, settings)
        work = self._number(where, settings, "work-limit", parse_count, None)
        seconds = self._number(
            where, settings, "time-limit", parse_seconds, parse_seconds(SOLVE_TIME) if work is None else FOREVER_SECONDS
        )
        timeout = 2 * seconds + SLACK_SECONDS if seconds < FOREVER_SECONDS else LONG_SECONDS
        taken: set[str] = set()
        for (at, budget), (by, asked), runtime in product(budgets, methods, runtimes):
            self._parsed((at), str(budget), parse_budget)
            method, reorder, options = self._method(by, asked)
            folder = "-".join([str(budget), _label(asked), *([runtime] if len(runtimes) > 1 else [])])
            if folder in taken or "/" in folder:
                raise self.tree.refuse(at, f"{folder}: the same job twice, or no name for a folder")
            taken.add(folder)
            yield Job(
                model=model,
                folder=folder,
                budget=str(budget),
                method=method,
                options=options,
                reorder=reorder,
                runtime=runtime,
                seconds=seconds,
                work=work,
                gap=self._number(where, settings, "gap", parse_share, parse_share(GAP)),
                seed=settings.get("seed", 0),
                emit=settings.get("emit", True),
                timeout=self._number(where, settings, "timeout", parse_seconds, timeout),
                memory=self._number(where, settings, "memory-limit", parse_bytes, None),
                expected=expected,
            )

    def _runtimes(self, place: Place, entry: Mapping[str, Any], settings: Settings) -> list[str]:
        """The runtimes of the jobs, which may be called by the names of their sessions."""
        usual = RUNTIME_OF[settings.get("session", STRICT.name)]
        by_session = self._list("sessions", place, entry, [])
        named = [RUNTIME_OF[session] for _, session in by_session] or [settings.get("runtime", usual)]
        return [runtime for _, runtime in self._list("runtimes", place, entry, [])] or named

    def _settings(self, place: Place, entry: Mapping[str, Any]) -> tuple[Settings, dict[str, Place]]:
        """The defaults of all and of the model, and where each stands."""
        found: dict[str, Any] = {}
        where: dict[str, Place] = {}
        for at, said in (((), self.tree.value), (place, entry)):
            for name, value in said.get("defaults", {}).items():
                found[name], where[name] = value, (*at, "defaults", name)
        return found, where

    def _model(
        self, place: Place, entry: Mapping[str, Any], path: Path, name: str, settings: Settings, where: dict[str, Place]
    ) -> Model:
        grad, profile = _how(entry.get("grad", False)), _how(settings.get("profile", False))
        if profile is not None and "time-limit" in profile:
            at = (*where["profile"], "time-limit")
            profile = {**profile, "time-limit": self._parsed(at, str(profile["time-limit"]), parse_seconds)}
        if profile is not None and "estimate" in settings:
            raise self.tree.refuse(where["estimate"], "profile measures and estimate does not: say one of them")
        costs = self.folder / entry["costs"] if "costs" in entry else None
        if costs is not None and not costs.is_file():
            raise self.tree.refuse((*place, "costs"), f"{entry['costs']}: there is no such file")
        if costs is not None and (grad is not None or profile is not None or "estimate" in settings):
            raise self.tree.refuse((*place, "costs"), "costs are given: leave out grad, profile and estimate")
        shown = path.relative_to(self.folder) if path.is_relative_to(self.folder) else path
        return Model(
            name=name,
            path=path.absolute(),
            shown=shown.as_posix(),
            grad=grad,
            profile=profile,
            estimate=settings.get("estimate"),
            costs=None if costs is None else costs.absolute(),
            dims=entry.get("dims", {}),
        )

    def _expected(self, place: Place, entry: Mapping[str, Any], path: Path) -> Expected:
        """The expectations of the manifest and of the model; a bare problem has no model to verify."""
        said: dict[str, Any] = {}
        for at, where in (((), self.tree.value), (place, entry)):
            for name, value in where.get("expect", {}).items():
                parse: Callable[[str], Any] | None = parse_share if name in ("max-overhead", "max-gap") else None
                parse = parse_bytes if name == "max-peak" else parse
                said[name] = value if parse is None else self._parsed((*at, "expect", name), str(value), parse)
        if path.suffix == ".json":
            said.pop("verify", None)
        return Expected(**{name.replace("-", "_"): value for name, value in said.items()})

    def _list(
        self, name: str, place: Place, entry: Mapping[str, Any], default: list[tuple[Place, Any]]
    ) -> list[tuple[Place, Any]]:
        """The model's list, otherwise the manifest's, with the place of each entry."""
        for at, said in ((place, entry), ((), self.tree.value)):
            if name in said:
                return [((*at, name, number), value) for number, value in enumerate(said[name])]
        return default

    def _method(self, place: Place, asked: Any) -> tuple[str, bool | None, dict[str, Any]]:
        """Name, whether to reorder, and the method's own options."""
        name, said = (asked, {}) if isinstance(asked, str) else (asked["name"], asked)
        if name not in METHODS:
            raise self.tree.refuse(place, f"there is no method {name!r}; {meant(name, METHODS)}")
        known = {entry.name: entry for entry in options_of(METHODS[name].options) if entry.kind != Orders}
        options = {key.replace("-", "_"): value for key, value in said.items() if key not in ("name", "reorder")}
        for key, value in options.items():
            if key not in known:
                raise self.tree.refuse(place, f"{key} is no option of {name}; it has {', '.join(known) or 'none'}")
            if (refused := known[key].refusal(value)) is not None:
                raise self.tree.refuse(place, f"{key}: {refused}")
        reorder = said.get("reorder")
        if reorder is not None and (METHODS[name].own_order or not isinstance(reorder, bool)):
            raise self.tree.refuse(place, f"reorder means nothing to {name}, or is not true or false")
        return name, reorder, options

    def _number(
        self, where: Mapping[str, Place], settings: Settings, name: str, parse: Callable[[str], Any], default: Any
    ) -> Any:
        return self._parsed(where[name], str(settings[name]), parse) if name in settings else default

    def _parsed(self, place: Place, text: str, parse: Callable[[str], Any]) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise self.tree.refuse(place, str(error)) from error


def _how(said: Any) -> Mapping[str, Any] | None:
    """`true` is a mapping that says nothing more."""
    return {} if said is True else None if said is False else said


def _label(asked: Any) -> str:
    """A method and its options, in the name of a folder."""
    if isinstance(asked, str):
        return asked
    said = {key: json.dumps(value).strip('"') for key, value in asked.items() if key != "name"}
    return ",".join([asked["name"], *(f"{key}={value}" for key, value in said.items())])
