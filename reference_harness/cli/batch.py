"""The command `batch`: run several commands of an audit in one process with the same workers.

Python, NumPy and the workers are started only once. Each line of standard input is a JSON list of
arguments; each answer is one line of standard output, a JSON object with `error`, the class of the
exception or null, and `message`.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from reference_harness.engine.worker_pool import Pool
from reference_harness.errors import HarnessError, OptionError, OutOfMemoryError

OUT_OF_MEMORY_MESSAGE = "the harness ran out of memory"


class PoolLender:
    """Has a pool of worker processes, and lends it to one command after another."""

    def __init__(self) -> None:
        self._pool: Pool[Any] | None = None
        self._count = 0

    @contextmanager
    def lend(self, count: int) -> Iterator[Pool[Any]]:
        """Lend a pool of `count` workers; after an error the next command gets a new one."""
        if self._count != count:
            self.close()
        self._pool, self._count = self._pool or Pool(count), count
        try:
            yield self._pool
        except BaseException as error:
            self.close(type(error))
            raise

    def close(self, error_class: object = None) -> None:
        """End the workers; busy ones are killed if `error_class` is the class of an error."""
        pool, self._pool, self._count = self._pool, None, 0
        if pool is not None:
            pool.__exit__(error_class)


def answer_commands(run: Callable[[list[str], PoolLender], object]) -> None:
    """Call `run` with the arguments on each line of standard input; print an answer after each."""
    workers = PoolLender()
    try:
        for line in sys.stdin:
            error_name, message = _answer(json.loads(line), run, workers)
            click.echo(json.dumps({"error": error_name, "message": message}))
    finally:
        workers.close()


def _answer(
    arguments: list[str], run: Callable[[list[str], PoolLender], object], workers: PoolLender
) -> tuple[str | None, str]:
    """Run a command; return the name of its exception's class and a message.

    If it succeeds, these are None and "".
    """
    try:
        run(arguments, workers)
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
