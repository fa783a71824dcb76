"""`geneb-ci data` and `geneb-ci extractor`: the work of the harness, in a process of its own."""

import os
import subprocess
import sys

import click

# What the harness calls each of them.
GROUPS = {"data": "data", "extractor": "extractors"}
HELP = ((), ("-h",), ("--help",))


def handed_over(name: str, help_text: str) -> click.Command:
    """Give a command that becomes `geneb-harness` with its arguments.

    The process is replaced, so that who stops the command stops its work: a child would go on.
    Only help is asked of a child, since more may be said after it.
    """

    @click.command(
        name,
        help=help_text,
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def run(arguments: tuple[str, ...]) -> int:
        command = [sys.executable, "-m", "reference_harness", GROUPS[name], *arguments]
        if os.name == "posix" and arguments not in HELP:
            sys.stdout.flush()
            os.execv(sys.executable, command)  # noqa: S606 (our own module)
        return subprocess.run(command, check=False).returncode  # noqa: S603 (our own module)

    return run
