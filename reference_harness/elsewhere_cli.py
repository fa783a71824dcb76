"""The command `elsewhere`: runs another command on a machine of the Ray cluster, as if it ran here.

`geneb-ci audit queue --engine ray` starts its audits by it. The command runs in the same folder,
which every machine has; what it writes to its error stream comes here line by line, and its exit
code is that of this process. If this process ends, so does the command.
"""

import os
import subprocess
import sys
from collections.abc import Iterator

import click

from .text import echo

NOTHING_DONE = 3
"""Exit code where the command could not be carried out."""
PASSED_VARIABLES = ("GENEB_", "PYTHONSAFEPATH")
"""Beginnings of the variables that a command takes along; tokens are the machine's own."""


@click.command(context_settings={"ignore_unknown_options": True}, hidden=True)
@click.option("--gpu", is_flag=True, help="Give it a GPU of its own.")
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED)
def elsewhere(arguments: tuple[str, ...], *, gpu: bool) -> None:
    """Run a command on a machine of the Ray cluster, in this folder."""
    from .engine.cluster import connected  # Ray need not be installed

    variables = {
        name: value for name, value in os.environ.items() if name.startswith(PASSED_VARIABLES)
    }
    with connected(start=False) as cluster:  # one of its own would not know the others' GPUs
        ray = cluster.ray
        needs = {"num_cpus": 1, "num_gpus": int(gpu), "max_retries": 0}
        remote = ray.remote(num_returns="streaming", **needs)(lines_of)
        code = NOTHING_DONE
        try:
            for ref in remote.remote(arguments, os.getcwd(), variables):  # noqa: PTH109 - it is a word
                output = ray.get(ref)
                if isinstance(output, int):
                    code = output
                else:
                    echo(output, err=True)
        except ray.exceptions.RayError:
            echo(
                "geneb-ci: the remote process was killed, or its machine left the cluster", err=True
            )
    sys.exit(code)


def lines_of(
    arguments: tuple[str, ...], folder: str, variables: dict[str, str]
) -> Iterator[str | int]:
    """Run a command here; yield the lines of its error stream, and then its exit code."""
    try:
        with subprocess.Popen(  # noqa: S603 - the words of the user who runs this
            arguments, cwd=folder, env=os.environ | variables,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.PIPE,
            text=True, errors="backslashreplace",
        ) as process:  # fmt: skip
            for line in process.stderr or ():
                yield line.rstrip()
        yield process.returncode
    except OSError as error:
        yield f"geneb-ci: cannot be started: {error.filename}: {error.strerror}"
        yield NOTHING_DONE
