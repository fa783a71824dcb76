"""What a change of rules would do to the rows, as text, Markdown or JSON."""

from collections.abc import Callable, Iterator

from geneb_ci.publish.replay import Effect, Replay
from geneb_ci.report.json_text import dumps
from geneb_ci.report.markdown import code
from geneb_ci.report.summary import counted
from geneb_ci.report.text import escape

FORMAT_VERSION = "1.0"


def as_text(found: Replay) -> str:
    """Write for a terminal, one line a row and rule."""
    lines = [_headline(found, escape(found.name))]
    for title, effects in _parts(found):
        lines += ["", title]
        for one in effects:
            lines.append(f"  {escape(one.row)}  {escape(one.rule)}  {counted(one.places, 'place')}")
            lines.append(f"    {escape(one.message)}")
    return "\n".join(lines) + "\n"


def as_markdown(found: Replay) -> str:
    """Write for a comment or a step summary; names stand in code spans."""
    lines = [f"**{_headline(found, code(found.name))}**"]
    for title, effects in _parts(found):
        lines += ["", f"### {title.capitalize()}", ""]
        for one in effects:
            lines.append(f"- {code(one.row)} {code(one.rule)}, {counted(one.places, 'place')}\\")
            lines.append(f"  {code(one.message)}")
    return "\n".join(lines) + "\n"


def as_json(found: Replay) -> str:
    """Write all of it for another program."""
    return dumps(
        {
            "format_version": FORMAT_VERSION,
            "rules": found.name,
            "commit": found.commit,
            "rows": found.rows,
            "fails": [one._asdict() for one in found.fails],
            "warns": [one._asdict() for one in found.warns],
            "heals": [one._asdict() for one in found.heals],
        }
    )


WRITERS: dict[str, Callable[[Replay], str]] = {
    "text": as_text,
    "json": as_json,
    "markdown": as_markdown,
}


def _headline(found: Replay, name: str) -> str:
    failing = len({one.row for one in found.fails})
    what = f"{failing} would newly fail" if failing else "none would newly fail"
    return f"rules of {name} ({found.commit[:12]}) on {counted(found.rows, 'row')}: {what}"


def _parts(found: Replay) -> Iterator[tuple[str, tuple[Effect, ...]]]:
    parts = {
        "would newly fail": found.fails,
        "would newly warn": found.warns,
        "would fail no more": found.heals,
    }
    yield from ((title, effects) for title, effects in parts.items() if effects)
