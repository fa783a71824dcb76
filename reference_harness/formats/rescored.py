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
    """Scores of the copy, one per seed."""
    flips: Annotated[list[Count], Field(min_length=1)]
    """Number of predictions that differ from those of the original embeddings, one per seed."""


def most_copies_change(copies: Sequence[JitteredCopy]) -> bool:
    """Whether more than half of the copies changed a prediction."""
    return 2 * sum(any(copy.flips) for copy in copies) > len(copies)


class NoiseRef(StrictModel):
    """Noise added to the copies; the formula is in `reference_harness/embedding/noise.py`."""

    dtype: Dtype
    """Type whose rounding the noise imitates."""
    units: Annotated[float, Field(gt=0)]
    """Standard deviation in units of roundoff of the dtype."""
    stress: Annotated[float, Field(gt=1)]
    """Factor by which the noise of stressed copies is larger."""
    seed: Count
    """Seed of the generator of the noise."""
    copies: Annotated[int, Field(ge=1)]
    """Number of plain copies of a task in the full regime; few-shot regimes have twice as many."""


class RescoredRegime(StrictModel):
    """The scores of one task in one regime, and their noise."""

    base: Regime
    """Scores of the original embeddings, as in a run record."""
    plain: Annotated[list[JitteredCopy], Field(min_length=1)]
    """Copies with the noise of the dtype, scored like scores of record."""
    stressed: list[JitteredCopy]
    """Copies with the noise times `stress`, scored like scores of record.

    Empty if most plain copies changed a prediction, as their spread is then sufficient.
    """
    halts: list[list[Scores]]
    """Scores at every possible stopping point of a fit, one list per fit.

    See `reference_harness/probe/stopping_points.py`. One list if no sequences are drawn. A
    list is empty if the fit has too many steps.
    """


class ChangedDecisions(StrictModel):
    """Numbers of decisions that differ between published sequences and their variants."""

    rows: Count
    """Number of variants."""
    worse: Count
    """Right for the published sequence, wrong for the variant."""
    better: Count
    """Wrong for the published sequence, right for the variant."""


class LabelledDecisions(StrictModel):
    """Decisions on sequences with known labels."""

    rows: Annotated[int, Field(ge=1)]
    """Number of sequences."""
    right: Count
    """Number of sequences whose predicted label is the true one."""
    MCC: Annotated[float, Field(ge=-1, le=1)]
    """Matthews correlation coefficient of the predicted and the true labels."""


class ProbeDecisions(StrictModel):
    """Decisions of one kind of probe in one regime, summed over its fits."""

    fits: Annotated[int, Field(ge=1)]
    """Number of fits: one per seed if sequences are drawn, else 1.

    In all numbers, a sequence counts once per fit.
    """
    public: LabelledDecisions
    """Decisions on the published test sequences; MCC is the mean over the fits."""
    kinds: dict[str, ChangedDecisions]
    """Changed decisions between test sequences and their variants, by kind of variant."""
    fresh: LabelledDecisions | None
    """Decisions on fresh labelled sequences; null if there are none."""


Correlation = Annotated[float, Field(ge=-1, le=1)]
"""A Matthews correlation coefficient, -1 to 1."""
OTHER_DRAWS = 20
"""Number of other draws of a few-shot regime. The gain of five published fits above their mean has
a standard error 12 % larger than above the mean of any number of draws."""


TEST_TIMES = 7
"""Minimum number of test sequences of a class for each that a few-shot regime draws of it. Then the
mean of 20 draws of one test set has at most 1/20 + 1/7 of the variance of one draw: a little less
than the mean of five independent draws."""


class FewShotScores(StrictModel):
    """MCC on the test sequences of the probes of a few-shot regime, one for each fit."""

    published: Annotated[list[Correlation], Field(min_length=1)]
    """Fitted on the sequences that the seeds of the benchmark draw."""
    others: Annotated[list[Correlation], Field(min_length=1)]
    """Fitted on sequences that other seeds draw."""
    tests: list[Correlation] = Field(default=[])
    """Fitted on test sequences that the other seeds draw, and scored on all other test sequences.

    Empty if a class has fewer than `TEST_TIMES` test sequences for each that is drawn.
    """


class Decisions(StrictModel):
    """Predicted labels of a task's probes for test sequences, variants and fresh sequences."""

    public: LabelledDecisions
    """Decisions on the published test sequences."""
    kinds: dict[str, ChangedDecisions]
    """Changed decisions between test sequences and their variants, by kind of variant."""
    training: ChangedDecisions | None
    """Changed decisions on the test sequences between two probes; null without training variants.

    One probe is fitted on some training sequences, one on their variants.
    """
    fresh: LabelledDecisions | None
    """Decisions on fresh labelled sequences; null if there are none."""
    others: dict[str, ProbeDecisions]
    """Decisions of the other claimed probes, such as `10shot, record`.

    Another probe may rely on other letters.
    """
    few_shot: dict[str, FewShotScores]
    """Scores of few-shot probes by regime."""
    varied: dict[str, list[Correlation]]
    """MCC of the published few-shot probes, fitted on variants of their sequences, by regime."""


class RescoredTask(StrictModel):
    """The rescoring of one task."""

    data_sha256: Hex64
    """SHA-256 of the task data, as in a run record."""
    train: dict[str, Count]
    """Number of training sequences by label."""
    test: dict[str, Count]
    """Number of test sequences by label."""
    distinct_sequences: Count
    """Number of different sequences of the task."""
    regimes: Annotated[dict[str, RescoredRegime], Field(min_length=1)]
    """The scores of each regime, by its name."""
    decisions: Decisions | None
    """Null if no further sequences were given."""


class Rescored(StrictModel):
    """Scores of embeddings, and how much numerical noise changes them."""

    schema_version: Literal["1.0"]
    benchmark: BenchmarkRef
    """The benchmark definition that was used."""
    dataset: DatasetRef
    """The task data that was used."""
    harness: HarnessRef
    """The harness that scored the embeddings."""
    embeddings_sha256: Hex64
    """Digest of the file of embeddings."""
    sequences_sha256: Hex64
    """Digest of the file of sequences."""
    dim: Annotated[int, Field(ge=1)]
    """Width of the embeddings."""
    feature_dtype: Literal["float16", "float32", "float64"]
    """Type of the file of embeddings."""
    noise: NoiseRef
    """The noise that was added to copies of the embeddings."""
    seeds: Annotated[list[int], Field(min_length=1)]
    """Seeds of the few-shot draws."""
    few_shot_k: dict[str, int]
    """Number of training sequences per class of each few-shot regime, by its name."""
    libraries: list[LibraryRef]
    """Numerical libraries of the processes that fitted probes."""
    packages: dict[str, str]
    """Version of each package, by name."""
    scorer: ScorerRef | None = None
    """The scorer of record; null if the features were not rounded, like the claim's."""
    seconds: Seconds
    """Time of the whole computation."""
    tasks: Annotated[dict[str, RescoredTask], Field(min_length=1)]
    """The rescoring of each task, by its id."""
