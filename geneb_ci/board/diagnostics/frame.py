"""The board as tables: one row a model, best known by its id."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from geneb_ci.board.columns import Entry
from geneb_ci.board.rows import leaderboards
from geneb_ci.board.uncertainty import DECIMALS, Intervals
from geneb_ci.common.benchmark import Benchmark
from geneb_ci.common.types import TrustLevel

METRIC: Final = "MCC"


@dataclass(frozen=True)
class Frames:
    """What every diagnostic is computed from."""

    benchmark: Benchmark
    models: pd.DataFrame
    """Model id to display, level, params, paper (the paper's count, or missing)."""
    scores: dict[str, pd.DataFrame]
    """Regime: ranked models by macro, micro and the categories."""
    tasks: dict[str, pd.DataFrame]
    """Regime: ranked models by tasks."""
    intervals: Intervals
    attributes: Mapping[str, Mapping[str, Any]]
    """Model id to the facts of its entry in the model registry."""


def frames_of(entries: Iterable[Entry], benchmark: Benchmark, intervals: Intervals) -> Frames:
    """Put a board into tables; `intervals` are those of the same entries."""
    ordered = sorted(entries, key=lambda e: (e.submission.model_id.lower(), e.submission.model_id))
    categories, tasks = leaderboards(ordered, benchmark)
    models = pd.DataFrame(
        [_model(entry) for entry in ordered],
        columns=["model", "display", "level", "params", "paper"],
    ).set_index("model")
    scores = {
        regime: pd.DataFrame(
            [
                {
                    "macro": row[f"macro_{METRIC}"],
                    "micro": row[f"micro_{METRIC}"],
                    **row[f"cat_{METRIC}"],
                }
                for row in rows
            ],
            index=[row["model"] for row in rows],
            columns=["macro", "micro", *benchmark.category_order],
            dtype=float,
        )
        for regime, rows in categories["data"].items()
    }
    by_task = {
        regime: pd.DataFrame(
            [row[f"task_{METRIC}"] for row in rows],
            index=[row["model"] for row in rows],
            columns=list(benchmark.task_ids),
            dtype=float,
        )
        for regime, rows in tasks["data"].items()
    }
    attributes = {entry.submission.model_id: entry.attributes for entry in ordered}
    return Frames(benchmark, models, scores, by_task, intervals, attributes)


def _model(entry: Entry) -> dict[str, Any]:
    submission = entry.submission
    known = entry.attributes if entry.level is TrustLevel.OFFICIAL else {}
    return {
        "model": submission.model_id,
        "display": submission.meta.display,
        "level": str(entry.level),
        "params": submission.meta.params,
        "paper": known.get("params_in_paper", known.get("params")),
    }


def rounded(value: float, decimals: int = DECIMALS) -> float:
    """Round a figure as it is published; -0.0 becomes 0.0."""
    return round(float(value), decimals) + 0.0


def defined(value: float) -> float | None:
    """Round a figure, or give None where it is not defined."""
    return None if pd.isna(value) else rounded(value)
