"""`geneb-ci build`: the board from the submissions, or nothing."""

from pathlib import Path

import click

from geneb_ci.build.board import assemble
from geneb_ci.build.files import write_files
from geneb_ci.check.runner import files_of
from geneb_ci.cli.generations import WATCH, built, refused, repository_here
from geneb_ci.config import Kind, find_layout
from geneb_ci.errors import Exit, UsageProblem
from geneb_ci.finding import listed


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
@click.option("--at", "commit", metavar="COMMIT", help="Every published file of this commit.")
def command(folder: Path | None, out: Path, commit: str | None) -> int:
    """Rebuild leaderboard.json and leaderboard_tasks.json from the submissions of FOLDER.

    Every submission is checked first; where one has an error, nothing is written.
    With --at, every published file is rebuilt from the tree of a commit of this repository.
    """
    if commit is not None:
        if folder is not None:
            raise UsageProblem("FOLDER and --at exclude each other", "leave FOLDER out")
        return _at(commit, out)
    layout = find_layout((folder or Path.cwd()).resolve())
    if folder is None and layout.kind is Kind.ALONE:
        raise UsageProblem(
            "no folder of submissions is named", "name it: geneb-ci build FOLDER --out DIR"
        )
    report, board = assemble(layout, files_of([folder or layout.root]), WATCH)
    if board is None:
        return refused(report)
    write_files(out, board.files)
    first, *others = board.files
    click.echo(f"built {out / first} and {' and '.join(others)}: {board.models} models")
    if board.unranked:
        click.echo(f"not ranked, because of declared gaps: {listed(list(board.unranked))}")
    return Exit.CLEAN


def _at(commit: str, out: Path) -> int:
    code, made = built(repository_here(), commit)
    if made is None:
        return code
    folders: dict[str, dict[str, bytes]] = {}
    for name, content in made.published.items():
        folder, _, file = name.rpartition("/")
        folders.setdefault(folder, {})[file] = content
    for folder, files in folders.items():
        write_files(out / folder, files)
    click.echo(
        f"built {len(made.published)} files in {out}: generation {made.manifest.generation} "
        f"of commit {made.manifest.source_commit}, {made.models} models"
    )
    return Exit.CLEAN
