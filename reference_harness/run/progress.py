"""Progress of a run: bars on a terminal, otherwise a line per task and per minute."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from reference_harness.formats.text import plural
from reference_harness.text import wrapped

LINE_SECONDS = 60.0
"""Seconds between two lines of progress without a terminal."""


class Listener(Protocol):
    """Receives the progress of a run."""

    def begin(self, task_id: str, sequences: int) -> None:
        """Receive that a task begins, and how many of its sequences have to be embedded."""

    def step(self, sequences: int, letters: int) -> None:
        """Receive how many sequences and letters were embedded since the last call."""

    def finish(self, task_id: str, line: str) -> None:
        """Receive that a task is finished; `line` contains its scores."""

    def say(self, line: str) -> None:
        """Receive any other message for the user."""


class SilentListener:
    """Ignores all progress."""

    def begin(self, task_id: str, sequences: int) -> None:
        """Do nothing."""

    def step(self, sequences: int, letters: int) -> None:
        """Do nothing."""

    def finish(self, task_id: str, line: str) -> None:
        """Do nothing."""

    def say(self, line: str) -> None:
        """Do nothing."""


class PrintingListener:
    """Prints the progress to the error stream, so that the output stream has only results."""

    def __init__(self, console: Console, bars: Progress, tasks: int, label: str = "") -> None:
        self._console = console
        self._bars = bars
        self._label = f"{label}: " if label else ""
        self._task_count, self._finished = tasks, 0
        self._embedded_task = ""
        self._tasks_bar = bars.add_task(f"{escape(self._label)}tasks", total=tasks, rate="")
        self._embed_bar = bars.add_task("embed", total=None, rate="")
        self._started = time.monotonic()
        self._letters = 0
        self._planned = self._embedded = 0
        """Sequences to embed, and embedded so far, of the tasks that the bar shows."""

    def begin(self, task_id: str, sequences: int) -> None:
        """Start the bar of one task, or extend it if other tasks are being embedded."""
        step = f"{self._label}embed {task_id}"
        self._embedded_task = task_id
        if self._embedded < self._planned:
            self._planned += sequences
            self._bars.update(
                self._embed_bar, total=self._planned, description=f"{escape(step)}, ..."
            )
            return
        self._started, self._letters = time.monotonic(), 0
        self._planned, self._embedded = sequences, 0
        self._bars.reset(self._embed_bar, total=sequences, description=escape(step), rate="")

    def step(self, sequences: int, letters: int) -> None:
        """Advance the bar and print the letters per second."""
        self._letters += letters
        self._embedded += sequences
        self._bars.update(self._embed_bar, advance=sequences, rate=self._rate)

    @property
    def _rate(self) -> str:
        """Return the embedded letters per second as text."""
        seconds = max(time.monotonic() - self._started, 1e-9)
        return f"{self._letters / seconds:,.0f} bp/s"

    def finish(self, task_id: str, line: str) -> None:
        """Print the line of a finished task."""
        self._finished += 1
        self._bars.advance(self._tasks_bar)
        self.say(f"{task_id}: {line}")

    def say(self, line: str) -> None:
        """Print lines above the bars; without a terminal, a line is not wrapped."""
        for text_line in line.splitlines():
            text = wrapped(f"{self._label}{text_line}")
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def say_state(self) -> None:
        """Print how many tasks are finished and sequences embedded, unless all are finished."""
        if self._finished >= self._task_count:
            return
        line = f"{self._finished:,} of {plural(self._task_count, 'task')} finished"
        if self._embedded < self._planned:
            embedded_text = f"{self._embedded:,} of {plural(self._planned, 'sequence')}"
            line += f"; {self._embedded_task}: {embedded_text} embedded, {self._rate}"
        elif self._embedded_task:
            line += "; scoring"
        self.say(line)


Listeners = Callable[[int, str], Listener]
"""Function that returns the listener of a run, given its number of tasks and a label for its
lines."""


@contextmanager
def listeners(*, quiet: bool) -> Iterator[Listeners]:
    """Yield a function that makes the listeners of several runs, with bars only on a terminal."""
    if quiet:
        yield lambda _tasks, _label: SilentListener()
        return
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
    )  # fmt: skip
    is_plain = bool(os.environ.get("NO_COLOR")) or console.is_dumb_terminal
    has_no_bars = (
        is_plain or not console.is_terminal
    )  # a line for each finished task is printed anyway
    printing_listeners: list[PrintingListener] = []
    with Progress(*columns, console=console, transient=True, disable=has_no_bars) as bars:

        def new_listener(tasks: int, label: str) -> PrintingListener:
            printing_listeners.append(PrintingListener(console, bars, tasks, label))
            return printing_listeners[-1]

        with _print_each_minute(printing_listeners) if has_no_bars else nullcontext():
            yield new_listener


@contextmanager
def _print_each_minute(listeners: Sequence[PrintingListener]) -> Iterator[None]:
    """Print the state of each listener every minute, from a thread, until the context ends."""
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
    """Yield the listener of one run, without a label."""
    with listeners(quiet=quiet) as new_listener:
        yield new_listener(tasks, "")
