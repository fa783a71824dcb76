"""The columns of the board: the facts about a model beside its scores, each defined once.

Rows of leaderboard.json and leaderboard_tasks.json, their schemas, the facts that `geneb-ci diff`
compares, the page's table, its page of a model, its downloads and the table in
docs/reference/board-files.md are all made from COLUMNS.
"""

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from geneb_ci.audit.trust.attestation import (
    NO_AUDIT,
    RowAttestation,
    attestation_of,
    column_author,
)
from geneb_ci.audit.trust.level import AuditSummary, Decision
from geneb_ci.board.marks import (
    NO_MARKS,
    Audited,
    Marks,
    ShownDefect,
    ShownDispute,
    ShownStatement,
    hardware_and_duration,
    letters_per_second,
    peak_memory,
    property_outcomes,
)
from geneb_ci.common.types import Authorship, Evidence, TrustLevel
from geneb_ci.models.registry import MEANING_BY_WORD
from geneb_ci.receipt.seen import PublishedState, SharedErrors
from geneb_ci.statistics.metrics import RowStatistics
from reference_harness.formats.base import Count
from reference_harness.formats.submission import Submission

# fmt: off
ValueKind = Literal[
    "id", "name", "size", "count", "text", "flag", "link", "level",
    "evidence", "audit", "attested", "disputes", "warnings", "defects",
]
# fmt: on
"""Kinds of values, which the page writes, sorts and aligns differently: src/pure/facts.js."""


@dataclass(frozen=True)
class Row:
    """One submission that passed every check, with all facts that the columns show."""

    submission: Submission
    level: TrustLevel
    """The trust level: authorship and evidence in one word, as upstream's page expects it."""
    evidence: Evidence = Evidence.CHECKED
    authorship: Authorship = Authorship.CONTRIBUTED
    audit: AuditSummary | None = None
    """The summary of the audits of the row."""
    recomputed: str | None = None
    """How many cells an agreeing audit by receipt recomputed, in words."""
    attestation: RowAttestation = NO_AUDIT
    """Who vouches for which scores of the row: auditors, or only the submitter."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """The model registry's facts about the model; empty if the registry has no entry."""
    marks: Marks = NO_MARKS
    """Warnings of the checks of the row, and published defects of its extractor."""
    receipt: PublishedState | None = None
    """Whether the published receipt was found; None for a row that publishes no receipt."""
    records: tuple[str, ...] = ()
    """Ids of the audit records from which the evidence follows."""
    sha256: str = ""
    """Digest of the submission's file; "" for a submission that was not read from a file."""
    letters: str | None = None
    """How many letters of the sequences the model read, in words, as the harness measured it."""
    shared_errors: SharedErrors | None = None
    """Covariances of the errors of rows with published predictions; the same object for all
    rows."""
    disputes: tuple[Mapping[str, Any], ...] = ()
    """Values of `marks.ShownDispute`, one for each audit that disputes the row."""
    numbers: RowStatistics | None = None
    """Scores as arrays, for a row whose `results` and `evidence` were dropped to save memory."""


def in_board_order(rows: Iterable[Row]) -> list[Row]:
    """Return rows ordered by the lower-case ids of their models."""
    return sorted(rows, key=lambda row: (row.submission.model_id.lower(), row.submission.model_id))


def row_of(
    submission: Submission,
    decision: Decision,
    registry: Mapping[str, Mapping[str, Any]],
    marks: Marks = NO_MARKS,
    receipt: PublishedState | None = None,
    letters_text: str | None = None,
) -> Row:
    """Return the row of a submission; `registry` maps ids of models to their registered facts."""
    return Row(
        submission,
        decision.level,
        decision.evidence,
        decision.authorship,
        decision.audit,
        decision.recomputed.text if decision.recomputed is not None else None,
        attestation_of(decision),
        registry.get(submission.model_id, {}),
        marks,
        receipt,
        tuple(record.audit_id for record in decision.basis),
        letters=letters_text,
        disputes=tuple(_disputes(decision)),
    )


def _disputes(decision: Decision) -> Iterator[dict[str, Any]]:
    """Yield a `ShownDispute` for each audit that disputes a row, or one for aborted runs."""
    if decision.evidence is not Evidence.DISPUTED:
        return
    for audit in decision.basis:
        yield {
            "record": audit.audit_id,
            "signer": audit.signer,
            "date": audit.date,
            "why": list(audit.objections),
            "scores": [score._asdict() for score in audit.differing_scores],
        }
    if not decision.basis:
        yield {"why": [decision.reason], "scores": []}


class TableDisplay(NamedTuple):
    """How the page's table of scores shows a column."""

    sort: str
    """Name of the column in the page's address, as in `sort=size`."""
    sort_label: str
    """The name of the column in "sorted by ..."."""
    title: str
    """The tooltip of the column's heading."""
    first: Literal["up", "down"] = "down"
    """The direction in which the first click sorts."""


@dataclass(frozen=True)
class Column:
    """One fact about a model, and how the files and the page present it."""

    key: str
    """Key of the column in the JSON files and in the page's data."""
    type: Any
    """Type of the value in the schema."""
    about: str
    """Meaning and unit of the value, for the schema and the documentation."""
    value: Callable[[Row], object]
    """Returns the value for a row; None if it is unknown, so that the row lacks the key."""
    kind: ValueKind
    """ValueKind of the values, by which the page writes and sorts them."""
    label: str
    """Name of the column on the page; "" if the page shows it only as part of another column."""
    is_published: bool = True
    """Whether leaderboard.json has the column; the page has every column."""
    is_by_task: bool = False
    """Whether leaderboard_tasks.json also has the column."""
    is_required: bool = True
    """Whether every row has a value in this column."""
    is_compared: bool = True
    """Whether `geneb-ci diff` compares the values; False if a value depends on other rows."""
    table: TableDisplay | None = None
    """Display in the table of scores; None if only the page of a model shows the column."""
    download: str = ""
    """Heading in the downloads of the table; "" if they leave the column out."""
    is_facet: bool = False
    """Whether the page filters models by the values."""
    words: tuple[str, str] = ("yes", "no")
    """How the page writes true and false."""


def _audit_summary(row: Row) -> dict[str, Any] | None:
    """Return the summary of a row's audits, as in `marks.Audited`; None without an audit."""
    summary, unaudited_regimes = row.audit, row.attestation.unconfirmed_regimes
    if summary is None:
        return None
    by_receipt = {"cells": summary.cells, "rows": summary.rows} if summary.rows else {}
    unaudited = {"unaudited": list(unaudited_regimes)} if unaudited_regimes else {}
    return {
        "tasks": summary.tasks,
        "of": summary.of,
        "date": summary.date,
        "sandbox": summary.sandbox,
        "verdict": "agrees" if summary.agrees else "differs",
        **by_receipt,
        **unaudited,
    }


def _attested_fields(row: Row) -> list[dict[str, str]] | None:
    """Return which fields of a row somebody vouches for, and who, as in `marks.ShownStatement`."""
    return [statement._asdict() for statement in row.attestation.statements] or None


def _registry_column(key: str, about: str, label: str, *, is_count: bool = False) -> Column:
    """Return the column of a fact in the model registry; a column of words is also a facet."""
    return Column(
        key=key,
        type=Count if is_count else str,
        about=about,
        value=lambda row: row.attributes.get(key),
        kind="count" if is_count else "text",
        label=label,
        is_published=False,
        is_required=False,
        is_facet=not is_count,
        download=key,
    )


def _shown_defects(row: Row) -> list[dict[str, Any]] | None:
    """Return the defects of a row, as in `marks.ShownDefect`; None without any."""
    defects = [
        {"id": defect.id, "what": defect.what, "explained": defect.explained}
        for defect in row.marks.defects
    ]
    return defects or None


def _enum_type(enum_class: type[enum.StrEnum]) -> Any:  # an annotated type
    """Return the type of a text that is a value of an enumeration."""
    return Annotated[str, Field(json_schema_extra={"enum": [str(value) for value in enum_class]})]


COLUMNS: tuple[Column, ...] = (
    Column(
        key="model",
        type=str,
        about="Id of the model: its submission is `<model>.json`.",
        value=lambda row: row.submission.model_id,
        kind="id",
        label="Model id",
        is_by_task=True,
        download="model",
    ),
    Column(
        key="disp",
        type=str,
        about="Name of the model, as submitted.",
        value=lambda row: row.submission.meta.display,
        kind="name",
        label="Model",
        is_by_task=True,
        table=TableDisplay("name", "name", "name", "up"),
        download="display",
    ),
    Column(
        key="params_trained",
        type=Count,
        about=(
            "Number of trained weights of the encoder without tables of positions and filters, "
            "from the registry, if it differs from `params`; filters by size use it."
        ),
        value=lambda row: row.attributes.get("params_trained"),
        kind="count",
        label="Trained weights, without tables",
        is_required=False,
        download="params_trained",
    ),
    Column(
        key="params",
        type=Count,
        about="Number of parameters of the encoder, as submitted; 0 for a method that has none.",
        value=lambda row: row.submission.meta.params,
        kind="size",
        label="Size",
        is_by_task=True,
        table=TableDisplay("params", "size", "number of parameters"),
        download="params",
    ),
    Column(
        key="official",
        type=bool,
        about="Whether the submission is the file of the benchmark's authors, byte for byte.",
        value=lambda row: row.authorship is Authorship.OFFICIAL,
        kind="flag",
        label="",
    ),
    Column(
        key="authorship",
        type=_enum_type(Authorship),
        about="Whose file it is: the authors' own (`official`) or another's (`contributed`).",
        value=lambda row: str(row.authorship),
        kind="text",
        label="Authorship",
        table=TableDisplay("authorship", "authorship", "whose file it is", "up"),
        download="authorship",
    ),
    Column(
        key="evidence",
        type=_enum_type(Evidence),
        about="What others did to confirm the scores, computed from audit records.",
        value=lambda row: str(row.evidence),
        kind="evidence",
        label="Evidence",
        table=TableDisplay("evidence", "evidence", "what others did to confirm the scores"),
        download="evidence",
    ),
    Column(
        key="attested",
        type=list[ShownStatement],
        about="Which scores audits compared, and which nobody did; only if some audit counts. All "
        "other values rest on the word of their author: docs/maintainer/trust.md.",
        value=_attested_fields,
        kind="attested",
        label="Scores attested by",
        is_required=False,
        is_compared=False,
    ),
    Column(
        key="disputes",
        type=list[ShownDispute],
        about="Why the row is disputed: for each audit that differs, its record, its signer and "
        "the scores outside their tolerance; only for a disputed row.",
        value=lambda row: list(row.disputes) or None,
        kind="disputes",
        label="Why disputed",
        is_required=False,
    ),
    Column(
        key="zero_shot",
        type=bool,
        about="Whether the model saw no sequence of any task in training, as submitted.",
        value=lambda row: row.submission.meta.zero_shot,
        kind="flag",
        label="Zero-shot",
        words=("yes: saw no sequence of any task in training", "no"),
    ),
    Column(
        key="submitted",
        type=_enum_type(TrustLevel),
        about="Trust level: authorship and evidence in one word of upstream's page; for a "
        "contributed row, self-reported means checked, and verified means audited.",
        value=lambda row: str(row.level),
        kind="level",
        label="",
        download="level",
    ),
    Column(
        key="audit",
        type=Audited,
        about="What the audits of this very file found; only if some of them count.",
        value=_audit_summary,
        kind="audit",
        label="",
        is_required=False,
        download="audit",
    ),
    Column(
        key="recomputed",
        type=str,
        about="That an audit by receipt computed the cells again, and whether the scores shown are "
        "the recomputed ones; only if such an audit agrees and counts.",
        value=lambda row: row.recomputed,
        kind="text",
        label="",
        is_required=False,
        download="recomputed",
    ),
    Column(
        key="warnings",
        type=dict[str, Count],
        about="Number of warnings by rule, if `geneb-ci check` warns about the row.",
        value=lambda row: dict(row.marks.warnings) or None,
        kind="warnings",
        label="Warnings",
        is_required=False,
        is_compared=False,
        download="warnings",
    ),
    Column(
        key="defects",
        type=list[ShownDefect],
        about="Published defects of the extractor that computed the row: docs/reader/defects.md.",
        value=_shown_defects,
        kind="defects",
        label="Known defects",
        is_required=False,
        download="defects",
    ),
    Column(
        key="receipt",
        type=PublishedState,
        about="Whether the embeddings that the row commits to are at the address that it names, "
        "when the maintainers looked last; only for a row that publishes them.",
        value=lambda row: row.receipt,
        kind="text",
        label="Receipt",
        is_required=False,
    ),
    # Add columns of the registry here: docs/developer/developing.md, "A column of the board".
    _registry_column("architecture", "Architecture, in the paper's words.", "Architecture"),
    _registry_column("tokenization", "What a token is, in the paper's words.", "Tokenizer"),
    _registry_column(
        "pretraining", "What it was pretrained on, in the paper's words.", "Pretraining"
    ),
    _registry_column(
        "runs_on", "What its published code runs on: `CPU or GPU`, or `GPU`.", "Runs on"
    ),
    _registry_column("licence", "Licence of the weights, as their publisher names it.", "Licence"),
    _registry_column(
        "max_letters", "Longest input in letters.", "Longest input in letters", is_count=True
    ),
    _registry_column(
        "max_tokens", "Longest input in tokens.", "Longest input in tokens", is_count=True
    ),
    _registry_column("embedding_dim", "Width of the embeddings.", "Embedding width", is_count=True),
    Column(
        key="url",
        type=str,
        about="Link to the weights or the paper, as submitted.",
        value=lambda row: row.submission.meta.url or None,
        kind="link",
        label="Link",
        is_published=False,
        is_required=False,
    ),
    Column(
        key="run",
        type=str,
        about="Hardware of the run, and time from its start to its end, as submitted; since "
        "format 1.1.",
        value=lambda row: hardware_and_duration(row.submission),
        kind="text",
        label="Run",
        is_published=False,
        is_required=False,
        download="run",
    ),
    Column(
        key="letters_a_second",
        type=Count,
        about="Letters embedded per second on the run's hardware, as submitted; since format 1.2.",
        value=lambda row: letters_per_second(row.submission),
        kind="count",
        label="Letters embedded per second",
        is_published=False,
        is_required=False,
        download="letters_a_second",
    ),
    Column(
        key="peak_memory",
        type=Count,
        about="Peak memory while embedding, in bytes, of the accelerator or, on a CPU, of the "
        "process, as submitted; since format 1.2.",
        value=lambda row: peak_memory(row.submission),
        kind="count",
        label="Peak memory in bytes",
        is_published=False,
        is_required=False,
        download="peak_memory_bytes",
    ),
    Column(
        key="letters_read",
        type=str,
        about="Tasks with sequences of which the model did not read every letter, as measured by "
        "the submitter's harness; since format 1.2.",
        value=lambda row: row.letters,
        kind="text",
        label="Letters read",
        is_published=False,
        is_required=False,
        download="letters_read",
    ),
    Column(
        key="properties",
        type=str,
        about="Which declared properties the submitter's run verified, and which it did not "
        "contradict; since format 1.2.",
        value=lambda row: property_outcomes(row.submission),
        kind="text",
        label="Properties of the extractor",
        is_published=False,
        is_required=False,
        download="properties",
    ),
    Column(
        key="training_data",
        type=str,
        about="What the model was trained on, as submitted.",
        value=lambda row: row.submission.meta.training_data or None,
        kind="text",
        label="Training data",
        is_published=False,
        is_required=False,
    ),
    Column(
        key="submitted_by",
        type=str,
        about="Who ran the evaluation, as submitted.",
        value=lambda row: row.submission.meta.submitted_by or None,
        kind="text",
        label="Submitted by",
        is_published=False,
        is_required=False,
    ),
)
"""All columns, in the order in which files and pages show them."""
PUBLISHED_COLUMNS = tuple(column for column in COLUMNS if column.is_published)
"""The columns of leaderboard.json."""
TASK_COLUMNS = tuple(column for column in COLUMNS if column.is_by_task)
"""The columns of leaderboard_tasks.json."""


def facts_of(row: Row, columns: Iterable[Column]) -> dict[str, Any]:
    """Return the values of some columns by key, in their order, leaving out those equal to None."""
    facts = ((column.key, column.value(row)) for column in columns)
    return {key: value for key, value in facts if value is not None}


def page_columns() -> list[dict[str, Any]]:
    """Return the properties of each column by which the page shows, sorts and downloads it."""
    return [
        {
            "key": column.key,
            "kind": column.kind,
            "label": column.label,
            "table": None if column.table is None else column.table._asdict(),
            "download": column.download,
            "facet": column.is_facet,
            "words": column.words,
            "source": str(column_author(column.key)),
            "terms": MEANING_BY_WORD.get(column.key, {}),
        }
        for column in COLUMNS
    ]
