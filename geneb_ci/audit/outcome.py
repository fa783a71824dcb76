"""What an audit found: the predicate of the signed record."""

from typing import Annotated, Literal

from pydantic import Field

from geneb_ci.audit.commitment import Hex40, Hex64, Moment, Name, Part
from geneb_ci.audit.plan import Plan, Reason

Signed = Annotated[float, Field(ge=-1, le=1)]
Unit = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]

PREDICATE_TYPE = "urn:geneb-ci:audit:1.0"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"

Verdict = Literal["agrees", "differs"]


class Triple(Part):
    """One value a metric."""

    MCC: Signed
    Acc: Unit
    F1: Unit


class Tolerance(Part):
    """How far an honest claim may lie from the rescored value, and how that was measured."""

    MCC: Annotated[float, Field(ge=0)]
    Acc: Annotated[float, Field(ge=0)]
    F1: Annotated[float, Field(ge=0)]
    copies: Count
    """Refits on jittered embeddings."""
    flips: Annotated[float, Field(ge=0)]
    """Mean number of predictions that a jittered copy flips, over all seeds."""
    spread: Annotated[float, Field(ge=0)]
    """Standard deviation of MCC over the copies."""


class Compared(Part):
    """One task in one regime: claim against rerun."""

    claimed: Triple
    rescored: Triple
    tolerance: Tolerance
    predictions_equal: bool | None
    """Whether the prediction digests agree; null where the claim has none."""
    canonical: "CanonicalCompared | None"
    """The comparison of canonical scores; null where the claim has none."""
    verdict: Verdict


class CanonicalCompared(Part):
    """The probe solved to its optimum: far less noise, so a far smaller tolerance."""

    claimed: Triple
    rescored: Triple
    tolerance: Tolerance
    verdict: Verdict


class AuditedTask(Part):
    """One rerun task."""

    task: Name
    reason: Reason
    verdict: Verdict
    """`differs` as soon as one regime does."""
    regimes: Annotated[dict[str, Compared], Field(min_length=1)]


class Escape(Part):
    """One attempt of the probe suite to leave the sandbox."""

    name: Name
    refused: bool
    detail: str


class SandboxFacts(Part):
    """Where the extractor ran."""

    level: Annotated[int, Field(ge=0, le=4)]
    kind: Name
    """bubblewrap, landlock, gvisor, or none."""
    escapes: list[Escape]
    """The probe suite, run in the same sandbox before the audit; empty at level 0 alone."""
    gpu: bool
    limits: dict[str, int]
    """Limits by name, with their unit in the name, such as memory_mib."""


class Decoys(Part):
    """Whether embeddings depended on what they may not depend on."""

    order_dependent: bool
    """The same sequence in another place or batch got another embedding."""
    memorised: bool
    """Sequences of the benchmark are treated otherwise than fresh ones like them."""
    detail: str


class HarnessFacts(Part):
    """Which harness scored."""

    version: Name
    commit: Hex40 | None
    dirty: bool


class Outcome(Part):
    """All of one audit: the predicate of the in-toto statement."""

    schema_version: Literal["1.0"]
    plan: Plan
    tasks: Annotated[list[AuditedTask], Field(min_length=1)]
    """In the order of the plan's chosen tasks, each of them."""
    decoys: Decoys
    verdict: Verdict
    """`differs` as soon as one task does or a decoy gives the extractor away."""
    sandbox: SandboxFacts
    noise: Name
    """The dtype whose numeric noise the tolerance was measured at."""
    harness: HarnessFacts
    benchmark_sha256: Hex64
    dataset_revision: Hex40
    packages: dict[str, str]
    notes: list[str]
    """What a reader of the record should know, such as the spread of the full regime."""
    started_at: Moment
    finished_at: Moment


class Subject(Part):
    """What the statement is about: the submission's bytes."""

    name: Name
    digest: dict[Literal["sha256"], Hex64]


class Statement(Part):
    """An in-toto statement (v1) about one submission."""

    type_: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[list[Subject], Field(min_length=1, max_length=1)]
    predicateType: Literal["urn:geneb-ci:audit:1.0"]  # noqa: N815 (in-toto's own name)
    predicate: Outcome
