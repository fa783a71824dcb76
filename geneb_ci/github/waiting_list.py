"""The list of pull requests that could not be read or written, each with its next attempt.

The list is the text of one issue, in which maintainers see the reasons. Only the job that writes
verdicts changes it; that job may not change code. Neither a cache nor an artifact has the list,
because untrusted jobs could write these, and no branch, because that would need the right to push.
"""

import datetime as dt
import itertools
import re
from collections.abc import Iterable
from typing import Annotated, NamedTuple

from pydantic import Field

from geneb_ci.github.api import GitHub
from geneb_ci.github.errors import Tampered, result_or_error
from geneb_ci.github.one_line import decode, packed_text
from geneb_ci.github.verdict.model import (
    FAILED_REASON_MAX,
    OPEN_PULLS_MAX,
    FailedPull,
    LongText,
    PullNumber,
)
from geneb_ci.render.markdown import code_span
from geneb_ci.render.plain import visible
from geneb_ci.render.table import Table
from reference_harness.formats.base import Hex40, Moment, StrictModel

ISSUE_TITLE = "geneb-ci: pull requests that wait"
WAITS_MARKER = "<!-- geneb-ci:waits:1 "
"""Beginning of the text of the issue that lists the waiting pull requests."""
_WAITS_LINE = re.compile(re.escape(WAITS_MARKER) + r"([A-Za-z0-9+/=:]{1,60000}) -->")
"""First line of the issue with the waiting pull requests: the list as data, hidden."""
FIRST_WAIT = dt.timedelta(minutes=30)
"""Time before the second attempt; it doubles with each further one, up to `LONGEST_WAIT`."""
LONGEST_WAIT = dt.timedelta(days=1)
"""Longest time between two attempts."""
WAITS_MAX = OPEN_PULLS_MAX
"""Maximum number of listed pull requests; an unlisted one would be tried in every sweep."""
PACKED_CHARACTERS_MAX = 48_000
"""Maximum characters of the list as data, so that the table fits into the issue as well."""
LISTED_PULLS_MAX = 40
"""Maximum number of rows of the table in the issue."""
_ISSUE_TEXT = (
    "This issue is written by geneb-ci; leave it open. These pull requests could not be read or "
    "written. The others do not wait for them. To try one at once: "
    "`gh workflow run verdict.yml -f pr=NUMBER`."
)
"""First sentences of the issue, before the table."""


class Wait(StrictModel):
    """A pull request that could not be read or written, and waits for its next attempt."""

    number: PullNumber
    head_sha: Hex40
    reason: LongText
    tries: Annotated[int, Field(ge=1, le=1000)]
    """Number of failed attempts."""
    until: Moment
    """Time of the next attempt."""


class _WaitList(StrictModel):
    """The list of waiting pull requests, as the issue stores it."""

    waits: Annotated[list[Wait], Field(max_length=WAITS_MAX)]


class WaitingList(NamedTuple):
    """The pull requests that wait, by number, and the issue that lists them."""

    issue: int | None
    """Number of the issue; None if there is none."""
    waits: dict[int, Wait]
    """Entry of each waiting pull request, by its number."""


def read_waits(github: GitHub) -> WaitingList:
    """Return the list in our issue, empty without one; one request per 100 open issues.

    Raises GitHubProblem or UsageProblem if issues cannot be read.
    """
    issue = github.marked_issue(WAITS_MARKER)
    match = _WAITS_LINE.match(issue.body) if issue is not None else None
    waits = _waits_in_line(match[1]) if match is not None else {}
    return WaitingList(issue.number if issue is not None else None, waits)


def known_waits(github: GitHub) -> dict[int, Wait]:
    """Return the waiting pull requests, by number; none if issues cannot be read.

    Raises RateLimited.
    """
    waiting_list = result_or_error(read_waits, github)
    # Issues may be disabled, or the token may not read them.
    return waiting_list.waits if isinstance(waiting_list, WaitingList) else {}


def _waits_in_line(line: str) -> dict[int, Wait]:
    """Return the waiting pull requests in the hidden line, by number; none if it is invalid."""
    try:
        waits = decode(line, _WaitList, "the list of waiting pull requests", "")
    except Tampered:
        return {}
    return {wait.number: wait for wait in waits.waits}


def _packed_waits(waits: dict[int, Wait]) -> str:
    """Return the list as one line; if it is too long, the last entries lose their reasons."""
    shortened, count_with_reason = list(waits.values()), len(waits)
    while (
        len(line := packed_text(_WaitList(waits=shortened))) > PACKED_CHARACTERS_MAX
        and count_with_reason
    ):
        count_with_reason //= 2
        shortened[count_with_reason:] = [
            wait.model_copy(update={"reason": ""}) for wait in shortened[count_with_reason:]
        ]
    return line


def is_due(wait: Wait | None, head_sha: str, now: dt.datetime) -> bool:
    """Whether to try a pull request: it is not listed, has new commits, or waited long enough."""
    return wait is None or wait.head_sha != head_sha or now >= dt.datetime.fromisoformat(wait.until)


def waits_after(
    earlier_waits: dict[int, Wait],
    troubles: Iterable[FailedPull],
    settled: Iterable[int],
    now: dt.datetime,
) -> dict[int, Wait]:
    """Return the list after a run: without settled pull requests, with the time of each retry."""
    settled_numbers = set(settled)
    waits = {
        number: wait for number, wait in earlier_waits.items() if number not in settled_numbers
    }
    for trouble in troubles:
        earlier_wait = earlier_waits.get(trouble.number)
        tries = (
            min(1000, earlier_wait.tries + 1)
            if earlier_wait and earlier_wait.head_sha == trouble.head_sha
            else 1
        )
        wait_time = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(tries - 1, 10))
        waits[trouble.number] = Wait(
            number=trouble.number,
            head_sha=trouble.head_sha,
            reason=visible(trouble.reason, FAILED_REASON_MAX),
            tries=tries,
            until=f"{now + wait_time:%Y-%m-%dT%H:%M:%SZ}",
        )
    return dict(sorted(waits.items())[:WAITS_MAX])


def update_waits(github: GitHub, troubles: Iterable[FailedPull], settled: Iterable[int]) -> None:
    """Write the list after a run if it has changed: one request, and at most one write."""
    waiting_list = read_waits(github)
    waits = waits_after(waiting_list.waits, troubles, settled, github.connection.now)
    if waits == waiting_list.waits:
        return
    if waiting_list.issue is None:
        github.open_issue(ISSUE_TITLE, issue_text(waits))
    else:
        github.edit_issue(waiting_list.issue, issue_text(waits))


def issue_text(waits: dict[int, Wait]) -> str:
    """Return the text of the issue: the list as data, and as a table."""
    lines = [
        f"{WAITS_MARKER}{_packed_waits(waits)} -->",
        _ISSUE_TEXT,
        "",
    ]
    if not waits:
        return "\n".join([*lines, "No pull request waits.", ""])
    rows = [
        (f"#{wait.number}", code_span(wait.reason), str(wait.tries), wait.until)
        for wait in itertools.islice(waits.values(), LISTED_PULLS_MAX)
    ]
    columns = ("PR", "reason", "attempts", "next attempt")
    table = Table(columns, rows, frozenset({"PR", "attempts"})).markdown_lines()
    hidden_line = (
        [f"\n{len(waits) - LISTED_PULLS_MAX} more are not listed here."]
        if len(waits) > LISTED_PULLS_MAX
        else []
    )
    return "\n".join([*lines, *table, *hidden_line, ""])
