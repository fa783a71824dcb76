"""Access of commands to the repository: its layout, rows, history, and the files of a commit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from geneb_ci.audit.trust import evidence as trust_evidence
from geneb_ci.board.board import SubmissionsRefused, checked_rows, submission_files_at
from geneb_ci.board.columns import Row
from geneb_ci.check.registry import BY_ID
from geneb_ci.check.runner import Report, files_of
from geneb_ci.cli.main import echo, print_expected_time
from geneb_ci.cli.shared import (
    PROSE_COLUMNS_MAX,
    exit_code,
    list_width,
    watch_build,
    watch_checks,
    width,
    with_progress,
)
from geneb_ci.common.config import Layout, LayoutKind, find_layout
from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.common.finding import known_name, name_hint
from geneb_ci.publish.generation import Generation, generate
from geneb_ci.publish.git import BadRepository, GitRepository, repository_at
from geneb_ci.publish.ledger import ledger
from geneb_ci.publish.manifest import Ledger
from geneb_ci.publish.session import require_space, space_of_environment
from geneb_ci.render.formats import render
from geneb_ci.render.published import models_of, row_history
from geneb_ci.render.table import wrapped_text
from geneb_ci.render.text import escape
from geneb_ci.submission.reading import files_in


class CheckedRows(NamedTuple):
    """The submissions of a folder, all of which passed every check."""

    layout: Layout
    """Where the repository of the folder has its files."""
    rows: list[Row]


def load_rows(folder: Path | None, refusal: str, usage: str) -> CheckedRows | Exit:
    """Return the checked submissions of a folder.

    If a submission has an error, print the report with `refusal`, which says what was not done, and
    return the exit code instead. `usage` is a command with a folder, for the fix of an error.
    """
    try:
        layout, files = submission_files_at(folder, usage)
        return CheckedRows(layout, checked_rows(layout, files, watch_checks))
    except SubmissionsRefused as error:
        return print_refusal(error.report, refusal)


def layout_here() -> Layout:
    """Return the layout of the repository of the current folder.

    Raises UsageProblem if it is not in a repository of submissions.
    """
    layout = find_layout(Path.cwd())
    if layout.kind is LayoutKind.ALONE:
        raise UsageProblem(
            "the current folder is not in a repository of submissions",
            "run this in a clone that has submissions/ and schemas/benchmark.json",
        )
    return layout


def print_refusal(report: Report, refusal: str = "nothing was built") -> Exit:
    """Print why there are no rows, and return the exit code."""
    click.echo(render("text", report, width=width()), nl=False)
    echo(f"{refusal}: every submission must pass every check", err=True)
    return exit_code(report, strict=False)


def watch_history(steps: Iterator[Any], total: int) -> Iterator[Any]:
    """Yield the steps of a history, and show progress as `with_progress` does."""
    return with_progress(steps, total, "reading the history")


def print_expected_time_of_rows(label: str, seconds_per_row: float, layout: Layout) -> None:
    """Print how long work on all rows takes, at `seconds_per_row` seconds per row."""
    print_expected_time(label, len(files_of([layout.root])) * seconds_per_row)


HEAD = "HEAD"
"""Name of the newest commit of the current branch in git."""


def repository_here() -> GitRepository:
    """Return the git repository of the current folder.

    Raises UsageProblem if it has no submissions, BadRepository if they are not at its root.
    """
    return repository_at(layout_here())


def build_generation(repository: GitRepository, commit: str) -> tuple[Exit, Generation | None]:
    """Return the exit code and the generation of a commit.

    If a check fails, print why, and return None in place of the generation.
    """
    source_commit = repository.resolve(commit)
    try:
        return Exit.CLEAN, generate(repository, source_commit, watch_build, watch_history)
    except SubmissionsRefused as error:
        return print_refusal(error.report), None


def space_name(option: str | None) -> str:
    """Return the Space as OWNER/NAME. Raises UsageProblem where none is given or it is invalid."""
    space = option or space_of_environment()
    if space is None:
        raise UsageProblem(
            "no Space is given",
            "pass --space OWNER/NAME, or set HF_OIDC_RESOURCE=spaces/OWNER/NAME",
        )
    return require_space(space)


_NOT_ON_BOARD_TEXT = "not on the board"


def print_row(model: str) -> None:
    """Print the trust level, evidence and history of a row, also of a removed row.

    Raises UsageProblem where no such row ever existed, and BrokenRecordError for a record that
    cannot be read.
    """
    layout = find_layout(Path.cwd())
    level_reasons = trust_evidence.level_reasons(model, layout)
    history, history_error = _history()
    events = list(row_history(history, model, width(widest=PROSE_COLUMNS_MAX)))
    if level_reasons is None and not events:
        present_models = (
            [path.stem for path in files_in(layout.submissions)] if layout.submissions else []
        )
        models = [*present_models, *models_of(history)]
        if (exact_id := known_name(model, models)) not in {None, model}:
            print_row(str(exact_id))
            return
        raise _unknown_name_error(model, layout, models)
    first, *further_reasons = level_reasons or [_NOT_ON_BOARD_TEXT]
    line = wrapped_text(f"{model}  {escape(first)}", list_width())
    click.echo(line.replace(model, click.style(model, bold=True), 1), nl=False)
    for line in further_reasons:
        click.echo(wrapped_text(f"  {escape(line)}", list_width()), nl=False)
    for line in events:
        echo(line)
    if history_error:
        echo(f"the history of the row cannot be read: {escape(history_error)}", err=True)


def _unknown_name_error(name: str, layout: Layout, models: list[str]) -> UsageProblem:
    """Return the error for a name that is neither a rule nor a model."""
    if layout.kind is LayoutKind.ALONE:
        return UsageProblem(
            f"{name!r} is not a rule{name_hint(name, list(BY_ID))}",
            "list the rules with `geneb-ci rules`; to explain a model, run this in a clone of the "
            "repository with its submission (submissions/ and schemas/benchmark.json)",
        )
    known_names = [*BY_ID, *models]
    stem = Path(name).stem if name.endswith(".json") else ""
    if stem in known_names:
        return UsageProblem(
            f"{name!r} is a file, expected the name of a rule or a model",
            f"name the model of the file: geneb-ci explain {stem}",
        )
    return UsageProblem(
        f"{name!r} is neither a rule nor a model of this repository{name_hint(name, known_names)}",
        "name a rule that `geneb-ci rules` lists, or a model that `geneb-ci trust` lists",
    )


def _history() -> tuple[Ledger, str]:
    """Return the ledger of this repository and ""; if it cannot be read, no events and why."""
    try:
        repository = repository_here()
        return ledger(repository, repository.resolve(HEAD), watch=watch_history), ""
    except UsageProblem as error:
        return Ledger(events=[]), error.message
    except BadRepository as error:
        return Ledger(events=[]), f"{error.message}; fix: {error.fix}"
