"""Compares the claims of a submission with the rerun, cell by cell."""

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from geneb_ci.audit.compare import tolerance as tolerances
from geneb_ci.audit.compare.outcome import (
    INFORMATIVE_TOLERANCE,
    METRICS,
    AuditedTask,
    CellComparison,
    cell_verdict,
    informative_cells,
    informative_text,
    mean_biases,
    task_verdict,
)
from geneb_ci.audit.sampling.plan import ChosenTask
from geneb_ci.check.claims import claims_of
from geneb_ci.common.errors import BrokenInstallation, NothingChecked
from geneb_ci.common.shipped import shipped
from geneb_ci.statistics.metrics import ReportedTriple, Triple
from reference_harness.formats.base import Scores
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.files import NotReadable, read_json, read_regular
from reference_harness.formats.rescored import Rescored

CellKey = tuple[str, str]
"""Regime and task of a cell."""
_RESCORE_FIX = "run `geneb-harness rescore` again, for this plan and with this version"
KERNEL_EFFECT = 0.015
"""Largest change of MCC in the full regime by another batch or BLAS kernel, in 24 comparisons of
random BERTs with 613 to 1,883 test sequences."""
DEVICE_TABLE_FILE = "atlas.json"
"""Name of the shipped file of measured differences between two types of device."""
DEVICE_TABLE_BYTES_MAX = 1_000_000
"""Largest size of the table of devices, in bytes: forty entries take 12 kB."""
UNMEASURED_FACTOR = 8.0
"""Two devices that were never compared may differ by this factor times the largest measured
difference: the factor of the noise of stressed copies."""


class DeviceDifference(NamedTuple):
    """Largest differences that device, kernels and batches alone make between two honest runs."""

    embedding_distance: float
    """Largest distance of an embedding from its rerun, divided by its length."""
    mcc_difference: float
    """Largest difference of a task's MCC of record."""
    is_measured: bool
    """Whether runs on these devices were compared; if not, `UNMEASURED_FACTOR` was applied."""


@functools.cache
def device_table() -> tuple[Mapping[str, Any], ...]:
    """Return the measured pairs of devices in the shipped table. Raises BrokenInstallation."""
    path = shipped("schemas", DEVICE_TABLE_FILE)
    try:
        entries = read_json(read_regular(path, DEVICE_TABLE_BYTES_MAX))["entries"]
        return tuple(entry for entry in entries if entry["row_max"] is not None)
    except (NotReadable, ValueError, KeyError, TypeError) as error:
        raise BrokenInstallation(
            f"the shipped file {path} cannot be read: {error}",
            "reinstall geneb-ci: pip install --force-reinstall geneb-ci",
        ) from error


def device_difference(
    claimed_device: str | None, rerun_device: str, dtype: str
) -> DeviceDifference:
    """Return how much runs on two types of device differ; `claimed_device` is None if unknown.

    Raises BrokenInstallation where the shipped table cannot be read.
    """
    pair = {claimed_device, rerun_device}
    of_same_dtype = [entry for entry in device_table() if entry["dtype"] == dtype]
    matches = [entry for entry in of_same_dtype if {entry["claimed"], entry["rerun"]} == pair]
    factor = 1.0 if matches else UNMEASURED_FACTOR
    distances, scores = zip(
        *(
            (entry["row_max"], entry["record_mcc"])
            for entry in matches or of_same_dtype or device_table()
        ),
        strict=True,
    )
    return DeviceDifference(factor * max(distances), min(factor * max(scores), 2.0), bool(matches))


def device_note(claimed_device: str | None, rerun_device: str, dtype: str) -> str:
    """Return a note on the devices for readers of the record, in one sentence."""
    difference = device_difference(claimed_device, rerun_device, dtype)
    sizes = (
        f"embeddings by up to {difference.embedding_distance:.1e} of their length and a task's MCC "
        f"by {difference.mcc_difference:.4f}"
    )
    pair = f"{claimed_device or 'an unknown device'} and {rerun_device} in {dtype}"
    if difference.is_measured:
        return f"devices: between {pair}, other kernels and batches were measured to move {sizes}"
    return (
        f"devices: {pair} were never compared; {UNMEASURED_FACTOR:g} times the largest measured "
        f"difference would move {sizes}, so confirm a claim that differs on the claim's device"
    )


class AuditedClaims(NamedTuple):
    """The claims of a submission in the audited regimes."""

    scores_of_record: Mapping[CellKey, ReportedTriple]
    prediction_digests: Mapping[CellKey, str]
    """SHA-256 of the predictions, for cells whose predictions the submission has."""


def audited_claims(
    document: Mapping[str, Any], benchmark: Benchmark, regimes: Collection[str]
) -> AuditedClaims:
    """Return the claims of a submission in these regimes, each with its rounding interval.

    `document` is a submission of any format that passed every check.
    """
    scores, evidence = document.get("results", {}), document.get("evidence", {})
    claimed_scores = {
        (claim.regime, claim.task.id): claim.reported
        for claim in claims_of(scores, {}, benchmark)
        if claim.regime in regimes
    }
    digests = {
        (regime, task): cell["predictions_sha256"]
        for regime, tasks in evidence.items()
        for task, cell in tasks.items()
        if "predictions_sha256" in cell
    }
    return AuditedClaims(claimed_scores, digests)


def compare_claims(
    claimed: AuditedClaims, rescored: Rescored, chosen: Sequence[ChosenTask], benchmark: Benchmark
) -> list[AuditedTask]:
    """Return the comparison of every claim on the chosen tasks with the rerun, in their order.

    A regime without a claim is left out. Raises NothingChecked if the rescoring is of another
    benchmark, has other noise or lacks a task, or if a task has no claim.
    """
    _require_same_settings(rescored, benchmark)
    regimes_by_task = {
        choice.task: list(_claimed_regimes(choice.task, claimed, rescored, benchmark))
        for choice in chosen
    }
    if not regimes_by_task or (
        unclaimed_tasks := [task for task, regimes in regimes_by_task.items() if not regimes]
    ):
        objection = (
            f"the submission claims no score on task {unclaimed_tasks[0]}"
            if regimes_by_task
            else "the plan has no task"
        )
        raise NothingChecked(
            f"nothing to compare: {objection}", "commit and draw again, for this submission"
        )
    alarm_rate = tolerances.alarm_rate_per_comparison(
        len(METRICS) * sum(map(len, regimes_by_task.values()))
    )
    tasks = []
    for choice in chosen:
        regimes = {
            name: _cell_comparison(rescored, choice.task, name, claimed, alarm_rate)
            for name in regimes_by_task[choice.task]
        }
        verdict = task_verdict(regimes.values())
        tasks.append(
            AuditedTask(task=choice.task, reason=choice.reason, verdict=verdict, regimes=regimes)
        )
    return tasks


def tolerance_notes(tasks: Sequence[AuditedTask], rescored: Rescored) -> list[str]:
    """Return notes on the tolerances, one sentence each, for readers of the record."""
    lines = [
        (
            f"tolerances: {rescored.noise.copies} copies or more at the noise of "
            f"{rescored.noise.dtype}, as many at {rescored.noise.stress:g} times it, false alarm "
            f"{tolerances.FALSE_ALARM:.1%} for the whole audit"
        ),
    ]
    lines.append(
        f"informative cells (tolerance of MCC at most {INFORMATIVE_TOLERANCE:g}): "
        f"{informative_text(informative_cells(tasks))}; the others are not evidence"
    )
    lines += [
        f"{test_name}: {bias.text}"
        for test_name, bias in mean_biases(tasks).items()
        if bias.is_significant
    ]
    full_tolerances = [
        compared.tolerance.MCC
        for task in tasks
        for name, compared in task.regimes.items()
        if name not in rescored.few_shot_k
    ]
    if full_tolerances:
        lines.append(
            "the probe on all training sequences stops before its optimum, and the last bit "
            f"decides where: that alone changed MCC by up to {KERNEL_EFFECT} in measurements. "
            f"Tolerances of MCC there: {min(full_tolerances):.4f} to {max(full_tolerances):.4f}; "
            "the few-shot regimes are the stronger evidence"
        )
    underclaimed_cells = [
        f"{task.task} ({name})"
        for task in tasks
        for name, compared in task.regimes.items()
        if compared.verdict == "differs" and compared.claimed.MCC < compared.rescored.MCC
    ]
    if underclaimed_cells:
        lines.append(f"claimed lower than rescored: {', '.join(underclaimed_cells)}")
    return lines


def _require_same_settings(rescored: Rescored, benchmark: Benchmark) -> None:
    """Raise NothingChecked for scores of another benchmark, or with noise of another size."""
    if rescored.benchmark.sha256 != benchmark.sha256:
        raise NothingChecked(
            f"the rescoring was made for benchmark {rescored.benchmark.name} "
            f"{rescored.benchmark.sha256}, expected {benchmark.name} {benchmark.sha256}",
            _RESCORE_FIX,
        )
    noise = rescored.noise
    if (noise.units, noise.stress) != (tolerances.UNITS[noise.dtype], tolerances.STRESS):
        raise NothingChecked(
            f"the rescoring has noise of {noise.units:g} units, stressed {noise.stress:g} times; "
            f"expected {tolerances.UNITS[noise.dtype]:g} units, stressed "
            f"{tolerances.STRESS:g} times",
            _RESCORE_FIX,
        )


def _claimed_regimes(
    task: str, claimed: AuditedClaims, rescored: Rescored, benchmark: Benchmark
) -> Iterator[str]:
    """Yield the regimes with a claim on a task. Raises NothingChecked for one without rescoring."""
    for regime in benchmark.regimes:
        if (regime, task) in claimed.scores_of_record:
            if task not in rescored.tasks or regime not in rescored.tasks[task].regimes:
                raise NothingChecked(
                    f"the rescoring has no score on task {task} in regime {regime}", _RESCORE_FIX
                )
            yield regime


def _cell_comparison(
    rescored: Rescored, task: str, regime: str, claimed: AuditedClaims, alarm_rate: float
) -> CellComparison:
    rescored_cell = rescored.tasks[task].regimes[regime]
    is_one_fit = regime not in rescored.few_shot_k
    claim = claimed.scores_of_record[regime, task]
    cell = tolerances.CellWithCopies(
        rescored_cell.base.per_seed,
        rescored_cell.base.confusion,
        rescored_cell.plain,
        rescored_cell.stressed,
        rescored_cell.halts,
        is_one_fit,
    )
    tolerance = tolerances.tolerance(cell, alarm_rate, claim.width)
    digest = claimed.prediction_digests.get((regime, task))
    scores, rerun = _as_scores(claim.value), rescored_cell.base.scores
    return CellComparison(
        claimed=scores,
        rescored=rerun,
        tolerance=tolerance,
        predictions_equal=None
        if digest is None
        else digest == rescored_cell.base.predictions_sha256,
        canonical=None,
        verdict=cell_verdict(scores, rerun, tolerance),
    )


def _as_scores(triple: Triple) -> Scores:
    """Return MCC, accuracy and F1 as `Scores`."""
    return Scores(MCC=float(triple.mcc), Acc=float(triple.acc), F1=float(triple.f1))
