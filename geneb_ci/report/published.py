"""What `publish`, `rollback` and the health check say, as lines of text."""

from collections.abc import Iterable, Iterator

from geneb_ci.publish.difference import FileChange, RowChange, Sign
from geneb_ci.publish.health import Health, Standing
from geneb_ci.publish.push import SHORT, Outcome, Published
from geneb_ci.publish.shape import Manifest
from geneb_ci.report.plain import visible
from geneb_ci.report.summary import counted

ROWS_MAX = 60  # rows of the board that a reader goes through; the rest is counted


def published_line(resource: str, done: Published) -> str:
    """Say what a publish did."""
    what = _named(done.manifest)
    if done.outcome is Outcome.UNCHANGED:
        return f"{resource}: nothing changed; {what} is live at {done.commit[:SHORT]}"
    return f"{resource}: published {what} as {done.commit[:SHORT]}, read back and verified"


def _named(manifest: Manifest) -> str:
    return f"generation {manifest.generation[:SHORT]} of commit {manifest.source_commit[:SHORT]}"


def changes(files: Iterable[FileChange], rows: list[RowChange], others: int) -> Iterator[str]:
    """Show what would change, line by line."""
    for file in files:
        size = f"  {file.bytes:,} bytes" if file.sign is not Sign.REMOVED else ""
        yield f"{file.sign} {visible(file.name)}{size}"
    if others:
        yield f"  {counted(others, 'other file')} on the Space would be left alone"
    yield ""
    for row in rows[:ROWS_MAX]:
        arrow = " -> ".join(text for text in (row.was, row.will_be) if text)
        yield f"{row.sign} {visible(row.model)} ({visible(row.regime)})  {visible(arrow)}"
    if len(rows) > ROWS_MAX:
        yield f"  and {counted(len(rows) - ROWS_MAX, 'more row')}"
    if not rows:
        yield "no row of the board would change"


_MEANING = {
    Standing.CURRENT: "it is that of main",
    Standing.BEHIND: "main is ahead of it: geneb-ci publish",
    Standing.AHEAD: "it is newer than this clone: git pull, and look again",
    Standing.OTHER: "it is not that of main, though nothing newer: geneb-ci publish",
    Standing.NOTHING: "no board of ours is live: geneb-ci publish",
}


def health_lines(resource: str, health: Health, main: Manifest) -> Iterator[str]:
    """Say which generation is live, and whether that is right."""
    live = health.live
    if live is None:
        yield f"{resource} at {health.head[:SHORT]}: {_MEANING[Standing.NOTHING]}"
        return
    yield f"{resource} at {health.head[:SHORT]}: {_named(live)} is live"
    if health.standing is Standing.ROLLED_BACK and live.rollback is not None:
        yield (
            f"it was put there on purpose, in place of {live.rollback.former_generation[:SHORT]}; "
            "the next change of main replaces it"
        )
    else:
        yield _MEANING[health.standing]
    if health.standing not in {Standing.CURRENT, Standing.AHEAD}:
        yield f"main: {_named(main)}"
    for name in health.altered:
        yield f"altered on the Space: {visible(name)}"
    if health.altered:
        yield "these files are not what was published: geneb-ci publish puts them back"
    else:
        yield f"{counted(len(live.files), 'file')} served as published"
