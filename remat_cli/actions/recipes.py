"""How a user says what the optimizer does: by name and settings, in groups, or by an optimizer of PyTorch.

Invariant: what is said and cannot be done is refused by name; nothing of it is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from remat_cli.arguments import as_float, brief
from remat_cli.errors import Usage, meant
from remat_cli.gradient.optimizers import TOLD, Group, Hyper, Recipe

TORCH = {"SGD": "sgd", "Adam": "adam", "AdamW": "adamw"}
SETTINGS = {  # what a user calls a setting -> the fields that it is
    "lr": ("rate",),
    "learning_rate": ("rate",),
    "weight_decay": ("weight_decay",),
    "betas": ("beta1", "beta2"),
    "eps": ("epsilon",),
    "momentum": ("momentum",),
}
OWN = {"none": ("rate",), **{name: ("rate", *told) for name, told in TOLD.items()}}  # the settings that each has
REFUSED = ("amsgrad", "maximize", "nesterov", "dampening")  # of PyTorch's, unless they are off


def recipe_of(optimizer: Any, settings: Mapping[str, Any], module: Any = None) -> Recipe:
    """`optimizer`: a name, or PyTorch's own, whose groups are of the parameters of `module`. `settings`: those of all
    parameters; None where nothing is said. Among them `groups`, by a pattern of names, and `clip`."""
    said = {name: value for name, value in settings.items() if value is not None}
    groups, norm = _groups(said.pop("groups", None)), said.pop("clip", None)
    clip = None if norm is None else _number("clip", norm)
    if hasattr(optimizer, "param_groups"):
        if others := sorted({*said, *(["groups"] if groups else [])} - {"learning_rate"}):
            raise Usage(f"{', '.join(others)}: the optimizer that was given says so itself")
        return _from_torch(optimizer, said.get("learning_rate"), clip, module)
    if not isinstance(optimizer, str):
        if isinstance(optimizer, type):
            raise Usage(f"{optimizer.__name__} is a class; give an optimizer, as {optimizer.__name__}(parameters)")
        raise Usage(f"an optimizer is a name or one of PyTorch's, not {type(optimizer).__name__}")
    Recipe(optimizer).check()
    hyper = Hyper(**_fields(optimizer, said))
    made = tuple(_group(optimizer, (name,), changes, hyper) for name, changes in groups.items())
    recipe = Recipe(optimizer, hyper, made, clip)
    recipe.check()
    return recipe


def _groups(given: Any) -> Mapping[str, Mapping[str, Any]]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(changes, Mapping) for changes in given.values()):
        raise Usage(
            f"groups are settings by a pattern of names, such as {{'*.bias': {{'weight_decay': 0}}}}: {brief(given)}"
        )
    return given


def _fields(optimizer: str, said: Mapping[str, Any]) -> dict[str, float]:
    """The settings as fields of Hyper. Refuses those that the optimizer does not have."""
    found: dict[str, float] = {}
    for name, value in said.items():
        if name not in SETTINGS:
            raise Usage(f"there is no setting '{name}' of an optimizer; {meant(name, SETTINGS)}")
        fields = SETTINGS[name]
        if not set(fields) <= set(OWN[optimizer]):
            having = [f"'{other}'" for other in OWN if set(fields) <= set(OWN[other])]
            raise Usage(f"'{optimizer}' has no {name}; it is a setting of {' and '.join(having)}")
        values = value if isinstance(value, list | tuple) and len(fields) > 1 else (value,)
        if len(values) != len(fields):
            raise Usage(f"{name} takes {len(fields)} numbers, not {brief(value)}")
        found |= {field: _number(name, one) for field, one in zip(fields, values)}
    return found


def _number(name: str, value: Any) -> float:
    """Of the command, a number is a text; its range is the recipe's to check."""
    if (found := as_float(value)) is None:
        raise Usage(f"{name} is {brief(value)}, not a number")
    return found


def _group(optimizer: str, names: tuple[str, ...], changes: Mapping[str, Any], base: Hyper) -> Group:
    """A learning rate of its own is a share of the step's, so that a schedule of that holds for both."""
    fields = _fields(optimizer, changes)
    if "rate" in fields:
        if not base.rate:
            raise Usage("with a learning rate of 0, no group can have one of its own")
        fields["scale"] = fields.pop("rate") / base.rate
    return Group(names, fields)


def _from_torch(optimizer: Any, rate: float | None, clip: float | None, module: Any) -> Recipe:
    groups = optimizer.param_groups
    name = _name_of(optimizer, groups)
    every = [_settings_of(name, group) for group in groups]
    base = Hyper(**_fields(name, every[0]))
    if any(settings != every[0] for settings in every):
        names = _names(optimizer, module)
        made = tuple(
            _group(name, tuple(_escape(one) for given in group["params"] for one in names[id(given)]), settings, base)
            for group, settings in zip(groups, every, strict=True)
        )
    else:
        made = ()
    recipe = Recipe(name, base if rate is None else Hyper(**{**_fields(name, every[0]), "rate": rate}), made, clip)
    recipe.check()
    return recipe


def _name_of(optimizer: Any, groups: Sequence[Mapping[str, Any]]) -> str:
    kind = type(optimizer).__name__
    if kind not in TORCH:
        raise Usage(f"{kind} cannot be written in the graph; there are {', '.join(TORCH)} of PyTorch's optimizers")
    if kind == "SGD" and any(group["momentum"] for group in groups):
        return "momentum"
    return "adamw" if kind == "Adam" and groups[0].get("decoupled_weight_decay") else TORCH[kind]


def _settings_of(name: str, group: Mapping[str, Any]) -> dict[str, Any]:
    """What holds for a group of PyTorch's, by our names."""
    for refused in REFUSED:
        if group.get(refused):
            raise Usage(f"{refused}={group[refused]} of the optimizer cannot be written in the graph")
    known = {setting for setting, fields in SETTINGS.items() if set(fields) <= set(OWN[name])}
    return {setting: value for setting, value in group.items() if setting in known}


def _names(optimizer: Any, module: Any) -> dict[int, list[str]]:
    """All that each parameter is called, by the module or by the optimizer itself."""
    found: dict[int, list[str]] = {}
    if hasattr(module, "named_parameters"):
        for name, value in module.named_parameters(remove_duplicate=False):
            found.setdefault(id(value), []).append(name)
    else:
        for group in optimizer.param_groups:
            found |= {id(value): [name] for value, name in zip(group["params"], group.get("param_names", ()))}
    if any(id(value) not in found for group in optimizer.param_groups for value in group["params"]):
        raise Usage("the optimizer's groups are of parameters without names; give params=module as well")
    return found


def _escape(name: str) -> str:
    """A pattern that this name alone matches."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def read_groups(words: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Groups as the command is told them: `PATTERN:weight_decay=0,lr=1e-3`."""
    groups: dict[str, dict[str, Any]] = {}
    for word in words:
        pattern, _, settings = word.rpartition(":")
        pairs = [pair.partition("=") for pair in settings.split(",")]
        if not pattern or not all(equals for _, equals, _ in pairs):
            raise Usage(f"--group {word}: say it as PATTERN:weight_decay=0, of names such as '*.bias'")
        groups[pattern] = {name.replace("-", "_"): value for name, _, value in pairs}
    return groups
