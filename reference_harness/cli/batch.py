"""The command `batch`: run several commands of an audit in one process with the same workers.

Python, NumPy and the workers are started only once. Each line of standard input is a JSON list of
arguments; each answer is one line of standard output, a JSON object with `error`, the class of the
exception or null, and `message`. Nothing here imports NumPy at module level; see main.py.
"""

import json
import sys
from typing import TYPE_CHECKING

import click

from reference_harness.errors import HarnessError, OptionError, OutOfMemoryError

from .receipt import receipt_cells, receipt_equal, receipt_refit
from .rescore import rescore, sequences, variants

if TYPE_CHECKING:
    from reference_harness.engine.worker_pool import PoolLender

COMMANDS = {
    str(command.name): command
    for command in (sequences, variants, rescore, receipt_cells, receipt_equal, receipt_refit)
}
"""The commands that an audit runs, by name."""
OUT_OF_MEMORY_MESSAGE = "the harness ran out of memory"


@click.command(hidden=True)
def batch() -> None:
    """Run commands of an audit, each a JSON list of words on a line of standard input."""
    from reference_harness.engine.worker_pool import PoolLender  # NumPy: see main.py

    workers = PoolLender()
    try:
        for line in sys.stdin:
            error_name, message = result_of(json.loads(line), workers)
            click.echo(json.dumps({"error": error_name, "message": message}))
    finally:
        workers.close()


def result_of(arguments: list[str], workers: "PoolLender") -> tuple[str | None, str]:
    """Run a command; return the name of its exception's class and a message.

    If it succeeds, these are None and "".
    """
    try:
        _run(arguments, workers)
    except HarnessError as error:
        return type(error).__name__, str(error)
    except click.ClickException as error:
        return OptionError.__name__, error.format_message()
    except MemoryError:
        return OutOfMemoryError.__name__, OUT_OF_MEMORY_MESSAGE
    except OSError as error:
        prefix = f"{error.filename}: " if error.filename else ""
        return OSError.__name__, f"{prefix}{error.strerror or error}"
    return None, ""


def _run(arguments: list[str], workers: "PoolLender") -> None:
    """Run one command, to which `workers` lends its pool.

    Raise click.UsageError for another command, and the errors of the command.
    """
    name = next(iter(arguments), "")
    if name not in COMMANDS:
        msg = f"found the command {name!r}, expected {' or '.join(COMMANDS)}"
        raise click.UsageError(msg)
    COMMANDS[name].main(arguments[1:], standalone_mode=False, obj=workers)
