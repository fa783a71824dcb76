"""Types that several formats share, the typed benchmark, and the first error of a value.

`tools/generate.py` has benchmark.schema.json and all lists of levels from here.
"""

import enum
import re
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.finding import quoted

Hex40 = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Moment = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
"""A time in UTC, to the second."""
Name = Annotated[str, Field(min_length=1, max_length=200)]
Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Signed = Annotated[float, Field(ge=-1, le=1)]
"""A score from -1 to 1: MCC."""
Unit = Annotated[float, Field(ge=0, le=1)]
"""A score from 0 to 1: accuracy and macro-F1."""


class StrictModel(BaseModel):
    """Base of all models of files: no unknown fields, no type coercion, no NaN."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )


class Scores(StrictModel):
    """Three metrics of one task in one regime, each a mean over the seeds."""

    MCC: Signed
    """Matthews correlation coefficient, -1 to 1."""
    Acc: Unit
    """Accuracy, 0 to 1."""
    F1: Unit
    """Macro-averaged F1, 0 to 1."""


class TrustLevel(enum.StrEnum):
    """Authorship and evidence in one word, which upstream's page shows."""

    SELF_REPORTED = "self-reported"
    VERIFIED = "verified"
    REPRODUCED = "reproduced"
    OFFICIAL = "official"
    DISPUTED = "disputed"
    STALE = "stale"


class Authorship(enum.StrEnum):
    """Whose file a row is; it says nothing of whether the scores were confirmed."""

    OFFICIAL = "official"
    CONTRIBUTED = "contributed"


class Evidence(enum.StrEnum):
    """What others did to confirm the scores of a row, whoever its author is."""

    NONE = "none"
    CHECKED = "checked"
    AUDITED = "audited"
    REPRODUCED = "reproduced"
    DISPUTED = "disputed"
    STALE = "stale"


AUTHORSHIP_MEANING = {
    Authorship.OFFICIAL: "the file of the benchmark's authors, byte for byte",
    Authorship.CONTRIBUTED: "a file that somebody else submitted",
}
EVIDENCE_MEANING = {
    Evidence.NONE: "does not pass the checks, so it is not on the board",
    Evidence.CHECKED: "passes every check; nobody has rerun it",
    Evidence.AUDITED: "an audit of tasks or rows drawn after the submission was fixed agrees",
    Evidence.REPRODUCED: "audits by two signers cover every task of every audited regime",
    Evidence.DISPUTED: "an audit failed, or its last runs were aborted",
    Evidence.STALE: "the audits are for another version of harness, benchmark or data",
}
"""One line for readers of the board, in the order in which the page explains them."""
EVIDENCE_ORDER = (Evidence.NONE, Evidence.CHECKED, Evidence.AUDITED, Evidence.REPRODUCED)
"""From least to most; `disputed` and `stale` meet none of them."""


def has_evidence(evidence: Evidence, least: Evidence | None) -> bool:
    """Whether evidence is at least the one that is asked for; None asks for any but `disputed`."""
    if least is None:
        return evidence is not Evidence.DISPUTED
    return evidence in EVIDENCE_ORDER[EVIDENCE_ORDER.index(least) :]


def first_error(error: ValidationError, top: str = "the document") -> str:
    """Return "place: message" of the first validation error, on one line of printable ASCII.

    The place is the path of keys, joined by "/", escaped and cut; `top` names the whole value.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    place = "/".join(map(str, first["loc"]))
    return f"{quoted(place)[1:-1] or top}: {first['msg']}"


LOOPBACK = ("http://127.0.0.1:", "http://localhost:")
"""This machine, which only its own user can name."""
PUBLIC_ADDRESS = re.compile(
    r"https://(?!localhost[:/])(?=[^/]*[A-Za-z])[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:\d{1,5})?/[^?#\s@\\]*"
)
"""An address that a submission may name: a server with a name, not a number, as those of a private
network have; no query or fragment, which could mean something to the program that fetches it."""


# Rules iterate over regimes x tasks x metrics (3 x 100 x 3 in the real benchmark). The limits allow
# ten times as many of each kind and keep a hostile definition from taking minutes.
REGIMES_MAX, TASKS_MAX, METRICS_MAX, SEEDS_MAX = 10, 1_000, 10, 100
# No test split has 10^9 sequences; above that, 1 / n is lost in the rounding of a double.
SIZE_MAX = 1_000_000_000


class TaskEntry(StrictModel):
    """One classification task."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    label: Annotated[str, Field(min_length=1)]
    category: Annotated[str, Field(min_length=1)]
    n_test: Annotated[int, Field(ge=1, le=SIZE_MAX)] | None = None
    """Number of sequences in the test split, if known."""
    test_class_counts: list[Annotated[int, Field(ge=0, le=SIZE_MAX)]] | None = None
    """Number of test sequences per class, ascending, without class names, if known."""

    @model_validator(mode="after")
    def _counts_add_up(self) -> Self:
        counts = self.test_class_counts
        if counts is not None and (counts != sorted(counts) or sum(counts) != self.n_test):
            raise ValueError(
                f"test_class_counts {counts} must ascend and add up to n_test {self.n_test}"
            )
        return self


class DatasetEntry(StrictModel):
    """Repository, commit and file layout of the task data."""

    repo_id: str
    former_repo_id: str | None = None
    revision: Hex40
    remote_layout: str
    local_layout: str


class ProtocolEntry(StrictModel):
    """How frozen embeddings are scored: probe, scaling, seeds, shots per class."""

    probe: str
    logreg: dict[str, Any]
    feature_scaling: str | None = None
    seeds: Annotated[list[int], Field(min_length=1, max_length=SEEDS_MAX)]
    few_shot_k: dict[str, Annotated[int, Field(ge=1, le=SIZE_MAX)]]
    pooling: str = ""


class BenchmarkFile(StrictModel):
    """A benchmark definition. Tasks and categories are in the order of the board."""

    schema_: Annotated[str | None, Field(alias="$schema")] = None
    schema_version: str
    name: Annotated[str, Field(min_length=1)]
    harness_version: str
    regimes: Annotated[list[str], Field(min_length=1, max_length=REGIMES_MAX)]
    metrics: Annotated[list[str], Field(min_length=1, max_length=METRICS_MAX)]
    primary_metric: str
    protocol: ProtocolEntry
    dataset: DatasetEntry
    category_order: Annotated[list[str], Field(min_length=1, max_length=TASKS_MAX)]
    sources: dict[str, str] = {}
    tasks: Annotated[list[TaskEntry], Field(min_length=1, max_length=TASKS_MAX)]
    sha256: Annotated[Hex64, Field(exclude=True)] = "0" * 64
    """Digest of the bytes it was read from; not part of the file."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids = [task.id for task in self.tasks]
        if doubled := sorted({i for i in ids if ids.count(i) > 1}):
            raise ValueError(f"duplicate task ids: {doubled}")
        if self.primary_metric not in self.metrics:
            raise ValueError(f"primary_metric {self.primary_metric!r} is not among {self.metrics}")
        got = sorted({task.category for task in self.tasks})
        if got != sorted(set(self.category_order)):
            raise ValueError(f"category_order {self.category_order} differs from the tasks' {got}")
        if taken := sorted({"macro", "micro"}.intersection(got)):
            raise ValueError(f"categories {taken} have names of means; use other names")
        return self


def validated(raw: bytes, name: str) -> dict[str, Any]:
    """Return the members of the definition in `raw`, by the names of their keys in a Benchmark.

    Raises BadConfiguration, which names the file and the key, when it cannot be used.
    """
    try:
        return BenchmarkFile.model_validate_json(raw).model_dump()
    except ValidationError as error:
        raise BadConfiguration(
            f"{name}: {first_error(error)}", "compare it with schemas/benchmark.schema.json"
        ) from error
