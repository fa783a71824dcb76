"""The ledger: the history of every row, with commit, time, author, reason and evidence."""

import functools
import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from geneb_ci.audit.record.old_log import CHECKPOINT, LogBroken, entries_in, parse_checkpoint
from geneb_ci.audit.record.statement import EVENT_SUFFIXES, WITHDRAWN_SUFFIX
from geneb_ci.audit.trust.evidence import BrokenRecordError, RepositoryEvidence, gather_evidence
from geneb_ci.common.config import Layout, LayoutKind
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.types import TrustLevel
from geneb_ci.publish.git import (
    AUDIT_LOG_FOLDER,
    AUDITS_FOLDER,
    BENCHMARK_FILE,
    DECISIVE_FILES,
    MISSING_BLOB,
    OFFICIAL_FILE,
    POLICY_FOLDER,
    REGULAR_MODES,
    SUBMISSIONS_FOLDER,
    GitRepository,
)
from geneb_ci.publish.manifest import LINE_CHARACTERS_MAX, Event, EventEvidence, EventKind, Ledger
from geneb_ci.submission.document import parse_document

_LOG_FORMAT = "%H%x00%ct%x00%an%x00%s%x00%(trailers:only=true,unfold=true)%x00"
"""Format of `git log`: commit, time, author, subject and trailers."""
_HEADER_FIELD_COUNT = 5
"""Number of fields in `_LOG_FORMAT`."""


@dataclass(frozen=True)
class HistoryChange:
    """Change of one file in a commit."""

    path: str
    before: str | None
    """Id of the file's blob before the change; None if the file did not exist."""
    after: str | None
    """Id of the file's blob after the change; None if the file was deleted."""


@dataclass(frozen=True)
class HistoryStep:
    """One commit of the main line, and its changes against its first parent."""

    commit: str
    when: str
    """Time of the commit, in UTC."""
    author: str
    subject: str
    """First line of the commit's message."""
    trailers: tuple[tuple[str, str], ...]
    """Lower-case key and value of each trailer of the message, in order."""
    changes: tuple[HistoryChange, ...]
    """The changes of files on which the board depends."""

    def trailer(self, *names: str) -> str:
        """Return the joined values of the first of `names` that is a trailer, or "" without one."""
        for name in names:
            if matching := [value for key, value in self.trailers if key == name]:
                return ", ".join(matching)
        return ""


def history_steps(repository: GitRepository, commit: str) -> list[HistoryStep]:
    """Return the commits up to `commit` that changed a submission, an audit, policy or benchmark.

    A merge is one step, compared with its first parent. Raises BadRepository for a shallow clone.
    """
    repository.require_whole()
    output = repository.run(
        *("log", "-z", "--first-parent", "--reverse", "--diff-merges=first-parent", "--raw"),
        *("--root", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-color", "--no-mailmap"),
        f"--format=tformat:{_LOG_FORMAT}",
        *("--end-of-options", commit, "--", SUBMISSIONS_FOLDER, *DECISIVE_FILES, AUDITS_FOLDER),
    )
    return list(_steps_in(output.split(b"\0")))


def _steps_in(tokens: list[bytes]) -> Iterator[HistoryStep]:
    """Yield the steps in the output of `git log --raw -z`, split at its zero bytes.

    The output has for each commit the fields of the header, then pairs of facts and path.
    """
    position = 0
    while position + _HEADER_FIELD_COUNT < len(tokens):
        commit, seconds, author, subject, trailers = (
            token.decode(errors="replace")
            for token in tokens[position : position + _HEADER_FIELD_COUNT]
        )
        position += _HEADER_FIELD_COUNT
        changes = []
        while position < len(tokens):
            facts = tokens[position].lstrip(b"\n")
            if facts.startswith(b":"):
                changes.append(_file_change(facts.decode(), tokens[position + 1]))
                position += 2
            elif facts:
                break
            else:
                position += 1
        yield HistoryStep(
            commit=commit.strip(),
            when=datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            author=author,
            subject=subject,
            trailers=tuple(_trailers(trailers)),
            changes=tuple(changes),
        )


def _file_change(facts: str, path: bytes) -> HistoryChange:
    """Return a change from a line of `git log --raw`: modes and blobs before and after."""
    mode_before, mode_after, before, after, _ = facts[1:].split(" ")
    return HistoryChange(
        path=path.decode(errors="backslashreplace"),
        before=before if mode_before in REGULAR_MODES and before != MISSING_BLOB else None,
        after=after if mode_after in REGULAR_MODES and after != MISSING_BLOB else None,
    )


def _trailers(text: str) -> Iterator[tuple[str, str]]:
    """Yield lower-case key and value of each trailer of a commit message."""
    for line in text.split("\n"):  # not splitlines(), which also splits at U+2028 and others
        name, separator, content = line.partition(":")
        if separator and content.strip():
            yield name.strip().lower(), content.strip()


CACHED_EVIDENCE_MAX = 1024
"""Maximum number of repositories whose evidence is cached: one for all rows without an audit, and
one for each change of evidence of the other rows."""


@dataclass(frozen=True)
class RowAtCommit:
    """The files about one row at one commit."""

    model: str
    submission: bytes
    """Bytes of the submission."""
    audits: Mapping[str, bytes]
    """Bytes of each audit record of this model, and of each withdrawal, by path."""
    policy: Mapping[str, bytes]
    """Bytes of the files that determine how evidence counts (policy, keys, benchmark), by path."""
    log: Mapping[str, bytes] = field(default_factory=dict)
    """Bytes of the files of an old log of audits, by path."""


LevelFunction = Callable[[RowAtCommit], str | None]
"""Returns the trust level of a row at a commit; None if no board can be built."""


def trust_level_at(row: RowAtCommit) -> str | None:
    """Return the trust level of a row at a commit, computed as `geneb-ci build` does.

    Return None if `build` would have failed, because of an invalid policy or a broken record: this
    is no error, since an earlier commit cannot be fixed.
    """
    files = dict(row.policy)
    if row.audits:
        submission_file = {f"{SUBMISSIONS_FOLDER}/{row.model}.json": row.submission}
        files |= {**row.audits, **submission_file, **row.log}
    model = row.model if row.audits else None
    evidence = _repository_evidence(tuple(sorted(files.items())), model)
    if evidence is None:
        return None
    file = parse_document(row.submission, Path(row.model), row.model)
    return str(evidence.decide(file.sha256, file.origin, file.scorer).level)


@functools.lru_cache(maxsize=CACHED_EVIDENCE_MAX)
def _repository_evidence(
    files: tuple[tuple[str, bytes], ...], model: str | None
) -> RepositoryEvidence | None:
    """Return the evidence of a repository with these files; None if it is invalid.

    Only the records of `model` are verified, which takes half a second each.
    """
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as temporary:
        root = Path(temporary).resolve()
        for path, content in files:
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        try:
            evidence = gather_evidence(_layout_of(root), model)
            evidence.require_sound()
        except (BadConfiguration, BrokenRecordError):
            return None
    return evidence


def _layout_of(root: Path) -> Layout:
    """Return the layout of a folder with those files that it has."""

    def existing(path: str) -> Path | None:
        return root / path if (root / path).exists() else None

    return Layout(
        LayoutKind.GENEB_CI,
        root,
        submissions=existing(SUBMISSIONS_FOLDER),
        benchmark=existing(BENCHMARK_FILE),
        policy=existing(POLICY_FOLDER),
        audits=existing(AUDITS_FOLDER),
    )


ACTOR_TRAILERS = ("submitted-by", "audited-by", "reviewed-by", "signed-off-by")
"""Trailers that name the person responsible for a step, in order of precedence."""
REASON_TRAILER = "reason"
"""Trailer with the reason of a step."""
CORRECTION_TRAILER = "correction"
"""Trailer of a commit that corrects an error, with the reason."""
LEVEL_WITHOUT_BOARD = TrustLevel.SELF_REPORTED.value
"""Level of a row that was added while no board could be built."""


WatchSteps = Callable[[Iterator[Any], int], Iterator[Any]]
"""A function of steps and their number, which yields the steps and may show progress."""


def ledger(
    repository: GitRepository,
    commit: str,
    levels: LevelFunction = trust_level_at,
    watch: WatchSteps = lambda line, _: line,
) -> Ledger:
    """Return the history of every row up to a commit.

    `levels` computes the trust level of a row at a commit, `watch` shows progress. Raises
    BadRepository where git fails.
    """
    history = history_steps(repository, commit)
    blob_ids = [blob for step in history for change in step.changes for blob in _blob_ids(change)]
    contents = dict(watch(iter(repository.blobs(blob_ids)), len(set(blob_ids))))
    return Ledger(events=list(_events(watch(iter(history), len(history)), contents, levels)))


def _blob_ids(change: HistoryChange) -> Iterator[str]:
    """Yield the ids of the file's contents before and after a change."""
    yield from (blob for blob in (change.before, change.after) if blob)


class _FileIds:
    """The files about all rows after some steps of the history, each as the id of its content.

    `contents` has the bytes of each file by this id.
    """

    def __init__(self, contents: dict[str, bytes], levels: LevelFunction) -> None:
        self.contents = contents
        self.digests = {
            name: hashlib.sha256(content).hexdigest() for name, content in contents.items()
        }
        self._levels = levels
        self.submissions: dict[str, str] = {}
        self.audits: dict[str, dict[str, str]] = {}
        self.policy: dict[str, str] = {}
        self.log: dict[str, str] = {}

    def level(self, model: str, former_level: str | None) -> str | None:
        """Return the trust level of a row; None without a row.

        Return `former_level` if no board can be built.
        """
        blob = self.submissions.get(model)
        if blob is None:
            return None
        audits, policy = (
            self._contents_of(self.audits.get(model, {})),
            self._contents_of(self.policy),
        )
        log = self._contents_of(self.log) if audits else {}
        level = self._levels(RowAtCommit(model, self.contents[blob], audits, policy, log))
        return level or former_level or LEVEL_WITHOUT_BOARD

    def _contents_of(self, files: dict[str, str]) -> dict[str, bytes]:
        """Return the bytes of files, which are given by id."""
        return {path: self.contents[blob] for path, blob in files.items()}

    def apply(self, change: HistoryChange) -> None:
        """Record the blob that a file has after a change, or that the file was deleted."""
        if change.path in DECISIVE_FILES:
            _set_or_delete(self.policy, change.path, change.after)
        elif model := submitted_model(change.path):
            _set_or_delete(self.submissions, model, change.after)
        elif change.path.startswith(f"{AUDIT_LOG_FOLDER}/"):
            _set_or_delete(self.log, change.path, change.after)
        elif model := audited_model(change.path):
            _set_or_delete(self.audits.setdefault(model, {}), change.path, change.after)

    def logged_since(self, size: int) -> set[str]:
        """Return the models of the log's entries after the first `size` ones.

        Return an empty set if the log is broken.
        """
        files = {
            path.removeprefix(f"{AUDIT_LOG_FOLDER}/"): raw
            for path, raw in self._contents_of(self.log).items()
        }
        try:
            log_entries = entries_in(files)
        except LogBroken:
            return set()
        return {entry.file.partition("/")[0] for entry in log_entries[size:]} & set(self.audits)

    @property
    def log_size(self) -> int:
        """Number of entries of the log, by its checkpoint; 0 without a valid checkpoint."""
        blob = self.log.get(f"{AUDIT_LOG_FOLDER}/{CHECKPOINT}")
        try:
            return parse_checkpoint(self.contents[blob]).size if blob is not None else 0
        except LogBroken:
            return 0


def _set_or_delete(table: dict[str, str], key: str, value: str | None) -> None:
    """Set the value of a key, or delete the key if the value is None."""
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def submitted_model(path: str) -> str | None:
    """Return the id of the model whose submission has this path; None for another file."""
    file = PurePosixPath(path)
    is_submission = str(file.parent) == SUBMISSIONS_FOLDER and file.suffix == ".json"
    return file.stem if is_submission and not file.name.startswith(".") else None


def audited_model(path: str) -> str | None:
    """Return the id of the model whose audit record has this path; None for another file."""
    file = PurePosixPath(path)
    is_record = str(file.parent.parent) == AUDITS_FOLDER and file.suffix == ".json"
    return file.parent.name if is_record and file.parent.name != ".." else None


def _events(
    steps: Iterator[HistoryStep], contents: dict[str, bytes], levels: LevelFunction
) -> Iterator[Event]:
    """Yield the events of all rows, step by step; `contents` has the bytes of files by id."""
    rows = _FileIds(contents, levels)
    levels_by_model: dict[str, str | None] = {}
    for step in steps:
        levels_before, log_size_before = dict(levels_by_model), rows.log_size
        for change in step.changes:
            rows.apply(change)
        changed_models = {model for change in step.changes if (model := _changed_model(change))}
        if any(change.path.startswith(f"{AUDIT_LOG_FOLDER}/") for change in step.changes):
            changed_models |= rows.logged_since(log_size_before) & set(rows.submissions)
        # A policy change may affect every row, an audit or submission only its own.
        if any(change.path in DECISIVE_FILES for change in step.changes):
            changed_models = {*rows.submissions, *levels_before}
        for model in sorted(changed_models):
            level = rows.level(model, levels_before.get(model))
            yield from _row_events(step, model, (levels_before.get(model), level), rows)
            levels_by_model[model] = level
            if level is None:
                del levels_by_model[model]


def _changed_model(change: HistoryChange) -> str | None:
    """Return the model whose submission or audit a change is about; None for another file."""
    return submitted_model(change.path) or audited_model(change.path)


def _row_events(
    step: HistoryStep, model: str, levels: tuple[str | None, str | None], rows: _FileIds
) -> Iterator[Event]:
    """Yield the events of one row in a step: first those of its file, then audits, then its level.

    `levels` are the trust levels before and after the step; None where there is no row.
    """
    former, level = levels
    audit_change: HistoryChange | None = None

    def event(kind: EventKind, change: HistoryChange) -> Event:
        return Event(
            when=step.when,
            commit=step.commit,
            model=model,
            kind=kind,
            level=level,
            former_level=former,
            who=(step.trailer(*ACTOR_TRAILERS) or step.author)[:LINE_CHARACTERS_MAX],
            why=(step.trailer(CORRECTION_TRAILER, REASON_TRAILER) or step.subject)[
                :LINE_CHARACTERS_MAX
            ],
            evidence=EventEvidence(
                path=change.path,
                sha256=rows.digests[change.after] if change.after else None,
            ),
        )

    for change in step.changes:
        if submitted_model(change.path) == model and (kind := _event_kind(step, change)):
            yield event(kind, change)
    for change in step.changes:
        if audited_model(change.path) == model:
            audit_change = change
            if change.path.endswith(EVENT_SUFFIXES):
                continue
            yield event("withdrawal" if change.path.endswith(WITHDRAWN_SUFFIX) else "audit", change)
    if former and level and former != level:
        policy_changes = [change for change in step.changes if change.path in DECISIVE_FILES]
        # Among several changes, official.json explains the level `official`, and no other.
        is_official = TrustLevel.OFFICIAL in levels
        policy_changes.sort(key=lambda change: (change.path == OFFICIAL_FILE) is not is_official)
        row_changes = [change for change in step.changes if submitted_model(change.path) == model]
        log_changes = [
            change for change in step.changes if change.path == f"{AUDIT_LOG_FOLDER}/{CHECKPOINT}"
        ]
        causing_change = audit_change or next(iter([*policy_changes, *row_changes, *log_changes]))
        yield event("dispute" if level == TrustLevel.DISPUTED else "relabel", causing_change)


def _event_kind(step: HistoryStep, change: HistoryChange) -> EventKind | None:
    """Return the kind of event that a change of a submission is; None if there is no file."""
    if change.before is None:
        return "include" if change.after else None
    if change.after is None:
        return "removal"
    return "correction" if step.trailer(CORRECTION_TRAILER) else "change"
