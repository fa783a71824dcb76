"""The ledger: what happened to every row, when, by which commit, who, why and on what evidence.

It is a pure function of the git history up to a commit, so that nothing in it can drift: whoever
has a clone gets the same bytes.
"""

import hashlib
from collections.abc import Iterator
from pathlib import PurePosixPath

from geneb_ci.audit.record import WITHDRAWN
from geneb_ci.publish.git import Repository
from geneb_ci.publish.history import Change, Step, steps
from geneb_ci.publish.inputs import AUDITS, DECISIVE, OFFICIAL, SUBMISSIONS
from geneb_ci.publish.levels import Levels, Standing, level_at
from geneb_ci.publish.shape import LINE_MAX, Event, Evidence, Kind, Ledger

# Who answers for a step, the first that is there; trailers of the commit on the main line.
WHO = ("submitted-by", "audited-by", "reviewed-by", "signed-off-by")
WHY = ("reason",)
CORRECTION = "correction"
"""A change whose commit has this trailer mends a fault, and says which."""
DISPUTED, LISTED = "disputed", "official"
UNVOUCHED = "self-reported"
"""Level of a row that came while no board could be built."""


def ledger(repository: Repository, commit: str, levels: Levels = level_at) -> Ledger:
    """Tell the history of every row up to a commit. Raises BadRepository."""
    line = steps(repository, commit)
    names = [blob for step in line for change in step.changes for blob in _blobs(change)]
    contents = dict(repository.blobs(names))
    return Ledger(events=list(_events(line, contents, levels)))


def _blobs(change: Change) -> Iterator[str]:
    yield from (blob for blob in (change.before, change.after) if blob)


class _Rows:
    """The state that the history has reached."""

    def __init__(self, contents: dict[str, bytes], levels: Levels) -> None:
        self.contents = contents
        self.digests = {
            name: hashlib.sha256(content).hexdigest() for name, content in contents.items()
        }
        self._levels = levels
        self.submissions: dict[str, str] = {}
        self.audits: dict[str, dict[str, str]] = {}
        self.policy: dict[str, str] = {}

    def level(self, model: str, former: str | None) -> str | None:
        """Give the level of a row; it keeps its former one while no board can be built."""
        blob = self.submissions.get(model)
        if blob is None:
            return None
        audits, policy = self._read(self.audits.get(model, {})), self._read(self.policy)
        found = self._levels(Standing(model, self.contents[blob], audits, policy))
        return found or former or UNVOUCHED

    def _read(self, files: dict[str, str]) -> dict[str, bytes]:
        return {path: self.contents[blob] for path, blob in files.items()}

    def apply(self, change: Change) -> None:
        """Take in one change."""
        if change.path in DECISIVE:
            _put(self.policy, change.path, change.after)
        elif model := submission_of(change.path):
            _put(self.submissions, model, change.after)
        elif model := audited(change.path):
            _put(self.audits.setdefault(model, {}), change.path, change.after)


def _put(table: dict[str, str], key: str, value: str | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def submission_of(path: str) -> str | None:
    """Give the model whose submission a path is; None for any other file."""
    parts = PurePosixPath(path)
    here = str(parts.parent) == SUBMISSIONS and parts.suffix == ".json"
    return parts.stem if here and not parts.name.startswith(".") else None


def audited(path: str) -> str | None:
    """Give the model that an audit record is about; None for any other file."""
    parts = PurePosixPath(path)
    below = str(parts.parent.parent) == AUDITS and parts.suffix == ".json"
    return parts.parent.name if below and parts.parent.name != ".." else None


def _events(line: list[Step], contents: dict[str, bytes], levels: Levels) -> Iterator[Event]:
    rows = _Rows(contents, levels)
    now: dict[str, str | None] = {}
    for step in line:
        before = dict(now)
        for change in step.changes:
            rows.apply(change)
        touched = {model for change in step.changes if (model := _model(change))}
        # The policy may move any row, an audit or a submission its own alone.
        policy = any(change.path in DECISIVE for change in step.changes)
        for model in sorted({*rows.submissions, *before} if policy else touched):
            now[model] = rows.level(model, before.get(model))
            yield from _of_model(step, model, (before.get(model), now[model]), rows)
            if now[model] is None:
                del now[model]


def _model(change: Change) -> str | None:
    return submission_of(change.path) or audited(change.path)


def _of_model(
    step: Step, model: str, levels: tuple[str | None, str | None], rows: _Rows
) -> Iterator[Event]:
    """Give what a step did to one row: first to its file, then to its audits, then to its level."""
    former, level = levels
    cause: Change | None = None

    def event(kind: Kind, change: Change) -> Event:
        return Event(
            when=step.when,
            commit=step.commit,
            model=model,
            kind=kind,
            level=level,
            former_level=former,
            who=(step.trailer(*WHO) or step.author)[:LINE_MAX],
            why=(step.trailer(CORRECTION, *WHY) or step.subject)[:LINE_MAX],
            evidence=Evidence(
                path=change.path,
                sha256=rows.digests[change.after] if change.after else None,
            ),
        )

    for change in step.changes:
        if submission_of(change.path) == model and (kind := _kind(step, change)):
            yield event(kind, change)
    for change in step.changes:
        if audited(change.path) == model:
            cause = change
            yield event("withdrawal" if change.path.endswith(WITHDRAWN) else "audit", change)
    if former and level and former != level:
        policy = [change for change in step.changes if change.path in DECISIVE]
        # Of several, the list of the authors' files answers for its own level, and no other.
        listed = LISTED in levels
        policy.sort(key=lambda change: (change.path == OFFICIAL) is not listed)
        own = [change for change in step.changes if submission_of(change.path) == model]
        reason = cause or next(iter([*policy, *own]))
        yield event("dispute" if level == DISPUTED else "relabel", reason)


def _kind(step: Step, change: Change) -> Kind | None:
    if change.before is None:
        return "include" if change.after else None
    if change.after is None:
        return "removal"
    return "correction" if step.trailer(CORRECTION) else "change"
