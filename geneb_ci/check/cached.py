"""Checks files in several processes; the result of an unchanged set of files is read from a cache.

The findings of all files are one cache entry. Its key is a digest of everything that the findings
depend on: the files, the rows that they are compared with, cards, extractors, settings, policy and
the code. If a byte of any of these changes, the key changes and everything is checked again. See
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

from geneb_ci.check.folder_context import ComparisonRows, compared_folder
from geneb_ci.check.report import CRASH_RULE, FileFindings
from geneb_ci.common.cache import NO_CACHE, user_cache
from geneb_ci.common.config import OFFICIAL_LIST, Finder, Layout, find_layout
from geneb_ci.common.errors import BadConfiguration, NothingChecked
from geneb_ci.common.finding import Finding, Need, Severity
from geneb_ci.common.shipped import KNOWN_FILES_LIST, shipped
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.submission.reading import files_in
from geneb_ci.submission.structure import check_quickly
from reference_harness.formats.files import NotReadable, read_json, read_regular
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX

CACHED_FILES_MIN = 20
"""Minimum number of files whose results are cached: reading them takes less than half the time of
the check. For one file, computing the digest costs about as much time as the cache would save."""
_DIGESTED_BYTES_MAX = 16_000_000
"""Maximum size of a file of code, settings, cards or policy that is part of the digest."""
_PACKAGE_FOLDER = Path(__file__).resolve().parents[1]
"""Folder of the installed package `geneb_ci`."""
_RULE_PACKAGES = (
    *("check", "common", "models", "receipt", "statistics", "submission"),
    "../reference_harness/formats",
)
"""Packages whose code can influence a finding."""


class CachedChecker:
    """Checks files by the rules with the ids `rules`, in `jobs` processes.

    If `jobs` is None, the number of processes follows from the number of files.
    """

    def __init__(
        self,
        rules: tuple[str, ...],
        find: Finder = find_layout,
        comparison_rows: ComparisonRows | None = None,
        *,
        cache: bool = False,
        jobs: int | None = 1,
    ) -> None:
        self.rules, self.find, self.comparison_rows, self.jobs = rules, find, comparison_rows, jobs
        self.cache = user_cache("check") if cache else NO_CACHE
        self.benchmarks: dict[str, str] = {}
        """SHA-256 of each benchmark definition that was used, by name."""

    def run(self, files: list[Path]) -> Iterator[FileFindings | NothingChecked]:
        """Yield the findings of each file, or a NothingChecked error if the file cannot be read.

        Raises BadConfiguration at the end if settings, benchmark or policy of any file are invalid.
        """
        digest = self._cache_key(files)
        cached = self._load(digest) if digest else None
        if cached is not None:
            yield from cached
            return
        from geneb_ci.check.registry import select as selected
        from geneb_ci.check.runner import Checker, findings_by_file  # imports the rules

        checker = Checker(selected(self.rules, ()), check_quickly, self.find, self.comparison_rows)
        self.benchmarks = (
            checker.benchmarks
        )  # still filled while it runs, even if settings are invalid
        computed: list[FileFindings | NothingChecked] = []
        for file in findings_by_file(checker, files, self.jobs):
            computed.append(file)
            yield file
        if digest and self._cache_key(files) == digest:  # nothing has changed during the check
            self._save(digest, computed)

    def _load(self, digest: str) -> list[FileFindings] | None:
        """Return the findings saved under a digest; None if there are none that can be read."""
        raw = self.cache.load(digest)
        if raw is None:
            return None
        try:
            saved = read_json(raw, is_own=True)
            files = list(map(_read_file_entry, saved["files"]))
            self.benchmarks = dict(saved["benchmarks"])
        except (ValueError, TypeError, KeyError):
            return None  # the entry was written by another version of this code
        return files

    def _save(self, digest: str, files: Sequence[FileFindings | NothingChecked]) -> None:
        """Save findings, unless a file was unreadable or a rule crashed: a rerun may do better."""
        readable = [file for file in files if isinstance(file, FileFindings)]
        crashed = any(finding.rule == CRASH_RULE for file in readable for finding in file.findings)
        if len(readable) == len(files) and not crashed:
            content = {"files": list(map(_file_entry, readable)), "benchmarks": self.benchmarks}
            self.cache.save(digest, json.dumps(content, separators=(",", ":")).encode())

    def _cache_key(self, files: Sequence[Path]) -> str:
        """Return a digest of what the findings depend on; "" if they must not be cached."""
        if self.cache.folder is None or len(files) < CACHED_FILES_MIN:
            return ""
        try:
            return self._digest(files)
        except (BadConfiguration, NothingChecked, NotReadable, OSError):
            return ""  # the check itself reports this error

    def _digest(self, files: Sequence[Path]) -> str:
        """Return a digest of these files, the rows that they are compared with, settings and code.

        Raises an error for a file that cannot be read.
        """
        layouts = {path.parent.resolve(): self.find(path.parent.resolve()) for path in files}
        comparison_folders = {
            compared_folder(folder, self.find, self.comparison_rows) for folder in layouts
        }
        folders = sorted(folder for folder in comparison_folders if folder is not None)
        row_files = [row for folder in folders for row in sorted(files_in(folder))]
        digest = hashlib.sha256(code_digest().encode())
        facts = [self.rules, str(Path.cwd()), repr(self.comparison_rows), list(map(str, files))]
        digest.update(json.dumps([*facts, sorted(map(_layout_texts, layouts.values()))]).encode())
        for path in (*files, *row_files):
            _digest_file(digest, path, SUBMISSION_BYTES_MAX)
        for path in sorted(
            {path for layout in layouts.values() for path in _setting_files(layout)}
        ):
            _digest_file(digest, path, _DIGESTED_BYTES_MAX)
        return digest.hexdigest()


def _digest_file(digest: "hashlib._Hash", path: Path, limit: int) -> None:
    """Add name, resolved path and bytes of a regular file to a digest. Raises NotReadable."""
    raw = read_regular(path, limit)
    _digest_parts(digest, os.fsencode(path), os.fsencode(path.resolve()), raw)


def _digest_parts(digest: "hashlib._Hash", *parts: bytes) -> None:
    """Add byte strings and their lengths to a digest, so that no other list gives the same."""
    digest.update(b" ".join(b"%d" % len(part) for part in parts) + b"\0" + b"".join(parts))


def _layout_texts(layout: Layout) -> list[str]:
    """Return the kind, the root and the other paths of a layout as texts."""
    paths = (layout.submissions, layout.cards, layout.extractors, layout.benchmark, layout.policy)
    return [layout.kind.value, str(layout.root), *map(str, paths)]


def _setting_files(layout: Layout) -> Iterator[Path]:
    """Yield the files other than rows that a check may read: settings, cards, extractors, policy.

    A path that is not a regular file, such as a folder or a broken link, is included; reading it
    then fails.
    """
    if layout.settings is not None:
        yield layout.settings.path
    if layout.benchmark is not None:
        yield layout.benchmark
    model_folder = ModelRegistry(layout).folder
    yield model_folder.parent / OFFICIAL_LIST
    for folder, suffix in (
        (layout.cards, "md"),
        (layout.extractors, "py"),
        (layout.extractors, "lock.txt"),
        (model_folder, "toml"),
    ):
        if folder is not None:
            yield from folder.glob(f"*.{suffix}")


def _file_entry(file: FileFindings) -> list[Any]:
    """Return the findings of a file as a value that JSON can hold."""
    findings = [
        [*dataclasses.astuple(finding), file.excerpts.get(finding)] for finding in file.findings
    ]
    return [file.name, file.sha256, findings, file.skipped]


def _read_file_entry(saved: Any) -> FileFindings:
    """Return the findings that `_file_entry` wrote. Raises ValueError or TypeError."""
    name, sha256, finding_entries, skipped = saved
    findings, excerpts = [], {}
    for rule, severity, *texts, excerpt in finding_entries:
        finding = Finding(rule, Severity(severity), *texts)
        findings.append(finding)
        if excerpt is not None:
            excerpts[finding] = (excerpt[0], excerpt[1])
    skipped_rules = tuple((rule, Need(need)) for rule, need in skipped)
    return FileFindings(name, sha256, tuple(findings), excerpts, skipped_rules)


def code_digest() -> str:
    """Return a digest of the code of the rules, the shipped data, Python and installed packages."""
    digest = hashlib.sha256(sys.version.encode())
    code = sorted(
        path for package in _RULE_PACKAGES for path in (_PACKAGE_FOLDER / package).rglob("*.py")
    )
    for path in (*code, *sorted(shipped("schemas", KNOWN_FILES_LIST).parent.glob("*.json"))):
        _digest_parts(digest, os.fsencode(path), read_regular(path, _DIGESTED_BYTES_MAX))
    digest.update("\0".join(sorted(_distributions())).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _distributions() -> Iterator[str]:
    """Yield the folder names of installed packages, which contain their versions."""
    for folder in map(Path, filter(None, sys.path)):
        if folder.is_dir():
            yield from (path.name for path in folder.glob("*.dist-info"))
