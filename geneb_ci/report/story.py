"""The ledger for people: a table of all events, or the whole story of one row."""

import itertools
import textwrap
from collections.abc import Iterator

from geneb_ci.publish.shape import Event, Ledger
from geneb_ci.report.text import escape

WIDTH = 88  # columns of a paragraph
SHORT = 12  # hex digits that people read

WORDS = {
    "include": "came on the board",
    "change": "changed",
    "correction": "corrected",
    "audit": "audited",
    "withdrawal": "audit withdrawn",
    "relabel": "relabelled",
    "dispute": "disputed",
    "removal": "taken off the board",
}


def models_of(ledger: Ledger) -> list[str]:
    """Name every row that ever was, in the order of their names."""
    return sorted({event.model for event in ledger.events}, key=lambda name: (name.lower(), name))


def story(ledger: Ledger, model: str) -> Iterator[str]:
    """Tell all that happened to one row, oldest first; nothing for a row that never was.

    What one commit did, such as an audit and the level that it brought, stands together.
    """
    own = (event for event in ledger.events if event.model == model)
    commits = [list(events) for _, events in itertools.groupby(own, lambda event: event.commit)]
    for events in commits:
        yield ""
        yield from _paragraph(events)
    if commits:
        yield ""
        yield "`git show COMMIT -- FILE` shows what a commit changed in its evidence"


def _paragraph(events: list[Event]) -> Iterator[str]:
    first = events[0]
    yield f"{first.when}  {'; '.join(WORDS[event.kind] + _levels(event) for event in events)}"
    for title, text in (("why", first.why), ("who", first.who)):
        yield textwrap.fill(
            f"{title}: {escape(text)}", WIDTH, initial_indent="  ", subsequent_indent="       "
        )
    yield f"  commit: {first.commit}"
    for evidence in dict.fromkeys(event.evidence for event in events):
        yield f"  evidence: {escape(evidence.path)}"
        yield f"            {f'sha256 {evidence.sha256}' if evidence.sha256 else 'gone'}"


def _levels(event: Event) -> str:
    # What costs or brings a level is followed by an event of its own.
    if event.kind == "dispute" and event.former_level:
        return f", was {escape(event.former_level)}"
    if event.kind == "relabel" and event.former_level and event.level:
        return f", {escape(event.former_level)} -> {escape(event.level)}"
    return f", {escape(event.level)}" if event.level and event.kind == "include" else ""


def table(ledger: Ledger) -> Iterator[str]:
    """Give one line an event."""
    for event in ledger.events:
        yield (
            f"{event.when}  {event.commit[:SHORT]}  {event.kind:<10}  {escape(event.model)}"
            f"{_levels(event)}  {escape(event.why)}  ({escape(event.who)})"
        )
