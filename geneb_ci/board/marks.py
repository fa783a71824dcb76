"""Facts that the board shows with the scores of a row: warnings, defects, audits and the run.

Defects are published facts about the authors' extractors: `defects.json` in the policy folder names
them, docs/reader/defects.md explains them. They belong to the authors' files, not to a model: a row
that somebody else computed with another extractor does not have them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, ValidationError

from geneb_ci.audit.record.keys import log_keys
from geneb_ci.audit.sampling.design import audit_policy, requirements_of
from geneb_ci.audit.trust.level import Decision, decide
from geneb_ci.common.config import Layout, benchmark_of, official_files, policy_bytes
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.finding import Finding, Severity, percent
from geneb_ci.common.shipped import shipped
from reference_harness.formats.base import Name, StrictModel, all_errors
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import path_exists
from reference_harness.formats.measurements import share_read
from reference_harness.formats.submission import Submission, SubmissionV11, SubmissionV12
from reference_harness.formats.submission_terms import UNREAD_SHARE_MAX
from reference_harness.formats.text import plural

DEFECTS_FILE = "defects.json"
"""File of the policy folder with the published defects of extractors."""
NAMED_TASKS_MAX = 3
"""Maximum number of tasks that a text names if many were not read completely."""
DEFECTS_BYTES_MAX = 200_000
"""Maximum size of defects.json: ten defects need 4 kB, a thousand models' defects 150 kB."""


class ShownDefect(StrictModel):
    """A published defect of the extractor behind a row."""

    id: str
    what: str
    """The defect, in one sentence."""
    explained: str
    """Page of the documentation, with its anchor."""


class ShownStatement(StrictModel):
    """Who vouches for some fields of a row."""

    fields: str
    by: str


class ShownScore(StrictModel):
    """A claimed score that lies outside the tolerance of its rerun."""

    task: str
    regime: str
    metric: str
    claimed: float
    rerun: float
    tolerance: float


class ShownDispute(StrictModel):
    """An audit that does not confirm a row, or runs that were aborted."""

    record: str = ""
    """Id of the audit record; the first three keys are missing for aborted runs."""
    signer: str = ""
    date: str = ""
    """Day on which the audit ended, UTC."""
    why: list[str]
    scores: list[ShownScore]
    """Scores outside their tolerance; empty if something other than a score differs."""


class Audited(StrictModel):
    """The summary of a row's audits, as in "audited 13/100, sandbox level 2, 2026-11-20"."""

    tasks: Annotated[int, Field(ge=0)]
    """Number of distinct tasks that were rerun; 0 if every failed audit was by receipt."""
    of: Annotated[int, Field(ge=1)]
    """Tasks of the benchmark."""
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    """Day of the latest audit, UTC."""
    sandbox: Annotated[int, Field(ge=1, le=4)]
    """Lowest sandbox level among the audits."""
    verdict: Literal["agrees", "differs"]
    cells: str = ""
    """Recomputed cells equal to the claimed ones, "299/300"; only if an audit by receipt failed."""
    rows: Annotated[int, Field(ge=0)] = 0
    """Number of the receipt's embeddings that were computed again; left out if `cells` is."""
    unaudited: list[str] = []  # noqa: RUF012 (pydantic copies it)
    """Regimes that no audit covers; the key is missing if there are none."""


class Defect(StrictModel):
    """A defect of published extractors, and the models whose official rows it concerns."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,60}$")]
    models: Annotated[list[Name], Field(min_length=1)]
    what: Annotated[str, Field(min_length=1, max_length=300)]
    """The defect, in one sentence."""
    found_by: Annotated[str, Field(min_length=1, max_length=300)]
    """The property whose test finds this defect in any extractor."""
    explained: Annotated[str, Field(pattern=r"^docs/[a-z/-]+\.md#[a-z0-9-]+$")]
    """Page of the documentation that explains it, with its anchor."""


class DefectFile(StrictModel):
    """defects.json of the policy folder."""

    schema_version: Literal["1.0"]
    defects: list[Defect]


class Marks(NamedTuple):
    """Warnings and defects of a row, which are shown with its scores."""

    warnings: tuple[tuple[str, int], ...] = ()
    """Pairs of a rule and the number of its warnings, ordered by rule."""
    defects: tuple[Defect, ...] = ()


NO_MARKS = Marks()
"""The marks of a row without warnings and defects."""


def read_defects(layout: Layout) -> tuple[Defect, ...]:
    """Return the published defects of the repository's policy, or else of the shipped policy.

    A policy without the file has no defects. Raises BadConfiguration if the file is invalid.
    """
    path = (
        layout.policy / DEFECTS_FILE
        if layout.policy is not None
        else shipped("policy", DEFECTS_FILE)
    )
    if not path_exists(path):
        return ()
    try:
        return tuple(DefectFile.model_validate_json(policy_bytes(path, DEFECTS_BYTES_MAX)).defects)
    except ValidationError as error:
        raise BadConfiguration(
            f"{path}: {all_errors(error)}", "correct the file; docs/reader/defects.md explains it"
        ) from error


def marks_of(
    model_id: str, findings: Iterable[Finding], defects: Iterable[Defect], *, is_official: bool
) -> Marks:
    """Return the marks of a row; `findings` are the results of its checks."""
    counts = Counter(finding.rule for finding in findings if finding.severity is Severity.WARNING)
    own_defects = tuple(defect for defect in defects if is_official and model_id in defect.models)
    return Marks(tuple(sorted(counts.items())), own_defects)


def hardware_and_duration(submission: Submission) -> str | None:
    """Return hardware and duration of a run in words; None for format 1.0, which has neither.

    The duration includes downloads, probes and pauses, so it does not measure the model's speed.
    """
    if not isinstance(submission, SubmissionV11):
        return None
    run = submission.run
    duration = datetime.fromisoformat(run.finished_at) - datetime.fromisoformat(run.started_at)
    hours, minutes = divmod(round(duration / timedelta(minutes=1)), 60)
    return f"{run.hardware.name} ({run.hardware.device}), {hours} h {minutes} min from start to end"


def letters_per_second(submission: Submission) -> int | None:
    """Return the letters that the run embedded per second; None if it did not measure that."""
    cost = submission.run.embedding_cost if isinstance(submission, SubmissionV12) else None
    return None if cost is None else round(cost.letters_per_second)


def peak_memory(submission: Submission) -> int | None:
    """Return the peak memory of embedding in bytes; None if the run did not measure it."""
    cost = submission.run.embedding_cost if isinstance(submission, SubmissionV12) else None
    return None if cost is None else cost.peak_memory_bytes


def letters_read(submission: Submission, benchmark: Benchmark) -> str | None:
    """Return in words the share of letters that a run read, the least read tasks first.

    Return None if nothing was measured.
    """
    if not isinstance(submission, SubmissionV12):
        return None
    shares = {
        task: share_read(measured.letters)
        for task, measured in submission.measured.items()
        if measured.letters is not None and task in benchmark.by_id
    }
    if not shares:
        return None
    incomplete = sorted(
        (share, task) for task, share in shares.items() if share < 1 - UNREAD_SHARE_MAX
    )
    if not incomplete:
        least_share = min(shares.values())
        share_text = "all" if least_share == 1 else f"at least {percent(least_share)} of the"
        return f"reads {share_text} letters of {plural(len(shares), 'task')}"
    (share, task), *other_tasks = incomplete[:NAMED_TASKS_MAX]
    words = [f"{percent(share)} of the letters of {benchmark.by_id[task].label}"]
    words += [f"{percent(share)} of {benchmark.by_id[task].label}" for share, task in other_tasks]
    unnamed = len(incomplete) - len(words)
    suffix = f", and not all of {plural(unnamed, 'further task')}" if unnamed else ""
    return f"reads {', '.join(words)}{suffix}"


PROPERTY_WORDS = {
    "layer-and-pooling": "layer and pooling",
    "computed-dtype": "number format",
    "strands": "both strands",
    "letters-read": "letters read",
    "no-drift": "no drift",
}
"""The properties that a run can verify itself, in words."""
OUTCOME_WORDS: Mapping[str, str] = {
    "verified": "verified",
    "not verified": "not contradicted, not verified",
    "contradicted": "contradicted",
}
"""The outcomes of testing a property, in words."""


def property_outcomes(submission: Submission) -> str | None:
    """Return in words which declared properties a run verified or contradicted.

    Return None if the submission has no outcome for any of PROPERTY_WORDS.
    """
    if not isinstance(submission, SubmissionV12):
        return None
    properties = submission.properties
    phrases = []
    for outcome, words in OUTCOME_WORDS.items():
        property_names = [
            PROPERTY_WORDS[n]
            for n in PROPERTY_WORDS
            if n in properties and properties[n].outcome == outcome
        ]
        if property_names:
            phrases.append(f"{words}: {', '.join(property_names)}")
    return "; ".join(phrases) or None


def row_decider(layout: Layout) -> Callable[[str, str, str], Decision]:
    """Return a function from digests of file, origin and scorer to a row's evidence and level.

    The decision considers all audit records. Raises BadConfiguration, and BrokenRecordError if a
    record is broken.
    """
    folder = layout.audits or layout.root / "leaderboard" / "audits"
    if log_keys(layout) is not None or folder.exists():
        from geneb_ci.audit.trust.evidence import gather_evidence  # 50 ms: types of all records

        evidence = gather_evidence(layout)
        evidence.require_sound()
        return evidence.decide
    benchmark = benchmark_of(layout)
    requirements, official = (
        requirements_of(audit_policy(layout), benchmark),
        official_files(layout),
    )
    return lambda sha256, origin, scorer: decide(
        sha256, (), official, requirements, (), origin, scorer
    )
