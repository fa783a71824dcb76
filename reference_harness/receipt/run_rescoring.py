"""Compute scores of record from a receipt, for a run on a machine without the scorer."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from reference_harness.data.task_folder import Source
from reference_harness.engine.blas import NumericalLibrary, loaded_libraries
from reference_harness.engine.worker_pool import Pool
from reference_harness.errors import DataError, OptionError, ProbeError, ScorerError
from reference_harness.formats.base import first_error
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import NotReadable, read_text
from reference_harness.formats.run_record import LibraryRef, Regime, RunRecord, TaskReceipt
from reference_harness.formats.scorer import ScorerRef
from reference_harness.formats.submission import SubmissionV12
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX, receipt_file
from reference_harness.probe.scorer import SCORER
from reference_harness.rescore.scoring import load_task
from reference_harness.run import submission
from reference_harness.run.task_job import problem_of, score_regime, task_section

from .cells import ReceiptProbeSettings, file_values
from .predictions import write_predictions
from .rounding import RoundedEmbeddings
from .task_file import is_written


class RescoredTaskOfRun(NamedTuple):
    """The scores of record of one task of a run, computed by a worker."""

    task_id: str
    data_sha256: str
    regimes: dict[str, Regime]
    predictions: bytes
    """The task's part of `predictions.bin`."""
    libraries: list[NumericalLibrary]
    scorer: ScorerRef


@dataclass(frozen=True)
class RescoreTaskJob:
    """Scores one task of a run from its file. It is pickled, so it contains no embeddings."""

    task_id: str
    file: Path
    receipt: TaskReceipt
    benchmark: Benchmark
    source: Source
    regimes: tuple[str, ...]

    def execute(self) -> RescoredTaskOfRun:
        """Return the scores of the task. Raise a HarnessError, which names the task."""
        data = load_task(self.benchmark, self.source, self.task_id)
        embeddings = RoundedEmbeddings(
            file_values(self.file, self.receipt, data), self.receipt.scale_log2
        )
        settings = ReceiptProbeSettings(self.benchmark.protocol)
        try:
            problem = problem_of(
                embeddings, self.receipt.train, data.train.labels, data.test.labels
            )
            scored = {name: score_regime(problem, name, settings) for name in self.regimes}
        except ProbeError as error:
            msg = f"{self.task_id}: {error}"
            raise ProbeError(msg) from error
        return RescoredTaskOfRun(
            self.task_id,
            data.sha256,
            {name: scored_regime.regime for name, scored_regime in scored.items()},
            task_section(problem, scored.values()),
            loaded_libraries(),
            SCORER.in_use(),
        )


def task_receipts_of(record: RunRecord, folder: Path) -> dict[str, TaskReceipt]:
    """Return the receipts of a record's tasks, whose files are in the folder.

    Raise OptionError for a record without a receipt, DataError for other files than the record's.
    """
    receipts = {name: task.receipt for name, task in record.tasks.items() if task.receipt}
    if len(receipts) < len(record.tasks):
        msg = "the record is of a run without a receipt: run again with --receipt DIR; cached "
        msg += "embeddings are not computed again"
        raise OptionError(msg)
    faults = [
        f"{receipt_file(folder, name)}: not the file of the record: pass the folder that the run "
        "wrote to --receipt"
        for name, receipt in receipts.items()
        if not is_written(folder, name, receipt)
    ]
    if faults:
        raise DataError(faults)
    return receipts


def rescored_run(
    record: RunRecord, folder: Path, benchmark: Benchmark, source: Source, workers: int
) -> RunRecord:
    """Return a record with the scores of record of its receipt, and write predictions.bin.

    Everything else is as in the record. Raise ScorerError if this machine does not have the scorer,
    and DataError, OptionError, ProbeError or StateError.
    """
    receipts = task_receipts_of(record, folder)
    results_by_task: dict[str, RescoredTaskOfRun] = {}
    with Pool[RescoredTaskOfRun](min(workers, len(receipts))) as pool:
        for name, receipt in receipts.items():
            file = receipt_file(folder, name)
            regimes = tuple(record.regimes)
            pool.submit(RescoreTaskJob(name, file, receipt, benchmark, source, regimes))
        while pool.waiting:
            for result in pool.results(block=True):
                if result.scorer.reason:
                    raise ScorerError(result.scorer.reason)
                if result.data_sha256 != record.tasks[result.task_id].data_sha256:
                    msg = f"{result.task_id}: the task data are not those of the run: pass the "
                    raise DataError([f"{msg}folder of the run to --data"])
                results_by_task[result.task_id] = result
    library_by_values = {
        tuple(library.values()): LibraryRef(**library)
        for result in results_by_task.values()
        for library in result.libraries
    }
    sections = {name: results_by_task[name].predictions for name in record.tasks}
    return record.model_copy(
        update={
            "scorer": SCORER.ref,
            "probe": record.probe.model_copy(
                update={
                    "device": "cpu",
                    "array_api": False,
                    "least_numbers": None,
                    "workers": workers,
                    "libraries": [library_by_values[key] for key in sorted(library_by_values)],
                }
            ),
            "tasks": {
                name: task.model_copy(update={"regimes": results_by_task[name].regimes})
                for name, task in record.tasks.items()
            },
            "predictions": write_predictions(folder, benchmark, record.regimes, sections),
        }
    )


def read_former_submission(path: Path) -> SubmissionV12:
    """Return the submission in a file. Raise OptionError unless it is one with a receipt."""
    try:
        former_submission = SubmissionV12.model_validate_json(read_text(path, SUBMISSION_BYTES_MAX))
    except NotReadable as error:
        raise OptionError(f"{path}: {error.reason}") from error
    except ValidationError as error:
        msg = (
            f"{path}: not a submission of format 1.2: {first_error(error)}: run `geneb-ci "
            f"check {path}`"
        )
        raise OptionError(msg) from error
    if former_submission.receipt is None:
        msg = (
            f"{path} has no receipt: pass the file of `geneb-harness run --receipt DIR "
            "--submission "
        )
        msg += "FILE`"
        raise OptionError(msg)
    return former_submission


def submission_of_rescored(
    record: RunRecord, benchmark: Benchmark, former_submission: SubmissionV12
) -> dict[str, Any]:
    """Return the submission of a rescored record, with metadata and gaps of the former one.

    The location of the receipt is kept, unless the predictions have changed. Raise OptionError if
    the former submission is not of this run.
    """
    rescored_submission = submission.build_submission(
        record, benchmark, former_submission.meta, "1.2"
    )
    former_receipt, new_receipt = former_submission.receipt, rescored_submission["receipt"]
    if former_receipt is None or (former_submission.model_id, former_receipt.root) != (
        record.model_id,
        new_receipt["root"],
    ):
        msg = "the former submission is of another run: pass the submission of the record's run "
        msg += "as --former"
        raise OptionError(msg)
    if (
        former_receipt.location
        and former_receipt.predictions
        and former_receipt.predictions.model_dump() == new_receipt["predictions"]
    ):
        new_receipt["location"] = former_receipt.location.model_dump()
    return rescored_submission | {"gaps": former_submission.gaps}
