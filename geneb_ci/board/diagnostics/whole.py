"""diagnostics.json as a value, put together from its parts."""

from collections.abc import Iterable
from typing import Any

from geneb_ci.board.columns import Entry
from geneb_ci.board.diagnostics import shape
from geneb_ci.board.diagnostics.figures import pairs, retention, scale, size, stability, tasks
from geneb_ci.board.diagnostics.frame import METRIC, Frames, frames_of, rounded
from geneb_ci.board.noise import DRAWS, OVERLAP, SEED
from geneb_ci.board.uncertainty import CONFIDENCE, ByModel, Intervals, RegimeIntervals
from geneb_ci.common.benchmark import Benchmark


def diagnostics(
    entries: Iterable[Entry], benchmark: Benchmark, intervals: Intervals
) -> dict[str, Any]:
    """Return diagnostics.json as a value; `intervals` are those of the same entries."""
    frames = frames_of(entries, benchmark, intervals)
    return shape.Diagnostics(
        schema_version="1.0",
        benchmark=shape.ScoredBenchmark(name=benchmark.name, sha256=benchmark.sha256),
        method=shape.Method(
            metric=METRIC, confidence=CONFIDENCE, draws=DRAWS, seed=SEED, overlap=OVERLAP
        ),
        models=_models(frames),
        ranks={regime: _ranks(found) for regime, found in intervals.regimes.items()},
        scale=scale(frames),
        stability=stability(frames),
        retention=retention(frames),
        tasks=tasks(frames),
        size=size(frames),
        pairs=pairs(frames),
    ).model_dump(mode="json")


def _models(frames: Frames) -> list[shape.ModelFacts]:
    return [
        shape.ModelFacts(
            model=str(row.Index),
            display=str(row.display),
            level=str(row.level),
            params=int(row.params),
            params_in_paper=int(row.paper) if row.paper == row.paper else None,
            regimes=[name for name, table in frames.scores.items() if row.Index in table.index],
        )
        for row in frames.models.astype({"paper": float}).itertuples()
    ]


def _ranks(found: RegimeIntervals) -> shape.Ranks:
    return shape.Ranks(
        macro=_standings(found.macro),
        micro=_standings(found.micro),
        categories={name: _standings(models) for name, models in found.categories.items()},
        tasks={
            task: {model: (rounded(low), rounded(high)) for model, (low, high) in models.items()}
            for task, models in found.tasks.items()
        },
        draws_covered=list(found.draws_covered),
    )


def _standings(models: ByModel) -> dict[str, shape.DiagnosedScore]:
    return {model: shape.DiagnosedScore(**standing._asdict()) for model, standing in models.items()}
