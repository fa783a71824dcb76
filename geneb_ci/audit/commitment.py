"""Commitments: all that is fixed before the draw, and whether two are about the same method.

An earlier draw for the same method counts again. Two commitments are about the same method if they
have the same model id, share a file of weights, share code and options of a method without weights,
or make nearly the same claims.
"""

import operator
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from geneb_ci.audit.canonical import COMMITMENT_STEP, digest
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.models.entry import PublicationKind
from geneb_ci.statistics.neighbours import COPY_CELLS_MIN, NEAR_DISTANCE, copy_cells_min
from reference_harness.formats.base import Hex40, Hex64, Name, Positive, StrictModel
from reference_harness.formats.submission import Submission

PROTOCOL: Literal["geneb-audit-v1"] = "geneb-audit-v1"
"""Name of the protocol; each hash of a draw begins with it."""


class Weights(StrictModel):
    """The weights that the rerun uses."""

    kind: PublicationKind | Literal["local"]
    """Where the weights are published, or `local` for a folder of the auditor."""
    location: str
    """A repository on the Hub, an address or a folder, as `kind` says; "" without weights."""
    revision: Hex40 | None
    """Commit of the repository on the Hub; null for weights from elsewhere."""
    files: dict[str, Hex64]
    """SHA-256 of each weight file, by its name; empty for a method without weights."""
    addresses: dict[str, str] = Field(default={}, exclude_if=operator.not_)
    """Address of each file that is not on the Hub, by its name; `#` begins a path in an archive."""


class ExtractorCode(StrictModel):
    """The code that turns sequences into embeddings."""

    path: Name
    """Path in the repository, or `builtin:<name>`."""
    class_name: Name
    sha256: Hex64
    """SHA-256 of the module's bytes, as stated in the submission's run."""
    options: dict[Name, str]
    """Keyword arguments of the constructor, as text, as stated in the submission's run."""
    tree: Hex64
    """Digest of all files in the extractors' folder, since a module may import others: of one line
    `<sha256>  <name>` for each, in order of name; of no line for a built-in extractor."""
    shape: Hex64 | None = Field(default=None, exclude_if=operator.not_)
    """Digest of the code without comments, formatting and the names that it defines; left out for a
    built-in extractor, and in earlier commitments."""


class BenchmarkPin(StrictModel):
    """The benchmark definition and the task data that were committed to."""

    name: Name
    sha256: Hex64
    """Digest of the benchmark definition."""
    dataset: Name
    """Repository of the task data on the Hub."""
    revision: Hex40
    """Commit of that repository."""


class DrawPolicy(StrictModel):
    """The number of tasks to draw and the limits for the verdict, as of the commitment."""

    drawn: Positive
    """Number of tasks of the guaranteed sample, k."""
    stratified: bool
    """Whether each of the larger categories has at least one task in the sample."""
    strata: list[list[Name]] = []  # noqa: RUF012 (pydantic copies it)
    """Tasks of each of the larger categories; empty unless stratified."""
    tolerance: Hex64
    """Digest of the limits that decide a verdict; in earlier commitments, of the tolerance."""


Claims = dict[Name, list[int | None]]
"""By regime, the claimed MCC of each task of the commitment, in hundred-thousandths; null where the
submission has no score."""


class Commitment(StrictModel):
    """Everything that decides the sample and the outcome of an audit, except the seed."""

    protocol: Literal["geneb-audit-v1"]
    model_id: Name
    submission_sha256: Hex64
    extractor: ExtractorCode
    weights: Weights
    benchmark: BenchmarkPin
    regimes: Annotated[list[Name], Field(min_length=1)]
    tasks: Annotated[list[Name], Field(min_length=1)]
    """Ids of the N tasks that may be drawn, in the order of the board."""
    policy: DrawPolicy
    claims: Claims = Field(default={}, exclude_if=operator.not_)
    """The claims, by which a later commitment to nearly the same claims is recognised under any
    model id; left out in earlier commitments."""
    entry: Hex64 | None = Field(default=None, exclude_if=operator.not_)
    """SHA-256 of the entry in the model registry, if the entry and not the submission describes the
    run; otherwise left out, as in earlier commitments."""

    @model_validator(mode="after")
    def _check_claims_and_digest(self) -> Self:
        """Refuse claims of another number than the tasks, and values without canonical JSON."""
        # A record can bring any name and any number; the draw hashes them in canonical JSON.
        if any(len(scores) != len(self.tasks) for scores in self.claims.values()):
            raise PydanticCustomError("claims", "claims must have one score for each task")
        try:
            digest(self.model_dump())
        except (TypeError, ValueError) as error:
            raise PydanticCustomError(
                "canonical_json", "{reason}", {"reason": str(error)}
            ) from error
        return self

    @property
    def sha256(self) -> str:
        """SHA-256 of the canonical JSON of the commitment: the digest that is published."""
        return digest(self.model_dump())


def check_commitment(commitment: Commitment, published_digest: str) -> None:
    """Refuse a commitment whose digest is not the published one, or that permits no draw.

    Raises StepMismatch, of the step "commitment".
    """
    tasks, policy = commitment.tasks, commitment.policy
    stratified = [task for stratum in policy.strata for task in stratum]
    objections = {
        f"the commitment has the digest {commitment.sha256}, expected {published_digest}": (
            commitment.sha256 != published_digest
        ),
        "a task is listed twice": len(set(tasks)) != len(tasks),
        f"{policy.drawn} tasks are to be drawn from {len(tasks)}": policy.drawn > len(tasks),
        "a stratum has a task that is not among the tasks, or that is in another stratum": (
            len(set(stratified)) != len(stratified) or not set(stratified) <= set(tasks)
        ),
        "the policy has strata without being stratified, or an empty stratum": (
            bool(policy.strata) and not (policy.stratified and all(policy.strata))
        ),
    }
    for message, is_true in objections.items():
        if is_true:
            raise StepMismatch(COMMITMENT_STEP, message)


CLAIM_SCALE = 100_000
"""Factor from a claimed MCC to the integer in a commitment, whose canonical JSON has no floats."""
COARSE_STEP = CLAIM_SCALE // 100
"""Claims that are all multiples of this number were rounded to 0.01."""
COARSE_SHARE_MIN = 2 / 3
"""Smallest share of cells with equal claims for which rounded claims count as a copy. Two related
models, rounded to 0.01, agree in a third of their cells."""
CLOSE_DISTANCE = CLAIM_SCALE // 200
"""Two claims that differ by less than this, 0.005 of MCC, are close. Two submissions of one method,
if an audit in float32 would accept both, have close claims in most cells."""
CLOSE_SHARE_MIN = 0.3
"""Smallest share of cells with close claims for which two models count as one method. The largest
share in the 820 pairs of public rows is 0.21, in a pair of one family. The only effect is that the
two share their draws."""
TEXT_SUFFIXES = frozenset(
    {".cfg", ".ini", ".json", ".jsonl", ".md", ".model", ".py", ".toml", ".txt", ".vocab"}
    | {".yaml", ".yml"}
)
"""Suffixes of files that have no parameters of a model, and that models of one family share."""


class MethodIdentity(NamedTuple):
    """The facts by which two commitments are about the same method, or not."""

    model_id: str
    code: str | None
    """Digest of code and options of a method without weights; None if it has weights."""
    weights: frozenset[str]
    """Digests of the files with parameters."""
    claims: Mapping[str, Sequence[int | None]]
    """By regime, the claim on each task of `tasks`, as in a commitment."""
    tasks: Sequence[str]
    """Ids of the tasks of the commitment, in its order."""
    benchmark: str
    """SHA-256 of the benchmark definition."""


def method_identity(commitment: Commitment) -> MethodIdentity:
    """Return the identity by which the method of a commitment is compared with others."""
    code = commitment.extractor
    weights = frozenset(
        sha256
        for name, sha256 in commitment.weights.files.items()
        if PurePosixPath(name).suffix.lower() not in TEXT_SUFFIXES
    )
    return MethodIdentity(
        commitment.model_id,
        None if weights else digest([code.shape or code.sha256, code.options]),
        weights,
        commitment.claims,
        commitment.tasks,
        commitment.benchmark.sha256,
    )


def same_method_reason(first: MethodIdentity, second: MethodIdentity) -> str:
    """Return why two commitments are about the same method, as a clause; "" if they are not."""
    if first.model_id == second.model_id:
        return "of the same model id"
    if first.weights & second.weights:
        return "with a file of weights in common"
    if first.code is not None and first.code == second.code:
        return "of the same code, without weights"
    if first.benchmark == second.benchmark and _have_near_claims(first, second):
        return "with nearly the same claims"
    return ""


def _have_near_claims(first: MethodIdentity, second: MethodIdentity) -> bool:
    """Return whether two methods have nearly equal claims in more cells than two models would."""
    claim_pairs = _claim_pairs(first, second)
    if len(claim_pairs) < COPY_CELLS_MIN:
        return False
    is_coarse = any(
        all(score % COARSE_STEP == 0 for score in scores)
        for scores in zip(*claim_pairs, strict=True)
    )
    if is_coarse:
        return sum(abs(a - b) < COARSE_STEP for a, b in claim_pairs) >= COARSE_SHARE_MIN * len(
            claim_pairs
        )
    distances = [abs(a - b) for a, b in claim_pairs]
    close_min = max(COPY_CELLS_MIN, CLOSE_SHARE_MIN * len(claim_pairs))
    return (
        sum(distance < NEAR_DISTANCE * CLAIM_SCALE for distance in distances)
        >= copy_cells_min(len(claim_pairs))
        or sum(distance < CLOSE_DISTANCE for distance in distances) >= close_min
    )


def _claim_pairs(first: MethodIdentity, second: MethodIdentity) -> list[tuple[int, int]]:
    """Return the two claims of each cell in both commitments, in units of 1 / `CLAIM_SCALE`."""
    claim_pairs = []
    for regime in first.claims.keys() & second.claims.keys():
        second_claims = dict(zip(second.tasks, second.claims[regime], strict=True))
        for task, claim in zip(first.tasks, first.claims[regime], strict=True):
            second_claim = second_claims.get(task)
            if claim is not None and second_claim is not None:
                claim_pairs.append((claim, second_claim))
    return claim_pairs


def claims_of(submission: Submission, regimes: Sequence[str], tasks: Sequence[str]) -> Claims:
    """Return, by regime, the claimed MCC of each task in hundred-thousandths; None if missing."""
    return {
        regime: [
            round(scores[task].MCC * CLAIM_SCALE) if task in scores else None
            for scores in [submission.results.get(regime, {})]
            for task in tasks
        ]
        for regime in regimes
    }
