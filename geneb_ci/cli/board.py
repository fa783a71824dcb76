"""The commands `build`, `serve`, `matrices`, `trust` and `diff`, about rows and the board."""

import shlex
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from geneb_ci.api import build, trust
from geneb_ci.board.board import (
    SubmissionsRefused,
    is_built_board,
    layout_of_folder,
    require_separate_output,
)
from geneb_ci.board.confusion import recovered_cells
from geneb_ci.board.page import INDEX, SECURITY_POLICY, delete_former_scripts, write_page
from geneb_ci.check.runner import Checker
from geneb_ci.cli.main import echo
from geneb_ci.cli.shared import (
    ALL_LINES_OPTION,
    FOLDER_ARGUMENT,
    STDOUT,
    Output,
    format_option,
    list_width,
    old_option,
    require_pull_for_repository,
    watch_build,
    with_progress,
    write,
)
from geneb_ci.common.actions import set_output
from geneb_ci.common.errors import Exit, NothingChecked, UsageProblem
from geneb_ci.common.finding import exact_name, first_and_more
from geneb_ci.common.parallel import PARALLEL_FILES_MIN
from geneb_ci.render.rows import (
    MATRICES_WRITERS,
    matrices_text,
    row_evidence_json,
    row_evidence_text,
)
from geneb_ci.render.text import REPORT_LINES_MAX
from geneb_ci.submission.document import Document
from geneb_ci.submission.reading import FileKind, OtherFile, other_kind, require_file
from reference_harness.formats.files import path_exists
from reference_harness.formats.text import next_line, plural

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

LOCAL_ADDRESS = "127.0.0.1"
"""Address at which `serve` answers, which other machines cannot reach."""


def server(folder: Path, port: int) -> "ThreadingHTTPServer":
    """Return a server of a folder, bound to the port; `serve_forever` makes it answer requests.

    Raises UsageProblem if the port cannot be used.
    """
    import http  # 40 ms that `build` does not need
    import http.server

    class Handler(http.server.SimpleHTTPRequestHandler):
        """Serves files with the security headers of the published page."""

        server_version, sys_version = "geneb-ci", ""  # do not disclose the Python version
        # Explicit, because the system's MIME type of .js varies.
        extensions_map = {  # noqa: RUF012 (the base class calls it its own)
            ".html": "text/html; charset=utf-8",
            ".js": "text/javascript; charset=utf-8",
            ".css": "text/css; charset=utf-8",
            ".json": "application/json",
            ".png": "image/png",
            ".svg": "image/svg+xml",
            ".xml": "application/atom+xml",
            ".md": "text/plain; charset=utf-8",
            ".txt": "text/plain; charset=utf-8",
            "": "application/octet-stream",
        }

        def send_head(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 (a type of typeshed's own)
            """Answer only requests whose Host header is this machine (against DNS rebinding)."""
            name = self.headers.get("Host", "").partition(":")[0]
            if name not in {LOCAL_ADDRESS, "localhost"}:
                self.send_error(http.HTTPStatus.FORBIDDEN)
                return None
            try:
                return super().send_head()
            except ValueError:  # the path contains a NUL character
                self.send_error(http.HTTPStatus.NOT_FOUND)
                return None

        def list_directory(self, path):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG002
            """Answer that the page does not exist, because folders are not listed."""
            self.send_error(http.HTTPStatus.NOT_FOUND)

        def end_headers(self) -> None:
            """Add the headers of every response."""
            # frame-ancestors cannot be set in a page's own <meta> tag.
            self.send_header(
                "Content-Security-Policy", f"{SECURITY_POLICY}; frame-ancestors 'none'"
            )
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            super().end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing about a request."""

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Print nothing: a browser may close the connection during a response."""

    try:
        return Server((LOCAL_ADDRESS, port), partial(Handler, directory=str(folder)))
    except (OSError, OverflowError) as error:
        raise UsageProblem(
            f"port {port} cannot be used: {error}",
            "choose another port: --port N, or --port 0 for any free one",
        ) from error


@click.command()
@FOLDER_ARGUMENT
@click.option(
    "--output",
    "out",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write the board to.",
)
@old_option("--out", "--output", "out")
@click.option(
    "--diagnostics/--no-diagnostics",
    "has_diagnostics",
    default=True,
    help="Also write diagnostics.json; needs the extra `build`.",
)
@click.option(
    "--parquet",
    is_flag=True,
    help="Also write rows and exact scores as Parquet.",
)
@click.option(
    "--at", "commit", metavar="COMMIT", help="Rebuild every published file of this commit."
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help=f"Processes; default: 1 below {PARALLEL_FILES_MIN} rows, else one per core.",
)
@click.option("--no-cache", is_flag=True, help="Neither read nor write results in the cache.")
def build_command(
    folder: Path | None,
    out: Path,
    commit: str | None,
    *,
    has_diagnostics: bool,
    parquet: bool,
    jobs: int | None,
    no_cache: bool,
) -> int:
    """Rebuild leaderboard.json, leaderboard_tasks.json and the page from the submissions of FOLDER.

    Every submission is checked first; if any has an error, nothing is written. Open index.html in
    DIR from disk or from any server: the page loads nothing from other sites.
    With --at, every published file is rebuilt from a commit of this repository.
    """
    if commit is not None:
        if folder is not None or not has_diagnostics or parquet:
            option = "--parquet" if parquet else "--no-diagnostics"
            argument = "FOLDER" if folder is not None else option
            raise UsageProblem(f"{argument} and --at exclude each other", f"leave {argument} out")
        return _build_commit(commit, out)
    code = _build(
        folder, out, has_diagnostics=has_diagnostics, parquet=parquet, jobs=jobs, cache=not no_cache
    )
    if code == Exit.CLEAN:
        arguments = [] if folder is None else [str(folder)]
        echo(next_line(shlex.join(["geneb-ci", "serve", *arguments])))
    return code


def _build(
    folder: Path | None,
    out: Path,
    *,
    has_diagnostics: bool,
    parquet: bool = False,
    jobs: int | None = None,
    cache: bool = True,
) -> int:
    """Write the board and page of a folder, print what was written, and return the exit code."""
    try:
        board = build(
            folder,
            diagnostics=has_diagnostics,
            parquet=parquet,
            out=out,
            cache=cache,
            jobs=jobs,
            progress=watch_build,
        )
    except SubmissionsRefused as error:
        from geneb_ci.cli.repository import print_refusal  # 0.1 s

        return print_refusal(error.report)
    first, *middle, last = board.files
    files = ", ".join([str(out / first), *middle])
    echo(f"built {files} and {last}: {plural(board.models, 'model')}")
    if board.unsized:
        echo(
            "diagnostics were left out: the benchmark has no n_test for "
            f"{first_and_more(list(board.unsized))}"
        )
    if board.unranked:
        echo(f"not ranked (missing cells): {first_and_more(list(board.unranked))}")
    return Exit.CLEAN


def _build_commit(commit: str, out: Path) -> int:
    """Write the published files of a commit, print what was written, and return the exit code."""
    from geneb_ci.cli.repository import build_generation, layout_here, repository_here  # 0.1 s

    require_separate_output(out, layout_here())
    code, generation = build_generation(repository_here(), commit)
    if generation is None:
        return code
    write_page(out, generation.published)
    delete_former_scripts(out, generation.published)
    for output_name, output_value in generation.outputs.items():
        set_output(output_name, output_value)
    echo(
        f"built {len(generation.published)} files in {out}: generation "
        f"{generation.manifest.generation} of commit {generation.manifest.source_commit}, "
        f"{plural(generation.models, 'model')}"
    )
    return Exit.CLEAN


@click.command()
@FOLDER_ARGUMENT
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port; 0 for any free one.",
)
@click.option(
    "--diagnostics/--no-diagnostics",
    "has_diagnostics",
    default=True,
    help="Include intervals, rank ranges and advice; needs the extra `build`.",
)
def serve_command(folder: Path | None, port: int, *, has_diagnostics: bool) -> int:
    """Build the board of FOLDER in a temporary folder and serve its page until Ctrl-C.

    FOLDER contains submissions, or a board that `build` wrote, which is served unchanged. Only this
    machine can reach the page. If a submission has an error, nothing is served.
    """
    if folder is not None and is_built_board(folder) and path_exists(folder / INDEX):
        with server(folder, port) as http_server:
            return _serve(http_server)
    layout_of_folder(folder, "geneb-ci serve FOLDER")
    # A service manager ends a process by SIGTERM, a person by Ctrl-C: both leave no folder.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Bind the port first, so that a used port fails before the long build.
    with (
        tempfile.TemporaryDirectory(prefix="geneb-ci-serve-") as temporary,
        server(Path(temporary), port) as http_server,
    ):
        code = _build(folder, Path(temporary), has_diagnostics=has_diagnostics)
        return code if code != Exit.CLEAN else _serve(http_server)


def _serve(http_server: "ThreadingHTTPServer") -> int:
    """Serve until Ctrl-C, and return the exit code."""
    echo(f"open http://{LOCAL_ADDRESS}:{http_server.server_port}/ in a browser; Ctrl-C stops")
    try:
        http_server.serve_forever()
    except KeyboardInterrupt:
        echo("stopped")
    return Exit.CLEAN


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--regime",
    default="full",
    show_default=True,
    help="Regime of the cells: full, 10shot or 1shot.",
)
@ALL_LINES_OPTION
@format_option(MATRICES_WRITERS)
@click.option("--output", default=STDOUT, metavar="FILE", help="File to write.")
def matrices_command(
    file: Path, regime: str, format_: str, output: str, *, prints_all: bool
) -> int:
    """Recover the confusion matrix of each two-class cell of a submission.

    Unrounded scores determine one matrix. Rounded scores fit several matrices, of which the nearest
    is shown. A mean over seeds has no matrix, so the scores by seed (format 1.1) are used. The exit
    code is 11 if no matrix gives the scores of a cell.
    """
    require_file(file, FileKind.SUBMISSION, "matrices")
    context = Checker(()).context(file)
    other_file = other_kind(context.document.value, FileKind.SUBMISSION)
    if other_file is not None or not FileKind.SUBMISSION.fits(context.document.value):
        other_file = other_file or _not_a_submission(context.document)
        raise NothingChecked(f"{file}: {other_file.message}", other_file.fix)
    regimes = list(context.benchmark.regimes)
    regime = exact_name(regime, regimes, f"regime of {context.benchmark.name}")
    cells = list(recovered_cells(context, regime))
    if not cells:
        raise NothingChecked(
            f'{file}: "{regime}" has no two-class task with the scores of one trained probe',
            _ONE_FIT_FIX
            if regime in context.benchmark.protocol.few_shot_k
            else f"see which scores are missing or wrong: geneb-ci check {file}",
        )
    columns, lines_max = list_width(output), REPORT_LINES_MAX
    if prints_all or output != STDOUT:
        lines_max = sys.maxsize
    is_text = format_ == "text"
    text = matrices_text(cells, columns, lines_max) if is_text else MATRICES_WRITERS[format_](cells)
    write(Output(format_, output), text)
    return Exit.CLEAN if all(cell.table_count for cell in cells) else Exit.ERRORS


_ONE_FIT_FIX = (
    "use `--regime full` or a file of format 1.1 with the score of each seed: a mean over seeds "
    "has no matrix"
)


def _not_a_submission(document: Document) -> OtherFile:
    """Return the error for a file that is not a submission."""
    fault = document.faults[0] if document.faults else None
    fault_text = 'the member "results" is missing' if fault is None else fault.message
    fix = FileKind.SUBMISSION.fix if fault is None else fault.fix or FileKind.SUBMISSION.fix
    return OtherFile(f"this is not a submission: {fault_text}", fix)


@click.command()
@FOLDER_ARGUMENT
@ALL_LINES_OPTION
@format_option(["text", "json"])
def trust_command(folder: Path | None, format_: str, *, prints_all: bool) -> int:
    """Compute the evidence of every submission of FOLDER from checks and audits."""
    rows = trust(folder, progress=lambda results, total: with_progress(results, total, "checking"))
    if format_ == "json":
        click.echo(row_evidence_json(rows), nl=False)
    else:
        lines_max = sys.maxsize if prints_all else REPORT_LINES_MAX
        click.echo(row_evidence_text(rows, list_width(), lines_max), nl=False)
    return Exit.CLEAN if all(row.decision is not None for row in rows) else Exit.ERRORS


DIFF_SECONDS_PER_ROW = 0.02
"""Seconds per row that a comparison of two boards takes, measured with the 41 public rows."""


@click.command()
@click.option("--base", metavar="REF", help="Commit, branch or tag to compare with.")
@click.option(
    "--pr",
    "pulls",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="Compare main with main after this open pull request; repeatable.",
)
@click.option(
    "--repo", metavar="OWNER/NAME", help="Repository of --pr; default: GITHUB_REPOSITORY."
)
@format_option(("text", "json", "markdown"))
@click.option("--output", default=STDOUT, metavar="FILE", help="File to write.")
def diff_command(
    base: str | None, pulls: tuple[int, ...], repo: str | None, format_: str, output: str
) -> int:
    """Compare the board of the working tree with that of REF, or main with open pull requests.

    Pass either --base or --pr. The command lists rows that were added, changed or removed, and
    changes of rank by macro MCC in each regime, with those that are not significant. REF is read
    from git: it is not checked out, and its code is not run. The exit code is 11 if a submission of
    the working tree has errors.
    """
    from geneb_ci.cli.repository import layout_here, print_expected_time_of_rows  # 0.1 s
    from geneb_ci.publish.comparison import compare_boards
    from geneb_ci.render.comparison import COMPARISON_WRITERS

    require_pull_for_repository(repo, pulls=bool(pulls))
    if (base is None) == (not pulls):
        raise UsageProblem(
            f"found {'neither' if base is None else 'both'} of --base and --pr, expected one",
            "pass one of them, such as --base origin/main or --pr 12",
        )
    if pulls:
        from geneb_ci.github.api import connect  # of the extra
        from geneb_ci.github.open_pull import merged_comparison

        with connect(repo) as github:
            comparison = merged_comparison(github, layout_here(), pulls)
    else:
        layout = layout_here()
        print_expected_time_of_rows("comparing the boards", DIFF_SECONDS_PER_ROW, layout)
        comparison = compare_boards(layout, str(base))
    write(Output(format_, output), COMPARISON_WRITERS[format_](comparison))
    return Exit.ERRORS if comparison.refused else Exit.CLEAN
