"""Commitments: what is fixed before the draw; the digest is published before any seed exists."""

import operator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from geneb_ci.audit.canonical import digest
from geneb_ci.audit.steps import COMMITMENT, StepMismatch
from geneb_ci.common.types import Hex40, Hex64, Name, Positive, StrictModel
from geneb_ci.models.entry import Kind

PROTOCOL: Literal["geneb-audit-v1"] = "geneb-audit-v1"
"""Name of the protocol, and the domain of its hashes."""


class Weights(StrictModel):
    """Weights that the rerun uses."""

    kind: Kind | Literal["local"]
    location: str
    revision: Hex40 | None
    files: dict[str, Hex64]
    """File name to sha256 of each weight file; empty for a method without weights."""
    addresses: dict[str, str] = Field(default={}, exclude_if=operator.not_)
    """File name to address of each file that is not on the Hub; `#` begins a path in an archive."""


class ExtractorCode(StrictModel):
    """Code that turns sequences into embeddings."""

    path: Name
    """Path in the repository, or `builtin:<name>`."""
    class_name: Name
    sha256: Hex64
    """Digest of the module's bytes, as the submission's run names it."""
    options: dict[Name, str]
    """Keyword arguments of the constructor, as text, as the submission's run names them."""
    tree: Hex64
    """Digest over `<sha256>  <name>` lines of every file of the extractors' folder, in order of
    name: a module may import its neighbours. That of no line for a built-in."""
    shape: Hex64 | None = Field(default=None, exclude_if=operator.not_)
    """Digest of the code without names of its own, comments and formatting; left out for a
    built-in, and in earlier commitments."""


class BenchmarkPin(StrictModel):
    """Benchmark definition and data."""

    name: Name
    sha256: Hex64
    dataset: Name
    revision: Hex40


class DrawPolicy(StrictModel):
    """How many tasks are drawn, and what counts as agreement, by the policy at that time."""

    drawn: Positive
    """k: tasks of the guaranteed sample."""
    stratified: bool
    """Whether each of the larger categories has at least one task in the sample."""
    strata: list[list[Name]] = []  # noqa: RUF012 (pydantic copies it)
    """Tasks of each of the larger categories; none unless stratified."""
    tolerance: Hex64
    """Digest of the constants of the tolerance."""


Claims = dict[Name, list[int | None]]
"""Regime to the claimed MCC of each task of the commitment, in hundred-thousandths; null where the
submission has no score."""


class Commitment(StrictModel):
    """Everything that decides the sample and its outcome, except the seed."""

    protocol: Literal["geneb-audit-v1"]
    model_id: Name
    submission_sha256: Hex64
    extractor: ExtractorCode
    weights: Weights
    benchmark: BenchmarkPin
    regimes: Annotated[list[Name], Field(min_length=1)]
    tasks: Annotated[list[Name], Field(min_length=1)]
    """Ids that may be drawn, in board order: N is their number."""
    policy: DrawPolicy
    claims: Claims = Field(default={}, exclude_if=operator.not_)
    """By which a later commitment to nearly the same claims is found, whatever its name; left out
    in earlier commitments."""
    entry: Hex64 | None = Field(default=None, exclude_if=operator.not_)
    """SHA-256 of the model's entry in the registry, where that describes the run and not the
    submission; left out of the digest where there is none, as in earlier commitments."""

    @model_validator(mode="after")
    def _has_a_digest(self) -> Self:
        # A record can bring any name and any number; the draw hashes them in canonical JSON.
        if any(len(scores) != len(self.tasks) for scores in self.claims.values()):
            raise PydanticCustomError("claims", "claims has not one score for each task")
        try:
            self.sha256  # noqa: B018 (only whether it has one)
        except (TypeError, ValueError) as error:
            raise PydanticCustomError(
                "canonical_json", "{reason}", {"reason": str(error)}
            ) from error
        return self

    @property
    def sha256(self) -> str:
        """The commitment c: SHA-256 of the canonical JSON."""
        return digest(self.model_dump())


def check_commitment(commitment: Commitment, published: str) -> None:
    """Refuse a commitment that is not the one published, or from which nothing can be drawn.

    `published` is its digest, as hex digits. Raises StepMismatch, of the step "commitment".
    """
    tasks, policy = commitment.tasks, commitment.policy
    stratified = [task for stratum in policy.strata for task in stratum]
    wrong = {
        f"its digest is {commitment.sha256}, and {published} was published": (
            commitment.sha256 != published
        ),
        "a task is listed twice": len(set(tasks)) != len(tasks),
        f"{policy.drawn} tasks are to be drawn from {len(tasks)}": policy.drawn > len(tasks),
        "a stratum has a task that is not among the tasks, or that is in another stratum": (
            len(set(stratified)) != len(stratified) or not set(stratified) <= set(tasks)
        ),
        "it has strata without being stratified, or an empty stratum": (
            bool(policy.strata) and not (policy.stratified and all(policy.strata))
        ),
    }
    for message, holds in wrong.items():
        if holds:
            raise StepMismatch(COMMITMENT, message)
