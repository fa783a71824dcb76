"""The result of probing receipts; `schemas/probes.schema.json` is generated from it."""

from typing import Annotated, Literal

from pydantic import Field

from reference_harness.formats.base import Count, Hex64, MinusOneToOne, Scores, Seconds, StrictModel
from reference_harness.formats.run_record import DatasetRef, HarnessRef, LibraryRef, PerSeed
from reference_harness.formats.submission import BenchmarkRef


class ProbeScores(StrictModel):
    """Scores of one task of one receipt in one regime under one kind of probe."""

    scores: Scores
    per_seed: PerSeed
    seconds: Seconds


class ProbedReceipt(StrictModel):
    """A receipt and its scores by kind of probe, regime and task."""

    root: Hex64
    """Merkle root of the receipt."""
    dim: Annotated[int, Field(ge=1)]
    """Width of the embeddings."""
    scores: dict[str, dict[str, dict[str, ProbeScores]]]


class Standing(StrictModel):
    """Mean score and rank of a receipt in one regime under one kind of probe."""

    macro: MinusOneToOne
    """Mean over the categories of the mean MCC of their tasks."""
    rank: Annotated[int, Field(ge=1)]
    """One more than the number of receipts with a higher macro MCC."""


class Agreement(StrictModel):
    """How similar the order of the receipts is under two kinds of probe."""

    first: str
    """Kind of probe."""
    second: str
    """Another kind of probe."""
    tau: MinusOneToOne | None
    """Kendall's tau-b; null if undefined: for one receipt, or if all scores are equal."""
    swapped: Count
    """Number of pairs of receipts in opposite order."""
    pairs: Count
    """Number of pairs of receipts."""


class Probes(StrictModel):
    """Scores of receipts under several kinds of probe."""

    schema_version: Literal["1.0"] = "1.0"
    benchmark: BenchmarkRef
    dataset: DatasetRef
    harness: HarnessRef
    packages: dict[str, str]
    libraries: list[LibraryRef]
    kinds: Annotated[list[str], Field(min_length=1)]
    seeds: Annotated[list[int], Field(min_length=1)]
    tasks: Annotated[list[str], Field(min_length=1)]
    receipts: Annotated[dict[str, ProbedReceipt], Field(min_length=1)]
    """Receipts by model id."""
    standings: dict[str, dict[str, dict[str, Standing]]]
    """Standings by regime, kind of probe and model id."""
    agreement: dict[str, list[Agreement]]
    """Agreement of each pair of kinds, by regime."""
    seconds: Seconds
