"""`geneb-ci check`: every fault of every submission, at once."""

import os
import shutil
import sys
from pathlib import Path

import click

from geneb_ci.check.registry import select
from geneb_ci.check.runner import Checker, FileResult, Report, files_of
from geneb_ci.cli.outputs import STDOUT, PairedCommand, format_options, paired, write
from geneb_ci.cli.progress import watched
from geneb_ci.config import find_layout
from geneb_ci.errors import Exit, UsageProblem
from geneb_ci.read.structure import Engine, check_structure
from geneb_ci.report.formats import render
from geneb_ci.report.summary import Verdict, verdict

NARROWEST, WIDEST = 60, 120  # columns between which a report is pleasant to read


@click.command(cls=PairedCommand)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--select", "selected", multiple=True, metavar="RULE-OR-FAMILY", help="Run these rules only."
)
@click.option(
    "--ignore", "ignored", multiple=True, metavar="RULE-OR-FAMILY", help="Leave these rules out."
)
@click.option("--strict", is_flag=True, help="Exit 10 when there are warnings.")
@format_options
@click.option(
    "--engine", type=click.Choice(["models", "jsonschema"]), default="models", show_default=True
)
def command(
    paths: tuple[Path, ...],
    selected: tuple[str, ...],
    ignored: tuple[str, ...],
    strict: bool,
    formats: tuple[str, ...],
    outputs: tuple[str, ...],
    engine: str,
) -> int:
    """Check submissions: files, or folders that hold some; in a repository, all of them."""
    layout = find_layout(Path.cwd())
    reports = paired(formats, outputs)
    rules = select((*layout.select, *selected), (*layout.ignore, *ignored))
    if not paths and layout.submissions is None:
        raise UsageProblem("no submission is named", "name one: geneb-ci check submission.json")
    files = files_of(paths or [Path(os.path.relpath(str(layout.submissions)))])
    checker = Checker(rules, _engine(engine))
    report = Report(rules=len(rules))
    for result in watched(checker.run(files), len(files), "checking"):
        if isinstance(result, FileResult):
            report.add(result)
        else:
            report.unreadable.append(result)
    report.benchmarks = checker.benchmarks
    report.findings.sort(key=lambda finding: finding.sort_key())
    for output in reports:
        write(output, render(output.format, report, color=_color(output.path), width=_width()))
    return exit_code(report, strict=strict)


_EXITS = {
    Verdict.CLEAN: Exit.CLEAN,
    Verdict.WARNINGS: Exit.CLEAN,
    Verdict.NOT_CHECKED: Exit.NOT_CHECKED,
    Verdict.ERRORS: Exit.ERRORS,
}


def exit_code(report: Report, *, strict: bool) -> Exit:
    """Give the exit code that says what the verdict says."""
    found = verdict(report)
    return Exit.WARNINGS if strict and found is Verdict.WARNINGS else _EXITS[found]


def _engine(name: str) -> Engine:
    if name == "models":
        return check_structure
    from geneb_ci.read.engine import check_by_schema  # noqa: PLC0415 (jsonschema costs 60 ms to import)

    return check_by_schema


def _color(path: str) -> bool:
    return path == STDOUT and sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _width() -> int:
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size((100, 24)).columns))
