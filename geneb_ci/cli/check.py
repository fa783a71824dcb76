"""`geneb-ci check`: all errors of all submissions in one run."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from geneb_ci.check.place import Against
from geneb_ci.check.registry import select
from geneb_ci.check.runner import Checker, FileResult, Report, named_files
from geneb_ci.cli.shared import (
    STDOUT,
    PairedCommand,
    exit_code,
    paired,
    report_options,
    watched,
    width,
    write,
)
from geneb_ci.common.config import Finder, finder
from geneb_ci.common.errors import BadConfiguration, UsageProblem
from geneb_ci.render.formats import render
from geneb_ci.submission.paths import is_folder
from geneb_ci.submission.structure import Engine, check_structure


@click.command(cls=PairedCommand)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--select", "selected", multiple=True, metavar="RULE-OR-FAMILY", help="Run these rules only."
)
@click.option(
    "--ignore", "ignored", multiple=True, metavar="RULE-OR-FAMILY", help="Leave these rules out."
)
@click.option("--strict", is_flag=True, help="Exit 10 when there are warnings.")
@click.option(
    "--against",
    metavar="DIR|shipped|none",
    help="Rows to compare a file with that is not in a folder of submissions; default: those of "
    "its repository, else the shipped ones.",
)
@click.option("--isolated", is_flag=True, help="Ignore the settings in pyproject.toml.")
@click.option(
    "--config-from",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Take settings, benchmark, policy and audits from this trusted folder or pyproject.toml; "
    "only rows, cards and extractors come from the current folder.",
)
@report_options
@click.option(
    "--engine",
    type=click.Choice(["models", "jsonschema"]),
    default="models",
    show_default=True,
    help="Check the structure with the typed models, or with the published schemas.",
)
def check_command(
    paths: tuple[Path, ...],
    selected: tuple[str, ...],
    ignored: tuple[str, ...],
    strict: bool,
    against: str | None,
    isolated: bool,
    config_from: Path | None,
    formats: tuple[str, ...],
    outputs: tuple[str, ...],
    engine: str,
) -> int:
    """Check submissions: files or folders; without a path, all submissions of the repository."""
    if isolated and config_from is not None:
        raise UsageProblem("--isolated and --config-from exclude each other", "omit one of them")
    find = finder(isolated=isolated, config_from=config_from)
    layout = find(Path.cwd())
    reports = paired(formats, outputs)
    rules = select((*layout.select, *selected), (*layout.ignore, *ignored))
    if not paths and layout.submissions is None:
        raise UsageProblem("no submission is named", "name one: geneb-ci check submission.json")
    arguments = paths or [Path(os.path.relpath(str(layout.submissions)))]
    checker = Checker(rules, _engine(engine), find, _against(against, find))
    report, fault = _checked(checker, arguments)
    if fault is not None and not report.files:
        raise fault
    for output in reports:
        write(
            output,
            render(output.format, report, color=_color(output.path), width=width(output.path)),
        )
    if fault is not None:
        raise fault
    return exit_code(report, strict=strict)


def _checked(checker: Checker, arguments: Iterable[Path]) -> tuple[Report, BadConfiguration | None]:
    """Check all files; also return the error of settings that kept some from being checked."""
    files, lost = named_files(arguments, checker.find)
    report = Report(rules=len(checker.rules), unreadable=[*lost])
    fault = None
    try:
        for result in watched(checker.run(files), len(files), "checking"):
            if isinstance(result, FileResult):
                report.add(result)
            else:
                report.unreadable.append(result)
    except BadConfiguration as error:
        report.unreadable.append(error)
        fault = error
    report.benchmarks = checker.benchmarks
    report.findings.sort(key=lambda finding: finding.sort_key())
    return report, fault


def _against(value: str | None, find: Finder) -> Against | None:
    """Parse --against. Raises UsageProblem if the folder does not exist."""
    if value == "none":
        return None
    if value in {None, "shipped"}:
        return Against(shipped=True, only_shipped=value is not None)
    folder = Path(str(value))
    if not is_folder(folder):
        raise UsageProblem(
            f"--against {value}: no such folder", 'pass a folder, "shipped" or "none"'
        )
    layout = find(folder.resolve())
    is_root = layout.root == folder.resolve() and layout.submissions is not None
    return Against(folder=layout.submissions if is_root else folder)


def _engine(name: str) -> Engine:
    if name == "models":
        return check_structure
    from geneb_ci.submission.schema_engine import check_by_schema  # noqa: PLC0415 (jsonschema costs 60 ms to import)

    return check_by_schema


def _color(path: str) -> bool:
    return path == STDOUT and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
