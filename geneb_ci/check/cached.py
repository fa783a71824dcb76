"""Checks files by several processes; a check of unchanged files is read from the cache.

The findings of all files are one entry, under a digest of everything that they follow from: the
files, the rows that they are compared with, cards, extractors, settings, policy, and the code. A
changed byte of any of these is another check, which computes everything. See
docs/developer/scale.md.
"""

import dataclasses
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from geneb_ci.check.place import ComparisonRows, compared_folder
from geneb_ci.check.report import CRASHED, Outcome
from geneb_ci.common.cache import NO_CACHE, user_cache
from geneb_ci.common.config import OFFICIAL, Finder, Layout, find_layout
from geneb_ci.common.errors import BadConfiguration, NothingChecked
from geneb_ci.common.finding import Finding, Need, Severity
from geneb_ci.common.shipped import KNOWN_FILE, shipped
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.submission.reading import files_in
from geneb_ci.submission.structure import check_quickly
from reference_harness.formats.files import NotReadable, read_json, read_regular
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX

FILES_MIN = 20
"""Files from which on results are kept: reading them takes less than half of the time of the check
then. Of one file, a digest of all that it is compared with costs about what it could save."""
_POLICY_BYTES_MAX = 16_000_000
_PACKAGE = Path(__file__).resolve().parents[1]
_PARTS = (
    *("check", "common", "models", "receipt", "statistics", "submission"),
    "../reference_harness/formats",
)
"""Packages whose code may take part in a finding."""


class CachedChecker:
    """Checks files with rules, by names; `jobs` processes, None as many as the files ask for."""

    def __init__(
        self,
        rules: tuple[str, ...],
        find: Finder = find_layout,
        comparison_rows: ComparisonRows | None = None,
        *,
        cache: bool = False,
        jobs: int | None = 1,
    ) -> None:
        self.rules, self.find, self.against, self.jobs = rules, find, comparison_rows, jobs
        self.cache = user_cache("check") if cache else NO_CACHE
        self.benchmarks: dict[str, str] = {}
        """Name to sha256 of each benchmark definition that was used."""

    def run(self, files: list[Path]) -> Iterator[Outcome | NothingChecked]:
        """Yield the outcome of each file, or the NothingChecked error of one that cannot be read.

        Raises BadConfiguration at the end if settings, benchmark or policy of any file are invalid.
        """
        key = self._key(files)
        cached = self._load(key) if key else None
        if cached is not None:
            yield from cached
            return
        from geneb_ci.check.registry import select as selected
        from geneb_ci.check.runner import Checker, outcomes  # imports the rules

        checker = Checker(selected(self.rules, ()), check_quickly, self.find, self.against)
        self.benchmarks = checker.benchmarks  # which grows, also where settings fail at the end
        computed: list[Outcome | NothingChecked] = []
        for outcome in outcomes(checker, files, self.jobs):
            computed.append(outcome)
            yield outcome
        if key and self._key(files) == key:  # nothing was changed meanwhile
            self._save(key, computed)

    def _load(self, key: str) -> list[Outcome] | None:
        raw = self.cache.load(key)
        if raw is None:
            return None
        try:
            value = read_json(raw, is_own=True)
            outcomes = list(map(_read_outcome, value["files"]))
            self.benchmarks = dict(value["benchmarks"])
        except (ValueError, TypeError, KeyError):
            return None  # written by other code than this
        return outcomes

    def _save(self, key: str, outcomes: Sequence[Outcome | NothingChecked]) -> None:
        """Keep outcomes, unless a file could not be read or a rule crashed: that may pass."""
        whole = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
        crashed = any(finding.rule == CRASHED for outcome in whole for finding in outcome.findings)
        if len(whole) == len(outcomes) and not crashed:
            value = {"files": list(map(_outcome_json, whole)), "benchmarks": self.benchmarks}
            self.cache.save(key, json.dumps(value, separators=(",", ":")).encode())

    def _key(self, files: Sequence[Path]) -> str:
        """Return a digest of all that the outcomes follow from; "" where they are not kept."""
        if self.cache.folder is None or len(files) < FILES_MIN:
            return ""
        try:
            return self._digest(files)
        except (BadConfiguration, NothingChecked, NotReadable, OSError):
            return ""  # which the check reports

    def _digest(self, files: Sequence[Path]) -> str:
        layouts = {path.parent.resolve(): self.find(path.parent.resolve()) for path in files}
        compared = {compared_folder(folder, self.find, self.against) for folder in layouts}
        folders = sorted(folder for folder in compared if folder is not None)
        rows = [row for folder in folders for row in sorted(files_in(folder))]
        digest = hashlib.sha256(code_digest().encode())
        facts = [self.rules, str(Path.cwd()), repr(self.against), list(map(str, files))]
        digest.update(json.dumps([*facts, sorted(map(_facts, layouts.values()))]).encode())
        for path in (*files, *rows):
            _digest_file(digest, path, SUBMISSION_BYTES_MAX)
        for path in sorted({path for layout in layouts.values() for path in _settings(layout)}):
            _digest_file(digest, path, _POLICY_BYTES_MAX)
        return digest.hexdigest()


def _digest_file(digest: "hashlib._Hash", path: Path, limit: int) -> None:
    """Add name, place and bytes of a regular file to a digest. Raises NotReadable."""
    raw = read_regular(path, limit)
    _digest_parts(digest, os.fsencode(path), os.fsencode(path.resolve()), raw)


def _digest_parts(digest: "hashlib._Hash", *parts: bytes) -> None:
    """Add parts to a digest so that no others give it."""
    digest.update(b" ".join(b"%d" % len(part) for part in parts) + b"\0" + b"".join(parts))


def _facts(layout: Layout) -> list[str]:
    """Return the settings of a layout as texts."""
    paths = (layout.submissions, layout.cards, layout.extractors, layout.benchmark, layout.policy)
    return [layout.kind.value, str(layout.root), *map(str, paths)]


def _settings(layout: Layout) -> Iterator[Path]:
    """Yield the files that a check may read beside rows: settings, cards, extractors, policy.

    What is no file there, such as a folder or a broken link, is included: it cannot be read.
    """
    if layout.settings is not None:
        yield layout.settings.path
    if layout.benchmark is not None:
        yield layout.benchmark
    entries = ModelRegistry(layout).folder
    yield entries.parent / OFFICIAL
    for folder, end in (
        (layout.cards, "md"),
        (layout.extractors, "py"),
        (layout.extractors, "lock.txt"),
        (entries, "toml"),
    ):
        if folder is not None:
            yield from folder.glob(f"*.{end}")


def _outcome_json(outcome: Outcome) -> list[Any]:
    """Return an outcome as a value for JSON."""
    findings = [
        [*dataclasses.astuple(finding), outcome.frames.get(finding)] for finding in outcome.findings
    ]
    return [outcome.name, outcome.sha256, findings, outcome.skipped]


def _read_outcome(value: Any) -> Outcome:
    """Return the outcome of `_outcome_json`. Raises ValueError or TypeError for other values."""
    name, sha256, listed, skipped = value
    findings, frames = [], {}
    for rule, severity, *texts, frame in listed:
        finding = Finding(rule, Severity(severity), *texts)
        findings.append(finding)
        if frame is not None:
            frames[finding] = (frame[0], frame[1])
    needs = tuple((rule, Need(need)) for rule, need in skipped)
    return Outcome(name, sha256, tuple(findings), frames, needs)


def code_digest() -> str:
    """Return a digest of the code of the rules, the shipped data, Python and installed packages."""
    digest = hashlib.sha256(sys.version.encode())
    code = sorted(path for part in _PARTS for path in (_PACKAGE / part).rglob("*.py"))
    for path in (*code, *sorted(shipped("schemas", KNOWN_FILE).parent.glob("*.json"))):
        _digest_parts(digest, os.fsencode(path), read_regular(path, _POLICY_BYTES_MAX))
    digest.update("\0".join(sorted(_distributions())).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _distributions() -> Iterator[str]:
    """Yield the names of installed packages with their versions, as their folders have them."""
    for folder in map(Path, filter(None, sys.path)):
        if folder.is_dir():
            yield from (path.name for path in folder.glob("*.dist-info"))
