"""Which model to take for a need, from rows or from published files: by a bounded loss.

    advise(ModelRequest(category="Promoters", ...), candidates, board, benchmark)

`recommended` is the smallest model that is within the margin of the best with 95 % confidence, or
else the best one. What expected loss and bound mean: docs/uncertainty.md.

Everything that decides is published as computed (scores, standard errors, the critical value), so
advice from the files equals advice from the submissions.
"""

import functools
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from geneb_ci.board.advice import (
    MARGIN,
    NO_MARKS,
    Advice,
    AdviceFacts,
    AdvisedBenchmark,
    Choice,
    ModelRequest,
    Recommendations,
    RowMarks,
    exact_need,
    read_built,
)
from geneb_ci.board.columns import Entry
from geneb_ci.board.decisions import (
    Bools,
    Floats,
    Positions,
    ScoreColumn,
    compare_pair,
    intervals_of,
    losses,
)
from geneb_ci.board.diagnostics.document import DiagnosedScore, Ranks, Shared
from geneb_ci.board.reasons import reasons_of
from geneb_ci.board.rows import DIAGNOSTICS, LEADERBOARD
from geneb_ci.board.uncertainty import Intervals, RegimeScores, intervals, is_drawn
from geneb_ci.common.json_text import json_text
from geneb_ci.common.types import Evidence, has_evidence
from reference_harness.formats.benchmark import Benchmark

SIZES = (None, 1_000_000_000, 500_000_000, 100_000_000, 25_000_000)
"""Limits in recommendations.json: one large accelerator, a small one, a laptop, a processor."""
EVIDENCES = (None, Evidence.AUDITED.value)


def known_of(entries: Iterable[Entry], intervals: Intervals, regime: str) -> AdviceFacts:
    """Return what advice needs to know of a regime of a board."""
    regime_intervals = intervals.regimes[regime]
    return _known_of(entries)(regime_intervals.board, regime_intervals.is_drawn)


def _known_of(entries: Iterable[Entry]) -> Callable[[RegimeScores, bool], AdviceFacts]:
    """Return what tells what advice needs to know of any regime of a board."""
    rows = list(entries)
    evidence = {entry.submission.model_id: entry.evidence for entry in rows}
    marks = {entry.submission.model_id: _marks_of(entry) for entry in rows}
    return lambda board, drawn: AdviceFacts(board, evidence, drawn, marks)


def _marks_of(entry: Entry) -> RowMarks:
    defects = tuple((defect.id, defect.what, defect.explained) for defect in entry.marks.defects)
    return RowMarks(entry.marks.warnings, defects)


def steps(
    entries: Iterable[Entry], boards: Mapping[str, RegimeScores], benchmark: Benchmark
) -> dict[str, Callable[[], bytes]]:
    """Return by name what takes long and can be made alone, in any process: advice of a regime."""
    known_by = _known_of(entries)
    known = {name: known_by(board, is_drawn(name, benchmark)) for name, board in boards.items()}
    return {
        _step(regime): functools.partial(_regime_advice, known[regime], regime, benchmark)
        for regime in boards
    }


def _step(regime: str) -> str:
    return f"advice in {regime}"


def recommendations(
    entries: Iterable[Entry],
    benchmark: Benchmark,
    intervals: Intervals,
    results: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return recommendations.json as a value: advice for every common need.

    `results` is what the `steps` of these entries gave, where the caller has made them.
    """
    if results is None:
        boards = {
            regime: regime_intervals.board for regime, regime_intervals in intervals.regimes.items()
        }
        results = {name: make() for name, make in steps(entries, boards, benchmark).items()}
    whole = Recommendations(
        schema_version="2.0",
        benchmark=AdvisedBenchmark(name=benchmark.name, sha256=benchmark.sha256),
        margin=MARGIN,
        advice=[],
    ).model_dump(mode="json")
    advice = (json.loads(results[_step(regime)]) for regime in benchmark.regimes)
    return whole | {"advice": list(itertools.chain.from_iterable(advice))}


def _regime_advice(known: AdviceFacts, regime: str, benchmark: Benchmark) -> bytes:
    """Return the advice of a regime as a JSON list, by category, then size and evidence."""
    confirmed = {evidence_level: _confirmed(known, evidence_level) for evidence_level in EVIDENCES}
    small = {size: _small(known, size) for size in SIZES}
    meets = {(m, e): small[m] & confirmed[e] for m, e in itertools.product(SIZES, EVIDENCES)}
    advice = []
    for category in (None, *benchmark.category_order):
        name = category or "macro"
        ordered = known.board.best_first(name)
        chosen: dict[bytes, _Chosen] = {}  # limits that the same models meet have one choice
        for (size, evidence), met in meets.items():
            need = ModelRequest(
                category=category, regime=regime, max_params=size, evidence=evidence
            )
            key = met.tobytes()
            if key not in chosen:
                chosen[key] = _chosen(known, name, ordered[met[ordered]], MARGIN)
            advice.append(_advised(need, known, chosen[key]).model_dump(mode="json"))
    return json_text(advice)


def advise(need: ModelRequest, known: AdviceFacts, margin: float = MARGIN) -> Advice:
    """Choose among the models that meet size and evidence, for a category that the board has."""
    met = _small(known, need.max_params) & _confirmed(known, need.evidence)
    name = need.category or "macro"
    ordered = known.board.best_first(name)
    return _advised(need, known, _chosen(known, name, ordered[met[ordered]], margin))


class _Chosen(NamedTuple):
    """The model chosen among some of a regime by one score."""

    places: Positions
    """The models, best first."""
    margin: float
    recommended: str | None = None
    best: Choice | None = None
    could_be_best: Sequence[str] = ()
    within_margin: Choice | None = None
    on_average: Choice | None = None


def _advised(need: ModelRequest, known: AdviceFacts, chosen: _Chosen) -> Advice:
    """Return the advice that a choice is for a need, with reasons."""
    advice = Advice(
        need=need,
        margin=chosen.margin,
        considered=len(chosen.places),
        recommended=chosen.recommended,
        best=chosen.best,
        could_be_best=list(chosen.could_be_best),
        within_margin=chosen.within_margin,
        on_average=chosen.on_average,
        why=[],
    )
    return advice.model_copy(update={"why": reasons_of(advice, known, chosen.places)})


def _chosen(known: AdviceFacts, name: str, places: Positions, margin: float) -> _Chosen:
    """Choose among some models by one score; `places` has the best first."""
    if not len(places):
        return _Chosen(places, margin)
    board, chooser, best = known.board, _Chooser(known, name, places, margin), int(places[0])
    within = chooser.smallest(chooser.losses.bound, margin)
    recommended = best if within is None else within
    could = sorted(
        chooser.losses.best.tolist(),
        key=lambda k: (k != best, -board.scores[name].values[k], board.models[k]),
    )
    return _Chosen(
        places,
        margin,
        board.models[recommended],
        chooser.choice(best),
        [board.models[k] for k in could],
        chooser.choice(within),
        chooser.choice(chooser.smallest(chooser.losses.expected, margin)),
    )


def advise_built(folder: Path, need: ModelRequest, margin: float) -> Advice:
    """Return advice from the files of a built board. Raises UsageProblem."""
    values = read_built(folder, DIAGNOSTICS, LEADERBOARD)
    ranks = values[DIAGNOSTICS]["ranks"]
    categories = dict.fromkeys(name for columns in ranks.values() for name in columns["categories"])
    exact = exact_need(need, list(ranks), list(categories))
    return advise(exact, known_of_built(values, exact.regime), margin)


def advise_rows(
    entries: Iterable[Entry], benchmark: Benchmark, need: ModelRequest, margin: float
) -> Advice:
    """Return advice from rows. Raises UsageProblem for a category or a regime that is none."""
    rows = list(entries)
    exact = exact_need(need, benchmark.regimes, benchmark.category_order)
    estimated = intervals(rows, benchmark, regimes=[exact.regime])
    return advise(exact, known_of(rows, estimated, exact.regime), margin)


def _small(known: AdviceFacts, max_params: int | None) -> Bools:
    """Return which models of a regime meet a size: (M,)."""
    listed = [max_params is None or params <= max_params for params in known.board.params]
    return np.array(listed, dtype=bool)


def _confirmed(known: AdviceFacts, evidence: str | None) -> Bools:
    """Return which models of a regime meet an evidence: (M,)."""
    least = None if evidence is None else Evidence(evidence)
    enough = {level: has_evidence(level, least) for level in Evidence}
    return np.array([enough[known.evidence[model]] for model in known.board.models], dtype=bool)


class _Chooser:
    """Chooses among some models of a regime by one score; the first of them is the best.

    Losses are known of models that lose at most the margin.
    """

    def __init__(self, known: AdviceFacts, name: str, places: Positions, margin: float) -> None:
        self.known, self.places = known, places.tolist()
        self.scores = known.board.scores[name]
        self.losses = losses(self.scores, places, known.board.critical, margin)
        self._low, self._high = intervals_of(self.scores)

    def smallest(self, loss: Any, margin: float) -> int | None:
        """Return the smallest model whose loss is within the margin, of equals the best."""
        params = self.known.board.params
        within = np.flatnonzero(loss <= margin).tolist()
        position = min(within, key=lambda index: (params[self.places[index]], index), default=None)
        return None if position is None else self.places[position]

    def choice(self, k: int | None) -> Choice | None:
        """Describe a model; None for none."""
        if k is None:
            return None
        board, position = self.known.board, self.places.index(k)
        best = self.places[0]
        marks = self.known.marks.get(board.models[k], NO_MARKS)
        against = compare_pair(self.scores, best, k, board.critical)
        return Choice(
            model=board.models[k],
            params=board.params[k],
            evidence=str(self.known.evidence[board.models[k]]),
            score=float(self.scores.values[k]),
            low=float(self._low[k]),
            high=float(self._high[k]),
            expected_loss=float(self.losses.expected[position]),
            loss_bound=float(self.losses.bound[position]),
            best_is_better=None if k == best else against.probability,
            warnings=[rule for rule, _ in marks.warnings],
            defects=[name for name, _, _ in marks.defects],
        )


def known_of_built(values: Mapping[str, Mapping[str, Any]], regime: str) -> AdviceFacts:
    """Return what advice needs to know of a regime from diagnostics.json and leaderboard.json."""
    ranks = Ranks.model_validate(values[DIAGNOSTICS]["ranks"][regime], strict=False)
    facts = {model_facts["model"]: model_facts for model_facts in values[DIAGNOSTICS]["models"]}
    columns = {"macro": ranks.macro, "micro": ranks.micro, **ranks.categories}
    models = tuple(model for model in facts if model in ranks.macro)
    board = RegimeScores(
        models=models,
        params=tuple(facts[model]["params"] for model in models),
        scores={
            name: _scores(column, models)._replace(shared=_shared(ranks.shared, name, models))
            for name, column in columns.items()
        },
        tasks={},
        rounded=ranks.rounded,
        critical=ranks.critical,
        draws_covered=tuple(ranks.draws_covered),
    )
    rows = values[LEADERBOARD]["data"][regime]
    return AdviceFacts(
        board,
        {model: Evidence(model_facts["evidence"]) for model, model_facts in facts.items()},
        ranks.is_drawn,
        {row["model"]: _marks(row) for row in rows},
    )


def _scores(column: Mapping[str, DiagnosedScore], models: tuple[str, ...]) -> ScoreColumn:
    values = [
        (
            score.score,
            score.error * score.error,
            math.inf if score.freedom is None else score.freedom,
        )
        for score in (column[model] for model in models)
    ]
    return ScoreColumn(*np.array(values, dtype=float).reshape(-1, 3).T)


def _shared(shared: Shared | None, name: str, models: tuple[str, ...]) -> Floats | None:
    if shared is None or name not in shared.scores:
        return None
    covariances = np.zeros((len(models), len(models)))
    places = [models.index(model) for model in shared.models]
    for n, row in enumerate(shared.scores[name]):
        covariances[places[n], places[:n]] = covariances[places[:n], places[n]] = row
    return covariances


def _marks(row: Mapping[str, Any]) -> RowMarks:
    return RowMarks(
        tuple(row.get("warnings", {}).items()),
        tuple(
            (defect["id"], defect["what"], defect["explained"]) for defect in row.get("defects", ())
        ),
    )
