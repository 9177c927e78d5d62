"""What `--help` prints: a command's options in groups, and the options of one method where that method is named.

Invariant: every option of a command stands in one group; one that no group names stands under "Options".
"""

from __future__ import annotations

from typing import Any

import click

GROUPS: dict[str, tuple[str, ...]] = {
    "Input": (
        *("--costs", "--dim", "--optimize", "--profile", "--measure", "--estimate", "--device", "--shape", "--batch"),
        *("--batch-dim", "--params-from", "--wrt", "--tie", "--as-exported", "--freeze-bn", "--model", "--feeds"),
        *("--in-place", "--no-in-place", "--train", "--provider"),
    ),
    "Loss and optimizer": (
        *("--grad", "--loss", "--logits", "--class-axis", "--outputs", "--optimizer", "--learning-rate"),
        *("--weight-decay", "--betas"),
        *("--eps", "--momentum", "--clip", "--group", "--schedule", "--precision"),
    ),
    "Question": (
        *("--budget", "--budgets", "--minimize", "--max-overhead", "--runtime", "--pieces"),
        *("--largest-value", "--step"),
    ),
    "Method": ("--method", "--methods", "--baselines", "--list", "--reorder", "--lp"),
    "Limits": ("--time-limit", "--work-limit", "--gap", "--seed", "--force", "--threads", "--jobs", "--timeout"),
    "Output": (
        *("--output", "--out", "--certificate", "--plot", "--html", "--json", "--csv", "--md", "--junit", "--report"),
        *("--table", "--quiet", "--verbose", "--help"),
    ),
}
OTHER = "Options"
NAME_WIDTH = 26  # columns for the names of options, so that their help has the rest of a line of 80


class MethodOption(click.Option):
    """An option that only some methods take; `owners` names them."""

    def __init__(self, *given: Any, owners: tuple[str, ...] = (), **named: Any) -> None:
        super().__init__(*given, **named)
        self.owners = owners


class GroupedCommand(click.Command):
    """A command whose help has its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        method = ctx.params.get("method")
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in (*GROUPS, OTHER, f"Options of {method}")}
        left_out = False
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None or isinstance(parameter, click.Argument):
                continue
            if not isinstance(parameter, MethodOption):
                groups[_find_group(parameter)].append(record)
            elif method in parameter.owners:
                groups[f"Options of {method}"].append(record)
            else:
                left_out = True
        width = min(NAME_WIDTH, max(len(name) for records in groups.values() for name, _ in records))
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl([(f"{option:<{width}}", says) for option, says in records], col_max=width)
        if left_out:
            formatter.write_paragraph()
            formatter.write_text(f"`{ctx.command_path} --method NAME --help` adds the options of that method.")


def _find_group(parameter: click.Parameter) -> str:
    names = set(parameter.opts)
    return next((group for group, members in GROUPS.items() if names.intersection(members)), OTHER)
