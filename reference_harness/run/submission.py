"""Build a submission from a run record, in format 1.2, 1.1 or upstream's 1.0."""

from typing import Any

from pydantic import ValidationError

from reference_harness.errors import OptionError
from reference_harness.formats.base import first_error
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.run_record import Regime, RunRecord, TaskRecord
from reference_harness.formats.submission import MODELS, Meta
from reference_harness.formats.submission_terms import FormatVersion
from reference_harness.receipt.summary import receipt_of

UNDECLARED = "undeclared"
"""Value of a field of the extractor that its author has not declared."""
REQUIRED_FIELDS = ("max_length", "truncation", "dtype")
"""Fields that must be declared in formats from 1.1 on."""


def meta_of(members: dict[str, Any]) -> Meta:
    """Return the metadata of a submission, with the provenance "self-reported".

    Raise OptionError for values that a submission must not have.
    """
    try:
        return Meta.model_validate(members | {"provenance": "self-reported"})
    except ValidationError as error:
        error_text = first_error(error, with_input=True)
        msg = f"the metadata of the submission are invalid: {error_text}: correct them"
        raise OptionError(msg) from error


def undeclared_fields(description: dict[str, Any]) -> list[str]:
    """Return the fields required by format 1.1 that an extractor does not declare."""
    embedding = description["embedding"]
    missing_fields = [key for key in REQUIRED_FIELDS if embedding[key] == UNDECLARED]
    return missing_fields + (["source"] if description["model"]["kind"] == UNDECLARED else [])


def build_submission(
    record: RunRecord, benchmark: Benchmark, meta: Meta, version: FormatVersion = "1.1"
) -> dict[str, Any]:
    """Return the submission as JSON values: scores unrounded, tasks in the benchmark's order.

    Raise OptionError for a run on cut data, whose scores are not the benchmark's, if the extractor
    lacks a required declaration, and for values that the format does not allow.
    """
    if record.limit is not None:
        msg = f"the run used only {record.limit} sequences per split: run it without --limit"
        raise OptionError(msg)
    document = {
        "schema_version": version,
        "model_id": record.model_id,
        "harness_version": benchmark.harness_version,
        "meta": meta.model_dump(),
        "results": {
            regime: {
                task_id: task.regimes[regime].scores.model_dump()
                for task_id, task in record.tasks.items()
            }
            for regime in record.regimes
        },
    }
    if version != "1.0":
        document |= _details(record, benchmark, version)
    try:
        MODELS[version].model_validate(document)
    except ValidationError as error:
        error_text = first_error(error, with_input=True)
        msg = (
            f"the run is invalid in format {version} of submissions: {error_text}: correct what "
            "the "
        )
        msg += "extractor declares; the run record contains every score"
        raise OptionError(msg) from error
    return document


def _details(record: RunRecord, benchmark: Benchmark, version: FormatVersion) -> dict[str, Any]:
    """Return the members of formats from 1.1 on, except the scores. Raise OptionError."""
    if missing_fields := undeclared_fields(record.model_dump()):
        msg = (
            f"the extractor does not declare {', '.join(missing_fields)}: add a class attribute, "
            f"or pass --declare {missing_fields[0]}=VALUE, for each; or pass --format-version 1.0"
        )
        raise OptionError(msg)
    receipt = receipt_of(record) if version == "1.2" else None
    return {
        "run": _run(record) | (_embedding_cost(record) if version == "1.2" else {}),
        "evidence": _evidence(record, version),
        "gaps": _gaps(record, benchmark),
        **_measured(record, version),
        **({"receipt": receipt.model_dump()} if receipt else {}),
    }


def _measured(record: RunRecord, version: FormatVersion) -> dict[str, Any]:
    """Return the measurements of tasks and properties of the extractor, for format 1.2.

    Return {} for a record of an older harness.
    """
    measured = {
        task_id: task.measured.model_dump()
        for task_id, task in record.tasks.items()
        if task.measured is not None
    }
    if version != "1.2":
        return {}
    properties = {name: outcome.model_dump() for name, outcome in record.properties.items()}
    return {
        **({"measured": measured} if measured else {}),
        **({"properties": properties} if properties else {}),
    }


def _run(record: RunRecord) -> dict[str, Any]:
    """Return the member `run`. Raise OptionError if tasks differ in the width of embeddings."""
    dims = sorted({task.dim for task in record.tasks.values()})
    if len(dims) != 1:
        msg = f"the embeddings of the run have {len(dims)} widths: {dims}, expected one width: "
        msg += "correct the extractor"
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
        **({"environment": record.environment} if record.environment else {}),
        "started_at": record.started_at,
        "finished_at": record.finished_at,
    }


def _embedding_cost(record: RunRecord) -> dict[str, Any]:
    """Return the cost of embedding, summed over the tasks with newly embedded sequences."""
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
    """Return the evidence for each cell, by regime and task."""
    return {
        regime: {
            task_id: _cell(task, task.regimes[regime], version)
            for task_id, task in record.tasks.items()
        }
        for regime in record.regimes
    }


def _cell(task: TaskRecord, regime: Regime, version: FormatVersion) -> dict[str, Any]:
    """Return the evidence of one task in one regime."""
    cell: dict[str, Any] = {
        "n_test": sum(task.test.values()),
        "per_seed": regime.per_seed.model_dump(),
        "predictions_sha256": regime.predictions_sha256,
    }
    canonical = regime.canonical  # of an earlier run
    if canonical is not None:
        cell["canonical"] = canonical.scores.model_dump()
    if version == "1.1":
        return cell
    if canonical is not None:
        cell["canonical"] |= canonical.model_dump(include={"confusion", "predictions_sha256"})
    return cell | {"classes": regime.classes, "confusion": regime.confusion}


def _gaps(record: RunRecord, benchmark: Benchmark) -> dict[str, dict[str, str]]:
    """Return the reasons for missing cells by regime and task; a complete regime is left out."""
    reason_by_task = {cell.task: cell.reason for cell in record.missing}
    reasons_of_regime = {
        task.id: reason_by_task.get(task.id, "regime not asked for") for task in benchmark.tasks
    }
    reasons_by_regime = {
        regime: reason_by_task if regime in record.regimes else reasons_of_regime
        for regime in benchmark.regimes
    }
    return {regime: tasks for regime, tasks in reasons_by_regime.items() if tasks}
