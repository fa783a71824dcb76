"""Renders verifications, comparisons and audits of receipts, for a terminal and as JSON."""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from geneb_ci.receipt.cells import CellDifference
from geneb_ci.receipt.embeddings import FILES, TREE, VALUES
from geneb_ci.receipt.source import size_text
from geneb_ci.receipt.verify import (
    CELLS,
    CLAIMS,
    EQUAL,
    PREDICTED,
    STEPS,
    ReceiptStep,
    ReceiptVerification,
)
from geneb_ci.render.plain import log_safe_json, visible
from geneb_ci.render.table import Table, wrapped_text
from geneb_ci.render.text import escape
from reference_harness.formats.text import next_line, plural

if TYPE_CHECKING:
    from geneb_ci.audit.compare.embedding_outcome import EmbeddingOutcome
    from geneb_ci.audit.sampling.plan import Beacon, EmbeddingPlan
    from geneb_ci.receipt.near import Nearness

TEXT_WIDTH = 80
"""Columns of the text."""
LISTED_DIFFERENCES_MAX = 20
"""Maximum number of differences listed on a terminal; the JSON has all."""
VALUE_CHARACTERS_MAX = 100
"""Maximum characters of a value that are shown, since a matrix of 25 classes has thousands."""
_MARKS = {"held": "✓", "refused": "✗", "unknown": "?"}
"""By result of a step: the mark before its name."""
_PASSED_TEXTS = {
    CLAIMS: "the file is consistent with itself and with the benchmark",
    FILES: "every file has the size and digest that the receipt gives",
    VALUES: "no -0.0, NaN or infinity",
    TREE: "the embeddings of each file give the root in the receipt",
    EQUAL: "equal sequences have equal embeddings, within and across tasks",
    PREDICTED: "every predicted and true class follows from embeddings and data",
}
"""By step: what is shown if the step holds."""
_NAME_WIDTH = max(map(len, STEPS))
"""Columns of the names of steps."""
NAME_COLUMNS_MAX = 64
"""Maximum number of columns of a model's name in a line of text."""


def receipt_text(verification: ReceiptVerification) -> str:
    """Return a verification as text for a terminal, at 80 columns."""
    return wrapped_text("\n".join(_verification_lines(verification)), TEXT_WIDTH)


def _verification_lines(verification: ReceiptVerification) -> Iterator[str]:
    """Yield the result of each step, the differences, and the numbers of what was compared."""
    yield f"{escape(verification.file)}: {'verified' if verification.holds else 'not verified'}"
    for step in verification.steps:
        yield f"  {_MARKS[step.state]} {step.name:<{_NAME_WIDTH}}  {_step_text(step, verification)}"
        if step.fix:
            yield f"      fix: {escape(step.fix)}"
    listed_differences = verification.differences[:LISTED_DIFFERENCES_MAX]
    yield from (f"    - {escape(_shortened_text(difference))}" for difference in listed_differences)
    if hidden_count := len(verification.differences) - len(listed_differences):
        yield f"    - and {plural(hidden_count, 'difference')} more: --format json lists all"
    yield ""
    yield counts_text(verification)
    if verification.weakness:
        yield f"weak receipt: {verification.weakness}; its audit raises no trust level"


def _step_text(step: ReceiptStep, verification: ReceiptVerification) -> str:
    """Return the result of a step in words."""
    if step.state == "unknown":
        return "not checked"
    if step.reason:
        return escape(step.reason)
    if step.name == CELLS and verification.unclaimed_count:
        return "every submitted score agrees; some cells were not submitted"
    return _PASSED_TEXTS.get(step.name, "every score agrees with the receipt")


def _shortened_text(difference: CellDifference) -> str:
    """Return a difference as a sentence, each value cut at `VALUE_CHARACTERS_MAX` characters."""
    shortened_difference = difference._replace(
        claimed=difference.claimed[:VALUE_CHARACTERS_MAX]
        if difference.claimed is not None
        else None,
        computed=difference.computed[:VALUE_CHARACTERS_MAX],
    )
    return shortened_difference.text


def counts_text(verification: ReceiptVerification) -> str:
    """Return one line: the numbers of equal cells, tasks, embeddings and bytes, and the root."""
    receipt_bytes = sum(verification.receipt.tasks[task].bytes for task in verification.tasks)
    line = (
        f"{verification.equal_count}/{verification.computed_count} cells"
        if verification.cells
        else "no cell was computed"
    )
    if verification.unclaimed_count:
        line += f" equal the submitted ones; {verification.unclaimed_count} were not submitted"
    seconds = f" in {verification.cells.seconds:.0f} s" if verification.cells else ""
    tasks = plural(len(verification.tasks), "task")
    data_text = (
        f"; {tasks}, {verification.embedding_count:,} embeddings, {size_text(receipt_bytes)}"
        if verification.tasks
        else ""
    )
    return f"{line}{seconds}{data_text}; root {verification.receipt.root[:16]}..."


def receipt_json(verification: ReceiptVerification) -> str:
    """Return a verification as JSON."""
    refused = verification.refused
    document = {
        "schema_version": "1.0",
        "file": verification.file,
        "model_id": verification.model_id,
        "root": verification.receipt.root,
        "verified": verification.holds,
        "refused_at": refused.name if refused is not None else None,
        "weak": verification.weakness or None,
        "tasks": list(verification.tasks),
        "rows": verification.embedding_count,
        "cells": {
            "computed": verification.computed_count,
            "equal": verification.equal_count,
            "filled": verification.unclaimed_count,
        },
        "steps": [
            {"step": s.name, "state": s.state, "found": s.reason, "fix": s.fix}
            for s in verification.steps
        ],
        "differences": [
            {
                "regime": difference.regime,
                "task": difference.task,
                "what": difference.part_name,
                "claimed": difference.claimed,
                "found": difference.computed,
            }
            for difference in verification.differences
        ],
        "recomputed": verification.cells.model_dump() if verification.cells is not None else None,
    }
    return log_safe_json(document)


def nearness_text(models: tuple[str, str], nearness: "Nearness") -> str:
    """Return the comparison of two receipts for a terminal."""
    from geneb_ci.receipt.near import CLOSE_DISTANCE  # it imports NumPy

    rows = [(name, f"{share:.1%}") for name, share in nearness.close.items()]
    if nearness.same_predictions is not None:
        rows.append(("equal predictions", f"{nearness.same_predictions:.2%}"))
    table = Table(("compared", "share"), rows, frozenset({"share"}))
    verdict = f"near: {nearness.reason}" if nearness.is_near else "not near"
    lines = [
        *(visible(name, NAME_COLUMNS_MAX) for name in models),
        "",
        f"Embeddings within {CLOSE_DISTANCE:g} of each other, of {nearness.rows:,}:",
        *(f"  {line}" for line in table.text_lines(head=False)),
        "",
        verdict,
    ]
    return "\n".join(lines) + "\n"


def nearness_json(models: tuple[str, str], nearness: "Nearness") -> str:
    """Return the comparison of two receipts as JSON."""
    document = {"models": list(models), "is_near": nearness.is_near, "why": nearness.reason}
    return log_safe_json(document | nearness._asdict())


def beacon_text(beacon: "Beacon") -> str:
    """Return the beacon that decided a draw, as part of a sentence."""
    if beacon.kind == "hmac":
        return "the fallback key" + ", which is revealed at the end of its epoch" * (
            beacon.key is None
        )
    if beacon.kind == "practice":
        return f"practice round {beacon.round}, which anybody can predict"
    return f"round {beacon.round} of drand quicknet"


def embedding_plan_text(plan: "EmbeddingPlan", file_name: str) -> str:
    """Return the plan of an audit of embeddings, and the next step."""
    beacon, commitment = beacon_text(plan.beacon), plan.commitment_sha256[:16]
    earlier_lines = [
        f"the embeddings of {plural(len(plan.earlier), 'earlier draw')} are rerun, too"
    ]
    return "\n".join([
        f"{visible(plan.commitment.model_id)}: seed {plan.seed}, by {beacon}",
        *(earlier_lines if plan.earlier else []),
        f"check that commitment {commitment}... was published at {plan.committed_at}",
        next_line(shlex.join(["geneb-ci", "audit", "run", file_name, "--receipt", "DIR"])),
        "",
    ])  # fmt: skip


def embedding_outcome_text(outcome: "EmbeddingOutcome") -> str:
    """Return the outcome of an audit of embeddings as text."""
    from geneb_ci.audit.compare.embedding_outcome import WITH_ROW_TOLERANCES  # of audits
    from geneb_ci.audit.record.verify_embeddings import draw_counts

    cells, direction = outcome.cells, outcome.direction
    deviations = [deviation for task in outcome.tasks for deviation in task.deviation]
    mismatches = [mismatch for task in outcome.tasks for mismatch in task.mismatch]
    failed = sum(len(task.failed) for task in outcome.tasks)
    largest = f"{max(deviations, default=0.0):.1e}"
    deviation_unit = (
        "times the root mean square of the embedding"
        if outcome.schema_version == WITH_ROW_TOLERANCES
        else "times the tolerance"
    )
    counts = [f"{count:,} {part}" for part, count in draw_counts(outcome).items()]
    mismatch_text = f"{max(mismatches, default=0)} of {outcome.receipt.dim}"
    lines = [
        f"cells recomputed from the receipt: {cells.equal}/{cells.of} are as claimed",
        f"embeddings drawn: {', '.join(counts)}",
        (
            f"embeddings recomputed: {outcome.embedded:,}; "
            f"{plural(failed, 'embedding')} outside the tolerance"
        ),
        (
            f"  largest deviation {largest} {deviation_unit}; up to {mismatch_text} coordinates "
            "differ after rounding"
        ),
        (
            f"deviations in the direction of the labels: {direction.statistic:+.2f} sd, "
            f"p = {direction.p:.2g}"
        ),
        *(
            f"effect of the differences between claimed and rerun {name} embeddings: "
            f"{part_effect.statistic:+.2f} sd; {part_effect.rows:,} embeddings differ"
            for name, part_effect in (outcome.effect or ())
        ),
        *(
            [f"within the tolerances, the test loss could fall by {outcome.room:.1g} nats"]
            if outcome.effect is not None
            else []
        ),
        *(
            f"with 95 % confidence, altered test embeddings raise the mean MCC of {bound.regime} "
            f"by at most {bound.raised:.4f}: {bound.flipped} of {bound.draws:,} draws change the "
            "predicted class"
            for bound in outcome.bounds
        ),
        (
            f"with 95 % confidence, at most {outcome.detected_training_share:.2%} of the training "
            "embeddings are altered; the bounds above do not include their effect"
        ),
        *(f"unclaimed: {visible(cell)}" for cell in cells.unclaimed),
    ]
    if outcome.verdict == "agrees":
        lines.append(
            f"agrees: {cells.equal}/{cells.of} cells as claimed, "
            f"{outcome.embedded:,} embeddings recomputed"
        )
    lines += [f"differs: {visible(reason)}" for reason in outcome.reasons]
    lines.append(f"decoys: {visible(outcome.decoys.detail)}")
    lines += [f"not proved: {visible(claim)}" for claim in outcome.not_proved]
    lines += [f"note: {visible(note)}" for note in outcome.notes]
    return "\n".join(lines) + "\n"
