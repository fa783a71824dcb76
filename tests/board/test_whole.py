"""Every figure of a small board that has one of everything: all that is computed, held to a file.

The laws and the figures worked out by hand are in the files beside this one; here nothing that the
board says may change unseen. `pytest --update-golden` writes the file anew: read its diff.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from geneb_ci.audit.trust.level import AuditSummary
from geneb_ci.board.board import analyses_of
from geneb_ci.board.columns import Row
from geneb_ci.board.rows import board_file_bytes, leaderboards
from geneb_ci.board.uncertainty import row_scores
from geneb_ci.common.benchmark import parse_benchmark
from geneb_ci.common.types import TrustLevel
from geneb_ci.models.tasks import NO_NOTES
from reference_harness.formats.submission import SubmissionV10, SubmissionV11
from tests.board.board import entry
from tests.board.test_board import drop
from tests.small import BENCHMARK, small, small_v11

GOLDEN = Path(__file__).with_name("golden") / "whole.json"
# Two classes of other sizes, two of one size, and more classes of sizes that nobody wrote down.
SIZES = ([180, 320], [250, 250], None)
_TASKS = [
    replace(task, n_test=500, test_class_counts=sizes)
    for task, sizes in zip(BENCHMARK.tasks, SIZES, strict=True)
]
SIZED = parse_benchmark(
    json.dumps(replace(BENCHMARK, tasks=_TASKS).document()).encode(), "the sized benchmark"
)
KINDS = ("architecture", "tokenization", "pretraining", "pooling")
ATTRIBUTES: dict[str, dict[str, Any]] = {
    # bert-a and bert-b differ in size, bert-a and mamba-a in architecture, and so on.
    "bert-a": {"params": 1e8} | dict(zip(KINDS, ("bert", "kmer", "human", "mean"), strict=True)),
    "bert-b": {"params": 6e8} | dict(zip(KINDS, ("bert", "kmer", "human", "mean"), strict=True)),
    "bert-c": {"params": 1.2e8} | dict(zip(KINDS, ("bert", "bpe", "human", "mean"), strict=True)),
    "bert-d": {"params": 1.25e8} | dict(zip(KINDS, ("bert", "kmer", "human", "cls"), strict=True)),
    "mamba-a": {"params": 1e8} | dict(zip(KINDS, ("ssm", "kmer", "human", "mean"), strict=True)),
    "mamba-b": {"params": 2, "params_in_paper": 1}
    | dict(zip(KINDS, ("ssm", "kmer", "multi", "mean"), strict=True)),
    "unknown": {"params": 1e8, "architecture": "bert"},
}
PARAMS = {
    "bert-a": 100_000_000,
    "bert-b": 600_000_000,
    "bert-c": 120_000_000,
    "bert-d": 125_000_000,
    "mamba-a": 20_000_000,
    "mamba-b": 1,
    "contributed": 3_000_000_000,
    "Worst": 500_000_000,
    "unknown": 100_000_000,
}
PERFECT = {"MCC": 1.0, "Acc": 1.0, "F1": 1.0}


def rows() -> list[Row]:
    """Return one row of each kind, in no order."""
    results = []
    for name, params in PARAMS.items():
        if name in {"contributed", "Worst"}:
            continue
        document = small(name, SIZED)
        document["meta"]["params"] = params
        submission = SubmissionV10.model_validate(document)
        results.append(entry(submission, TrustLevel.OFFICIAL, registry=ATTRIBUTES))
    contributed = small_v11("contributed", SIZED)
    contributed["meta"] |= {"params": PARAMS["contributed"], "zero_shot": False}
    for regime in ("10shot", "1shot"):
        for k, cell in enumerate(contributed["evidence"][regime].values()):
            steps = (-0.06, -0.01, 0.0, 0.02, 0.05)
            values = [
                value + (k + 1) * step
                for value, step in zip(cell["per_seed"]["MCC"], steps, strict=True)
            ]
            cell["per_seed"]["MCC"] = values
    audit = AuditSummary(tasks=2, of=3, date="2026-11-20", sandbox=2, agrees=True)
    submission_v11 = SubmissionV11.model_validate(contributed)
    results.insert(1, entry(submission_v11, TrustLevel.VERIFIED, audit, ATTRIBUTES))
    worst = small_v11("Worst", SIZED)
    worst["meta"]["params"] = PARAMS["Worst"]
    drop(worst, "1shot", SIZED.task_ids[0])
    first, second, *_ = worst["results"]["full"]
    worst["results"]["full"][first] = PERFECT
    worst["results"]["full"][second] = {"MCC": -0.0, "Acc": 0.5, "F1": 1 / 3}
    disputed = AuditSummary(tasks=3, of=3, date="2026-11-21", sandbox=1, agrees=False)
    worst_v11 = SubmissionV11.model_validate(worst)
    results.append(entry(worst_v11, TrustLevel.DISPUTED, disputed, ATTRIBUTES))
    return results


def test_two_processes_give_what_one_does():
    first, two = (analyses_of(rows(), SIZED, NO_NOTES, jobs=jobs) for jobs in (1, 2))
    name = "diagnostics.json"
    assert board_file_bytes(name, first.diagnostics) == board_file_bytes(name, two.diagnostics)
    assert first.first_advice == two.first_advice


def whole() -> dict[str, Any]:
    """Return all that is computed from them."""
    entries = rows()
    analyses = analyses_of(entries, SIZED, NO_NOTES)
    categories, tasks = leaderboards(entries, SIZED)
    return {
        "leaderboard": categories,
        "leaderboard_tasks": tasks,
        "alone": row_scores(entries[1].submission, "10shot", SIZED)[:4],
        "advice": analyses.first_advice.model_dump(mode="json"),
        "diagnostics": analyses.diagnostics,
    }


def rounded(value: Any) -> Any:
    """Round what depends on the order of a sum: the tenth decimal of a figure is nobody's."""
    if isinstance(value, float) and math.isfinite(value):
        return round(value, 10) + 0.0
    if isinstance(value, Mapping):
        return {key: rounded(member) for key, member in value.items()}
    return [rounded(member) for member in value] if isinstance(value, list | tuple) else value


def test_every_figure_of_a_small_board(update_golden):
    text = json.dumps(rounded(whole()), indent=1) + "\n"
    if update_golden:
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text, encoding="utf-8")
    assert json.loads(text) == json.loads(GOLDEN.read_bytes())
    assert text == GOLDEN.read_text(encoding="utf-8")  # and the order of rows and keys
