"""Progress of a run: bars on a terminal, otherwise a line for each task and for each minute."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .formats.text import plural
from .text import wrapped

LINE_SECONDS = 60.0
"""Seconds between two lines of progress where there is no terminal."""


class Listener(Protocol):
    """Receives the progress of a run."""

    def begin(self, task_id: str, todo: int) -> None:
        """Receive that a task begins, with `todo` sequences that are not in the cache."""

    def step(self, sequences: int, letters: int) -> None:
        """Receive that some sequences were embedded."""

    def finish(self, task_id: str, line: str) -> None:
        """Receive that a task is finished; `line` has its scores."""

    def say(self, line: str) -> None:
        """Receive any other message for the user."""


class SilentListener:
    """Ignores all progress."""

    def begin(self, task_id: str, todo: int) -> None:
        """Ignore it."""

    def step(self, sequences: int, letters: int) -> None:
        """Ignore it."""

    def finish(self, task_id: str, line: str) -> None:
        """Ignore it."""

    def say(self, line: str) -> None:
        """Ignore it."""


class PrintingListener:
    """Writes to the error stream, so that the output stream stays a program's."""

    def __init__(self, console: Console, bars: Progress, tasks: int, label: str = "") -> None:
        self._console = console
        self._bars = bars
        self._label = f"{label}: " if label else ""
        self._count, self._finished = tasks, 0
        self._embedding = ""
        self._tasks = bars.add_task(f"{escape(self._label)}tasks", total=tasks, rate="")
        self._embed = bars.add_task("embed", total=None, rate="")
        self._since = time.monotonic()
        self._letters = 0
        self._todo = self._done = 0

    def begin(self, task_id: str, todo: int) -> None:
        """Start the bar of one task, or add to it where others are embedded at the same time."""
        step = f"{self._label}embed {task_id}"
        self._embedding = task_id
        if self._done < self._todo:
            self._todo += todo
            self._bars.update(self._embed, total=self._todo, description=f"{escape(step)}, ...")
            return
        self._since, self._letters = time.monotonic(), 0
        self._todo, self._done = todo, 0
        self._bars.reset(self._embed, total=todo, description=escape(step), rate="")

    def step(self, sequences: int, letters: int) -> None:
        """Move the bar and show letters a second."""
        self._letters += letters
        self._done += sequences
        self._bars.update(self._embed, advance=sequences, rate=self._rate)

    @property
    def _rate(self) -> str:
        seconds = max(time.monotonic() - self._since, 1e-9)
        return f"{self._letters / seconds:,.0f} bp/s"

    def finish(self, task_id: str, line: str) -> None:
        """Write a task's line."""
        self._finished += 1
        self._bars.advance(self._tasks)
        self.say(f"{task_id}: {line}")

    def say(self, line: str) -> None:
        """Write lines above the bars; in a pipe or a file each stays one line."""
        for part in line.splitlines():
            text = wrapped(f"{self._label}{part}")
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def say_state(self) -> None:
        """Write the numbers of finished and embedded tasks; nothing once all are finished."""
        if self._finished >= self._count:
            return
        now = f"{self._finished:,} of {plural(self._count, 'task')} finished"
        if self._done < self._todo:
            of = f"{self._done:,} of {plural(self._todo, 'sequence')}"
            now += f"; {self._embedding}: {of} embedded, {self._rate}"
        elif self._embedding:
            now += "; scoring"
        self.say(now)


Listeners = Callable[[int, str], Listener]
"""Makes the listener of a run, from the number of its tasks and a label for its lines."""


@contextmanager
def listeners(*, quiet: bool) -> Iterator[Listeners]:
    """Return the listeners of several runs that fit the error stream: bars on a terminal alone."""
    if quiet:
        yield lambda _tasks, _label: SilentListener()
        return
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
    )  # fmt: skip
    plain = bool(os.environ.get("NO_COLOR")) or console.is_dumb_terminal
    silent = plain or not console.is_terminal  # a line for each finished task is printed anyway
    talking: list[PrintingListener] = []
    with Progress(*columns, console=console, transient=True, disable=silent) as bars:

        def new(tasks: int, label: str) -> PrintingListener:
            talking.append(PrintingListener(console, bars, tasks, label))
            return talking[-1]

        with _each_minute(talking) if silent else nullcontext():
            yield new


@contextmanager
def _each_minute(listeners: Sequence[PrintingListener]) -> Iterator[None]:
    """Print the state of each listener once a minute, from a thread, until the context ends."""
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(LINE_SECONDS):
            for listener in list(listeners):
                listener.say_state()

    thread = threading.Thread(target=write, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def listener(tasks: int, *, quiet: bool) -> Iterator[Listener]:
    """Return the listener of one run, which needs no label."""
    with listeners(quiet=quiet) as new:
        yield new(tasks, "")
