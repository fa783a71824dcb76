"""Divide work among processes, and return results in the order of the items."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from reference_harness.formats.processes import WorkerProcesses, processors

Item = TypeVar("Item")
Result = TypeVar("Result")
_worker_functions: list[Callable[[Any], Any]] = []
"""Functions that worker processes apply: the last is that of this process, the others those of the
processes from which this process was forked."""


def in_processes(
    function: Callable[[Item], Result], items: Sequence[Item], jobs: int, chunk: int
) -> Iterator[Result]:
    """Yield the result of `function` for each item, in their order, computed by `jobs` processes.

    Items and results are pickled, `chunk` at a time; `function` is not. This process computes all
    results if there is one job or the system cannot fork, and the rest if a process was killed.
    """
    finished = 0
    if jobs > 1:
        import multiprocessing  # 30 ms that one process does not need
        from concurrent.futures.process import BrokenProcessPool

        if "fork" in multiprocessing.get_all_start_methods():
            try:
                with WorkerProcesses(jobs, "fork", _worker_functions.append, function) as pool:
                    for result in pool.map(_apply_worker_function, items, chunksize=chunk):
                        yield result
                        finished += 1
            except BrokenProcessPool:
                pass
    yield from map(function, items[finished:])


PARALLEL_FILES_MIN = 100
"""Minimum number of files, a second of work, for which several processes are faster than one."""
JOBS_MAX = 16
"""Maximum number of processes."""


def jobs_for(files: int) -> int:
    """Return the number of processes to use for work on this many files."""
    if files < PARALLEL_FILES_MIN:
        return 1
    return min(JOBS_MAX, processors())


def _apply_worker_function(item: Any) -> Any:
    """Return the result of this worker process for an item."""
    return _worker_functions[-1](item)
