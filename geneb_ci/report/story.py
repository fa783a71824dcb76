"""The ledger for people: a table of all events, or the whole story of one row."""

import textwrap
from collections.abc import Iterator

from geneb_ci.publish.shape import Event, Ledger
from geneb_ci.report.plain import visible

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
    """Tell all that happened to one row, oldest first; nothing for a row that never was."""
    for event in ledger.events:
        if event.model != model:
            continue
        yield ""
        yield f"{event.when}  {WORDS[event.kind]}{_levels(event)}"
        for title, text in (("why", event.why), ("who", event.who)):
            yield textwrap.fill(
                f"{title}: {visible(text)}", WIDTH, initial_indent="  ", subsequent_indent="       "
            )
        yield f"  commit: {event.commit}"
        digest = f"sha256 {event.evidence.sha256}" if event.evidence.sha256 else "gone"
        yield f"  evidence: {visible(event.evidence.path)}"
        yield f"            {digest}"


def _levels(event: Event) -> str:
    # What costs or brings a level is followed by an event of its own.
    if event.kind in {"relabel", "dispute"} and event.former_level and event.level:
        return f", {visible(event.former_level)} -> {visible(event.level)}"
    return f", {visible(event.level)}" if event.level and event.kind == "include" else ""


def table(ledger: Ledger) -> Iterator[str]:
    """Give one line an event."""
    for event in ledger.events:
        yield (
            f"{event.when}  {event.commit[:SHORT]}  {event.kind:<10}  {visible(event.model)}"
            f"{_levels(event)}  {visible(event.why)}"
        )
