"""The submission under audit: read once, checked, and compared with its commitment."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.extractors import BUILTIN, extractor_code, read_extractors
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.audit.tolerance import tolerance_digest
from geneb_ci.check.companions import Proposed
from geneb_ci.check.context import Context
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.config import Layout, benchmark_of
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import Finding
from geneb_ci.submission.bytes import read_bytes
from geneb_ci.submission.document import Document, parse_document
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.paths import located

_AGAIN = "check out the commit that was committed to, or commit and draw anew"


class CheckedSubmission(NamedTuple):
    """A submission with what every rule found."""

    context: Context
    findings: tuple[Finding, ...]


class SubmissionFile(NamedTuple):
    """A submission, read once: its bytes, and what they hold."""

    raw: bytes | Fault
    """The reason in their place, where the file has no usable bytes."""
    document: Document


def read_submission(file: Path) -> SubmissionFile:
    """Read a submission. Raises NothingChecked when the file cannot be opened."""
    raw = read_bytes(file)
    return SubmissionFile(raw, parse_document(raw, located(file), str(file)))


def checked(read: SubmissionFile, modules: Mapping[str, bytes] | None = None) -> CheckedSubmission:
    """Run every rule over a submission that was read; neither it nor `modules` is opened again.

    `modules` are the extractors, name to content, where the caller has read them.
    Raises BadConfiguration when the benchmark or policy of its place cannot be used.
    """
    checker, document = Checker(RULES), read.document
    context = checker.context_of(document, Proposed(b"", extractors=modules or {}))
    if isinstance(read.raw, bytes):
        peers = dataclasses.replace(context.peers, contents={document.path: read.raw})
        context = dataclasses.replace(context, peers=peers)
    return CheckedSubmission(context, checker.result(context).findings)


@dataclass(frozen=True)
class AuditSubject:
    """A submission under audit, with what its rerun needs of the checkout."""

    document: dict[str, Any]
    """The submission, as it was read."""
    benchmark: Benchmark
    modules: dict[str, bytes]
    """Files of the extractors' folder by name; empty for a built-in."""

    @property
    def dtype(self) -> str | None:
        """The dtype that the run declares; None in format 1.0."""
        embedding = self.document.get("run", {}).get("embedding", {})
        return embedding.get("dtype") if isinstance(embedding, dict) else None

    @property
    def has_canonical(self) -> bool:
        """Whether any cell claims a canonical score."""
        evidence = self.document.get("evidence", {})
        return any(cell.get("canonical") for tasks in evidence.values() for cell in tasks.values())


def subject_of(commitment: Commitment, layout: Layout) -> AuditSubject:
    """Read what was committed to, each file once.

    Raises AuditRefused when submission, extractor, benchmark or the constants of the tolerance
    are not those of the commitment, NothingChecked when a file is not there.
    """
    if layout.submissions is None:
        raise NothingChecked(
            "the audited submission is in no repository", "run this in a checkout of one"
        )
    document = read_submission(layout.submissions / f"{commitment.model_id}.json").document
    _same("submission", document.sha256, commitment.submission_sha256)
    benchmark = benchmark_of(layout)
    _same("benchmark", benchmark.sha256, commitment.benchmark.sha256)
    _same("tolerance", tolerance_digest(), commitment.policy.tolerance)
    code = commitment.extractor
    if code.path.startswith(BUILTIN):
        return AuditSubject(document.value, benchmark, {})
    found = read_extractors(layout)
    here = extractor_code(found, code.path, code.class_name, code.sha256, code.options)
    _same("extractors' folder", here.tree, code.tree)
    return AuditSubject(document.value, benchmark, found.files if found is not None else {})


def _same(what: str, here: str, committed: str) -> None:
    if here != committed:
        raise AuditRefused(
            f"the {what} here is not the one committed to: {here[:16]}..., expected "
            f"{committed[:16]}...",
            _AGAIN,
        )
