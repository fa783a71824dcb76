"""Submissions of a folder as entries of a board, and those that no board takes."""

from pathlib import Path
from typing import NamedTuple

from geneb_ci.build.rows import Entry, entry_of
from geneb_ci.check.rule import Rule
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.config import find_layout
from geneb_ci.finding import Severity
from geneb_ci.label.evidence import gather


class Refused(NamedTuple):
    """A submission that no board takes."""

    file: str
    errors: int
    """Findings that are errors; 0 where the file could not be read as a submission at all."""


class Read(NamedTuple):
    """What a folder holds."""

    entries: tuple[Entry, ...]
    refused: tuple[Refused, ...]


def read_entries(root: Path, rules: tuple[Rule, ...]) -> Read:
    """Read every submission of a repository, each held against the rules.

    Raises NothingChecked when there is none, BadConfiguration when the repository's benchmark or
    policy cannot be used, BrokenRecordError when one of its audit records is broken.
    """
    evidence = gather(find_layout(root))
    evidence.require_sound()
    entries: list[Entry] = []
    refused: list[Refused] = []
    files = files_of([root])
    for path, result in zip(files, Checker(rules).run(files), strict=True):
        if not isinstance(result, FileResult):
            refused.append(Refused(path.name, 0))
            continue
        errors = sum(finding.severity is Severity.ERROR for finding in result.findings)
        if errors or result.submission is None:
            refused.append(Refused(path.name, errors))
        else:
            decision = evidence.decide(result.document.sha256)
            entries.append(entry_of(result.submission, decision))
    return Read(tuple(entries), tuple(refused))
