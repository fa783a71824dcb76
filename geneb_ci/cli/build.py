"""`geneb-ci build`: the board from the submissions, or nothing."""

from pathlib import Path
from typing import NamedTuple

import click

from geneb_ci.build.analysed import analysed
from geneb_ci.build.files import encode, write_files
from geneb_ci.build.page import page_files, write_page
from geneb_ci.build.page_data import page_scripts
from geneb_ci.build.rows import Entry, entry_of, leaderboards, ranked_regimes
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, Report, files_of
from geneb_ci.cli.check import exit_code
from geneb_ci.cli.progress import watched
from geneb_ci.config import Kind, Layout, benchmark_of, find_layout
from geneb_ci.errors import Exit, UsageProblem
from geneb_ci.finding import listed
from geneb_ci.label.evidence import gather
from geneb_ci.report.formats import render


class Loaded(NamedTuple):
    """A folder of submissions, all of which passed every check."""

    layout: Layout
    entries: list[Entry]


def load(folder: Path | None, refusal: str, usage: str) -> Loaded | Exit:
    """Check the submissions of a folder; where one has an error, show it and give the exit code."""
    layout = find_layout((folder or Path.cwd()).resolve())
    if folder is None and layout.kind is Kind.ALONE:
        raise UsageProblem("no folder of submissions is named", f"name it: geneb-ci {usage}")
    checker = Checker(RULES)
    report = Report(rules=len(RULES))
    entries: list[Entry] = []
    evidence = gather(layout)
    evidence.require_sound()
    files = files_of([folder or layout.root])
    for result in watched(checker.run(files), len(files), "checking"):
        if not isinstance(result, FileResult):
            report.unreadable.append(result)
            continue
        report.add(result)
        if result.submission is not None:
            decision = evidence.decide(result.document.sha256)
            entries.append(entry_of(result.submission, decision))
    report.benchmarks = checker.benchmarks
    code = exit_code(report, strict=False)
    if code is not Exit.CLEAN:
        report.findings.sort(key=lambda finding: finding.sort_key())
        click.echo(render("text", report), nl=False)
        click.echo(f"{refusal}: a board is made of submissions that pass every check", err=True)
        return code
    return Loaded(layout, entries)


@click.command()
@click.argument(
    "folder", required=False, type=click.Path(path_type=Path, file_okay=False, exists=True)
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the board.",
)
@click.option(
    "--diagnostics/--no-diagnostics",
    "more",
    default=True,
    help="Write diagnostics.json and recommendations.json, too; they need the extra `build`.",
)
def command(folder: Path | None, out: Path, *, more: bool) -> int:
    """Rebuild leaderboard.json, leaderboard_tasks.json and the page from the submissions of FOLDER.

    Every submission is checked first; where one has an error, nothing is written. Open index.html
    in DIR from disk or from any server: it loads nothing from elsewhere.
    """
    loaded = load(folder, "nothing was built", "build FOLDER --out DIR")
    if not isinstance(loaded, Loaded):
        return loaded
    layout, entries = loaded
    benchmark = benchmark_of(layout)
    categories, tasks = leaderboards(entries, benchmark)
    values = {"leaderboard.json": categories, "leaderboard_tasks.json": tasks}
    if more:
        values |= analysed(entries, benchmark, layout)
    write_files(out, {name: encode(name, value) for name, value in values.items()})
    write_page(out, page_files() | page_scripts(values, entries, benchmark))
    first, *middle, last = values
    names = ", ".join([str(out / first), *middle])
    click.echo(f"built {names} and {last}: {len(entries)} models")
    unranked = [
        f"{entry.submission.model_id} ({regime})"
        for entry in entries
        for regime in benchmark.regimes
        if regime not in ranked_regimes(entry.submission, benchmark)
    ]
    if unranked:
        click.echo(f"not ranked, because of declared gaps: {listed(unranked)}")
    return Exit.CLEAN
