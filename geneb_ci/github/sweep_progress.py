"""The progress of a sweep over open pull requests: the state of each of them.

The outcome of the sweep follows from these states alone.
"""

import datetime as dt
import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from geneb_ci.common.errors import Exit, GenebError
from geneb_ci.common.finding import first_and_more
from geneb_ci.github.errors import RateLimited
from geneb_ci.render.plain import visible
from reference_harness.formats.text import plural

RETRY_FIX = "run `geneb-ci reconcile`"


class PullState(enum.StrEnum):
    """Outcome of a sweep for a pull request, in the words of its report: "3 judged now"."""

    CURRENT = "have their verdict"
    SHARED = "have the commit of another"
    JUDGED = "judged now"
    FAILED = "cannot be judged, and wait"
    WAITING = "wait after an earlier failure"
    LEFT = "are left"


class SweepStop(NamedTuple):
    """Why a sweep ended before its last pull request."""

    reason: str
    until: dt.datetime | None = None
    """Time when the limit resets; None if the cause is not a limit."""
    is_full: bool = False
    """Whether the verdict reached its size limit."""
    cause: GenebError | None = None
    """The error that ended the sweep; None for a limit of our own."""


def rate_limit_stop(limit: RateLimited) -> SweepStop:
    """Return why a sweep ends at a rate limit."""
    return SweepStop(limit.message, limit.until, cause=limit)


class SweepStopped(GenebError):  # noqa: N818 (named after what is wrong)
    """A sweep left pull requests without a verdict, or could not read one."""

    exit_code = Exit.NOT_CHECKED


@dataclass
class SweepProgress:
    """The progress of a sweep over the open pull requests."""

    states: dict[int, PullState] = field(default_factory=dict)
    """State of each pull request, by number, in the order of the sweep."""
    stop: SweepStop | None = None
    """Why the sweep ended early; None if it did not."""
    is_group: bool = False
    """Whether a group of a merge queue was checked, and no pull request."""
    problem: str = ""
    """Why the last unreadable pull request could not be read."""
    judged: dict[int, str] = field(default_factory=dict)
    """Outcome of each checked pull request, by number."""

    def note(self, numbers: Iterable[int], state: PullState) -> None:
        """Note what was done with pull requests."""
        self.states |= dict.fromkeys(numbers, state)

    def numbers(self, *states: PullState) -> list[int]:
        """Return the pull requests with one of these states."""
        return [number for number, state in self.states.items() if state in states]

    @property
    def waiting(self) -> int:
        """Number of pull requests that this sweep should have checked and did not."""
        return len(self.numbers(PullState.LEFT, PullState.FAILED))

    @property
    def lines(self) -> list[str]:
        """The progress as lines of text."""
        if self.is_group:
            return []
        outcomes = ", ".join(f"{number}: {outcome}" for number, outcome in self.judged.items())
        return [outcomes, self._counts_text] if outcomes else [self._counts_text]

    @property
    def _counts_text(self) -> str:
        """The number of pull requests in each state, as text."""
        count = len(self.states)
        if not count:
            return "no pull request is open to main"
        if set(self.states.values()) <= _JUDGED_STATES and not self.judged:
            return f"every open pull request has its verdict: {count}"
        phrases = []
        for state in PullState:
            numbers = self.numbers(state)
            if numbers:
                pull_numbers = f": {_number_spans(numbers)}" if state in _LISTED_STATES else ""
                phrases.append(f"{len(numbers)} {state.value}{pull_numbers}")
        return f"{plural(count, 'open pull request')}: {', '.join(phrases)}"

    def require_done(self) -> None:
        """Raise SweepStopped if a limit or GitHub ended the sweep early, or every check failed.

        Pull requests that do not fit into one verdict are left without an error.
        """
        without_verdict, failed = self.numbers(PullState.LEFT), self.numbers(PullState.FAILED)
        if self.stop is not None and not self.stop.is_full and without_verdict:
            condition = f"left: {_number_spans(without_verdict)}"
            raise self._stop_error(
                len(without_verdict), condition, self.stop.reason, _fix_of_stop(self.stop)
            )
        if self.problem and set(self.states.values()) <= {PullState.FAILED, PullState.WAITING}:
            condition = f"not judged: {_number_spans(failed)}"
            fix = f"{RETRY_FIX} again; each of these waits, twice as long after every failure"
            raise self._stop_error(len(failed), condition, self.problem, fix)

    def _stop_error(self, count: int, condition: str, reason: str, fix: str) -> SweepStopped:
        """Return the error that `count` pull requests were left or not judged, and why."""
        pulls_text = plural(len(self.states), "open pull request")
        was = "was" if count == 1 else "were"
        return SweepStopped(f"{count} of {pulls_text} {was} {condition}: {visible(reason)}", fix)


def _number_spans(numbers: Iterable[int]) -> str:
    """Return sorted numbers as text, with consecutive numbers as a span such as "43 to 110"."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][-1] == number - 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    return first_and_more([" to ".join(map(str, span)) for span in spans])


_JUDGED_STATES = {PullState.CURRENT, PullState.SHARED}
"""States of pull requests that had a verdict before the sweep."""
_LISTED_STATES = {PullState.FAILED, PullState.WAITING, PullState.LEFT}
"""States whose pull requests the report lists by number."""


def _fix_of_stop(stop: SweepStop) -> str:
    """Return what to do after a sweep that ended early."""
    if stop.until is not None:
        return f"{RETRY_FIX} after {stop.until:%Y-%m-%d %H:%M:%S} UTC, when the limit resets"
    return f"{RETRY_FIX} again; the next sweep continues with those that are left"
