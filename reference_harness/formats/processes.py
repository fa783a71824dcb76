"""Processes of both programs: starting a module of theirs, and workers that end with them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.process import BaseProcess

PASSIVE_WAITING = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Environment variables that let threads of OpenMP sleep between two steps instead of spinning.

Between two steps of a layer, OpenMP's threads spin for a millisecond and more by default, so that
on cores with other work a thread waits for one that cannot run. A model of small convolutions then
took ten times as long on two busy cores as with threads that sleep. No number depends on it.
"""


def module_command(module: str) -> list[str]:
    """Return the command that starts a module of the programs in another process.

    The module is that of the running installation, never a file of the current folder, unless the
    program itself was started from that folder.
    """
    own_folder = Path(__file__).resolve().parents[2]
    options = [] if own_folder == Path.cwd().resolve() else ["-P"]
    return [sys.executable, *options, "-m", module]


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class WorkerProcesses:
    """Worker processes; a context manager that ends all of them.

    Each calls `initializer` before its first work, ends with its parent, even if that is killed,
    and ignores Ctrl-C, which the parent handles.
    """

    def __init__(
        self,
        jobs: int,
        method: Literal["fork", "spawn"],
        initializer: Callable[..., object],
        *initial_arguments: object,
    ) -> None:
        """Prepare up to `jobs` processes, each of which begins with a call of `initializer`."""
        import multiprocessing  # 30 ms that a command without workers does not need
        from concurrent.futures import ProcessPoolExecutor

        context_class: Any = type(multiprocessing.get_context(method))
        self._started: list[BaseProcess] = []

        def process(*args: Any, **options: Any) -> "BaseProcess":
            self._started.append(context_class.Process(*args, **options))
            return self._started[-1]

        context = type("Context", (context_class,), {"Process": staticmethod(process)})()
        self._executor = ProcessPoolExecutor(
            jobs, context, _start_worker, (initializer, initial_arguments)
        )

    def __enter__(self) -> "ProcessPoolExecutor":
        return self._executor

    def __exit__(self, error: object, *_: object) -> None:
        """Wait for running work; after an error or Ctrl-C kill it, as its results are not needed.

        SIGKILL is used, as SIGTERM would be lost in a process that has just begun: Python drops a
        signal whose handler is replaced before it is called, and the process would wait for one
        that has ended.
        """
        if error is not None:
            for process in self._started:
                if process.is_alive():
                    process.kill()
        self._executor.shutdown(wait=True, cancel_futures=True)


def _start_worker(initializer: Callable[..., object], arguments: tuple[object, ...]) -> None:
    """Set up a new worker process, which will end with its parent; call `initializer`."""
    import signal

    # Ctrl-C reaches every process of the terminal; only the parent should handle it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _end_with_parent()
    initializer(*arguments)


def _end_with_parent() -> None:
    """End this worker process when its parent dies, as a killed parent cannot end it."""
    import multiprocessing
    import threading

    parent = multiprocessing.parent_process()
    if parent is None:
        msg = "this process was not started by multiprocessing, expected a worker process"
        raise RuntimeError(msg)

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
