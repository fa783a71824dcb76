"""The command `elsewhere`: run another command on a machine of the Ray cluster.

`geneb-ci audit queue --engine ray` uses it to start audits. The command runs in the same folder,
which every machine must have; its error stream is printed here line by line, and its exit code is
that of this process. The command is killed if this process ends.
"""

import os
import subprocess
import sys
from collections.abc import Iterator

import click

from reference_harness.text import echo

NOT_RUN_EXIT_CODE = 3
"""Exit code if the command could not be run to its end."""
PASSED_VARIABLE_PREFIXES = ("GENEB_", "PYTHONSAFEPATH")
"""Beginnings of the names of the environment variables that are passed to the command: no token."""


@click.command(context_settings={"ignore_unknown_options": True}, hidden=True)
@click.option("--gpu", is_flag=True, help="Reserve a GPU for the command.")
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED)
def elsewhere(arguments: tuple[str, ...], *, gpu: bool) -> None:
    """Run a command on a machine of the Ray cluster, in this folder."""
    from reference_harness.engine.cluster import connected_cluster  # Ray need not be installed

    variables = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(PASSED_VARIABLE_PREFIXES)
    }
    with connected_cluster(
        start=False
    ) as cluster:  # a new cluster would not know which GPUs are in use
        ray = cluster.ray
        resources = {"num_cpus": 1, "num_gpus": int(gpu), "max_retries": 0}
        remote = ray.remote(num_returns="streaming", **resources)(run_command_here)
        code = NOT_RUN_EXIT_CODE
        try:
            for ref in remote.remote(arguments, os.getcwd(), variables):  # noqa: PTH109 - it is a word
                output = ray.get(ref)
                if isinstance(output, int):
                    code = output
                else:
                    echo(output, err=True)
        except ray.exceptions.RayError:
            echo(
                "geneb-ci: the remote process was killed, or its machine left the cluster: run "
                "the command again",
                err=True,
            )
    sys.exit(code)


def run_command_here(
    arguments: tuple[str, ...], folder: str, variables: dict[str, str]
) -> Iterator[str | int]:
    """Run a command here; yield the lines of its error stream, then its exit code."""
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
        yield f"geneb-ci: the command cannot be started: {error.filename}: {error.strerror}"
        yield NOT_RUN_EXIT_CODE
