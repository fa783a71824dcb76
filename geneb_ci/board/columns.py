"""The columns of the board: what it says of a model beside its scores, each defined once.

Rows of leaderboard.json and leaderboard_tasks.json, their schemas, the facts that `geneb-ci diff`
compares, the page's table, its page of a model, its downloads and the table in docs/board-files.md
are all made from COLUMNS.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from geneb_ci.audit.trust import Decision, Summary
from geneb_ci.common.types import Count, StrictModel, TrustLevel
from geneb_ci.submission.models import Submission


@dataclass(frozen=True)
class Entry:
    """One submission that passed every check, and all that a column may show of it."""

    submission: Submission
    level: TrustLevel
    audit: Summary | None = None
    """What the board shows of its audits."""
    is_official: bool = False
    """Whether the file is the authors' own although its level is another, such as disputed."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """What the model registry says, whoever submitted the row; empty where it has no entry."""


def entry_of(
    submission: Submission, decision: Decision, registry: Mapping[str, Mapping[str, Any]]
) -> Entry:
    """Return the entry of a submission whose level was decided.

    `registry` maps ids of models to the facts of their entries.
    """
    attributes = registry.get(submission.model_id, {})
    return Entry(submission, decision.level, decision.audit, decision.is_official, attributes)


Kind = Literal["id", "name", "size", "count", "text", "flag", "link", "level", "audit"]
"""How the page writes, sorts and aligns a value; each has one entry in src/pure/facts.js."""


class InTable(NamedTuple):
    """How the page's table of scores shows a column."""

    sort: str
    """Its name in the page's address, as in `sort=size`."""
    said: str
    """What rows are said to be sorted by."""
    title: str
    """What its heading says when pointed at."""
    first: Literal["up", "down"] = "down"
    """The order that the first click gives."""


@dataclass(frozen=True)
class Column:
    """One fact of a model."""

    key: str
    """Its key in the JSON files and in the page's data."""
    type: Any
    """Its type in the schema."""
    about: str
    """What it means, with its unit: the schema's and the documentation's description."""
    value: Callable[[Entry], object]
    """Its value; None where nothing is known, and then the row does not have the key."""
    kind: Kind
    label: str
    """What the page calls it; "" for what the page shows only as part of another column."""
    is_published: bool = True
    """Whether leaderboard.json has it; the page has every column."""
    is_by_task: bool = False
    """Whether leaderboard_tasks.json has it, too."""
    is_required: bool = True
    """Whether every row has it."""
    table: InTable | None = None
    """Its place in the table of scores; None for what only the page of a model shows."""
    download: str = ""
    """Its heading in the downloads of the table; "" for what they leave out."""
    words: tuple[str, str] = ("yes", "no")
    """What the page writes for true and false."""


class Audited(StrictModel):
    """What audits say of a row: "audited 13/100, sandbox level 2, 2026-11-20"."""

    tasks: Annotated[int, Field(ge=1)]
    """Distinct tasks that were rerun."""
    of: Annotated[int, Field(ge=1)]
    """Tasks of the benchmark."""
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    """Day of the latest audit, UTC."""
    sandbox: Annotated[int, Field(ge=1, le=4)]
    """Lowest sandbox level among them."""
    verdict: Literal["agrees", "differs"]


def _audit(found: Summary | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "tasks": found.tasks,
        "of": found.of,
        "date": found.date,
        "sandbox": found.sandbox,
        "verdict": "agrees" if found.agrees else "differs",
    }


COLUMNS: tuple[Column, ...] = (
    Column(
        key="model",
        type=str,
        about="Id of the model: its submission is `<model>.json`.",
        value=lambda entry: entry.submission.model_id,
        kind="id",
        label="Model id",
        is_by_task=True,
        download="model",
    ),
    Column(
        key="disp",
        type=str,
        about="Name of the model, as submitted.",
        value=lambda entry: entry.submission.meta.display,
        kind="name",
        label="Model",
        is_by_task=True,
        table=InTable("name", "name", "name", "up"),
        download="display",
    ),
    Column(
        key="params",
        type=Count,
        about="Number of parameters of the encoder, as submitted; 0 for a method that has none.",
        value=lambda entry: entry.submission.meta.params,
        kind="size",
        label="Size",
        is_by_task=True,
        table=InTable("params", "size", "number of parameters"),
        download="params",
    ),
    Column(
        key="official",
        type=bool,
        about="Whether the submission is the file of the benchmark's authors, byte for byte.",
        value=lambda entry: entry.is_official or entry.level is TrustLevel.OFFICIAL,
        kind="flag",
        label="File",
        words=("the authors' own", "contributed"),
    ),
    Column(
        key="zero_shot",
        type=bool,
        about="Whether the model saw no sequence of any task in training, as submitted.",
        value=lambda entry: entry.submission.meta.zero_shot,
        kind="flag",
        label="Zero-shot",
        words=("yes: saw no sequence of any task in training, as submitted", "no, as submitted"),
    ),
    Column(
        key="submitted",
        type=Annotated[
            str, Field(json_schema_extra={"enum": [str(level) for level in TrustLevel]})
        ],
        about="Trust level, computed from evidence.",
        value=lambda entry: str(entry.level),
        kind="level",
        label="Trust",
        table=InTable("level", "trust", "trust level and its evidence"),
        download="level",
    ),
    Column(
        key="audit",
        type=Audited,
        about="What audits of this very file found; only where there are some that count.",
        value=lambda entry: _audit(entry.audit),
        kind="audit",
        label="",
        is_required=False,
        download="trust",
    ),
    # A column from the model registry stands here: CONTRIBUTING.md, "A column of the board".
    Column(
        key="url",
        type=str,
        about="Link to the weights or the paper, as submitted.",
        value=lambda entry: entry.submission.meta.url or None,
        kind="link",
        label="Link",
        is_published=False,
        is_required=False,
    ),
    Column(
        key="training_data",
        type=str,
        about="What the model was trained on, as submitted.",
        value=lambda entry: entry.submission.meta.training_data or None,
        kind="text",
        label="Training data",
        is_published=False,
        is_required=False,
    ),
    Column(
        key="submitted_by",
        type=str,
        about="Who ran the evaluation, as submitted.",
        value=lambda entry: entry.submission.meta.submitted_by or None,
        kind="text",
        label="Submitted by",
        is_published=False,
        is_required=False,
    ),
)
PUBLISHED = tuple(column for column in COLUMNS if column.is_published)
BY_TASK = tuple(column for column in COLUMNS if column.is_by_task)


def facts_of(entry: Entry, columns: Iterable[Column]) -> dict[str, Any]:
    """Return the values of some columns by key, in their order, leaving out None."""
    values = ((column.key, column.value(entry)) for column in columns)
    return {key: value for key, value in values if value is not None}


def page_columns() -> list[dict[str, Any]]:
    """Return what the page must know of each column to show, sort and download it."""
    return [
        {
            "key": column.key,
            "kind": column.kind,
            "label": column.label,
            "table": None if column.table is None else column.table._asdict(),
            "download": column.download,
            "words": column.words,
        }
        for column in COLUMNS
    ]
