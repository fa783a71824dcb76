"""Score one task of one receipt under every kind of probe, in a worker process."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import Labels, TaskData
from reference_harness.data.task_folder import Source
from reference_harness.embedding.memory import is_out_of_memory
from reference_harness.engine.blas import NumericalLibrary, loaded_libraries
from reference_harness.errors import DataError, ProbeError
from reference_harness.formats.base import Scores
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import file_sha256
from reference_harness.formats.run_record import TaskReceipt
from reference_harness.probe import logistic, metrics
from reference_harness.receipt.cells import file_values
from reference_harness.receipt.rounding import BLOCK_EMBEDDINGS, WidenedEmbeddings
from reference_harness.rescore.scoring import load_task
from reference_harness.run.task_job import metric_columns as per_seed

from .kinds import ColumnStatistics, TrainingData, column_statistics, fit_and_predict, is_seeded
from .report import ProbeScores


class ProbedTask(NamedTuple):
    """The result of a worker: scores by kind and regime."""

    model_id: str
    task_id: str
    scores: dict[str, dict[str, ProbeScores]]
    libraries: list[NumericalLibrary]


@dataclass(frozen=True)
class ProbeJob:
    """Probes one task from its file. It is pickled, so it contains no embeddings."""

    model_id: str
    task_id: str
    file: Path
    receipt: TaskReceipt
    benchmark: Benchmark
    source: Source
    probe_kinds: tuple[str, ...]
    regimes: tuple[str, ...]
    seeds: tuple[int, ...]

    def execute(self) -> ProbedTask:
        """Return the scores. Raise DataError or ProbeError, which name receipt and task."""
        task_data = load_task(self.benchmark, self.source, self.task_id)
        embeddings = file_values(self.file, self.receipt, task_data)
        self._check_embeddings(embeddings)
        train_count, scale = self.receipt.train, self.receipt.scale_log2
        train, test = (
            WidenedEmbeddings(embeddings[:train_count], scale),
            WidenedEmbeddings(embeddings[train_count:], scale),
        )
        try:
            statistics = column_statistics(train)
            scores = {
                kind: {
                    name: self._probe_scores(kind, name, train, test, task_data, statistics)
                    for name in self.regimes
                }
                for kind in self.probe_kinds
            }
        except (ProbeError, MemoryError) as error:
            fix = "; use fewer --jobs" if is_out_of_memory(error) else ""
            msg = f"{self.model_id}: {self.task_id}: {error or 'out of memory'}{fix}"
            raise ProbeError(msg) from error
        return ProbedTask(self.model_id, self.task_id, scores, loaded_libraries())

    def _check_embeddings(self, embeddings: npt.NDArray[np.float16]) -> None:
        """Raise DataError if the file is not the receipt's, or has NaN or infinity."""
        if (digest := file_sha256(self.file)) != self.receipt.sha256:
            msg = f"{self.file}: its sha256 is {digest}, expected {self.receipt.sha256} of the "
            msg += "submission's receipt: use the folder that was written with the submission"
            raise DataError([msg])
        for start in range(0, len(embeddings), BLOCK_EMBEDDINGS):
            if not np.isfinite(embeddings[start : start + BLOCK_EMBEDDINGS]).all():
                raise DataError(
                    [f"{self.file}: a value is NaN or infinite, expected finite values"]
                )

    def _probe_scores(
        self,
        kind: str,
        regime: str,
        train: WidenedEmbeddings,
        test: WidenedEmbeddings,
        data: TaskData,
        statistics: ColumnStatistics,
    ) -> ProbeScores:
        """Return the scores of one kind of probe in one regime."""
        started = time.perf_counter()
        labels, few_shot_k = data.train.labels, self.benchmark.protocol.few_shot_k
        rows_by_seed = logistic.fit_indices(labels, regime, list(self.seeds), few_shot_k)
        if is_seeded(kind) and len(rows_by_seed) == 1:
            rows_by_seed *= len(self.seeds)
        predictions: list[Labels] = []
        for seed, rows in zip(self.seeds, rows_by_seed, strict=False):
            training_data = TrainingData(train, labels)
            if rows is not None:
                training_data = TrainingData(
                    WidenedEmbeddings(train.values[rows], train.scale_log2), labels[rows]
                )
            predictions.append(
                fit_and_predict(
                    kind, training_data, test, statistics, seed=seed, shots=few_shot_k.get(regime)
                )
            )
        if len(predictions) == 1:
            predictions *= len(self.seeds)
        classes = np.unique(np.concatenate([labels, data.test.labels]))
        scores_by_seed = [
            metrics.scores_of(metrics.confusion_matrix(data.test.labels, labels_of_fit, classes))
            for labels_of_fit in predictions
        ]
        return ProbeScores(
            scores=Scores(**metrics.mean_scores(scores_by_seed)._asdict()),
            per_seed=per_seed(scores_by_seed),
            seconds=round(time.perf_counter() - started, 6),
        )
