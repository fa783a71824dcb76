"""`geneb-ci serve`: the board as people will see it, before anything is published."""

import tempfile
from pathlib import Path

import click

from geneb_ci.cli import build
from geneb_ci.cli.folder import layout_of
from geneb_ci.cli.preview import ADDRESS, server
from geneb_ci.errors import Exit


@click.command()
@click.argument(
    "folder", required=False, type=click.Path(path_type=Path, file_okay=False, exists=True)
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="0 takes one that is free.",
)
@click.option(
    "--diagnostics/--no-diagnostics",
    "more",
    default=True,
    help="With intervals, tie groups and advice; they need the extra `build`.",
)
def command(folder: Path | None, port: int, *, more: bool) -> int:
    """Build the board of FOLDER in a temporary folder and show its page, until Ctrl-C.

    Only this machine can reach it. Where a submission has an error, nothing is shown.
    """
    layout_of(folder, "serve FOLDER")
    # The port first: a build that ends in "the port is taken" was for nothing.
    with (
        tempfile.TemporaryDirectory(prefix="geneb-ci-serve-") as temporary,
        server(Path(temporary), port) as running,
    ):
        arguments = [] if folder is None else [str(folder)]
        arguments += ["--out", temporary, "--diagnostics" if more else "--no-diagnostics"]
        code = int(build.command.main(arguments, "geneb-ci build", standalone_mode=False))
        if code != Exit.CLEAN:
            return code
        click.echo(f"open http://{ADDRESS}:{running.server_port}/ in a browser; Ctrl-C stops")
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            click.echo("stopped")
    return Exit.CLEAN
