"""The command `geneb-ci init`, which makes the repository of a board and its settings."""

import shlex
from pathlib import Path

import click

from geneb_ci.cli.main import echo
from geneb_ci.cli.shared import STDOUT, Output, width, write
from geneb_ci.common.errors import Exit
from geneb_ci.github.settings import diagnosis
from geneb_ci.github.settings.diagnosis import SettingState
from geneb_ci.init.new_app import make_app
from geneb_ci.init.new_board import apply_settings, has_rows, new_board, require_no_link_loop
from geneb_ci.init.new_repository import (
    BoardAnswers,
    completed_answers,
    has_uncommitted_changes,
    make_first_commit,
)
from geneb_ci.render.table import wrapped_text
from reference_harness.formats.text import next_line

FIRST_ROW_COMMAND = (
    "geneb-ci run --data DIR --extractor kmer --model-id kmer-baseline --display 'k-mer baseline' "
    "--training-data none --zero-shot --submitted-by NAME --output ../record.json "
    "--submission submissions/kmer-baseline.json"
)
"""Command that measures a first row, run in the folder of the board; DIR has the task data."""


@click.command()
@click.argument(
    "folder", default=".", type=click.Path(path_type=Path, file_okay=False), metavar="[DIR]"
)
@click.option(
    "--repo", metavar="OWNER/NAME", help="Repository on GitHub; no file need be in it yet."
)
@click.option("--space", metavar="OWNER/NAME", help="Space on the Hub; default: as --repo.")
@click.option(
    "--maintainers",
    multiple=True,
    metavar="@ORG/TEAM",
    help="Code owner: a team, or two accounts (pass the option twice), each of which approves the "
    "other's changes.",
)
@click.option(
    "--alone",
    is_flag=True,
    help="Less safe: --maintainers is one account, which merges its own pull requests.",
)
@click.option(
    "--benchmark",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Benchmark definition; default: the practice benchmark GENEB-mini, with one row.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, without doing it.")
@click.option("--force", is_flag=True, help="Overwrite files that differ.")
@click.option("--apply", is_flag=True, help="Push the first commit, and set up GitHub and the Hub.")
@click.option(
    "--app",
    is_flag=True,
    help="Make a GitHub App, with two clicks, that sets verdicts and proposes audits.",
)
def init_command(
    folder: Path,
    repo: str | None,
    space: str | None,
    maintainers: tuple[str, ...],
    alone: bool,
    benchmark: Path | None,
    dry_run: bool,
    force: bool,
    apply: bool,
    app: bool,
) -> int:
    """Write the repository of a new board into DIR, then with --apply set up GitHub and the Hub.

    Without --apply nothing leaves this machine. With --apply the tokens are GH_TOKEN and HF_TOKEN.
    After --app, audits open their pull requests themselves, nobody stores a personal token, and
    main accepts the status of a verdict only from the App.
    The command can be run again, with --apply too: existing files and settings are not written
    twice, and a file that differs is kept.
    """
    require_no_link_loop(folder)
    board_answers = completed_answers(folder, repo, space, maintainers, is_alone=alone)
    if apply:
        return _apply(folder, board_answers, dry_run=dry_run)
    if app:
        return _make_app(board_answers, dry_run=dry_run)
    board = new_board(folder, board_answers, benchmark)
    for line in board.lines(force=force):
        echo(line)
    board.check_before_writing()
    if dry_run:
        echo("nothing was written: this was a dry run")
        return Exit.CLEAN
    board.write(force=force)
    if make_first_commit(folder):
        echo("made the first commit")
    elif has_uncommitted_changes(folder):
        echo("merge the changes by a pull request: until then they have no effect")
    if not force and board.has_differing_files:
        echo(
            "  fix: compare your files with the new ones, or overwrite them: geneb-ci init --force",
            err=True,
        )
    _print_next_step(folder, board_answers)
    return Exit.CLEAN


def _apply(folder: Path, answers: BoardAnswers, *, dry_run: bool) -> Exit:
    """Set up GitHub and the Hub, and print the settings that are not set yet as a checklist."""

    def say_setting(line: str) -> None:
        click.echo(wrapped_text(line, width()), nl=False)

    def say_error(line: str) -> None:
        echo(line, err=True)

    diagnoses, features = apply_settings(
        folder, answers, echo, say_setting, say_error, dry_run=dry_run
    )
    if dry_run:
        return Exit.CLEAN
    write(
        Output("text", STDOUT),
        diagnosis.as_text(answers.repository, diagnoses, width(), features),
    )
    if any(setting.state is SettingState.WRONG for setting in diagnoses):
        return Exit.ERRORS
    echo(next_line(shlex.join(["geneb-ci", "publish", "--space", str(answers.space)])))
    return Exit.CLEAN


def _make_app(answers: BoardAnswers, *, dry_run: bool) -> Exit:
    """Make an App of the board, and print the next command."""
    app = make_app(answers.repository, echo, dry_run=dry_run)
    if app is not None:
        echo(next_line(shlex.join(["geneb-ci", "doctor", "--github", answers.repository])))
    return Exit.CLEAN


def _print_next_step(folder: Path, answers: BoardAnswers) -> None:
    """Print what remains to be done, and the next command."""
    if has_uncommitted_changes(folder):
        folder_option = [] if folder == Path() else ["-C", str(folder)]
        add, commit = (["git", *folder_option, verb] for verb in ("add", "commit"))
        echo(next_line(f"{shlex.join([*add, '--all'])} && {shlex.join(commit)}"))
        return
    if not has_rows(folder):
        echo("add a first row to submissions/, such as k-mers: without a row no board can be built")
        echo(next_line(FIRST_ROW_COMMAND))
        return
    rights = (
        "  GH_TOKEN: a token of an administrator with Administration, Actions, Contents, "
        "Environments, Issues, Secrets, Variables and Workflows (write); HF_TOKEN: one that may "
        "write to the Space"
    )
    lines = (
        f"create {answers.repository} on GitHub, empty, if it does not exist; then set it up, and",
        f"publish the board: HF_TOKEN=... geneb-ci publish --space {answers.space}",
        rights,
    )
    click.echo(wrapped_text("\n".join(lines), width()), nl=False)
    echo(next_line("GH_TOKEN=... HF_TOKEN=... geneb-ci init --apply"))
