"""The first-parent history of the files that decide the board: one step a merge, oldest first."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from geneb_ci.publish.git import NO_BLOB, REGULAR, Repository
from geneb_ci.publish.inputs import AUDITS, DECISIVE, SUBMISSIONS

_FORMAT = "%H%x00%ct%x00%an%x00%s%x00%(trailers:only=true,unfold=true)%x00"
_HEADER_FIELDS = 5


@dataclass(frozen=True)
class Change:
    """What became of one file; None where it was not there."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Step:
    """One commit on the main line, and what it changed against the one before."""

    commit: str
    when: str
    """Time of the commit, UTC."""
    author: str
    subject: str
    trailers: tuple[tuple[str, str], ...]
    """Key in lower case and value, in the order written."""
    changes: tuple[Change, ...]

    def trailer(self, *keys: str) -> str:
        """Give the values of the first key that stands among the trailers, joined; else ""."""
        for key in keys:
            if values := [value for name, value in self.trailers if name == key]:
                return ", ".join(values)
        return ""


def steps(repository: Repository, commit: str) -> list[Step]:
    """List the commits up to this one that changed a submission, an audit, policy or benchmark.

    A merge counts as one step, by what it brought to the main line.
    Raises BadRepository when the clone lacks the older part of the history.
    """
    repository.require_whole()
    output = repository.run(
        *("log", "-z", "--first-parent", "--reverse", "--diff-merges=first-parent", "--raw"),
        *("--root", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-color", "--no-mailmap"),
        f"--format=tformat:{_FORMAT}",
        *("--end-of-options", commit, "--", SUBMISSIONS, *DECISIVE, AUDITS),
    )
    return list(_parse(output.split(b"\0")))


def _parse(tokens: list[bytes]) -> Iterator[Step]:
    """Read the header of each commit, then its raw lines: each is facts and a path."""
    at = 0
    while at + _HEADER_FIELDS < len(tokens):
        commit, seconds, author, subject, trailers = (
            token.decode(errors="replace") for token in tokens[at : at + _HEADER_FIELDS]
        )
        at += _HEADER_FIELDS
        changes = []
        while at < len(tokens):
            facts = tokens[at].lstrip(b"\n")
            if facts.startswith(b":"):
                changes.append(_change(facts.decode(), tokens[at + 1]))
                at += 2
            elif facts:
                break
            else:
                at += 1
        yield Step(
            commit=commit.strip(),
            when=datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            author=author,
            subject=subject,
            trailers=tuple(_trailers(trailers)),
            changes=tuple(changes),
        )


def _change(facts: str, path: bytes) -> Change:
    mode_before, mode_after, before, after, _ = facts[1:].split(" ")
    return Change(
        path=path.decode(errors="backslashreplace"),
        before=before if mode_before in REGULAR and before != NO_BLOB else None,
        after=after if mode_after in REGULAR and after != NO_BLOB else None,
    )


def _trailers(text: str) -> Iterator[tuple[str, str]]:
    for line in text.split("\n"):  # not at U+2028 and the like, which a stranger may have typed
        key, separator, value = line.partition(":")
        if separator and value.strip():
            yield key.strip().lower(), value.strip()
