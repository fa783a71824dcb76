"""Identity of what is audited: code, weights and claims, whatever the model is called.

A draw follows what it was made for. Two commitments are about the same method if they have the same
model id, share a file of weights, share code and options of a method without weights, or make
nearly the same claims.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from geneb_ci.audit.canonical import digest
from geneb_ci.audit.commitment import Claims, Commitment
from geneb_ci.statistics.neighbours import COUNT_MIN, NEAR, needed
from geneb_ci.submission.models import Submission

SCALE = 100_000
"""Claims are kept as whole hundred-thousandths: canonical JSON here has no floats, and a claim that
is near another differs from it by less than a hundred of them."""
COARSE = SCALE // 100
"""Scores that are all multiples of this are rounded to 0.01."""
COARSE_SHARE = 2 / 3
"""Share of equal cells from which rounded claims count as a copy: two related models, rounded to
0.01, agree in a third of theirs."""
TEXT_FILES = frozenset(
    {".cfg", ".ini", ".json", ".jsonl", ".md", ".model", ".py", ".toml", ".txt", ".vocab"}
    | {".yaml", ".yml"}
)
"""Files beside the weights that models of one family share: configuration, tokenizer, code."""


class Identity(NamedTuple):
    """What a commitment is about, in the form in which two are compared."""

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


def identity_digest(commitment: Commitment) -> str:
    """Return one digest of code, options and weights, as an entry of the log shows it."""
    code, found = commitment.extractor, identity_of(commitment)
    value = {"code": code.shape or code.sha256, "options": code.options}
    return digest(value | {"weights": sorted(found.weights)})


def why_same(one: Identity, other: Identity) -> str:
    """Return why two commitments are about the same method, as a clause; "" if they are not."""
    if one.model_id == other.model_id:
        return "of the same model id"
    if one.weights & other.weights:
        return "with a file of weights in common"
    if one.code is not None and one.code == other.code:
        return "of the same code, without weights"
    if one.benchmark == other.benchmark and _near(one, other):
        return "with nearly the same claims"
    return ""


def _near(one: Identity, other: Identity) -> bool:
    """Whether the claims agree in more cells than those of two models do."""
    both = _common(one, other)
    if len(both) < COUNT_MIN:
        return False
    is_coarse = any(
        all(score % COARSE == 0 for score in scores) for scores in zip(*both, strict=True)
    )
    if is_coarse:
        return sum(abs(a - b) < COARSE for a, b in both) >= COARSE_SHARE * len(both)
    return sum(abs(a - b) < NEAR * SCALE for a, b in both) >= needed(len(both))


def _common(one: Identity, other: Identity) -> list[tuple[int, int]]:
    """Return both scores of each cell that both claim."""
    places = {task: number for number, task in enumerate(other.tasks)}
    same = list(one.tasks) == list(other.tasks)
    found = []
    for regime in one.claims.keys() & other.claims.keys():
        mine, theirs = one.claims[regime], other.claims[regime]
        if not same:
            kept = [number for number, task in enumerate(one.tasks) if task in places]
            theirs = [theirs[places[one.tasks[number]]] for number in kept]
            mine = [mine[number] for number in kept]
        pairs = zip(mine, theirs, strict=True)
        found += [(a, b) for a, b in pairs if a is not None and b is not None]
    return found


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
