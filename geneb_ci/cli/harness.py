"""Commands that hand on to the harness: `data`, `extractor`, `probe`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from geneb_ci.cli.main import echo
from geneb_ci.common.benchmark import load_benchmark, shipped_benchmark
from geneb_ci.common.errors import Exit

HELP = ((), ("-h",), ("--help",))
HARNESS = (sys.executable, "-m", "reference_harness", "--program", "geneb-ci")  # named in its help


def hand_over(name: str, *arguments: str) -> int:
    """Run a command of the harness in the place of this process, or return its exit code."""
    command = [*HARNESS, name, *arguments]
    if os.name == "posix" and arguments not in HELP:
        sys.stdout.flush()
        os.execv(sys.executable, command)  # noqa: S606 (our own module)
    return subprocess.run(command, check=False).returncode  # noqa: S603 (our own module)


def handed_over(name: str, help_text: str) -> click.Command:
    """Return a command that runs `geneb-harness` with its arguments.

    The process is replaced (exec), so that stopping the command stops the work. Only --help runs in
    a child process, because text may follow it.
    """

    @click.command(
        name,
        help=help_text,
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def run(ctx: click.Context, arguments: tuple[str, ...]) -> int:
        return hand_over(ctx.info_name or name, *arguments)

    return run


DATA_HELP = "Pull, verify, audit and stage the pinned task data, or push a new revision of them."
_harness = handed_over("data", DATA_HELP)


class _Data(click.Group):
    """Implements `push`; all other subcommands are those of the harness."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["geneb_ci.arguments"] = list(args)
        return super().parse_args(ctx, args if args[:1] == ["push"] else [])

    def invoke(self, ctx: click.Context) -> object:
        arguments = ctx.meta["geneb_ci.arguments"]
        if arguments[:1] == ["push"]:
            return super().invoke(ctx)
        result = ctx.invoke(_harness, arguments=tuple(arguments))
        if tuple(arguments) in HELP:
            line = "  push      Upload a new revision: geneb-ci data push --help"
            echo(line, err=not arguments)  # like the help above it
        return result


@click.group("data", cls=_Data, invoke_without_command=True, help=DATA_HELP, add_help_option=False)
def data_command() -> None:
    """Group of the subcommand `push`."""


@data_command.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--repo", metavar="OWNER/NAME", help="Data set; default: that of the benchmark.")
@click.option(
    "--benchmark",
    "definition",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Benchmark definition; default: GENEB.",
)
def push(folder: Path, repo: str | None, definition: Path | None) -> int:
    """Upload the tasks in FOLDER, in both layouts with a card, and print the revision to pin.

    Every task is checked against the benchmark first; none may be missing.
    """
    # Imported here: only push needs them.
    from geneb_ci.publish.session import find_token
    from geneb_ci.publish.space import Remote, staged, upload

    benchmark = load_benchmark(definition) if definition else shipped_benchmark()
    name = repo or benchmark.dataset.repo_id
    token = find_token(f"datasets/{name}")
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as place:
        options = ["--benchmark", str(definition)] if definition else []
        words = [*HARNESS, "data", "stage", *options, "--", str(folder), place]
        done = subprocess.run(words, check=False)  # noqa: S603 (our own module)
        if done.returncode:
            return done.returncode
        remote = Remote("dataset", name, token=token)
        made = upload(remote, staged(Path(place)), say=lambda line: echo(line, err=True))
    echo(f"{remote.resource}: {'pushed' if made.new else 'nothing changed'}")
    echo(f"revision to pin in schemas/benchmark.json: {made.revision}")
    return Exit.CLEAN


extractor_command = handed_over("extractor", "Check an extractor, or list those that are built in.")
probe_command = handed_over(
    "probe", "Fit other probes on receipts, and compare the ranks that follow."
)
