"""Compare the decisions of a probe fitted on training sequences and one fitted on their variants.

The first is fitted on the receipt's embeddings. Both predict the test sequences of the receipt, as
in an audit of tasks.
"""

from dataclasses import dataclass
from pathlib import Path

from reference_harness.data.task_folder import Source
from reference_harness.engine.worker_pool import Pool
from reference_harness.errors import ProbeError
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.receipt_cells import ReceiptRefit
from reference_harness.formats.run_record import TaskReceipt
from reference_harness.formats.submission_terms import receipt_file
from reference_harness.probe.decisions import (
    few_shot_draws,
    scores_fitted_on_variants,
    training_changes,
)
from reference_harness.rescore.further_sequences import FurtherFiles, read_further_embeddings
from reference_harness.rescore.scoring import WorkerLender, load_task
from reference_harness.run.task_job import problem_of

from .cells import file_values
from .rounding import RoundedEmbeddings


@dataclass(frozen=True)
class RefitJob:
    """Fits both probes of one task. It is pickled, so it contains no embeddings."""

    task_id: str
    file: Path
    receipt: TaskReceipt
    benchmark: Benchmark
    source: Source
    """Where the sequences and labels of the task are read."""
    further: FurtherFiles
    """Files of variants of training and support sequences, and of their embeddings."""

    def execute(self) -> ReceiptRefit:
        """Return the changed decisions and the scores of the probes.

        Raise a HarnessError, which names task or file.
        """
        data = load_task(self.benchmark, self.source, self.task_id)
        embeddings = RoundedEmbeddings(
            file_values(self.file, self.receipt, data), self.receipt.scale_log2
        )
        problem = problem_of(embeddings, self.receipt.train, data.train.labels, data.test.labels)
        further_embeddings = read_further_embeddings(self.further, problem, self.receipt.scale_log2)
        protocol = self.benchmark.protocol
        draws = few_shot_draws(data.train.labels, protocol.few_shot_k, protocol.seeds, "")
        try:
            return ReceiptRefit(
                schema_version="1.0",
                task=self.task_id,
                training=training_changes(problem, further_embeddings),
                varied=scores_fitted_on_variants(problem, further_embeddings, draws),
            )
        except ProbeError as error:
            msg = f"{self.task_id}: {error}"
            raise ProbeError(msg) from error


def refit(
    task_id: str,
    folder: Path,
    receipt: TaskReceipt,
    benchmark: Benchmark,
    source: Source,
    further_files: FurtherFiles,
    lend_workers: WorkerLender | None = None,
) -> ReceiptRefit:
    """Return changed predictions and scores of probes fitted on variants of training sequences.

    A worker of `lend_workers` fits them, or a new one. Raise DataError, EmbeddingError
    or ProbeError, which name the task or the file.
    """
    job = RefitJob(
        task_id, receipt_file(folder, task_id), receipt, benchmark, source, further_files
    )
    with (lend_workers or Pool)(1) as pool:
        pool.submit(job)
        (refitted,) = pool.results(block=True)
    answer: ReceiptRefit = refitted
    return answer
