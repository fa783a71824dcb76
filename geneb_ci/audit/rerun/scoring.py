"""Calls of the harness in an audit: it lists sequences without labels, then scores embeddings."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from geneb_ci.common.errors import NothingChecked
from geneb_ci.harness.process import (
    ASSUMED_CLASSES,
    NO_LIMIT_OVERRIDES,
    HarnessProcess,
    ScoringLimitOverrides,
    ScoringLimits,
    ScoringSize,
    TaskSource,
    scoring_limits,
)
from reference_harness.formats.base import parsed
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.processes import processors
from reference_harness.formats.rescored import Rescored

RESCORED_FILE = "rescored.json"
"""File of a task's folder with the scores of the rerun."""
RESCORED_BYTES_MAX = 1 << 28
"""Largest size of a file of scores: 100 tasks have about 15 MB, with many classes more."""


def read_rescored(path: Path) -> Rescored:
    """Return the scores in a file that `geneb-harness rescore` wrote.

    Raises NothingChecked, which names file and key, unless this version wrote the file.
    """
    fix = "run `geneb-harness rescore` of the same version again"
    try:
        return parsed(Rescored, read_regular(path, RESCORED_BYTES_MAX))
    except NotReadable as error:
        raise NothingChecked(f"{path}: {error.reason}", fix) from error


def write_sequences(
    tasks: Sequence[str], source: TaskSource, folder: Path, harness: HarnessProcess
) -> Path:
    """Write the distinct sequences of tasks, one per line, and return the file.

    Raises NothingChecked, with the message of the harness, when it fails.
    """
    file = folder / "sequences.txt"
    words = ["--tasks", ",".join(tasks), *source.options, "--output", str(file), "--quiet"]
    harness.call(["sequences", *words])
    return file


def write_variants(
    task: str,
    source: TaskSource,
    harness: HarnessProcess,
    seed: str,
    sequence_count: int,
    output: Path,
    *,
    reverse: bool,
    with_support: bool,
) -> None:
    """Write variants of at most `sequence_count` test, and as many training, sequences of a task.

    `reverse` adds reverse complements, `with_support` one variant of each sequence that a few-shot
    probe is fitted on. Raises NothingChecked, with the message of the harness, when it fails.
    """
    harness.call([
        "variants", "--task", task, *source.options, "--seed", seed, "--rows", str(sequence_count),
        *(["--reverse"] if reverse else []), *(["--support"] if with_support else []),
        "--output", str(output), "--quiet",
    ])  # fmt: skip


@dataclass(frozen=True)
class ScoringSettings:
    """Options with which the harness scores the embeddings of a rerun."""

    noise: str
    """Dtype whose rounding errors the jittered copies have."""
    seed: int
    """Seed of the random noise by which the jittered copies differ from the embeddings."""
    copies: int
    """Number of jittered copies."""
    jobs: int | None
    """Number of worker processes; None: one for each processor."""
    regimes: tuple[str, ...]
    """The regimes that are compared."""
    has_rounded_embeddings: bool = True
    """Whether the claims are of embeddings rounded to float16."""
    limits: ScoringLimitOverrides = NO_LIMIT_OVERRIDES
    """Limits of scoring that the user set instead of the computed ones."""
    further_files: tuple[Path, Path] | None = None
    """The file of variants and fresh sequences of the task, and the file of their embeddings."""
    other_draws: str | None = None
    """Text from which other draws of few-shot sequences follow; None: there are none."""


def scoring_limits_of(shape: ScoringSize, scoring: ScoringSettings) -> ScoringLimits:
    """Return the limits of time and memory for scoring the embeddings of one task."""
    return scoring_limits(shape, scoring.copies, scoring.jobs or processors(), scoring.limits)


def _scoring_size(embeddings: Path, classes: int) -> ScoringSize:
    """Return the size of the matrix in a file, with the number of classes of its task."""
    import numpy as np  # slow to import, and only needed here

    rows, width = 1, 1  # if it is no matrix, the harness refuses it before it fits a probe
    with contextlib.suppress(ValueError, EOFError):
        rows, width = np.load(embeddings, mmap_mode="r", allow_pickle=False).shape
    return ScoringSize(rows, width, classes)


def rescore_embeddings(
    task: str,
    source: TaskSource,
    sequences: Path,
    embeddings: Path,
    scoring: ScoringSettings,
    harness: HarnessProcess,
    classes: int = ASSUMED_CLASSES,
) -> Rescored:
    """Return the scores of embeddings; row i is the embedding of line i of `sequences`.

    `classes` is the number of classes of the task, if the benchmark has it. Raises LimitExceeded or
    ResultRefused for embeddings that cannot be scored within the limits, and NothingChecked, with
    the message of the harness, for any other failure.
    """
    output, files = embeddings.with_name(RESCORED_FILE), scoring.further_files
    words = [
        "rescore", "--tasks", task, "--regimes", ",".join(scoring.regimes), *source.options,
        "--sequences", str(sequences), "--embeddings", str(embeddings),
        "--noise", scoring.noise, "--seed", str(scoring.seed), "--copies", str(scoring.copies),
        *(["--jobs", str(scoring.jobs)] if scoring.jobs else []),
        "--rounded" if scoring.has_rounded_embeddings else "--unrounded",
        *(["--further", str(files[0]), "--further-embeddings", str(files[1])] if files else []),
        *(["--other-draws", scoring.other_draws] if scoring.other_draws is not None else []),
        "--output", str(output), "--quiet",
    ]  # fmt: skip
    harness.call(words, task, scoring_limits_of(_scoring_size(embeddings, classes), scoring))
    scores = read_rescored(output)
    if not scores.dataset.verified:
        raise NothingChecked(
            "the task data have no manifest of the benchmark's dataset revision",
            "download them with `geneb-ci data pull`, which writes the manifest",
        )
    return scores


def merged_rescorings(rescorings: Sequence[Rescored]) -> Rescored:
    """Return the scores of several calls of the harness as one object, with the sum of seconds.

    Raises NothingChecked when they are of another benchmark, harness, noise or packages.
    """
    first = rescorings[0]
    for rescoring in rescorings:
        for member in ("benchmark", "dataset", "harness", "noise", "packages"):
            if getattr(rescoring, member) != getattr(first, member):
                raise NothingChecked(
                    f"tasks were scored with different {member}: "
                    f"{', '.join(first.tasks)} and {', '.join(rescoring.tasks)}",
                    f"remove {RESCORED_FILE} of these tasks from the folder of the audit, and run "
                    "the command again",
                )
    libraries = [library for rescoring in rescorings for library in rescoring.libraries]
    return first.model_copy(
        update={
            "tasks": {
                name: task for rescoring in rescorings for name, task in rescoring.tasks.items()
            },
            "libraries": [
                library
                for index, library in enumerate(libraries)
                if library not in libraries[:index]
            ],
            "seconds": sum(rescoring.seconds for rescoring in rescorings),
        }
    )
