"""Compute the cells of a receipt by the harness, and compare them with the claims."""

import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

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
from geneb_ci.receipt.source import ReceiptFiles, size_text
from reference_harness.formats.base import Model, Scores, parsed
from reference_harness.formats.benchmark import METRICS, Benchmark
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.receipt_cells import EqualEmbeddings, ReceiptCells
from reference_harness.formats.run_record import Canonical, Regime
from reference_harness.formats.submission import (
    CanonicalEvidence,
    CellEvidenceV12,
    EmbeddingReceipt,
    SubmissionV12,
)
from reference_harness.formats.text import Say, plural, silent

OPTIMUM_SECONDS_PER_COORDINATE = 0.12e-6
"""Seconds per coordinate of the training embeddings to fit the canonical probe, on one core, with
1,900 to 32,000 embeddings of 256 to 4,096 columns (`make bench-harness`): 7 to 100 ns with two
classes, 120 to 360 ns with three to six. This is the slower end for two classes, plus a fifth."""
RECORD_SECONDS_PER_COORDINATE = 0.5e-6
"""Seconds per coordinate of the training embeddings to fit the probe of record: 140 to 1,000 steps
of 0.7 ns with two classes, of 1.8 ns with five, measured on one core with 4,000 x 1,024 and
24,000 x 768 coordinates."""
HASH_SECONDS_PER_EMBEDDING, HASH_SECONDS_PER_BYTE = 2e-6, 2e-9
"""Seconds per embedding and per byte to verify a file, measured at widths of 256 to 4,096."""
TASK_SECONDS = 1.5
"""Seconds for each task, whatever its size, to read sequences and fit ten few-shot probes."""
START_SECONDS = 5
"""Seconds to start the harness."""
NETWORK_BYTES_PER_SECOND = 12.5e6
"""Assumed bytes per second of the network: 100 Mbit/s."""


class ReceiptCost(NamedTuple):
    """The estimated cost of computing the cells of a receipt."""

    tasks: int
    """Number of tasks."""
    embeddings: int
    """Number of embeddings."""
    width: int
    """Number of columns of an embedding."""
    total_bytes: int
    """Size of all files of the receipt, in bytes."""
    missing_bytes: int
    """Number of bytes to download."""
    seconds: float
    """Seconds of one core, without the network."""

    @property
    def text(self) -> str:
        """The cost as one line of text."""
        line = f"{plural(self.tasks, 'task')}, {self.embeddings:,} embeddings of {self.width:,} "
        line += "numbers, "
        line += f"{size_text(self.total_bytes)}; about {duration_text(self.seconds)} of one core"
        if not self.missing_bytes:
            return line
        return f"{line}; {network_text(self.missing_bytes, 'fetch')}"


def network_text(byte_count: int, purpose: str) -> str:
    """Return a number of bytes and their transfer time as text, such as "2 MB to fetch: 1 s"."""
    time_text = (
        f": {duration_text(byte_count / NETWORK_BYTES_PER_SECOND)} at 100 Mbit/s"
        if byte_count
        else ""
    )
    return f"{size_text(byte_count)} to {purpose}{time_text}"


def cost_of(
    receipt: EmbeddingReceipt,
    tasks: Iterable[str],
    bytes_to_fetch: int,
    *,
    with_canonical: bool = True,
) -> ReceiptCost:
    """Return the cost of recomputing the cells of these tasks of a receipt.

    `bytes_to_fetch` is the number of bytes to download. With `with_canonical`, canonical probes are
    fitted as well, as for an audit and for canonical claims.
    """
    receipt_tasks = [receipt.tasks[task] for task in tasks]
    embeddings, total_bytes = (
        sum(entry.train + entry.test for entry in receipt_tasks),
        sum(entry.bytes for entry in receipt_tasks),
    )
    training_numbers = sum(entry.train for entry in receipt_tasks) * receipt.dim
    probe_seconds = (
        RECORD_SECONDS_PER_COORDINATE + with_canonical * OPTIMUM_SECONDS_PER_COORDINATE
    ) * training_numbers
    reading_seconds = HASH_SECONDS_PER_EMBEDDING * embeddings + HASH_SECONDS_PER_BYTE * total_bytes
    seconds = START_SECONDS + TASK_SECONDS * len(receipt_tasks) + probe_seconds + reading_seconds
    return ReceiptCost(
        len(receipt_tasks), embeddings, receipt.dim, total_bytes, bytes_to_fetch, seconds
    )


SECONDS_BETWEEN_LINES = 5.0
"""Seconds between two lines of progress."""


class RemainingTime:
    """Estimate of the remaining time, from the elapsed time and the finished share of the work."""

    def __init__(
        self,
        total: float,
        seconds_between_lines: float = SECONDS_BETWEEN_LINES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the clock; `total` is the cost of all work, in any unit."""
        self._total, self._seconds_between_lines, self._clock = total, seconds_between_lines, clock
        self._start = self._reported = clock()

    def text(self, finished_cost: float) -> str:
        """Return a text such as ", about 40 s left" after a part of the cost; "" after none."""
        if not finished_cost:
            return ""
        seconds_left = (self._clock() - self._start) * (self._total - finished_cost) / finished_cost
        return f", about {duration_text(seconds_left)} left"

    def is_due(self) -> bool:
        """Whether a line of progress is due; if so, the time until the next line starts again."""
        now = self._clock()
        is_due = now - self._reported >= self._seconds_between_lines
        self._reported = now if is_due else self._reported
        return is_due


def duration_text(seconds: float) -> str:
    """Return a duration as text, in seconds, minutes or hours."""
    if seconds < 90:  # noqa: PLR2004 (one and a half minutes)
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"  # noqa: PLR2004


CELLS_FILE_BYTES_MAX = 1 << 28
"""Largest file of recomputed cells that is read, in bytes: confusion matrices take most of it."""
WORKERS = 1
"""Number of tasks that are scored at a time, which limits the memory."""


class CellDifference(NamedTuple):
    """A part of a cell, such as a score, whose claim differs from the recomputed value."""

    regime: str
    task: str
    part_name: str
    """Name of the part: a score, a matrix, the digest of the predictions."""
    claimed: str | None
    """None if the cell is not claimed."""
    computed: str

    @property
    def is_unclaimed(self) -> bool:
        """Whether the cell is not claimed, which is no error."""
        return self.claimed is None

    @property
    def text(self) -> str:
        """The difference as a sentence."""
        where = f"{self.regime} {self.task}: {self.part_name}"
        if self.claimed is None:
            return f"{where} is not claimed; the receipt gives {self.computed}"
        return f"{where} is claimed as {self.claimed}; the receipt gives {self.computed}"


def recomputed_cells(
    submission_path: Path,
    receipt: EmbeddingReceipt,
    files: ReceiptFiles,
    source: TaskSource,
    harness: HarnessProcess,
    tasks: Sequence[str],
    *,
    benchmark: Benchmark | None = None,
    options: ScoringLimitOverrides = NO_LIMIT_OVERRIDES,
    say: Say = silent,
    strata_folder: Path | None = None,
    labels_folder: Path | None = None,
    other_draws: str | None = None,
    on_file: Callable[[str, Path], None] = lambda _task, _file: None,
    kept_files: Collection[str] = (),
) -> ReceiptCells:
    """Return every cell of these tasks, and the equal sequences that have unequal embeddings.

    Canonical cells are computed if the submission claims some. `strata_folder` gets the files from
    which embeddings are drawn, `labels_folder` the labels of the sequences. `other_draws` is a text
    from which other few-shot samples follow, whose probes are scored, too. After the cells of a
    task, `on_file` is called with its id and its file; then the file is released, except for tasks
    in `kept_files`. Raises what `ReceiptFiles.file` raises; LimitExceeded or ResultRefused for
    embeddings that cannot be scored within the limits; NothingChecked, with the message of the
    harness, for other failures.
    """
    task_cells: list[ReceiptCells] = []
    with tempfile.TemporaryDirectory(prefix="geneb-ci-cells-") as folder:
        digests, output = Path(folder) / "digests", Path(folder) / "cells.json"
        costs = [cost_of(receipt, [task], 0).seconds - START_SECONDS for task in tasks]
        remaining = RemainingTime(sum(costs))
        for number, task in enumerate(tasks):
            time_left = remaining.text(sum(costs[:number]))
            say(f"task {number + 1} of {len(tasks)}: {task}{time_left}")
            path = files.file(task)
            arguments = [
                "receipt-cells", "--submission", str(submission_path),
                "--receipt", str(path.parent), "--tasks", task, *source.options,
                "--digests", str(digests), "--jobs", str(WORKERS),
                *(["--strata", str(strata_folder)] if strata_folder is not None else []),
                *(["--labels", str(labels_folder)] if labels_folder is not None else []),
                *(["--other-draws", other_draws] if other_draws is not None else []),
                "--output", str(output), "--quiet",
            ]  # fmt: skip
            harness.call(arguments, task, task_scoring_limits(receipt, task, benchmark, options))
            task_cells.append(harness_answer(output, ReceiptCells))
            _require_verified(task_cells[-1])
            on_file(task, path)
            if task not in kept_files:
                files.release(task)
        harness.call([
            "receipt-equal", "--submission", str(submission_path), "--digests", str(digests),
            "--tasks", ",".join(tasks), "--output", str(output), "--quiet",
        ])  # fmt: skip
        return _merged_cells(task_cells, harness_answer(output, EqualEmbeddings))


def task_scoring_limits(
    receipt: EmbeddingReceipt,
    task: str,
    benchmark: Benchmark | None,
    options: ScoringLimitOverrides,
) -> ScoringLimits:
    """Return the limits of time and memory for scoring one task of a receipt."""
    sizes = receipt.tasks[task]
    task_of_benchmark = benchmark.by_id.get(task) if benchmark is not None else None
    counts = task_of_benchmark.test_class_counts if task_of_benchmark is not None else None
    shape = ScoringSize(
        sizes.train + sizes.test, receipt.dim, len(counts) if counts else ASSUMED_CLASSES
    )
    return scoring_limits(shape, 0, WORKERS, options)


def _require_verified(cells: ReceiptCells) -> None:
    """Raise NothingChecked unless the task data are those of the pinned dataset revision."""
    if not cells.dataset.verified:
        raise NothingChecked(
            "the task data have no manifest of the benchmark's dataset revision",
            "download them with `geneb-ci data pull`, which writes the manifest",
        )


def harness_answer(path: Path, model: type[Model], limit: int = CELLS_FILE_BYTES_MAX) -> Model:
    """Return a file that the harness wrote, parsed as `model`, of at most `limit` bytes.

    Raises NothingChecked, which names the file and the wrong key.
    """
    fix = "install geneb-ci again, so that toolkit and harness are of the same version"
    try:
        return parsed(model, read_regular(path, limit))
    except NotReadable as error:
        raise NothingChecked(f"{path.name}: {error.reason}", fix) from error


def _merged_cells(task_cells: list[ReceiptCells], equal: EqualEmbeddings) -> ReceiptCells:
    """Return the cells of several tasks, computed by one process, as one object."""
    libraries = [library for cells in task_cells for library in cells.libraries]
    return task_cells[0].model_copy(
        update={
            "tasks": {name: task for cells in task_cells for name, task in cells.tasks.items()},
            "libraries": [
                library
                for index, library in enumerate(libraries)
                if library not in libraries[:index]
            ],
            "unequal": equal.unequal,
            "seconds": sum(cells.seconds for cells in task_cells),
        }
    )


def differences_from_claims(submission: SubmissionV12, cells: ReceiptCells) -> list[CellDifference]:
    """Return the claims that differ from the recomputed cells, and the cells without a claim.

    Scores of record are compared if `is_record_comparable` is true, canonical ones if claimed.
    """
    compares_record = is_record_comparable(submission, cells)
    cell_differences = []
    for task, regime in computed_cells(cells):
        scored = cells.tasks[task]
        evidence = submission.evidence.get(regime, {}).get(task)
        canonical_claim = evidence.canonical if evidence is not None else None
        record_claim = claim_of_record(submission, regime, task)
        recorded = (scored.record or {}).get(regime)
        parts: list[PartDifference] | None = None
        if canonical_claim is not None and regime in scored.regimes:
            parts = _differing_canonical_parts(canonical_claim, scored.regimes[regime])
        if compares_record and recorded is not None and record_claim is not None:
            parts = [*(parts or ()), *_differing_parts_of_record(*record_claim, recorded)]
        if parts is None:
            parts = [
                _part_without_claim(recorded if recorded is not None else scored.regimes[regime])
            ]
        cell_differences += [CellDifference(regime, task, *part) for part in parts]
    return cell_differences


def computed_cells(cells: ReceiptCells) -> Iterator[tuple[str, str]]:
    """Yield task and regime of each computed cell."""
    for task, scored in cells.tasks.items():
        for regime in dict.fromkeys([*(scored.record or ()), *scored.regimes]):
            yield task, regime


def claims_canonical_scores(submission: SubmissionV12) -> bool:
    """Whether a submission claims canonical scores, as earlier runs do."""
    return any(
        cell.canonical is not None
        for tasks in submission.evidence.values()
        for cell in tasks.values()
    )


def is_record_comparable(submission: SubmissionV12, cells: ReceiptCells) -> bool:
    """Whether the scorer that the run names also recomputed the scores of record.

    Only then can they be compared with the scores on the board.
    """
    claimed, computed = submission.run.scorer, cells.scorer
    digest = claimed.digest if claimed is not None else None
    return digest is not None and computed is not None and digest == computed.digest


def claim_of_record(
    submission: SubmissionV12, regime: str, task: str
) -> tuple[Scores, CellEvidenceV12] | None:
    """Return a cell's claimed scores of record and their evidence; None if either is missing."""
    scores = submission.results.get(regime, {}).get(task)
    evidence = submission.evidence.get(regime, {}).get(task)
    return (scores, evidence) if scores is not None and evidence is not None else None


PartDifference = tuple[str, str | None, str]
"""Name of a part of a cell, its claimed value (None if not claimed) and its computed value."""
DIGEST_DIGITS_SHOWN = 16
"""Number of hex digits of a digest in a difference."""


def _part_without_claim(cell: Canonical | Regime) -> PartDifference:
    """Return the difference of a whole cell that the submission does not claim."""
    return "the cell", None, f"MCC {cell.scores.MCC:.4f}"


def _differing_canonical_parts(claim: CanonicalEvidence, cell: Canonical) -> list[PartDifference]:
    """Return the parts of a cell's canonical scores that differ from the claims."""
    return [
        *_differing_scores(claim, cell.scores),
        *_differing_matrices(claim.confusion, cell.confusion),
        *_differing_digests(claim.predictions_sha256, cell.predictions_sha256),
    ]


def _differing_parts_of_record(
    scores: Scores, evidence: CellEvidenceV12, cell: Regime
) -> list[PartDifference]:
    """Return the parts of a cell's scores of record that differ; each name begins with "shown"."""
    part_differences = _differing_scores(scores, cell.scores)
    for metric in METRICS:
        claimed, computed = getattr(evidence.per_seed, metric), getattr(cell.per_seed, metric)
        if list(claimed) != list(computed):
            part_differences.append((f"{metric} of the seeds", repr(claimed), repr(computed)))
    if list(evidence.classes) != list(cell.classes):
        part_differences.append(("the classes", str(evidence.classes), str(cell.classes)))
    part_differences += _differing_matrices(evidence.confusion, cell.confusion)
    part_differences += _differing_digests(evidence.predictions_sha256, cell.predictions_sha256)
    return [(f"shown {name}", claimed, computed) for name, claimed, computed in part_differences]


def _differing_scores(claimed: Scores, computed: Scores) -> list[PartDifference]:
    pairs = ((name, getattr(claimed, name), getattr(computed, name)) for name in METRICS)
    return [
        (name, repr(score), repr(computed_score))
        for name, score, computed_score in pairs
        if score != computed_score
    ]


def _differing_matrices(
    claimed: Sequence[object], computed: Sequence[object]
) -> list[PartDifference]:
    part_differences: list[PartDifference] = []
    if len(claimed) != len(computed):
        part_differences.append(("the number of matrices", str(len(claimed)), str(len(computed))))
    pairs = zip(claimed, computed, strict=False)
    return part_differences + [
        (f"matrix {number} of {len(computed)}", str(matrix), str(counts))
        for number, (matrix, counts) in enumerate(pairs, 1)
        if matrix != counts
    ]


def _differing_digests(claimed: str, computed: str) -> list[PartDifference]:
    if claimed == computed:
        return []
    claimed_digits, computed_digits = (
        f"{claimed[:DIGEST_DIGITS_SHOWN]}...",
        f"{computed[:DIGEST_DIGITS_SHOWN]}...",
    )
    return [("predictions_sha256", claimed_digits, computed_digits)]
