"""Forges a submission the way a careful cheat would: raised scores with possible matrices."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reference_harness.probe.metrics import mean_scores, scores_of

RAISED = ("mini_splice", "mini_promoter")
MOVED = 24  # so many of the 160 test sequences become correct predictions, in each seed


def forge(record: Path, submission: Path, model_id: str, raised: Sequence[str] = RAISED) -> None:
    """Forge a submission made from a run record: every seed of some tasks gets a better matrix.

    `raised` are ids of tasks. The scores of each seed stay consistent with their matrix, so that no
    check can object.
    """
    run = json.loads(record.read_bytes())
    document = json.loads(submission.read_bytes()) | {"model_id": model_id}
    for task in raised:
        for regime, measured in run["tasks"][task]["regimes"].items():
            evidence = document["evidence"][regime][task]
            better = [_raised(matrix) for matrix in measured["confusion"]]
            evidence["per_seed"] = {
                metric: [getattr(scores, metric) for scores in better]
                for metric in ("MCC", "Acc", "F1")
            }
            document["results"][regime][task] = mean_scores(better)._asdict()
    submission.with_name(f"{model_id}.json").write_text(
        json.dumps(document, indent=2) + "\n", encoding="utf-8"
    )


def _raised(matrix: list[list[int]]) -> Any:  # scores, whose type is the harness's
    cells = np.array(matrix)
    cells_left = MOVED
    for true, row in enumerate(cells):
        moved_from_class = cells_left // (len(cells) - true)
        for wrong in range(len(row)):
            moved = 0 if wrong == true else min(moved_from_class, int(row[wrong]))
            row[wrong] -= moved
            row[true] += moved
            moved_from_class -= moved
            cells_left -= moved
    return scores_of(cells)
