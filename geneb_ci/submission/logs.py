"""Collects upstream's log files, one per task and regime, into the results of a submission.

`results_<model>_<task_id>_<extractor>.json` holds `mcc`, `accuracy` and `f1_score`, each with a
`mean`; few-shot logs end in `_k-1` or `_k-10` before `.json`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geneb_ci.common.benchmark import Benchmark
from geneb_ci.submission.document import read_document

METRICS = {"mcc": "MCC", "accuracy": "Acc", "f1_score": "F1"}

Cells = dict[str, dict[str, dict[str, float]]]


@dataclass
class Packed:
    """The results in the logs of one folder, and which logs could not be used."""

    results: Cells
    missing: dict[str, list[str]] = field(default_factory=dict)
    """Regime to tasks without a log."""
    doubled: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Regime to tasks with more than one log, with their file names."""
    foreign: list[str] = field(default_factory=list)
    """Files whose name contains no task id."""
    broken: dict[str, str] = field(default_factory=dict)
    """Files that cannot be used, with the reason."""

    @property
    def is_whole(self) -> bool:
        """Whether every cell has exactly one readable log."""
        return not (self.missing or self.doubled or self.broken)


def pack_logs(paths: Iterable[Path], benchmark: Benchmark) -> Packed:
    """Return the results in the logs; unusable logs are listed and do not affect the others.

    Raises NothingChecked when a file cannot be opened.
    """
    packed = Packed({regime: {} for regime in benchmark.regimes})
    sources: dict[tuple[str, str], list[str]] = {}
    for path in sorted(paths):
        task, regime = identify(path.stem, benchmark)
        if task is None:
            packed.foreign.append(path.name)
            continue
        scores, reason = _scores(path)
        if reason:
            packed.broken[path.name] = reason
            continue
        sources.setdefault((regime, task), []).append(path.name)
        packed.results[regime][task] = scores
    for (regime, task), names in sources.items():
        if len(names) > 1:
            packed.doubled.setdefault(regime, {})[task] = names
            del packed.results[regime][task]
    for regime in benchmark.regimes:
        ordered = [task for task in benchmark.task_ids if task in packed.results[regime]]
        packed.results[regime] = {task: packed.results[regime][task] for task in ordered}
        absent = [task for task in benchmark.task_ids if (regime, task) not in sources]
        if absent:
            packed.missing[regime] = absent
    return packed


def identify(stem: str, benchmark: Benchmark) -> tuple[str | None, str]:
    """Return task and regime from a file name without extension; the longest matching id wins.

    The task is None if the name contains no task id between underscores.
    """
    few_shot = {f"_k-{k}": regime for regime, k in benchmark.protocol.few_shot_k.items()}
    suffix = next((ending for ending in few_shot if stem.endswith(ending)), "")
    regime = few_shot.get(suffix, benchmark.regimes[0])
    name = f"_{stem.removesuffix(suffix)}_"
    fitting = [task for task in benchmark.task_ids if f"_{task}_" in name]
    return max(fitting, key=len, default=None), regime


def _scores(path: Path) -> tuple[dict[str, float], str]:
    """Return the means of one log and "", or no means and the reason."""
    document = read_document(path)
    if document.faults:
        return {}, document.faults[0].message
    value: Any = document.value
    scores: dict[str, float] = {}
    for key, metric in METRICS.items():
        entry = value.get(key) if isinstance(value, dict) else None
        mean = entry.get("mean") if isinstance(entry, dict) else None
        if isinstance(mean, bool) or not isinstance(mean, int | float):
            return {}, f"{key}.mean is missing or not a number"
        scores[metric] = float(mean)
    return scores, ""
