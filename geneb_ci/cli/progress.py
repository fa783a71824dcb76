"""A progress bar for work that lasts, on a terminal only."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

# Shorter work is over before a bar could be read.
PATIENCE = 2.0  # seconds


def watched(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """Pass items on, drawing a bar on standard error once the work has lasted `PATIENCE`."""
    if not sys.stderr.isatty():
        yield from items
        return
    start = time.monotonic()
    done = 0
    rest = iter(items)
    for item in rest:
        yield item
        done += 1
        if time.monotonic() - start > PATIENCE:
            break
    else:
        return
    # Imported here: most runs are over before a bar is due.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total, completed=done)
        for item in rest:
            yield item
            progress.advance(task)
