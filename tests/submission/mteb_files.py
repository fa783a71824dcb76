"""Files as MTEB writes them, of every layout that was published, made from a seed.

Before 1.11, splits stand beside the name of the data set, with the scores or subsets of them; since
then `scores` lists the subsets of each split; since 2, a score that cannot be computed is NaN.
"""

import json
import math
import random
from pathlib import Path
from typing import Any

from reference_harness.formats.benchmark import Benchmark

NAN = math.nan
LAYOUTS = {"old": "1.1.1", "1.11": "1.14.15", "2": "2.10.0"}
"""A layout, and a version that writes it."""
SUFFIXES = {"full": "", "10shot": "_k-10", "1shot": "_k-1"}
OTHER_TASKS: dict[str, dict[str, Any]] = {
    "STSBenchmark": {"cos_sim": {"pearson": 0.8, "spearman": 0.7}, "euclidean": {"pearson": NAN}},
    "SprintDuplicateQuestions": {"cos_sim": {"ap": 0.9, "f1": 0.8}, "max": {"ap": 0.9}},
    "TwentyNewsgroupsClustering": {"v_measure": 0.4, "v_measure_std": 0.01},
    "NFCorpus": {"ndcg_at_10": 0.3, "map_at_1": NAN, "nauc_ndcg_at_10_max": NAN},
    "AskUbuntuDupQuestions": {"map": 0.6, "mrr": 0.7},
    "SummEval": {"cos_sim": {"spearman": 0.3}, "dot": {"spearman": NAN}},
    "Banking77Classification": {"accuracy": 0.8, "f1": 0.7, "ap": NAN},
}
"""Tasks of MTEB itself, of each kind, with their scores."""


class MtebFiles:
    """Writes the results of one model; two with one seed write the same bytes."""

    def __init__(self, benchmark: Benchmark, layout: str, seed: int) -> None:
        """Take the benchmark whose tasks were run, the layout, and a seed of everything else."""
        self.benchmark, self.layout, self.draw = benchmark, layout, random.Random(f"{layout}{seed}")
        self.cells: dict[str, dict[str, dict[str, float]]] = {name: {} for name in SUFFIXES}
        """The scores that were written, as a submission has them."""

    def write(self, folder: Path) -> int:
        """Write a file for each cell, and for each other task; return how many there are."""
        folder.mkdir(parents=True)
        for regime, suffix in SUFFIXES.items():
            for task in self.benchmark.task_ids:
                cell = {metric: round(self.draw.uniform(0.1, 0.9), 6) for metric in _METRICS}
                self.cells[regime][task] = {_METRICS[key]: cell[key] for key in cell}
                experiments = len(self.benchmark.protocol.seeds)
                self._write(folder, task + suffix, self.scores(cell, experiments))
        for task, scores in OTHER_TASKS.items():
            self._write(folder, task, scores)
        if self.layout != "old":
            self.write_meta(folder)
        return sum(map(len, self.cells.values())) + len(OTHER_TASKS)

    def write_experiment(self, folder: Path, samples: int) -> int:
        """Write the results of a run with other settings, as MTEB does below experiments/."""
        below = folder / f"experiments/samples_per_label_{samples}"
        below.mkdir(parents=True)
        for task in self.benchmark.task_ids:
            cell = {metric: round(self.draw.uniform(0.1, 0.9), 6) for metric in _METRICS}
            self._write(below, task, self.scores(cell, 10))
        self.write_meta(below, experiment_kwargs={"samples_per_label": samples})
        return len(self.benchmark.task_ids)

    def scores(self, cell: dict[str, float], experiments: int) -> dict[str, Any]:
        """Return the scores of a task of classification, with others that nobody uses."""
        others: dict[str, Any] = {"main_score": cell["accuracy"], "f1_weighted": 0.5}
        absent = NAN if self.layout == "2" else None
        others |= dict.fromkeys(self.draw.sample(("ap", "ap_weighted", "lrap", "auc"), 2), absent)
        if self.layout == "old":
            return self._mixed(
                cell | others | {f"{m}_stderr": self.draw.choice([0.01, NAN]) for m in cell}
            )
        parts = [{"accuracy": 0.5, "ap": absent, **cell} for _ in range(experiments)]
        return self._mixed(cell | others | {"scores_per_experiment": parts})

    def write_meta(self, folder: Path, **more: Any) -> None:
        """Write the file that describes the model."""
        meta = {
            "name": "org/m",
            "revision": "0123",
            "n_parameters": 150_000_000,
            "release_date": None,
        }
        meta |= {"memory_usage_mb": NAN, "max_tokens": math.inf, "framework": ["PyTorch"], **more}
        (folder / "model_meta.json").write_text(json.dumps(meta), encoding="utf-8")

    def _write(self, folder: Path, task: str, scores: dict[str, Any]) -> None:
        value: dict[str, Any] = {
            "dataset_revision": self.benchmark.dataset.revision,
            "mteb_version": LAYOUTS[self.layout],
        }
        if self.layout == "old":
            times = {"evaluation_time": self.draw.choice([2.47, NAN])}
            nested = self.draw.random() < 0.3 and task not in OTHER_TASKS
            value |= {
                "mteb_dataset_name": task,
                "test": {"en": scores, **times} if nested else scores | times,
            }
        else:
            subset = self._mixed(scores | {"hf_subset": "default", "languages": ["eng-Latn"]})
            splits = {"test": [subset]}
            if self.draw.random() < 0.2:
                splits["validation"] = [subset | {"mcc": NAN}]
            value |= {"task_name": task, "scores": splits, "kg_co2_emissions": None}
            value |= {"evaluation_time": self.draw.choice([16.5, NAN])}
            if self.layout == "2":
                value |= {"date": 1764000000.0, "is_public": True}
        form = self.draw.choice(({"indent": 2}, {"indent": 4}, {"separators": (",", ":")}, {}))
        text = json.dumps(self._mixed(value), **form)
        text = text.replace("\n", "\r\n") if self.draw.random() < 0.1 else text
        mark = "\ufeff" if self.draw.random() < 0.1 else ""
        (folder / f"{task}.json").write_bytes((mark + text).encode())

    def _mixed(self, members: dict[str, Any]) -> dict[str, Any]:
        """Return members in another order."""
        names = list(members)
        self.draw.shuffle(names)
        return {name: members[name] for name in names}


_METRICS = {"mcc": "MCC", "accuracy": "Acc", "f1": "F1"}
