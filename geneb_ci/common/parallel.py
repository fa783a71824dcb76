"""Divides work among processes, in the order of its items."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
_forked: list[Callable[[Any], Any]] = []
"""In a process that was forked, what it does: last of all, where that one forked, too."""


def in_processes(
    work: Callable[[Item], Result], items: Sequence[Item], jobs: int, chunk: int
) -> Iterator[Result]:
    """Yield what `work` makes of each item, in their order, by `jobs` processes.

    Items and results are pickled, `chunk` at once; `work` is not. With one job, without fork, or
    where a process is killed, this process goes on alone.
    """
    finished = 0
    if jobs > 1:
        import multiprocessing  # 30 ms that one process does not need
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool

        if "fork" in multiprocessing.get_all_start_methods():
            fork = multiprocessing.get_context("fork")
            try:
                with ProcessPoolExecutor(jobs, fork, _begin, (work, os.getpid())) as pool:
                    for result in pool.map(_work, items, chunksize=chunk):
                        yield result
                        finished += 1
            except BrokenProcessPool:
                pass
    yield from map(work, items[finished:])


MANY_FILES = 100
"""Files from which several processes are quicker than one: less than a second of work."""
JOBS_MAX = 16


def jobs_for(files: int) -> int:
    """Return how many processes work on so many files."""
    if files < MANY_FILES:
        return 1
    known = hasattr(os, "sched_getaffinity")
    return min(JOBS_MAX, len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1)


PARENT_SECONDS = 1.0
"""How long a process goes on after the one that started it was killed."""


def _begin(work: Callable[[Any], Any], parent: int) -> None:
    """Make this process work, and end soon after its parent: one that is killed cannot tell it."""
    import threading

    _forked.append(work)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(item: Any) -> Any:
    return _forked[-1](item)
