"""Builds a submission from a run record, in format 1.2, 1.1 or upstream's 1.0."""

from dataclasses import dataclass
from typing import Any, Literal

from reference_harness.formats.benchmark import Benchmark

from .errors import OptionError
from .formats.run_record import Regime, RunRecord, TaskRecord
from .receipt.summary import receipt_of

FormatVersion = Literal["1.2", "1.1", "1.0"]
UNDECLARED = "undeclared"
MUST_DECLARE = ("max_length", "truncation", "dtype")
"""Fields that formats from 1.1 on require to be declared."""


@dataclass(frozen=True)
class Meta:
    """What the board shows besides the scores."""

    display: str
    params: int
    url: str = ""
    zero_shot: bool = False
    training_data: str = ""
    submitted_by: str = "unnamed"

    def as_json(self) -> dict[str, Any]:
        """Return the keys in upstream's order. Provenance is never a contributor's to raise."""
        return {
            "display": self.display,
            "params": self.params,
            "url": self.url,
            "zero_shot": self.zero_shot,
            "training_data": self.training_data,
            "provenance": "self-reported",
            "submitted_by": self.submitted_by,
        }


def undeclared(description: dict[str, Any]) -> list[str]:
    """Return what an extractor has to declare before a 1.1 submission can be written."""
    embedding = description["embedding"]
    lacking = [key for key in MUST_DECLARE if embedding[key] == UNDECLARED]
    return lacking + (["source"] if description["model"]["kind"] == UNDECLARED else [])


def build(
    record: RunRecord, benchmark: Benchmark, meta: Meta, version: FormatVersion = "1.1"
) -> dict[str, Any]:
    """Return the submission as JSON values: scores unrounded, tasks in the benchmark's order.

    Raises OptionError for a run on cut data, whose scores are not the benchmark's, or when the
    extractor leaves unsaid what format 1.1 must say.
    """
    if record.limit is not None:
        msg = f"the run was cut to {record.limit} sequences a split: run it without --limit"
        raise OptionError(msg)
    base = {
        "schema_version": version,
        "model_id": record.model_id,
        "harness_version": benchmark.harness_version,
        "meta": meta.as_json(),
        "results": {
            regime: {
                task_id: task.regimes[regime].scores.model_dump()
                for task_id, task in record.tasks.items()
            }
            for regime in record.regimes
        },
    }
    if version == "1.0":
        return base
    if lacking := undeclared(record.model_dump()):
        msg = (
            f"the extractor does not declare {', '.join(lacking)}: add it as a class attribute, "
            f"or say it with --declare {lacking[0]}=..., or write --format-version 1.0"
        )
        raise OptionError(msg)
    receipt = receipt_of(record) if version == "1.2" else None
    return base | {
        "run": _run(record) | (_embedding_cost(record) if version == "1.2" else {}),
        "evidence": _evidence(record, version),
        "gaps": _gaps(record, benchmark),
        **({"receipt": receipt} if receipt else {}),
    }


def _run(record: RunRecord) -> dict[str, Any]:
    dims = sorted({task.dim for task in record.tasks.values()})
    if len(dims) != 1:
        msg = f"embeddings of {len(dims)} widths in one run: {dims}"
        raise OptionError(msg)
    return {
        "benchmark": record.benchmark.model_dump(),
        "dataset": record.dataset.model_dump(exclude={"verified"}),
        "harness": record.harness.model_dump(),
        "extractor": record.extractor.model_dump(
            include={"path", "class_name", "sha256", "options"}
        ),
        "model": record.model.model_dump(),
        "embedding": record.embedding.model_dump() | {"dim": dims[0]},
        **({"scorer": record.scorer.model_dump(exclude_none=True)} if record.scorer else {}),
        "hardware": record.hardware.model_dump(),
        "packages": record.packages,
        "started_at": record.started_at,
        "finished_at": record.finished_at,
    }


def _embedding_cost(record: RunRecord) -> dict[str, Any]:
    """Return what embedding took, summed over the tasks of which this run embedded a part."""
    tasks = [task for task in record.tasks.values() if task.embedded_letters]
    seconds = sum(task.embed_seconds for task in tasks)
    if not seconds:
        return {}
    cost = {
        "letters": sum(task.embedded_letters for task in tasks),
        "seconds": round(seconds, 6),
        "peak_memory_bytes": max(task.peak_memory for task in tasks) or None,
    }
    return {"embedding_cost": cost}


def _evidence(record: RunRecord, version: FormatVersion) -> dict[str, Any]:
    return {
        regime: {
            task_id: _cell(task, task.regimes[regime], version)
            for task_id, task in record.tasks.items()
        }
        for regime in record.regimes
    }


def _cell(task: TaskRecord, regime: Regime, version: FormatVersion) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "n_test": sum(task.test.values()),
        "per_seed": regime.per_seed.model_dump(),
        "predictions_sha256": regime.predictions_sha256,
        "canonical": regime.canonical.scores.model_dump() if regime.canonical else None,
    }
    if version == "1.1":
        return cell
    if regime.canonical is not None:
        cell["canonical"] |= regime.canonical.model_dump(
            include={"confusion", "predictions_sha256"}
        )
    return cell | {"classes": regime.classes, "confusion": regime.confusion}


def _gaps(record: RunRecord, benchmark: Benchmark) -> dict[str, dict[str, str]]:
    """Return why cells are missing; a regime without gaps has no entry."""
    reasons = {cell.task: cell.reason for cell in record.missing}
    left_out = {task.id: reasons.get(task.id, "regime not asked for") for task in benchmark.tasks}
    cells = {r: reasons if r in record.regimes else left_out for r in benchmark.regimes}
    return {regime: tasks for regime, tasks in cells.items() if tasks}
