"""From a submission to its commitment: all that decides an audit, before any seed exists."""

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from geneb_ci.audit.commitment import (
    PROTOCOL,
    BenchmarkPin,
    Commitment,
    DrawPolicy,
    ExtractorCode,
    Weights,
)
from geneb_ci.audit.extractors import ExtractorFolder, extractor_code, read_extractors
from geneb_ci.audit.policy import audit_policy
from geneb_ci.audit.sampling import drawable, strata_of
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.audit.subject import checked, read_submission
from geneb_ci.check.companions import is_built_in
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import Severity, first_and_more, plural
from geneb_ci.submission.models import Run, Submission, SubmissionV11


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
    `declared` is incomplete or not needed, and what `Checker.check` does.
    """
    read = read_submission(file)
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
        extractor, weights = _sources(submission, declared, extractors)
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
        )
        found.sha256  # noqa: B018 (raises TypeError for a name that canonical JSON cannot have)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "/".join(map(str, (error.title, *first["loc"])))
        raise AuditRefused(
            f"{file}: {place} cannot be committed to: {first['msg']}",
            "ask for a submission whose run is corrected",
        ) from error
    except TypeError as error:
        raise AuditRefused(f"{file}: {error}", "ask for ASCII names of weight files") from error
    return found


def _sources(
    submission: Submission, declared: DeclaredRun | None, found: ExtractorFolder | None
) -> tuple[ExtractorCode, Weights]:
    """Return code and weights: from the run, or from the maintainer where there is none."""
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
        return (
            extractor_code(found, code.path, code.class_name, code.sha256, code.options),
            _weights(run),
        )
    if declared is None:
        raise UsageProblem(
            "format 1.0 does not say which extractor and weights ran",
            "pass --extractor PATH:CLASS with --model REPO --revision COMMIT, or --no-weights",
        )
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
    return extractor_code(found, path, class_name, None, declared.options), weights


def _declared_weights(declared: DeclaredRun) -> Weights:
    if declared.revision is None:
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


def _weights(run: Run) -> Weights:
    """Return the weights of a run. Raises AuditRefused when no other machine can load the same."""
    model = run.model
    pinned = model.revision is not None if model.kind == "huggingface" else bool(model.weights)
    if model.kind != "none" and not pinned:
        raise _unpinned()
    if model.kind == "local":
        raise AuditRefused(
            "the weights are only on the contributor's machine",
            "ask for a public copy: a repository on the Hub, or an https address",
        )
    return Weights(
        kind=model.kind,
        location=model.location,
        revision=model.revision,
        files=dict(sorted(model.weights.items())),
    )


def _unpinned() -> AuditRefused:
    return AuditRefused(
        "the weights are not pinned, so a rerun could load others",
        "ask for the 40-hex commit of the model repository and the sha256 of each weight file",
    )
