"""Worker processes of both programs: how many this machine runs, and when they end."""

import os


def processors() -> int:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def end_with_parent() -> None:
    """End this worker process when its parent dies: a parent that is killed cannot end it."""
    import multiprocessing  # 30 ms that a command without workers does not need
    import threading

    parent = multiprocessing.parent_process()
    if parent is None:
        msg = "only a process that multiprocessing started has a parent"
        raise RuntimeError(msg)

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
