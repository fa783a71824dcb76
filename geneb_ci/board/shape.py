"""The two files that upstream's page reads, in upstream's exact shape."""

from typing import Annotated, Literal

from pydantic import Field

from geneb_ci.common.types import Signed, StrictModel, TrustLevel

ByName = dict[str, Signed]


class Audited(StrictModel):
    """What audits say of a row: "audited 13/100, sandbox level 2, 2026-11-20"."""

    tasks: Annotated[int, Field(ge=1)]
    """Distinct tasks that were rerun."""
    of: Annotated[int, Field(ge=1)]
    """Tasks of the benchmark."""
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    """Day of the latest audit, UTC."""
    sandbox: Annotated[int, Field(ge=1, le=4)]
    """Lowest level of isolation among them."""
    verdict: Literal["agrees", "differs"]


class CategoryRow(StrictModel):
    """One model in one regime, by category."""

    model: str
    disp: str
    params: Annotated[int, Field(ge=0)]
    official: bool
    zero_shot: bool
    submitted: TrustLevel
    """Trust level, computed from evidence."""
    audit: Annotated[Audited | None, Field(default=None)]
    """Only where audits of this very file count."""
    micro_MCC: Signed
    """Mean over all tasks."""
    macro_MCC: Signed
    """Mean of the category means."""
    cat_MCC: ByName
    micro_Acc: Signed
    macro_Acc: Signed
    cat_Acc: ByName
    micro_F1: Signed
    macro_F1: Signed
    cat_F1: ByName


class TaskRow(StrictModel):
    """One model in one regime, by task."""

    model: str
    disp: str
    params: Annotated[int, Field(ge=0)]
    micro_MCC: Signed
    macro_MCC: Signed
    task_MCC: ByName
    micro_Acc: Signed
    macro_Acc: Signed
    task_Acc: ByName
    micro_F1: Signed
    macro_F1: Signed
    task_F1: ByName


class TaskName(StrictModel):
    """A task as the page shows it."""

    id: str
    label: str
    cat: str


class Leaderboard(StrictModel):
    """leaderboard.json: regime to rows, ordered by the lower-case model id."""

    data: dict[str, list[CategoryRow]]


class TaskLeaderboard(StrictModel):
    """leaderboard_tasks.json: the tasks in board order, and regime to rows."""

    tasks: list[TaskName]
    data: dict[str, list[TaskRow]]
