"""`geneb-ci data` and `geneb-ci extractor`: the work of the harness, in a process of its own."""

import subprocess
import sys

import click

# What the harness calls each of them.
GROUPS = {"data": "data", "extractor": "extractors"}


def handed_over(name: str, help_text: str) -> click.Command:
    """Give a command that passes its arguments to `geneb-harness` and its exit code back."""

    @click.command(
        name,
        help=help_text,
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def run(arguments: tuple[str, ...]) -> int:
        command = [sys.executable, "-m", "reference_harness", GROUPS[name], *arguments]
        return subprocess.run(command, check=False).returncode  # noqa: S603 (our own module)

    return run
