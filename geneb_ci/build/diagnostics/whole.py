"""diagnostics.json as a value, put together from its parts."""

from collections.abc import Iterable, Mapping
from typing import Any

from geneb_ci.benchmark import Benchmark
from geneb_ci.build.diagnostics import shape
from geneb_ci.build.diagnostics.frame import METRIC, Frames, frames_of, rounded
from geneb_ci.build.diagnostics.pairs import pairs
from geneb_ci.build.diagnostics.pareto import size
from geneb_ci.build.diagnostics.retention import retention
from geneb_ci.build.diagnostics.scale import scale
from geneb_ci.build.diagnostics.stability import stability
from geneb_ci.build.diagnostics.tasks import tasks
from geneb_ci.build.noise import DRAWS, OVERLAP, SEED
from geneb_ci.build.rows import Entry
from geneb_ci.build.uncertainty import CONFIDENCE, ByModel, Intervals, RegimeIntervals


def diagnostics(
    entries: Iterable[Entry],
    benchmark: Benchmark,
    attributes: Mapping[str, Mapping[str, Any]],
    intervals: Intervals,
) -> dict[str, Any]:
    """Give diagnostics.json as a value.

    `attributes` are those of the policy's registry.json, `intervals` those of the same entries.
    """
    frames = frames_of(entries, benchmark, attributes, intervals)
    return shape.Diagnostics(
        schema_version="1.0",
        benchmark=shape.Benchmark(name=benchmark.name, sha256=benchmark.sha256),
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


def _models(frames: Frames) -> list[shape.Row]:
    return [
        shape.Row(
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


def _standings(models: ByModel) -> dict[str, shape.Standing]:
    return {model: shape.Standing(**standing._asdict()) for model, standing in models.items()}
