"""`remat batch`: the jobs of a manifest, on this machine or a cluster, and a report of what they came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from remat_cli.commands import options
from remat_cli.formats.kinds import FileKind, check_places
from remat_cli.interrupts import ANSWER

if TYPE_CHECKING:
    from remat_cli.batch.pool import Workers
    from remat_cli.batch.run import JobReport


@click.command(cls=options.GroupedCommand)
@click.argument("manifest", type=options.FILE)
@click.option(
    "-o",
    "--out",
    type=options.FOLDER,
    default="out",
    show_default=True,
    help="The folder of the jobs' outputs: OUT/<model>/<budget>-<method>/.",
)
@click.option("--jobs", type=click.IntRange(1), help="Processes at a time; by default one for each two cores.")
@click.option("--cluster", metavar="ADDRESS|local", help="Run on a Dask cluster: tcp://host:8786, or one begun here.")
@click.option(
    "--carry",
    type=click.Choice(["path", "content"]),
    default="path",
    show_default=True,
    help="With --cluster: models and outputs by paths that both sides see, or by content.",
)
@click.option("--report", type=options.FILE, help="Write a report, as JSON.")
@click.option("--junit", type=options.FILE, help="Write the expectations as test cases, as JUnit's XML.")
@click.option("--md", type=options.FILE, help="Write a table for a pull request, as Markdown.")
@click.option("--csv", type=options.FILE, help="Write the results as comma-separated values.")
@click.option("--baseline", type=options.FILE, help="An earlier --report: what is worse than there fails.")
@click.option(
    "--threshold", type=options.SHARE, default="1%", show_default=True, help="With --baseline: worse by more than this."
)
@click.option("--force", is_flag=True, help="Do every job again, whatever was found before.")
@options.as_json
@options.quiet
def command(manifest: Path, **given: Any) -> None:
    """Solve the models, budgets, methods and sessions of MANIFEST, each job by itself.

    A job that is done is not done again, so run the same command after an interrupt, a crash or a change. The exit
    code is the worst of the jobs': 1 a crash, 2 usage, 3 bad input, 6 not as expected, 4 infeasible, 5 no plan, 0 all
    passed.

    \b
    remat batch fleet.yaml --jobs 2 --report report.json
    remat batch fleet.yaml --md comment.md --baseline old-report.json
    """
    from remat_cli.batch.manifest import read

    jobs = read(manifest)
    _check_places(manifest, given)
    given["manifest"] = manifest
    raise SystemExit(_run(jobs, given))


def _check_places(manifest: Path, given: Mapping[str, Any]) -> None:
    """Reports can be written, before an hour is spent on them."""
    kinds = {"report": FileKind.BATCH, "junit": FileKind.JUNIT, "md": FileKind.MARKDOWN, "csv": FileKind.CSV}
    check_places(((given[name], kind) for name, kind in kinds.items()), manifest, given["baseline"])


def _run(jobs: Sequence[Any], given: Mapping[str, Any]) -> int:
    from remat_cli.batch import baseline
    from remat_cli.batch.expect import worst
    from remat_cli.batch.report import ProgressTable
    from remat_cli.batch.run import INTERRUPTED_CODE, Batch

    before = baseline.read(given["baseline"]) if given["baseline"] else {}
    begun, workers = monotonic(), _workers(given)
    batch = Batch(jobs, given["out"], workers, given["force"])
    try:
        with ProgressTable(len(jobs), workers.running, given["quiet"] or given["as_json"]) as table:
            results = batch.run(table)
    except KeyboardInterrupt:
        _write(batch.interrupted(), before, given, monotonic() - begun)
        click.echo("remat: interrupted", err=True)
        return INTERRUPTED_CODE
    finally:
        workers.close()
    if before:
        results = baseline.hold_against(results, before, given["threshold"])
    _write(results, before, given, monotonic() - begun)
    return worst(code for result in results for code in result.codes)


def _workers(given: Mapping[str, Any]) -> Workers:
    from profiles.system import processors

    count = given["jobs"] or max(1, processors() // 2)
    if given["cluster"]:
        from remat_cli.batch.cluster import Cluster

        return Cluster(given["cluster"], count, given["carry"] == "content")
    from remat_cli.batch.pool import Pool

    return Pool(count)


def _write(results: Sequence[JobReport], before: Mapping[Any, Any], given: Mapping[str, Any], seconds: float) -> None:
    from remat_cli.batch import report
    from remat_cli.formats.files import write_whole

    for name, text in (
        ("report", lambda: report.as_json(results, seconds)),
        ("junit", lambda: report.as_junit(results, seconds)),
        ("md", lambda: report.as_markdown(results, before)),
        ("csv", lambda: report.as_csv(results)),
    ):
        if given[name]:
            write_whole(given[name], text())
    failed = [result for result in results if not result.passed]
    if given["as_json"]:
        ANSWER.say(report.as_json(results, seconds).rstrip())
    elif given["quiet"]:
        for result in failed:
            click.echo(report.line(result), err=True)
    else:
        cached = sum(bool(result.said["cached"]) for result in results)
        click.echo(f"{len(results) - len(failed)} passed, {len(failed)} failed, {cached} unchanged, in {seconds:.1f}s")
