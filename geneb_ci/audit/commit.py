"""From a submission to its commitment, and from a commitment back to its submission."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from geneb_ci.audit.commitment import (
    PROTOCOL,
    BenchmarkPin,
    Commitment,
    DrawPolicy,
    ExtractorCode,
    Weights,
)
from geneb_ci.audit.extractors import (
    BUILTIN,
    ExtractorFolder,
    built_in,
    extractor_code,
    read_extractors,
)
from geneb_ci.audit.policy import audit_policy
from geneb_ci.audit.sampling import drawable, strata_of
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.audit.tolerance import tolerance_digest
from geneb_ci.check.companions import Proposed, is_built_in
from geneb_ci.check.context import Context
from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.config import Layout, benchmark_of, find_layout
from geneb_ci.common.errors import NothingChecked, UsageProblem
from geneb_ci.common.finding import Finding, Severity, first_and_more, plural
from geneb_ci.common.types import first_error
from geneb_ci.models.entry import Environment, ModelEntry, ReadEntry, WeightsSource, addresses
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.submission.bytes import read_bytes
from geneb_ci.submission.document import Document, parse_document
from geneb_ci.submission.fault import Fault
from geneb_ci.submission.kind import FileKind, other_kind, require_file
from geneb_ci.submission.models import Run, Submission, SubmissionV11
from geneb_ci.submission.paths import located


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
class DeclaredRun:
    """What the maintainer declares of a run that format 1.0 does not describe."""

    extractor: str
    """`PATH:CLASS`."""
    model: str | None
    """Repository of the weights on the Hub; None for a method without weights."""
    revision: str | None = None
    weights: dict[str, str] = field(default_factory=dict)
    """File name to sha256 of each weight file, where known."""
    options: dict[str, str] = field(default_factory=dict)
    """Keyword arguments of the extractor's constructor, as text."""


def commit(file: Path, tolerance: str, declared: DeclaredRun | None = None) -> Commitment:
    """Return the commitment of a submission in its repository; each file is read once.

    `tolerance` is the digest of the constants of the tolerance.
    Raises AuditRefused when the file has errors or its run cannot be repeated, UsageProblem when
    `declared` is incomplete or not needed, NothingChecked for a folder or another kind of file, and
    what `Checker.check` does.
    """
    require_file(file, FileKind.SUBMISSION, "audit commit")
    read = read_submission(file)
    if other := other_kind(read.document.value, FileKind.SUBMISSION):
        raise NothingChecked(f"{file}: {other}", FileKind.SUBMISSION.fix)
    layout = find_layout(read.document.path.parent)
    extractors = None if is_built_in(read.document.value) else read_extractors(layout)
    context, findings = checked(read, extractors.files if extractors is not None else None)
    errors = [one.rule for one in findings if one.severity is Severity.ERROR]
    if errors or context.submission is None:
        raise AuditRefused(
            f"{file}: {plural(len(errors), 'error')}: {first_and_more(sorted(set(errors)))}",
            f"an audit begins with a file that passes every check: geneb-ci check {file}",
        )
    submission, benchmark = context.submission, context.benchmark
    policy = audit_policy(layout)
    regimes, tasks = drawable(submission, benchmark, policy.regimes)
    try:
        entry = ModelRegistry(layout).entry(submission.model_id)
        extractor, weights, described = _sources(submission, declared, extractors, entry)
        found = Commitment(
            protocol=PROTOCOL,
            model_id=submission.model_id,
            submission_sha256=read.document.sha256,
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
                tolerance=tolerance,
            ),
            entry=described,
        )
    except ValidationError as error:
        raise AuditRefused(
            f"{file}: cannot be committed to: {error.title}/{first_error(error)}",
            "ask for a submission whose run is corrected",
        ) from error
    return found


class _Sources(NamedTuple):
    """What a rerun uses, and which entry of the model registry says so, if one does."""

    extractor: ExtractorCode
    weights: Weights
    entry: str | None = None


def _sources(
    submission: Submission,
    declared: DeclaredRun | None,
    found: ExtractorFolder | None,
    entry: ReadEntry | None,
) -> _Sources:
    """Return code and weights: of the run, of the maintainer, or of the model's entry."""
    if isinstance(submission, SubmissionV11):
        if declared is not None:
            raise UsageProblem(
                "the submission itself says which extractor and weights ran",
                "leave out --extractor, --option, --model, --revision and --weights",
            )
        run = submission.run
        if run.harness.dirty:
            raise AuditRefused(
                "the harness had local changes: nobody can repeat this run",
                "ask for a run from a clean checkout or an installed package",
            )
        code = run.extractor
        return _Sources(
            extractor_code(found, code.path, code.class_name, code.sha256, code.options),
            _weights(run, entry),
        )
    if declared is None:
        return _of_entry(submission.model_id, entry, found)
    path, colon, class_name = declared.extractor.rpartition(":")
    if not colon or not path.endswith(".py") or not class_name.isidentifier():
        raise UsageProblem(
            f"--extractor {declared.extractor!r} is not PATH:CLASS",
            "pass for example submissions/extractors/mine.py:MyExtractor",
        )
    if declared.model is None:
        weights = Weights(kind="none", location="", revision=None, files={})
    else:
        weights = _declared_weights(declared)
    return _Sources(extractor_code(found, path, class_name, None, declared.options), weights)


def _of_entry(model_id: str, entry: ReadEntry | None, found: ExtractorFolder | None) -> _Sources:
    """Return code and weights as the model's entry in the registry describes them.

    Raises UsageProblem where there is no entry, AuditRefused where it is not complete.
    """
    if entry is None:
        raise UsageProblem(
            "format 1.0 does not say which extractor and weights ran, and the model registry has "
            f"no entry for {model_id}",
            "add an entry (docs/models.md), or pass --extractor PATH:CLASS with --model REPO "
            "--revision COMMIT and --weights NAME=SHA256 for each file, or with --no-weights",
        )
    run, source = entry.entry.run, entry.entry.weights
    if run is None or run.extractor is None or source is None:
        lacks = run.missing if run is not None and run.missing else "it names no extractor"
        raise AuditRefused(
            f"the entry of {model_id} in the model registry does not say how to run it: {lacks}",
            "complete the entry (docs/models.md), or declare the run: --extractor PATH:CLASS",
        )
    if source.kind != "none" and not source.files:
        raise AuditRefused(
            f"the entry of {model_id} in the model registry pins no file",
            "add the sha256 of each file under [weights.files]",
        )
    if run.extractor.startswith(BUILTIN):
        path, class_name, sha256 = built_in(run.extractor)
    else:
        path, _, class_name = run.extractor.rpartition(":")
        sha256 = None
    code = extractor_code(found, path, class_name, sha256, run.options)
    return _Sources(code, _registered(source), entry.sha256)


def _registered(source: WeightsSource) -> Weights:
    """Return the weights of an entry, each file with its address."""
    return Weights(
        kind=source.kind,
        location=source.location,
        revision=source.revision,
        files=dict(sorted(source.files.items())),
        addresses=addresses(source),
    )


def _declared_weights(declared: DeclaredRun) -> Weights:
    if declared.revision is None or not declared.weights:
        raise _unpinned()
    try:
        return Weights(
            kind="huggingface",
            location=str(declared.model),
            revision=declared.revision,
            files=dict(sorted(declared.weights.items())),
        )
    except ValidationError as error:
        raise UsageProblem(
            f"--revision {declared.revision!r} or a digest of --weights is malformed",
            "pass a revision of 40 hex digits and digests of 64, in lower case",
        ) from error


def _weights(run: Run, entry: ReadEntry | None) -> Weights:
    """Return the weights of a run; those of a folder as the model registry says they are published.

    Raises AuditRefused when no other machine can load the same.
    """
    model = run.model
    pinned = model.revision is not None if model.kind == "huggingface" else bool(model.weights)
    if model.kind != "none" and not pinned:
        raise _unpinned()
    if model.kind == "local":
        source = entry.entry.weights if entry is not None else None
        if source is not None and model.weights.items() <= source.files.items():
            return _registered(source)
        raise AuditRefused(
            "the weights are only on the contributor's machine",
            "ask for a public copy and add it to the model registry (docs/models.md), with the "
            "same digests",
        )
    files = dict(sorted(model.weights.items()))
    where = {}
    if model.kind == "url":
        where = addresses(WeightsSource(kind="url", location=model.location, files=files))
    return Weights(
        kind=model.kind,
        location=model.location,
        revision=model.revision,
        files=files,
        addresses=where,
    )


def _unpinned() -> AuditRefused:
    return AuditRefused(
        "the weights are not pinned, so a rerun could load others",
        "ask for the 40-hex commit of the model repository and the sha256 of each weight file",
    )


_AGAIN = "check out the commit that was committed to, or commit and draw again"


@dataclass(frozen=True)
class AuditSubject:
    """A submission under audit, with what its rerun needs of the checkout."""

    document: dict[str, Any]
    """The submission, as it was read."""
    benchmark: Benchmark
    modules: dict[str, bytes]
    """Files of the extractors' folder by name; empty for a built-in."""
    entry: ModelEntry | None = None
    """Entry of the model registry, where that describes the run."""

    @property
    def dtype(self) -> str | None:
        """The dtype that the run or the entry declares; None in format 1.0 without an entry."""
        if self.entry is not None and self.entry.run is not None:
            return self.entry.run.dtype
        embedding = self.document.get("run", {}).get("embedding", {})
        return embedding.get("dtype") if isinstance(embedding, dict) else None

    @property
    def environment(self) -> Environment | None:
        """The packages that the entry names, where it does."""
        run = self.entry.run if self.entry is not None else None
        return run.environment if run is not None else None

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
    code, entry = commitment.extractor, None
    if commitment.entry is not None:
        found_entry = ModelRegistry(layout).entry(commitment.model_id)
        _same("registry entry", found_entry.sha256 if found_entry else "absent", commitment.entry)
        entry = found_entry.entry if found_entry else None
    if code.path.startswith(BUILTIN):
        if entry is not None:
            _same("built-in extractor", built_in(code.path).sha256, code.sha256)
        return AuditSubject(document.value, benchmark, {}, entry)
    found = read_extractors(layout)
    here = extractor_code(found, code.path, code.class_name, code.sha256, code.options)
    _same("extractors' folder", here.tree, code.tree)
    return AuditSubject(document.value, benchmark, found.files if found is not None else {}, entry)


def _same(what: str, here: str, committed: str) -> None:
    if here != committed:
        raise AuditRefused(
            f"the {what} here is not the one committed to: {here[:16]}..., expected "
            f"{committed[:16]}...",
            _AGAIN,
        )
