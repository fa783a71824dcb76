"""Divides work among processes, in the order of its items."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from reference_harness.formats.processes import WorkerProcesses, processors

Item = TypeVar("Item")
Result = TypeVar("Result")
_forked: list[Callable[[Any], Any]] = []
"""In a process that was forked, what it does: last of all, where that one forked, too."""


def in_processes(
    function: Callable[[Item], Result], items: Sequence[Item], jobs: int, chunk: int
) -> Iterator[Result]:
    """Yield the result of `function` for each item, in their order, by `jobs` processes.

    Items and results are pickled, `chunk` at once; `function` is not. With one job, without fork or
    where a process is killed, this process goes on alone.
    """
    finished = 0
    if jobs > 1:
        import multiprocessing  # 30 ms that one process does not need
        from concurrent.futures.process import BrokenProcessPool

        if "fork" in multiprocessing.get_all_start_methods():
            try:
                with WorkerProcesses(jobs, "fork", _forked.append, function) as pool:
                    for result in pool.map(_work, items, chunksize=chunk):
                        yield result
                        finished += 1
            except BrokenProcessPool:
                pass
    yield from map(function, items[finished:])


MANY_FILES = 100
"""Files from which several processes are quicker than one: less than a second of work."""
JOBS_MAX = 16


def jobs_for(files: int) -> int:
    """Return how many processes work on so many files."""
    if files < MANY_FILES:
        return 1
    return min(JOBS_MAX, processors())


def _work(item: Any) -> Any:
    return _forked[-1](item)
