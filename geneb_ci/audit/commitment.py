"""Commitments: what is fixed before the draw, and which of them are about one method.

A draw follows what it was made for. Two commitments are about the same method if they have the same
model id, share a file of weights, share code and options of a method without weights, or make
nearly the same claims.
"""

import operator
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from geneb_ci.audit.canonical import COMMITMENT, digest
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.models.entry import Kind
from geneb_ci.statistics.neighbours import COUNT_MIN, NEAR, near_cells_of_copy
from reference_harness.formats.base import Hex40, Hex64, Name, Positive, StrictModel
from reference_harness.formats.submission import Submission

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
            raise PydanticCustomError("claims", "claims must have one score for each task")
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


SCALE = 100_000
"""Claims are kept as whole hundred-thousandths: canonical JSON here has no floats, and a claim that
is near another differs from it by less than a hundred of them."""
COARSE = SCALE // 100
"""Scores that are all multiples of this are rounded to 0.01."""
COARSE_SHARE = 2 / 3
"""Share of equal cells from which rounded claims count as a copy: two related models, rounded to
0.01, agree in a third of theirs."""
CLOSE = SCALE // 200
"""0.005: two names of one method, each with claims that differ from the truth by what an audit in
float32 allows, differ by less in most cells."""
CLOSE_SHARE = 0.3
"""Share of close cells from which claims are of one method. The maximum of the 820 pairs of public
rows is 0.21, of models of one family; a pair above it only shares its draws."""
TEXT_FILES = frozenset(
    {".cfg", ".ini", ".json", ".jsonl", ".md", ".model", ".py", ".toml", ".txt", ".vocab"}
    | {".yaml", ".yml"}
)
"""Files beside the weights that models of one family share: configuration, tokenizer, code."""


class Identity(NamedTuple):
    """The subject of a commitment, in the form in which two are compared."""

    model_id: str
    code: str | None
    """Digest of code and options, for a method without weights; its weights name any other."""
    weights: frozenset[str]
    """Digests of the files that hold parameters."""
    claims: Mapping[str, Sequence[int | None]]
    """Regime to a number for each task of `tasks`."""
    tasks: Sequence[str]
    benchmark: str


def identity_of(commitment: Commitment) -> Identity:
    """Return the identity of a commitment."""
    code = commitment.extractor
    weights = frozenset(
        sha256
        for name, sha256 in commitment.weights.files.items()
        if PurePosixPath(name).suffix.lower() not in TEXT_FILES
    )
    return Identity(
        commitment.model_id,
        None if weights else digest([code.shape or code.sha256, code.options]),
        weights,
        commitment.claims,
        commitment.tasks,
        commitment.benchmark.sha256,
    )


def same_method_reason(first: Identity, second: Identity) -> str:
    """Return why two commitments are about the same method, as a clause; "" if they are not."""
    if first.model_id == second.model_id:
        return "of the same model id"
    if first.weights & second.weights:
        return "with a file of weights in common"
    if first.code is not None and first.code == second.code:
        return "of the same code, without weights"
    if first.benchmark == second.benchmark and _near(first, second):
        return "with nearly the same claims"
    return ""


def _near(first: Identity, second: Identity) -> bool:
    """Whether the claims agree in more cells than those of two models do."""
    common = _common(first, second)
    if len(common) < COUNT_MIN:
        return False
    is_coarse = any(
        all(score % COARSE == 0 for score in scores) for scores in zip(*common, strict=True)
    )
    if is_coarse:
        return sum(abs(a - b) < COARSE for a, b in common) >= COARSE_SHARE * len(common)
    apart = [abs(a - b) for a, b in common]
    close = max(COUNT_MIN, CLOSE_SHARE * len(common))
    return (
        sum(distance < NEAR * SCALE for distance in apart) >= near_cells_of_copy(len(common))
        or sum(distance < CLOSE for distance in apart) >= close
    )


def _common(first: Identity, second: Identity) -> list[tuple[int, int]]:
    """Return both scores of each cell that both claim."""
    places = {task: number for number, task in enumerate(second.tasks)}
    same = list(first.tasks) == list(second.tasks)
    pairs_claimed = []
    for regime in first.claims.keys() & second.claims.keys():
        first_scores, second_scores = first.claims[regime], second.claims[regime]
        if not same:
            shared = [number for number, task in enumerate(first.tasks) if task in places]
            second_scores = [second_scores[places[first.tasks[number]]] for number in shared]
            first_scores = [first_scores[number] for number in shared]
        pairs = zip(first_scores, second_scores, strict=True)
        pairs_claimed += [(a, b) for a, b in pairs if a is not None and b is not None]
    return pairs_claimed


def claims_of(submission: Submission, regimes: Sequence[str], tasks: Sequence[str]) -> Claims:
    """Return the MCC of each task in each regime, as a commitment keeps it: None where missing."""
    return {
        regime: [
            round(scores[task].MCC * SCALE) if task in scores else None
            for scores in [submission.results.get(regime, {})]
            for task in tasks
        ]
        for regime in regimes
    }
