"""`geneb-ci build` and `serve`: build the board, and show its page on this machine."""

import http.server
import tempfile
from functools import partial
from pathlib import Path

import click

from geneb_ci.board.board import board_of
from geneb_ci.board.files import write_files
from geneb_ci.board.page import POLICY, page_files, write_page
from geneb_ci.cli.repository import FOLDER, Loaded, built, layout_of, load, repository_here
from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.common.finding import first_and_more, plural

ADDRESS = "127.0.0.1"


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files with the security headers of the published page."""

    server_version, sys_version = "geneb-ci", ""  # do not disclose the Python version
    # Explicit, because the system's MIME type of .js varies.
    extensions_map = {  # noqa: RUF012 (the base class calls it its own)
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".json": "application/json",
        ".md": "text/plain; charset=utf-8",
        ".txt": "text/plain; charset=utf-8",
        "": "application/octet-stream",
    }

    def send_head(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 (a type of typeshed's own)
        """Answer only requests whose Host header is this machine (against DNS rebinding)."""
        name = self.headers.get("Host", "").partition(":")[0]
        if name not in {ADDRESS, "localhost"}:
            self.send_error(http.HTTPStatus.FORBIDDEN)
            return None
        try:
            return super().send_head()
        except ValueError:  # the path contains a NUL character
            self.send_error(http.HTTPStatus.NOT_FOUND)
            return None

    def list_directory(self, path):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG002
        """Do not list folders."""
        self.send_error(http.HTTPStatus.NOT_FOUND)

    def end_headers(self) -> None:
        """Add the headers of every response."""
        # frame-ancestors cannot be set in a page's own <meta> tag.
        self.send_header("Content-Security-Policy", f"{POLICY}; frame-ancestors 'none'")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Keep the terminal quiet."""


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Print nothing: a browser may close the connection during a response."""


def server(folder: Path, port: int) -> http.server.ThreadingHTTPServer:
    """Return a server of a folder, bound to the port; it answers once `serve_forever` is called.

    Raises UsageProblem if the port cannot be used.
    """
    try:
        return _Server((ADDRESS, port), partial(_Handler, directory=str(folder)))
    except (OSError, OverflowError) as error:
        raise UsageProblem(
            f"port {port} cannot be used: {error}",
            "choose another with --port, or 0 for a free one",
        ) from error


@click.command()
@FOLDER
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write the board to.",
)
@click.option(
    "--diagnostics/--no-diagnostics",
    "more",
    default=True,
    help="Also write diagnostics.json and recommendations.json; needs the extra `build`.",
)
@click.option(
    "--at", "commit", metavar="COMMIT", help="Rebuild every published file of this commit."
)
def build_command(folder: Path | None, out: Path, commit: str | None, *, more: bool) -> int:
    """Rebuild leaderboard.json, leaderboard_tasks.json and the page from the submissions of FOLDER.

    Every submission is checked first; if one has an error, nothing is written. Open index.html in
    DIR from disk or from any server: it loads nothing from other sites.
    With --at, every published file is rebuilt from the tree of a commit of this repository.
    """
    if commit is not None:
        if folder is not None or not more:
            extra = "FOLDER" if folder is not None else "--no-diagnostics"
            raise UsageProblem(f"{extra} and --at exclude each other", f"leave {extra} out")
        return _at(commit, out)
    return _build(folder, out, more=more)


def _build(folder: Path | None, out: Path, *, more: bool) -> int:
    """Write the board of a folder and its page, say so, and return the exit code."""
    loaded = load(folder, "nothing was built", "build FOLDER --out DIR")
    if not isinstance(loaded, Loaded):
        return loaded
    board = board_of(loaded.entries, loaded.layout, more=more)
    write_files(out, board.files)
    write_page(out, page_files() | board.scripts)
    first, *middle, last = board.files
    names = ", ".join([str(out / first), *middle])
    click.echo(f"built {names} and {last}: {plural(board.models, 'model')}")
    if board.unsized:
        click.echo(
            "diagnostics and recommendations were left out: the benchmark has no n_test for "
            f"{first_and_more(list(board.unsized))}"
        )
    if board.unranked:
        click.echo(f"not ranked (missing cells): {first_and_more(list(board.unranked))}")
    return Exit.CLEAN


def _at(commit: str, out: Path) -> int:
    code, made = built(repository_here(), commit)
    if made is None:
        return code
    write_page(out, made.published)
    click.echo(
        f"built {len(made.published)} files in {out}: generation {made.manifest.generation} "
        f"of commit {made.manifest.source_commit}, {plural(made.models, 'model')}"
    )
    return Exit.CLEAN


@click.command()
@click.argument(
    "folder", required=False, type=click.Path(path_type=Path, file_okay=False, exists=True)
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port; 0 for any free one.",
)
@click.option(
    "--diagnostics/--no-diagnostics",
    "more",
    default=True,
    help="Include intervals, tie groups and advice; needs the extra `build`.",
)
def serve_command(folder: Path | None, port: int, *, more: bool) -> int:
    """Build the board of FOLDER in a temporary folder and serve its page until Ctrl-C.

    Only this machine can reach it. If a submission has an error, nothing is served.
    """
    layout_of(folder, "serve FOLDER")
    # Bind the port first, so that a used port fails before the long build.
    with (
        tempfile.TemporaryDirectory(prefix="geneb-ci-serve-") as temporary,
        server(Path(temporary), port) as running,
    ):
        code = _build(folder, Path(temporary), more=more)
        if code != Exit.CLEAN:
            return code
        click.echo(f"open http://{ADDRESS}:{running.server_port}/ in a browser; Ctrl-C stops")
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            click.echo("stopped")
    return Exit.CLEAN
