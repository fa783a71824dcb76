"""Renders the plan of an audit, its detection power, its outcome and its verification."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.compare.embedding_outcome import AnyOutcome, EmbeddingOutcome
from geneb_ci.audit.compare.outcome import (
    AuditedTask,
    AuditOutcome,
    CellComparison,
    differing_metrics,
    objections_to_outcome,
)
from geneb_ci.audit.record.verify import StepState, Verification, VerificationStep
from geneb_ci.audit.sampling.design import (
    TABLE_DRAWN,
    TABLE_FABRICATED,
    DrawPopulation,
    detection_table,
    probability_text,
)
from geneb_ci.audit.sampling.plan import AnyPlan, EmbeddingPlan
from geneb_ci.audit.trust.level import SIGNERS_MIN, RatedSubmission
from geneb_ci.common.types import Evidence
from geneb_ci.render.plain import visible
from geneb_ci.render.receipts import beacon_text, embedding_outcome_text, embedding_plan_text
from geneb_ci.render.table import Table, wrapped_text
from geneb_ci.render.text import escape
from reference_harness.formats.text import next_line, plural

_STEP_MARKS = {StepState.HOLDS: "✓", StepState.DIFFERS: "✗", StepState.UNKNOWN: "?"}
"""By result of a verification step: the mark before its name."""
_PASSED_TEXTS = {
    "envelope": "one DSSE envelope with one signature, in canonical form",
    "signer": "signed by a trusted key that was valid at that time",
    "statement": "a consistent audit record",
    "commitment": "its digest is the published one",
    "round": "the beacon round that follows from the time of the commitment",
    "signature": "the beacon signed this round",
    "seed": "follows from commitment and beacon value",
    "tickets": "follow from seed and tasks",
    "sample": "the tasks with the smallest tickets, and those of earlier draws",
    "links": "every earlier record that the record refers to is in the repository",
    "earlier": "includes every earlier draw in the repository",
    "comparison": "every verdict follows from its numbers",
    "rerun": "the file of rerun embeddings is the one that was signed",
    "proofs": "the receipt commits to every drawn embedding",
    "embeddings": "comparing every drawn embedding with its rerun gives what the record says",
    "cells": "the drawn embeddings and cells follow from the receipt",
    "submission": "the file is the audited one",
    "benchmark": "the current benchmark definition",
    "policy": "at least as many tasks, embeddings and regimes as required",
    "harness": "the current version, unmodified",
    "sandbox": "an accepted level, and every escape attempt blocked",
}
"""By verification step: what was shown if the step holds."""
_STEP_NAME_WIDTH = max(map(len, _PASSED_TEXTS))
"""Columns of the names of steps."""
UNCHECKED_STEPS_MIN = 2
"""Smallest number of unchecked last steps that are written in one line."""
_UNCHECKED_TEXT = "not checked, because the step above failed"
"""Text after a step that was not checked."""
OUTCOME_WIDTH = 110
"""Columns of the text of an outcome, if no other number is given: its whole table fits."""
_VERDICT_MARKS = {"agrees": "✓", "differs": "✗"}
"""By verdict of a comparison: its mark."""
POWER_WIDTH = 80
"""Columns of the table of detection probabilities."""


def verification_text(
    verifications: Sequence[Verification], rated_submissions: Sequence[RatedSubmission] = ()
) -> str:
    """Return verifications as text for a terminal, with the evidence that follows from them."""
    lines: list[str] = []
    for verification in verifications:
        lines += [f"{escape(verification.name)}: {_headline(verification)}"]
        if verification.record is not None:
            lines += [
                f"  {line}" for line in _registry_lines(verification.record.outcome.plan.commitment)
            ]
        listed_steps, hidden_steps = _split_trailing_unchecked(verification)
        for step in listed_steps:
            message = step.message or (_UNCHECKED_TEXT if step.state is StepState.UNKNOWN else "")
            result_text = escape(message) if message else _PASSED_TEXTS[step.name]
            lines.append(
                f"  {_STEP_MARKS[step.state]} {step.name:<{_STEP_NAME_WIDTH}}  {result_text}"
            )
            if step.fix:
                lines.append(f"      fix: {escape(step.fix)}")
        if hidden_steps:
            lines.append(f"  ? {plural(hidden_steps, 'step')} {_UNCHECKED_TEXT}")
        if verification.withdrawn is not None:
            lines.append(
                f"  withdrawn {verification.withdrawn.withdrawn_at} by "
                f"{escape(verification.withdrawn.signer)}: {escape(verification.withdrawn.reason)}"
            )
        lines.append("")
    lines += [line for submission in rated_submissions for line in _evidence_lines(submission)]
    verified_records = sum(verification.holds for verification in verifications)
    return (
        "\n".join([*lines, f"{plural(len(verifications), 'record')}: {verified_records} verified"])
        + "\n"
    )


def _evidence_lines(submission: RatedSubmission) -> Iterator[str]:
    """Yield the evidence of a submission, and who signed its audits."""
    decision = submission.decision
    mark = _STEP_MARKS[StepState.HOLDS if submission.suffices else StepState.DIFFERS]
    shortfall = "" if submission.suffices else f", expected {submission.required_evidence}"
    yield (
        f"{mark} {escape(submission.model_id)} (sha256 {submission.sha256[:16]}...): "
        f"{decision.evidence}{shortfall}: {escape(decision.reason)}"
    )
    people = ", ".join(submission.decision.signers) or "nobody"
    yield f"      signers: {escape(people)}"
    if not submission.suffices and submission.required_evidence is Evidence.REPRODUCED:
        yield (
            f"      fix: let {SIGNERS_MIN} people each sign audits that verify, and that cover "
            "every task"
        )
    yield ""


def _registry_lines(commitment: Commitment) -> list[str]:
    """Return a line that says whether the model registry described the run; none otherwise."""
    if commitment.entry is None:
        return []
    digest = f"{commitment.entry[:16]}..."
    return [
        (
            "the run is described by the model registry, not by the submitter; "
            f"sha256 of the entry: {digest}"
        )
    ]


def _split_trailing_unchecked(verification: Verification) -> tuple[Sequence[VerificationStep], int]:
    """Return the steps to list, and the number of unchecked steps after them.

    If a file is not a record at all, every later step would have the same message.
    """
    checked_positions = [
        i for i, s in enumerate(verification.steps) if s.message or s.state is not StepState.UNKNOWN
    ]
    end = max(checked_positions, default=-1) + 1
    hidden_steps = len(verification.steps) - end
    return (
        (verification.steps, 0)
        if hidden_steps < UNCHECKED_STEPS_MIN
        else (verification.steps[:end], hidden_steps)
    )


def _headline(verification: Verification) -> str:
    """Return the result of a verification in a few words."""
    if verification.differs:
        return f"rejected: {', '.join(step.name for step in verification.differs)}"
    if not verification.holds:
        unknown_steps = [
            step.name for step in verification.steps if step.state is StepState.UNKNOWN
        ]
        return f"not verified: {', '.join(unknown_steps)} could not be checked"
    if verification.record is None:
        return "verified"
    outcome = verification.record.outcome
    if isinstance(outcome, EmbeddingOutcome):
        return (
            f"verified; {outcome.cells.equal}/{outcome.cells.of} cells as claimed, "
            f"{outcome.embedded:,} embeddings recomputed in sandbox level "
            f"{outcome.sandbox.level}; the receipt {escape(outcome.verdict)}, the scores on the "
            f"board were {'compared' if outcome.cells.of_record else 'not compared'}"
        )
    return (
        f"verified; {plural(len(outcome.plan.drawn), 'task')} drawn of "
        f"{len(outcome.plan.commitment.tasks)}, {len(outcome.tasks)} rerun in sandbox level "
        f"{outcome.sandbox.level}; the claim {escape(outcome.verdict)}"
    )


def verification_json(
    verifications: Sequence[Verification], rated_submissions: Sequence[RatedSubmission] = ()
) -> str:
    """Return verifications as JSON, with the evidence of `rated_submissions` if there are any."""
    document: dict[str, Any] = {
        "schema_version": "1.0",
        "records": [_record_json(verification) for verification in verifications],
    }
    if rated_submissions:
        document["evidence"] = [
            {
                "model_id": submission.model_id,
                "submission_sha256": submission.sha256,
                "evidence": submission.decision.evidence,
                "reason": submission.decision.reason,
                "signers": list(submission.decision.signers),
                "least": submission.required_evidence,
                "suffices": submission.suffices,
            }
            for submission in rated_submissions
        ]
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def _record_json(verification: Verification) -> dict[str, Any]:
    """Return the verification of one record as JSON."""
    outcome = verification.record.outcome if verification.record is not None else None
    return {
        "record": verification.name,
        "audit_id": verification.record.audit_id if verification.record is not None else None,
        "model_id": outcome.plan.commitment.model_id if outcome is not None else None,
        "submission_sha256": outcome.plan.commitment.submission_sha256 if outcome else None,
        "entry": outcome.plan.commitment.entry if outcome is not None else None,
        "verdict": outcome.verdict if outcome is not None else None,
        "signed_by": verification.record.signer.owner if verification.record is not None else None,
        "verified": verification.holds,
        "refused_at": [step.name for step in verification.differs],
        "withdrawn": verification.withdrawn.reason if verification.withdrawn is not None else None,
        "steps": [
            {"step": s.name, "state": str(s.state), "message": s.message, "fix": s.fix}
            for s in verification.steps
        ],
    }


def outcome_text(outcome: AnyOutcome, width: int = OUTCOME_WIDTH) -> str:
    """Return an outcome as text: one line per task and regime, then the result.

    If the table is too wide, task names get lines of their own. With many tasks, those within their
    tolerances are only named.
    """
    if isinstance(outcome, EmbeddingOutcome):
        return embedding_outcome_text(outcome)
    omits_agreeing = len(outcome.tasks) > LISTED_TASKS_MAX
    agreeing_tasks = [
        task for task in outcome.tasks if omits_agreeing and not _has_difference(task)
    ]
    columns = ("task", "regime", "claimed MCC", "rerun", "difference", "tolerance", "")
    listed_tasks = [task for task in outcome.tasks if task not in agreeing_tasks]
    table = Table(columns, list(_task_rows(listed_tasks)), frozenset(columns[2:-1]))
    lines = [
        line for row in table.fitted_rows(width, first_cell_alone=True) for line in row
    ] * bool(listed_tasks)
    if agreeing_tasks:
        task_names = ", ".join(visible(task.task) for task in agreeing_tasks)
        count_text = plural(len(agreeing_tasks), "task")
        agreeing_text = f"{count_text} with every score within its tolerance: {task_names}"
        lines += wrapped_text(agreeing_text, width).splitlines()
    rows = "".join(f"{line}\n" for line in [*lines, ""])
    summary = "".join(f"{line}\n" for line in _summary_lines(outcome))
    return rows + (summary if width >= OUTCOME_WIDTH else wrapped_text(summary, width))


LISTED_TASKS_MAX = 5
"""Largest number of tasks for which an outcome lists every regime, so that it fits a screen."""


def _has_difference(task: AuditedTask) -> bool:
    """Whether a score of a task differs from its rerun."""
    return any(cell.verdict == "differs" for cell in task.regimes.values())


def _task_rows(tasks: Sequence[AuditedTask]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of the table of an outcome: task, regime and comparison."""
    for task in tasks:
        task_text = visible(task.task) + ("" if task.reason == "drawn" else f" ({task.reason})")
        for regime, cell in task.regimes.items():
            yield (task_text, visible(regime), *_cell_texts(cell))
            task_text = ""


def _cell_texts(cell: CellComparison) -> tuple[str, ...]:
    """Return claimed and rerun MCC, their difference, the tolerance and the verdict as texts."""
    difference = cell.claimed.MCC - cell.rescored.MCC
    verdict_text = _VERDICT_MARKS[cell.verdict]
    if cell.verdict == "differs":
        verdict_text += f" {_differing_text(cell)}"
    return (
        f"{cell.claimed.MCC:.4f}",
        f"{cell.rescored.MCC:.4f}",
        f"{difference:+.4f}",
        f"{cell.tolerance.MCC:.4f}",
        verdict_text,
    )


def _differing_text(cell: CellComparison) -> str:
    """Return the metrics outside their tolerance; if there are none, the canonical ones."""
    if metrics := differing_metrics(cell):
        return ", ".join(metrics)
    return f"canonical {', '.join(differing_metrics(cell.canonical))}" if cell.canonical else ""


def _summary_lines(outcome: AuditOutcome) -> Iterator[str]:
    """Yield the result of an audit, its reasons and notes."""
    if outcome.verdict == "agrees":
        yield (
            f"agrees: {plural(len(outcome.tasks), 'task')} rerun, every score within its tolerance"
        )
    objections = [objection.text for objection in objections_to_outcome(outcome)]
    yield from (f"differs: {visible(reason)}" for reason in objections)
    yield f"decoys: {visible(outcome.decoys.detail)}"
    yield from _registry_lines(outcome.plan.commitment)
    yield from (f"note: {visible(note)}" for note in outcome.notes if note not in objections)


def plan_text(plan: AnyPlan, targeted: int, file_name: str) -> str:
    """Return the drawn tasks and the next step; `targeted` tasks were requested in addition."""
    if isinstance(plan, EmbeddingPlan):
        return embedding_plan_text(plan, file_name)
    tasks_by_reason = {
        reason: [choice.task for choice in plan.chosen if choice.reason == reason]
        for reason in ("drawn", "earlier", "targeted")
    }
    beacon = beacon_text(plan.beacon)
    lines = [f"{visible(plan.commitment.model_id)}: seed {plan.seed}, by {beacon}"]
    for reason, tasks in tasks_by_reason.items():
        if tasks:
            lines += [
                f"{plural(len(tasks), 'task')} {reason}:",
                *(f"  {visible(task)}" for task in tasks),
            ]
    if len(tasks_by_reason["targeted"]) < targeted:
        lines.append("fewer tasks were added than requested: no others look suspicious")
    lines += [
        (
            f"check that commitment {plan.commitment_sha256[:16]}... was published at "
            f"{plan.committed_at}"
        ),
        next_line(shlex.join(["geneb-ci", "audit", "run", file_name])),
    ]
    return "\n".join(lines) + "\n"


def power_table(population: DrawPopulation, notes: Mapping[int, str], power: Fraction) -> str:
    """Return a table of detection probabilities by numbers of drawn and of fabricated tasks.

    `notes` has a note by number of drawn tasks; `power` is the probability that the rerun of a
    fabricated task detects it.
    """
    task_count = population.task_count
    fabricated = [m for m in TABLE_FABRICATED if m <= task_count]
    columns = ("drawn", *(f"m = {m}" for m in fabricated), "")
    rows = [
        (str(row.drawn), *map(probability_text, row.detection), notes.get(row.drawn, ""))
        for row in detection_table(population, [*TABLE_DRAWN, *notes], fabricated, power)
    ]
    table = Table(columns, rows, frozenset(columns[:-1])).fitted_rows(POWER_WIDTH)
    lines = [
        f"probability of detecting a fabricated task if m of {task_count} are fabricated",
        "",
        *(line for row in table for line in row),
        "",
    ]
    return (
        "\n".join(lines)
        + "\n"
        + wrapped_text("\n".join(_power_caption(population, power)), POWER_WIDTH)
    )


def _power_caption(population: DrawPopulation, power: Fraction) -> Iterator[str]:
    """Yield the sentences below the table of detection probabilities."""
    if population.guaranteed:
        yield (
            f"at least one task is drawn from each of the {population.guaranteed} larger "
            "categories; the table assumes that the fabricated tasks are those least likely to be "
            "drawn"
        )
    if power < 1:
        yield f"if a fabricated task is drawn, a rerun detects it with probability {float(power):g}"
