"""`geneb-ci build`: the board from the submissions, or nothing."""

from pathlib import Path

import click

from geneb_ci.build.files import encode, write_files
from geneb_ci.build.rows import Entry, entry_of, leaderboards, ranked_regimes
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, Report, files_of
from geneb_ci.cli.check import exit_code
from geneb_ci.cli.progress import watched
from geneb_ci.config import Kind, benchmark_of, find_layout
from geneb_ci.errors import Exit, UsageProblem
from geneb_ci.finding import listed
from geneb_ci.label.evidence import gather
from geneb_ci.report.formats import render


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
def command(folder: Path | None, out: Path) -> int:
    """Rebuild leaderboard.json and leaderboard_tasks.json from the submissions of FOLDER.

    Every submission is checked first; where one has an error, nothing is written.
    """
    layout = find_layout((folder or Path.cwd()).resolve())
    if folder is None and layout.kind is Kind.ALONE:
        raise UsageProblem(
            "no folder of submissions is named", "name it: geneb-ci build FOLDER --out DIR"
        )
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
        click.echo(
            "nothing was built: a board is made of submissions that pass every check", err=True
        )
        return code
    benchmark = benchmark_of(layout)
    categories, tasks = leaderboards(entries, benchmark)
    write_files(
        out,
        {
            "leaderboard.json": encode("leaderboard.json", categories),
            "leaderboard_tasks.json": encode("leaderboard_tasks.json", tasks),
        },
    )
    click.echo(
        f"built {out / 'leaderboard.json'} and leaderboard_tasks.json: {len(entries)} models"
    )
    unranked = [
        f"{entry.submission.model_id} ({regime})"
        for entry in entries
        for regime in benchmark.regimes
        if regime not in ranked_regimes(entry.submission, benchmark)
    ]
    if unranked:
        click.echo(f"not ranked, because of declared gaps: {listed(unranked)}")
    return Exit.CLEAN
