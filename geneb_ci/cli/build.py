"""`geneb-ci build`: the board from the submissions, or nothing."""

from pathlib import Path

import click

from geneb_ci.build.board import board_of
from geneb_ci.build.files import write_files
from geneb_ci.build.page import page_files, write_page
from geneb_ci.cli.folder import FOLDER, Loaded, load
from geneb_ci.cli.generations import built, repository_here
from geneb_ci.errors import Exit, UsageProblem
from geneb_ci.finding import counted, listed


@click.command()
@FOLDER
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
@click.option("--at", "commit", metavar="COMMIT", help="Every published file of this commit.")
def command(folder: Path | None, out: Path, commit: str | None, *, more: bool) -> int:
    """Rebuild leaderboard.json, leaderboard_tasks.json and the page from the submissions of FOLDER.

    Every submission is checked first; where one has an error, nothing is written. Open index.html
    in DIR from disk or from any server: it loads nothing from elsewhere.
    With --at, every published file is rebuilt from the tree of a commit of this repository.
    """
    if commit is not None:
        if folder is not None or not more:
            extra = "FOLDER" if folder is not None else "--no-diagnostics"
            raise UsageProblem(f"{extra} and --at exclude each other", f"leave {extra} out")
        return _at(commit, out)
    loaded = load(folder, "nothing was built", "build FOLDER --out DIR")
    if not isinstance(loaded, Loaded):
        return loaded
    board = board_of(loaded.entries, loaded.layout, more=more)
    write_files(out, board.files)
    write_page(out, page_files() | board.scripts)
    first, *middle, last = board.files
    names = ", ".join([str(out / first), *middle])
    click.echo(f"built {names} and {last}: {counted(board.models, 'model')}")
    if board.unsized:
        click.echo(
            "no diagnostics and recommendations, since the benchmark does not say how many test "
            f"sequences there are: {listed(list(board.unsized))}"
        )
    if board.unranked:
        click.echo(f"not ranked, because of declared gaps: {listed(list(board.unranked))}")
    return Exit.CLEAN


def _at(commit: str, out: Path) -> int:
    code, made = built(repository_here(), commit)
    if made is None:
        return code
    write_page(out, made.published)
    click.echo(
        f"built {len(made.published)} files in {out}: generation {made.manifest.generation} "
        f"of commit {made.manifest.source_commit}, {counted(made.models, 'model')}"
    )
    return Exit.CLEAN
