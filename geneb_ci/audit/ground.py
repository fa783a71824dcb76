"""What a record is held against: public data of the repository that it lies in."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from geneb_ci.audit.plan import Plan
from geneb_ci.audit.policy import AuditPolicy
from geneb_ci.audit.steps import StepMismatch
from geneb_ci.benchmark import Benchmark
from geneb_ci.errors import NothingChecked
from geneb_ci.read.document import read_document
from geneb_ci.read.structure import check_structure
from geneb_ci.read.submission import Submission


class NotHere(StepMismatch):
    """A step that cannot be computed, because something it needs is not here."""


class Claim(NamedTuple):
    """A submission as it lies in the repository now."""

    path: Path
    sha256: str
    submission: Submission | None
    """None when its structure is at fault."""


@dataclass(frozen=True)
class Ground:
    """The public data."""

    benchmark: Benchmark
    policy: AuditPolicy
    submissions: Path | None
    drawn: Mapping[str, tuple[Plan, ...]]
    """The plan of each record of the repository, by model id."""
    unreadable: Mapping[str, str]
    """Model ids of which a record cannot be read, and its name: what it drew is not known."""

    def claim(self, model_id: str) -> Claim | None:
        """Give the submission of a model, or None where there is none."""
        return _claim(self.submissions / f"{model_id}.json") if self.submissions else None


@functools.lru_cache(maxsize=8)
def _claim(path: Path) -> Claim | None:
    if not path.is_file():
        return None
    try:
        document = read_document(path)
    except NothingChecked:
        return None
    submission = None if document.faults else check_structure(document.value)[0]
    return Claim(path, document.sha256, submission)
