"""The commands `geneb-ci check`, which reports the errors of submissions, `rules` and `explain`."""

import json
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from geneb_ci.api import STDIN, CheckReport, check_branch, check_pull
from geneb_ci.api import check as check_files
from geneb_ci.api import fix as fix_files
from geneb_ci.check.report import Verdict
from geneb_ci.cli.main import echo, is_plain, say
from geneb_ci.cli.shared import (
    ALL_LINES_OPTION,
    OLD_JSON_OPTION,
    PROSE_COLUMNS_MAX,
    STDOUT,
    CommandWithOptionOrder,
    LayeredCommand,
    Output,
    exit_code,
    format_option,
    outputs_with_formats,
    report_options,
    require_pull_for_repository,
    watch_checks,
    width,
    write,
)
from geneb_ci.common.errors import BadConfiguration, Exit, UsageProblem
from geneb_ci.common.finding import Severity
from geneb_ci.common.parallel import PARALLEL_FILES_MIN
from geneb_ci.common.types import level_meaning, level_word
from geneb_ci.render.formats import FULL_TEXT, proposal_lines, pull_request_hint, render
from geneb_ci.render.table import Table, wrapped_text
from geneb_ci.render.text import escape
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX
from reference_harness.formats.text import next_line, plural

if TYPE_CHECKING:
    from geneb_ci.check.rule import AnyRule

DIFF_LINE_MAX = 300
"""Maximum characters of a line of a diff: a file written on one line is a change of 100 kB."""
PASSING_VERDICTS = frozenset({Verdict.CLEAN, Verdict.WARNINGS})
"""Verdicts of a submission that passes the checks."""
PRINTED_STALE_MAX = 10
"""Maximum number of printed findings of a baseline that no longer exist."""


class _Check(CommandWithOptionOrder, LayeredCommand):
    """The command `check`."""


@click.command(
    cls=_Check,
    common=(
        *("--fix", "--diff", "--strict", "--select", "--ignore", "--baseline", "--against"),
        *("--base", "--pr", "--format", "--output"),
    ),
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--select", "selected", multiple=True, metavar="RULE-OR-FAMILY", help="Run only these rules."
)
@click.option(
    "--ignore", "ignored", multiple=True, metavar="RULE-OR-FAMILY", help="Leave these rules out."
)
@click.option("--strict", is_flag=True, help="Exit 10 when there are warnings.")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Leave out the findings of this earlier report in JSON, and name those that are gone.",
)
@click.option(
    "--fix",
    is_flag=True,
    help="First fix errors that have only one fix: order of members, $schema, newline at the end, "
    "rounded means of unrounded seeds.",
)
@click.option("--diff", is_flag=True, help="Print what --fix would change, and stop.")
@click.option(
    "--against",
    metavar="DIR|shipped|none",
    help="Rows with which to compare a file outside a folder of submissions; default: the rows of "
    "its repository, or the shipped rows.",
)
@click.option("--isolated", is_flag=True, help="Ignore the settings in pyproject.toml.")
@click.option(
    "--config-from",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Take settings, benchmark, policy and audits from this trusted folder or pyproject.toml; "
    "only rows, cards and extractors come from the current folder.",
)
@click.option(
    "--base",
    metavar="REF",
    help="Check the commit HEAD as a pull request to this branch, as the server does.",
)
@click.option(
    "--pr",
    type=click.IntRange(min=1),
    metavar="N",
    help="Check this open pull request over GitHub's API, as the server does.",
)
@click.option(
    "--repo", metavar="OWNER/NAME", help="Repository of --pr; default: GITHUB_REPOSITORY."
)
@report_options
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help=f"Processes; default: 1 below {PARALLEL_FILES_MIN} files, else one per core.",
)
@click.option("--no-cache", is_flag=True, help="Neither read nor write results in the cache.")
def check_command(
    paths: tuple[Path, ...],
    selected: tuple[str, ...],
    ignored: tuple[str, ...],
    strict: bool,
    baseline: Path | None,
    fix: bool,
    diff: bool,
    against: str | None,
    isolated: bool,
    config_from: Path | None,
    base: str | None,
    pr: int | None,
    repo: str | None,
    formats: tuple[str, ...],
    outputs: tuple[str, ...],
    jobs: int | None,
    no_cache: bool,
) -> int:
    """Check submissions: files or folders; without a path, the branch of a clone.

    Without a path the command prints the verdict of the server on HEAD as a pull request to main.
    Outside of a clone, on main, or with an option about files, it checks all submissions of the
    repository. The path - means standard input.
    """
    require_pull_for_repository(repo, pulls=pr is not None)
    flags = (isolated or None, fix or None, diff or None, jobs, no_cache or None)
    file_options = (*paths, *selected, *ignored, against, config_from, baseline, *flags)
    reports = outputs_with_formats(formats, outputs)
    if _checks_proposal(base, pr, file_options):
        proposal_report = _proposal_report(base, pr, repo)
        if proposal_report is not None:
            _write(proposal_report, reports)
            if pr is None:
                _print_next(proposal_report, (), reports)
            return exit_code(proposal_report, strict=strict)
    if fix or diff:
        _repair(paths, write=not diff)
        if diff:
            return Exit.CLEAN
    report = check_files(
        *(read_stdin() if str(path) == STDIN else path for path in paths),
        select=selected,
        ignore=ignored,
        against=against,
        isolated=isolated,
        config_from=config_from,
        baseline=baseline,
        jobs=jobs,
        cache=not no_cache,
        progress=watch_checks,
    )
    _write(report, reports)
    if report.files and any(not path.is_dir() for path in paths):
        _print_paragraph(
            pull_request_hint(is_short=report.verdict not in PASSING_VERDICTS), reports
        )
    if baseline is not None:
        _print_baseline(report, baseline)
    _print_next(report, paths, reports)
    settings_error = next(
        (error for error in report.unreadable if isinstance(error, BadConfiguration)), None
    )
    if settings_error is not None:
        raise settings_error
    return exit_code(report, strict=strict)


def read_stdin() -> bytes:
    """Return a submission from standard input, cut one byte beyond the size limit.

    Raises UsageProblem where standard input is closed.
    """
    if sys.stdin is None or sys.stdin.closed:
        raise UsageProblem("standard input is closed", f"pass a submission: {_PIPE_COMMAND}")
    if sys.stdin.isatty():
        echo(
            f"reading a submission from the terminal until Ctrl-D; to read a file: {_PIPE_COMMAND}",
            err=True,
        )
    return sys.stdin.buffer.read(SUBMISSION_BYTES_MAX + 1)


_PIPE_COMMAND = "geneb-ci check - < submission.json"
"""Command that reads a submission from standard input."""


def _repair(paths: tuple[Path, ...], *, write: bool) -> None:
    """Fix files and print what was changed, or without `write` print the difference.

    Raises UsageProblem for standard input.
    """
    if any(str(path) == STDIN for path in paths):
        raise UsageProblem(
            f"{STDIN} is standard input, which cannot be written", "name the file to fix"
        )
    repairs = fix_files(*paths, write=write)
    for repair in repairs:
        if not write:
            for line in repair.diff().splitlines():
                click.echo(escape(line[:DIFF_LINE_MAX]))
        elif repair.changes:
            echo(f"{escape(repair.file)}: {escape('; '.join(repair.changes))}", err=True)
    for reason, count in Counter(repair.left for repair in repairs if repair.left).items():
        echo(f"not changed, {reason}: {plural(count, 'file')}", err=True)


def _print_baseline(report: CheckReport, baseline: Path) -> None:
    """Print how many findings a baseline left out, and which of its entries match nothing."""
    lines = [f"{plural(report.known, 'finding')} of {baseline} left out"] if report.known else []
    lines += [
        f"{baseline}: not found any more: {known.rule} in {known.file} {known.pointer}"
        for known in report.stale[:PRINTED_STALE_MAX]
    ]
    if len(report.stale) > PRINTED_STALE_MAX:
        lines.append(f"{baseline}: and {len(report.stale) - PRINTED_STALE_MAX} more")
    if report.stale:
        command = f"geneb-ci check --format json --output {baseline}"
        lines.append(f"  fix: write the baseline again: {command}")
    paragraph = "".join(f"{escape(line)}\n" for line in lines)
    click.echo(wrapped_text(paragraph, width()), nl=False, err=True)


def _checks_proposal(base: str | None, pr: int | None, file_options: Sequence[object]) -> bool:
    """Whether a branch or a pull request is checked, because no path or file option is given.

    Raises UsageProblem for --base with --pr, and for either with a path or file option.
    """
    has_no_file_options = all(value is None for value in file_options)
    if base is not None and pr is not None:
        raise UsageProblem("--base and --pr exclude each other", "pass one of them")
    if (base is not None or pr is not None) and not has_no_file_options:
        raise UsageProblem(
            "--base and --pr check a whole pull request by main's settings, and allow neither "
            "paths nor options for files",
            "omit paths and every option but --strict, --format and --output",
        )
    return has_no_file_options


def _proposal_report(base: str | None, pr: int | None, repo: str | None) -> CheckReport | None:
    """Return the report on a branch or a pull request; None where there is no branch to check."""
    from geneb_ci.publish.git import NoBranch, NoClone

    if pr is not None:
        return check_pull(pr, repo=repo, say=_note)
    try:
        return check_branch(base, say=_note)
    except NoBranch as error:
        if base is not None:
            raise
        if not isinstance(error, NoClone):
            _note(f"{error.message}; all submissions of the working tree are checked")
            say(f"  to check a branch: {error.fix}")
        return None


def _note(text: str) -> None:
    """Print a note to standard error."""
    say(f"note: {escape(text)}")


def _write(report: CheckReport, outputs: list[Output]) -> None:
    """Write a report in each format, and print the verdict on a pull request beside them."""
    for output in outputs:
        report_text = render(
            output.format, report, color=_has_color(output.path), width=width(output.path)
        )
        write(output, report_text)
    if Output("text", STDOUT) not in outputs:
        for line in proposal_lines(report):
            click.echo(wrapped_text(f"{escape(line)}\n", width()), nl=False, err=True)


def _print_paragraph(text: str, outputs: list[Output]) -> None:
    """Print a paragraph after a report that is read in a terminal."""
    if Output("text", STDOUT) in outputs:
        click.echo(wrapped_text(f"{text}\n", width()), nl=False, err=True)


def _print_next(report: CheckReport, paths: tuple[Path, ...], outputs: list[Output]) -> None:
    """Print the next command after a report that is read in a terminal."""
    if not {Output("text", STDOUT), Output(FULL_TEXT, STDOUT)} & {*outputs}:
        return
    from geneb_ci.situation.after_check import command_after  # for people alone

    command = command_after(report, paths, Path.cwd())
    if command:
        echo(next_line(command))


def _has_color(path: str) -> bool:
    """Whether a report is printed in color."""
    return path == STDOUT and sys.stdout.isatty() and not is_plain()


@click.command()
@ALL_LINES_OPTION
@format_option(["text", "json"])
@OLD_JSON_OPTION
def rules_command(format_: str, *, prints_all: bool) -> None:
    """List the families of rules, or with --all every rule."""
    from geneb_ci.check.registry import ALL  # every rule, of which a check may need few

    if format_ == "json":
        rows = [
            {
                "id": r.id,
                "family": r.family,
                "severity": r.severity,
                "what": r.what,
                "why": r.why,
                "fix": r.fix,
                "needs": list(r.needs),
            }
            for r in ALL
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    if not prints_all:
        _print_families(ALL)
        return
    columns = ("rule", "severity", "what it looks for")
    cells = [(rule.id, rule.severity, rule.what) for rule in ALL]
    lines_by_rule = Table(columns, cells).fitted_rows(width() - len(_INDENT), head=False)
    family = ""
    for rule, lines in zip(ALL, lines_by_rule, strict=True):
        if rule.family != family:
            family = rule.family
            click.echo(("\n" if rule is not ALL[0] else "") + click.style(family, bold=True))
        for line in lines:
            click.echo(f"{_INDENT}{line}")


_INDENT = "  "


def _print_families(rules: "Sequence[AnyRule]") -> None:
    """Print the families of rules, with the number of rules of each severity."""
    counts = Counter((rule.family, rule.severity) for rule in rules)
    families = list(dict.fromkeys(rule.family for rule in rules))
    columns = ("family", *(f"{severity}s" for severity in Severity))
    cells = [
        (family, *(f"{counts[family, severity]}" for severity in Severity)) for family in families
    ]
    for line in Table(columns, cells, frozenset(columns[1:])).text_lines():
        click.echo(line)
    hint = (
        f"{plural(len(rules), 'rule')}: `geneb-ci explain FAMILY` lists its rules, "
        "--all lists every rule"
    )
    click.echo(f"\n{hint}")


@click.command()
@click.argument("name", metavar="RULE|FAMILY|LEVEL|MODEL")
def explain_command(name: str) -> None:
    """Explain a rule, a family of rules, a trust level, or the level and history of a row."""
    from geneb_ci.check.registry import ALL, BY_ID

    rule = BY_ID.get(name.casefold())
    if rule is not None:
        _print_rule(rule)
        return
    family = [rule for rule in ALL if rule.family == name.casefold()]
    if family:
        _print_family(family)
        return
    meaning = level_meaning(name.casefold())
    if meaning:
        _print_level(name.casefold(), meaning)
        return
    from geneb_ci.cli.repository import print_row  # a rule needs neither evidence nor git

    print_row(name)


def _print_level(level: str, meaning: str) -> None:
    """Print the meaning of a trust level."""
    columns = width(widest=PROSE_COLUMNS_MAX)
    shown_level = level_word(level)
    other_name = "" if shown_level == level else f"the same as {shown_level}: "
    click.echo(wrapped_text(f"{level}  {other_name}{meaning}", columns), nl=False)
    hint = "`geneb-ci trust` lists the rows with their levels, `geneb-ci explain MODEL` says why"
    click.echo("\n" + wrapped_text(hint, columns), nl=False)


def _print_family(rules: "list[AnyRule]") -> None:
    """Print what each rule of a family looks for."""
    click.echo(f"{click.style(rules[0].family, bold=True)}  {plural(len(rules), 'rule')}\n")
    columns = ("rule", "severity", "what it looks for")
    cells = [(rule.id, rule.severity, rule.what) for rule in rules]
    for lines in Table(columns, cells).fitted_rows(width(), head=False):
        for line in lines:
            click.echo(line)
    hint = "`geneb-ci explain RULE` says why a rule matters, and how to fix what it finds"
    click.echo("\n" + wrapped_text(hint, width()), nl=False)


def _print_rule(rule: "AnyRule") -> None:
    """Print what a rule looks for, why, and how to fix the problem."""
    columns = width(widest=PROSE_COLUMNS_MAX)
    click.echo(f"{click.style(rule.id, bold=True)}  {rule.severity} · {rule.family}\n")
    for title, text in (("", rule.what), ("Why: ", rule.why), ("Fix: ", rule.fix)):
        click.echo(textwrap.fill(title + text, columns) + "\n")
    if rule.needs:
        need = rule.needs[-1]
        click.echo(textwrap.fill(f"Needs {need.text}. If unavailable: {need.fix}.", columns) + "\n")
