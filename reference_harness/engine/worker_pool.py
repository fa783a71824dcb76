"""Run tasks in parallel processes of this machine, each with one BLAS thread."""

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Generic, Protocol, Self, TypeVar

from reference_harness.errors import WorkerDiedError
from reference_harness.formats.processes import WorkerProcesses

from . import blas

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class TaskWork(Protocol[Result_co]):
    """The work on one task, which is pickled for a worker, so it should be small.

    Its module may import NumPy: a worker imports that module when it unpickles the work, after it
    has limited BLAS to one thread.
    """

    @property
    def task_id(self) -> str:
        """The task's id, for messages and the order of results."""

    def execute(self) -> Result_co:
        """Return the result, computed in a worker process."""


def _initialise_worker(array_api: bool) -> None:
    """Prepare a worker process: the scorer's threads and kernel, and slow imports."""
    blas.limit_to_scorer(array_api)
    # Imported before the first task, so that the time of no task includes it.
    import sklearn.linear_model  # noqa: F401 - after the BLAS was held to one thread


def _execute(work: TaskWork[Result]) -> Result:
    """Execute the work in a worker process."""
    return work.execute()


class Pool(Generic[Result]):
    """A pool of worker processes; a context manager that ends all of them.

    Workers are spawned, not forked: a fork would inherit the BLAS and CUDA state of its parent.
    """

    def __init__(self, workers: int, *, array_api: bool = False) -> None:
        self._processes = WorkerProcesses(workers, "spawn", _initialise_worker, array_api)
        self._executor = self._processes.__enter__()
        self._running: dict[Future[Result], str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        """Wait for running work; after an error or Ctrl-C, kill it."""
        self._processes.__exit__(error)

    @property
    def waiting(self) -> int:
        """Number of submitted tasks whose result `results` has not yielded yet."""
        return len(self._running)

    @property
    def futures(self) -> list[Future[Result]]:
        """The futures that `results` waits for."""
        return list(self._running)

    def submit(self, work: TaskWork[Result]) -> None:
        """Queue a task. Raise WorkerDiedError if a worker has died."""
        try:
            self._running[self._executor.submit(_execute, work)] = work.task_id
        except BrokenProcessPool as error:
            raise _death_error(work.task_id) from error

    def results(self, *, block: bool) -> Iterator[Result]:
        """Yield the available results; with `block`, wait for the first one.

        Raise WorkerDiedError if a worker died, and any exception that a task raised.
        """
        timeout = None if block else 0
        finished = wait(self._running, timeout, FIRST_COMPLETED).done if self._running else set()
        for future in sorted(finished, key=lambda running: self._running[running]):
            task_id = self._running.pop(future)
            try:
                yield future.result()
            except BrokenProcessPool as error:
                raise _death_error(task_id) from error


def _death_error(task_id: str) -> WorkerDiedError:
    """Return the error for a task whose worker process died."""
    return WorkerDiedError(
        f"{task_id}: a worker process was killed, probably out of memory: "
        "run the command again with --resume and fewer --jobs"
    )


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
