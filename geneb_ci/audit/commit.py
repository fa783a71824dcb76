"""Makes the commitment of a submission, and reads the files that were committed to."""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from geneb_ci.audit.code_digest import (
    BUILTIN_PREFIX,
    ExtractorFolder,
    extractor_code,
    read_extractors,
)
from geneb_ci.audit.commitment import (
    PROTOCOL,
    BenchmarkPin,
    Commitment,
    DrawPolicy,
    claims_of,
)
from geneb_ci.audit.compare.limits import limits_digest
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.rerun.sources import DeclaredRun, sources_of
from geneb_ci.audit.sampling.design import audit_policy, drawable_regimes_and_tasks, strata_of
from geneb_ci.check.registry import RULES
from geneb_ci.check.row_facts import ProposedRow, extractor_module, is_built_in
from geneb_ci.check.rule import Context
from geneb_ci.check.runner import Checker
from geneb_ci.common.config import Layout, benchmark_of, find_layout
from geneb_ci.common.errors import NothingChecked
from geneb_ci.common.finding import Fault, Finding, Severity, first_and_more
from geneb_ci.models.entry import Environment, ModelEntry, ReadEntry
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.submission.document import Document, parse_document
from geneb_ci.submission.reading import FileKind, located, other_kind_of, read_bytes, require_file
from geneb_ci.submission.structure import format_key_of
from reference_harness.formats.base import first_error
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import line_ends_clause, text_at
from reference_harness.formats.package_lock import (
    HARNESS_PACKAGES,
    LOCK_SUFFIX,
    Lock,
    LockRefused,
    read_lock,
)
from reference_harness.formats.submission import MODELS, SubmissionV10
from reference_harness.formats.text import plural


class CheckedSubmission(NamedTuple):
    """The input of the rules for one submission, and the findings of all rules."""

    context: Context
    findings: tuple[Finding, ...]


class SubmissionFile(NamedTuple):
    """The bytes of a submission, and the document parsed from them."""

    raw: bytes | Fault
    """A Fault, with the reason, if the file has no usable bytes."""
    document: Document


def read_submission(file: Path) -> SubmissionFile:
    """Read a submission. Raises NothingChecked for a folder, or a file that cannot be opened."""
    require_file(file, FileKind.SUBMISSION, "audit")
    raw = read_bytes(file)
    return SubmissionFile(raw, parse_document(raw, located(file), str(file)))


def checked_submission(
    submission: SubmissionFile, modules: Mapping[str, bytes] | None = None
) -> CheckedSubmission:
    """Return the input of the rules for a submission, and the findings of every rule.

    The file of the submission is not opened again. `modules` maps the name of each extractor file
    to its content, if the caller has read them. Raises BadConfiguration when the benchmark or
    policy of the repository cannot be used.
    """
    checker, document = Checker(RULES), submission.document
    context = checker.context_of(document, ProposedRow(b"", extractors=modules or {}))
    if isinstance(submission.raw, bytes):
        peers = dataclasses.replace(context.peers, bytes_by_path={document.path: submission.raw})
        context = dataclasses.replace(context, peers=peers)
    return CheckedSubmission(context, checker.run_rules(context).findings)


def committed_submission_file(
    commitment: Commitment, file: Path | None, layout: Layout
) -> SubmissionFile | None:
    """Return the committed submission, from `file` or else from the repository.

    Returns None if `file` is None and the repository does not contain the submission. Raises
    AuditRefused if `file` is another submission.
    """
    path = file
    if path is None and layout.submissions is not None:
        path = layout.submissions / f"{commitment.model_id}.json"
    if path is None or (file is None and not path.is_file()):
        return None
    submission = read_submission(path)
    if submission.document.sha256 == commitment.submission_sha256:
        return submission
    if file is None:
        return None
    raw = submission.raw if isinstance(submission.raw, bytes) else b""
    raise AuditRefused(
        f"{file}: this is not the committed submission: its sha256 is "
        f"{submission.document.sha256 or 'unknown'}, expected {commitment.submission_sha256}"
        f"{line_ends_clause(raw, commitment.submission_sha256)}",
        "name the file with the sha256 of the commitment: --submission FILE",
    )


def commit(submission_file: SubmissionFile, declared: DeclaredRun | None = None) -> Commitment:
    """Return a new commitment to a submission in its repository; each file is read once.

    `declared` has the run of a submission of format 1.0, which does not state one.

    Raises AuditRefused when the file has errors or its run cannot be repeated, UsageProblem when
    `declared` is incomplete or not needed, NothingChecked for another kind of file, and what
    `Checker.check` raises.
    """
    file = submission_file.document.name
    if isinstance(submission_file.raw, bytes) and (
        other_kind := other_kind_of(submission_file.raw, FileKind.SUBMISSION)
    ):
        raise NothingChecked(f"{file}: {other_kind.message}", other_kind.fix)
    layout = find_layout(submission_file.document.path.parent)
    extractors = None if is_built_in(submission_file.document.value) else read_extractors(layout)
    context, findings = checked_submission(
        submission_file, extractors.files if extractors is not None else None
    )
    errors = [finding.rule for finding in findings if finding.severity is Severity.ERROR]
    if errors or context.submission is None:
        raise AuditRefused(
            f"{file}: {plural(len(errors), 'error')}: {first_and_more(sorted(set(errors)))}",
            f"an audit begins with a file that passes every check: geneb-ci check {file}",
        )
    submission, benchmark = context.submission, context.benchmark
    policy = audit_policy(layout)
    regimes, tasks = drawable_regimes_and_tasks(submission, benchmark, policy.regimes)
    try:
        read_entry = ModelRegistry(layout).entry(submission.model_id)
        extractor, weights, entry_sha256 = sources_of(submission, declared, extractors, read_entry)
        commitment = Commitment(
            protocol=PROTOCOL,
            model_id=submission.model_id,
            submission_sha256=submission_file.document.sha256,
            extractor=extractor,
            weights=weights,
            benchmark=BenchmarkPin(
                name=benchmark.name,
                sha256=benchmark.sha256,
                dataset=benchmark.dataset.repo_id,
                revision=benchmark.dataset.revision,
            ),
            regimes=regimes,
            tasks=tasks,
            policy=DrawPolicy(
                drawn=min(policy.drawn, len(tasks)),
                stratified=policy.stratified,
                strata=strata_of(benchmark, tasks) if policy.stratified else [],
                tolerance=limits_digest(),
            ),
            claims=claims_of(submission, regimes, tasks),
            entry=entry_sha256,
        )
    except ValidationError as error:
        raise AuditRefused(
            f"{file}: no audit can commit to it: {error.title}: {first_error(error)}",
            "ask the contributor to correct this value of the run and to submit it again",
        ) from error
    return commitment


_RETRY_FIX = "check out the files that were committed to, or make a new commitment and draw again"


@dataclass(frozen=True)
class AuditSubject:
    """A submission under audit, with the files of the checkout that its rerun needs."""

    document: dict[str, Any]
    """The submission as parsed JSON."""
    benchmark: Benchmark
    modules: dict[str, bytes]
    """Content of each file of the extractors' folder, by name; empty for a built-in extractor."""
    entry: ModelEntry | None = None
    """Entry of the model registry; None unless it describes the run."""

    @property
    def dtype(self) -> str | None:
        """The dtype that the run or the entry declares; None in format 1.0 without an entry."""
        if self.entry is not None and self.entry.run is not None:
            return self.entry.run.dtype
        return text_at(self.document, "run", "embedding", "dtype") or None

    @property
    def device(self) -> str | None:
        """The type of device that the run declares, such as "cuda"; None if it declares none."""
        return text_at(self.document, "run", "hardware", "device").partition(":")[0] or None

    @property
    def environment(self) -> Environment | None:
        """The packages that the entry of the model registry requires, or None."""
        run = self.entry.run if self.entry is not None else None
        return run.environment if run is not None else None

    @property
    def lock(self) -> Lock | None:
        """The lock of package versions beside the submitted extractor; None if the run used none.

        Raises AuditRefused for a lock that is malformed, or that is not the lock of the run.
        """
        if self.entry is not None:
            return None
        lock_sha256 = text_at(self.document, "run", "environment")
        lock_name = f"{extractor_module(self.document).removesuffix('.py')}{LOCK_SUFFIX}"
        raw = self.modules.get(lock_name)
        if raw is None:
            _require_committed("lock of the packages", None, lock_sha256)
            return None
        try:
            lock = read_lock(raw, lock_name, HARNESS_PACKAGES)
        except LockRefused as error:
            raise AuditRefused(
                f"{lock_name}:{error.line}: the lock {error.reason}", _RETRY_FIX
            ) from error
        _require_committed("lock of the packages", lock.sha256, lock_sha256)
        return lock

    @property
    def reverse_complement(self) -> bool:
        """Whether the entry declares that both strands have the same embedding."""
        run = self.entry.run if self.entry is not None else None
        return run is not None and run.reverse_complement

    @property
    def has_rounded_embeddings(self) -> bool:
        """Whether claims come from embeddings rounded to float16: in runs that name a scorer."""
        run = self.document.get("run", {})
        return isinstance(run, dict) and run.get("scorer") is not None


def subject_of(
    commitment: Commitment, layout: Layout, submission: SubmissionFile | None = None
) -> AuditSubject:
    """Return the submission of a commitment with the files that its rerun needs, each read once.

    `submission` is read from the repository if it is None. Raises AuditRefused when submission,
    extractor, benchmark or the limits of the verdict are not those of the commitment,
    NothingChecked when a file is missing.
    """
    if layout.submissions is None:
        submission_layout = (
            None if submission is None else find_layout(submission.document.path.parent)
        )
        root = (
            ""
            if submission_layout is None or submission_layout.submissions is None
            else f": cd {os.path.relpath(submission_layout.root)}"
        )
        raise NothingChecked(
            "this folder is not in the repository of a board, which has the policy and the keys",
            f"run the command in a checkout of the board{root}",
        )
    if submission is None:
        submission = read_submission(layout.submissions / f"{commitment.model_id}.json")
    document = submission.document
    _require_committed("submission", document.sha256, commitment.submission_sha256)
    benchmark = benchmark_of(layout)
    _require_committed("benchmark", benchmark.sha256, commitment.benchmark.sha256)
    present_digest, committed_digest = limits_digest(), commitment.policy.tolerance
    if present_digest != committed_digest:
        raise AuditRefused(
            f"the limits of a verdict in this version of geneb-ci have sha256 "
            f"{present_digest[:16]}..., expected {committed_digest[:16]}... as in the commitment",
            "install the version of geneb-ci that made the commitment, or make a new commitment "
            "and draw again",
        )
    code = commitment.extractor
    entry = ModelRegistry(layout).entry(commitment.model_id)
    if commitment.entry is not None:
        _require_committed("registry entry", entry.sha256 if entry else None, commitment.entry)
    folder = None
    if not code.path.startswith(BUILTIN_PREFIX):
        folder = read_extractors(layout)
        present_code = extractor_code(folder, code.path, code.class_name, code.sha256, code.options)
        _require_committed("extractors' folder", present_code.tree, code.tree)
    _check_committed_sources(commitment, document.value, folder, entry)
    return AuditSubject(
        document.value,
        benchmark,
        folder.files if folder is not None else {},
        entry.entry if entry is not None and commitment.entry is not None else None,
    )


def _check_committed_sources(
    commitment: Commitment,
    document: Any,
    folder: ExtractorFolder | None,
    read_entry: ReadEntry | None,
) -> None:
    """Refuse a commitment to code or weights other than those of submission and registry entry.

    A run that a maintainer declared by options, for format 1.0, is in neither and not compared.
    """
    submission = MODELS[format_key_of(document) or ""].model_validate(document)
    if commitment.entry is None and type(submission) is SubmissionV10:
        return
    sources = sources_of(submission, None, folder, read_entry)
    _require_committed("registry entry", sources.entry, commitment.entry)
    if not commitment.weights.addresses:  # as in commitments before there were addresses
        sources = sources._replace(weights=sources.weights.model_copy(update={"addresses": {}}))
    if commitment.extractor.shape is None:  # as in commitments before there were shapes
        sources = sources._replace(extractor=sources.extractor.model_copy(update={"shape": None}))
    for subject, present_value, committed_value in (
        ("extractor", sources.extractor, commitment.extractor),
        ("weights", sources.weights, commitment.weights),
    ):
        if present_value != committed_value:
            raise AuditRefused(
                f"the submission and its entry in the model registry do not name the {subject} of "
                "the commitment",
                _RETRY_FIX,
            )


def _require_committed(
    subject: str, present_sha256: str | None, committed_sha256: str | None
) -> None:
    """Raise AuditRefused unless the file called `subject` has the digest in the commitment.

    A digest of None or "" means that there is no such file.
    """
    if (present_sha256 or "") != (committed_sha256 or ""):
        present_text = f"has sha256 {present_sha256[:16]}..." if present_sha256 else "is missing"
        raise AuditRefused(
            f"the {subject} in this checkout {present_text}, expected "
            + (f"sha256 {committed_sha256[:16]}..." if committed_sha256 else "no such file")
            + " as in the commitment",
            _RETRY_FIX,
        )
