"""The result of an audit's rescoring; `schemas/rescored.schema.json` is generated from it."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from .base import Count, Hex64, Scores, Seconds, StrictModel
from .run_record import DatasetRef, HarnessRef, LibraryRef, PerSeed, Regime
from .scorer import ScorerRef
from .submission import BenchmarkRef
from .submission_terms import Dtype


class JitteredCopy(StrictModel):
    """Scores of one jittered copy of the embeddings."""

    per_seed: PerSeed
    flips: Annotated[list[Count], Field(min_length=1)]
    """Number of predictions that differ from those of the original embeddings, one per seed."""


def most_copies_change(copies: Sequence[JitteredCopy]) -> bool:
    """Whether more than half of the copies changed a prediction."""
    return 2 * sum(any(copy.flips) for copy in copies) > len(copies)


class NoiseRef(StrictModel):
    """Noise of the copies; `reference_harness/noise.py` has the formula."""

    dtype: Dtype
    units: Annotated[float, Field(gt=0)]
    """Deviation in units of roundoff of the dtype."""
    stress: Annotated[float, Field(gt=1)]
    """Multiple of it in stressed copies."""
    seed: Count
    copies: Annotated[int, Field(ge=1)]
    """Plain copies of a task in the full regime; few-shot regimes have twice as many."""


class RescoredRegime(StrictModel):
    """One task in one regime."""

    base: Regime
    """Scores of the original embeddings, as in a run record."""
    plain: Annotated[list[JitteredCopy], Field(min_length=1)]
    """Copies at the noise of the dtype: score of record."""
    stressed: list[JitteredCopy]
    """Copies at a multiple of the noise: score of record. Empty if most plain copies
    changed, because their spread then suffices."""
    halts: list[list[Scores]]
    """Scores at every possible stopping point of a fit (see `halts.py`), one list per fit; a single
    list without sampling. A list is empty if the fit has too many steps."""


class ChangedDecisions(StrictModel):
    """Decisions that changed between sequences as published and their variants."""

    rows: Count
    worse: Count
    """Right as published, wrong as a variant."""
    better: Count
    """Wrong as published, right as a variant."""


class LabelledDecisions(StrictModel):
    """Decisions on sequences whose labels are known."""

    rows: Annotated[int, Field(ge=1)]
    right: Count
    MCC: Annotated[float, Field(ge=-1, le=1)]


class ProbeDecisions(StrictModel):
    """Decisions of one kind of probe in one regime, summed over its fits."""

    fits: Annotated[int, Field(ge=1)]
    """One a seed where sequences are drawn, else 1; each number of sequences counts one once a
    fit."""
    public: LabelledDecisions
    """The published test sequences; MCC is the mean over the fits."""
    kinds: dict[str, ChangedDecisions]
    fresh: LabelledDecisions | None


Correlation = Annotated[float, Field(ge=-1, le=1)]
OTHER_DRAWS = 20
"""Number of other draws of a few-shot regime. The gain of five published fits above their mean has
a standard error 12 % larger than above the mean of any number of draws."""


class FewShotScores(StrictModel):
    """MCC on the test sequences of the probes of a few-shot regime, one for each fit."""

    published: Annotated[list[Correlation], Field(min_length=1)]
    """Fitted on the sequences that the seeds of the benchmark draw."""
    others: Annotated[list[Correlation], Field(min_length=1)]
    """Fitted on sequences that other seeds draw."""


class Decisions(StrictModel):
    """Decisions of the probe of the full regime on sequences beside those of a task."""

    public: LabelledDecisions
    """The published test sequences."""
    kinds: dict[str, ChangedDecisions]
    """Test sequences against their variants, by kind of variant."""
    training: ChangedDecisions | None
    """All test sequences, by a probe fitted on some training sequences and by one fitted on their
    variants; null without variants of training sequences."""
    fresh: LabelledDecisions | None
    """Fresh labelled sequences; null where there are none."""
    others: dict[str, ProbeDecisions]
    """The same by the other probes whose scores a claim has, such as `10shot, record`: what one of
    them ignores, another may live on."""
    few_shot: dict[str, FewShotScores]
    """By regime."""
    varied: dict[str, list[Correlation]]
    """MCC of the published few-shot probes, fitted on variants of their sequences."""


class RescoredTask(StrictModel):
    """One task."""

    data_sha256: Hex64
    train: dict[str, Count]
    test: dict[str, Count]
    distinct_sequences: Count
    regimes: Annotated[dict[str, RescoredRegime], Field(min_length=1)]
    decisions: Decisions | None
    """Null when no further sequences were given."""


class Rescored(StrictModel):
    """Scores of embeddings, and how much numeric noise changes them."""

    schema_version: Literal["1.0"]
    benchmark: BenchmarkRef
    dataset: DatasetRef
    harness: HarnessRef
    embeddings_sha256: Hex64
    """Digest of the file of embeddings."""
    sequences_sha256: Hex64
    """Digest of the file of sequences."""
    dim: Annotated[int, Field(ge=1)]
    feature_dtype: Literal["float16", "float32", "float64"]
    noise: NoiseRef
    seeds: Annotated[list[int], Field(min_length=1)]
    few_shot_k: dict[str, int]
    libraries: list[LibraryRef]
    packages: dict[str, str]
    scorer: ScorerRef | None = None
    """The scorer of record; null where the features were not rounded, as the claim's were not."""
    seconds: Seconds
    tasks: Annotated[dict[str, RescoredTask], Field(min_length=1)]
