"""What a row is held against: ranks as the board has them, levels of bytes that were audited."""

import dataclasses
import json
import math
from statistics import mean

import pytest

from geneb_ci.board.decisions import significantly_better
from geneb_ci.common.config import Layout, LayoutKind, find_layout
from geneb_ci.common.types import TrustLevel
from geneb_ci.github.verdict.base_branch import BaseBranch
from geneb_ci.github.verdict.decide import audit_estimate, row_comparison, row_standings
from geneb_ci.submission.document import parse_document
from reference_harness.formats.submission import MODELS
from tests.audit.recorded import MODEL, outcome_of, plan_for, put, repository, submission_bytes
from tests.board.board import entry, intervals
from tests.paths import ROOT, SUBMISSIONS
from tests.small import BENCHMARK, small, small_v11

ROWS = ("space", "deepgene", "splicebert-1024nt")


@pytest.fixture
def board(tmp_path) -> BaseBranch:
    """The public benchmark with three rows."""
    for name in ROWS:
        (tmp_path / f"{name}.json").write_bytes((SUBMISSIONS / f"{name}.json").read_bytes())
    return BaseBranch(
        Layout(LayoutKind.GENEB_CI, ROOT, submissions=tmp_path, policy=ROOT / "leaderboard/policy")
    )


def test_ranks_are_those_of_the_board(board):
    own = board.rows[0]
    decided = board.decision_function(own)
    entries = [entry(row, TrustLevel.OFFICIAL) for row in board.rows]
    interval_list = intervals(entries, board.benchmark)
    for regime, known in interval_list.items():
        stood, decided_standing = known.macro[own.model_id], decided(regime)
        assert (decided_standing.rank_low, decided_standing.rank_high) == (
            stood["rank_low"],
            stood["rank_high"],
        )
        above = significantly_better(known.board.scores["macro"], known.board.critical)
        index = known.board.models.index(own.model_id)
        assert (decided_standing.better_than, decided_standing.worse_than) == (
            above[index].sum(),
            above[:, index].sum(),
        )
        could = [models[own.model_id]["could_be_best"] for models in known.categories.values()]
        assert (decided_standing.best_in, decided_standing.categories) == (sum(could), 13)
    standing_list = row_standings(own, board.rows, board.benchmark, decided)
    assert [standing.decided for standing in standing_list] == [
        decided(r) for r in board.benchmark.regimes
    ]


def test_a_row_is_shown_beside_the_two_most_similar_and_the_best():
    rows = [MODELS["1.0"].model_validate(small(name)) for name in "abcdefgh"]
    categories = BENCHMARK.categories
    means = {
        row.model_id: {
            category: mean(row.results["full"][task].MCC for task in tasks)
            for category, tasks in categories.items()
        }
        for row in rows
    }
    score = {name: mean(each.values()) for name, each in means.items()}
    best = max(score, key=lambda name: score[name])
    bests = set()
    for own in rows:
        mine = list(means[own.model_id].values())
        near = sorted(
            (name for name in means if name != own.model_id),
            key=lambda name: math.dist(mine, list(means[name].values())),
        )
        models = [own.model_id, *near[:2]]
        models += [best] if best not in models else []
        bests.add(len(models))
        shown = row_comparison(own, rows, BENCHMARK)
        assert shown is not None
        assert (shown.regime, shown.models, shown.best) == ("full", models, best)
        assert {line.category: line.scores for line in shown.categories} == {
            category: [means[name][category] for name in models] for category in categories
        }
        (full, *_) = row_standings(own, rows, BENCHMARK)
        rank = 1 + sum(other > score[own.model_id] for other in score.values())
        assert (full.rank, full.before, full.rows) == (rank, rank, len(rows))
        assert full.score == score[own.model_id]
    assert bests == {3, 4}


def test_a_row_with_a_gap_stands_in_the_other_regimes_alone():
    document = small_v11("own")
    document["gaps"] = {"10shot": {"splice_sites": "out of memory"}}
    for part in ("results", "evidence"):
        del document[part]["10shot"]["splice_sites"]
    own = MODELS["1.1"].model_validate(document)
    board = [MODELS["1.0"].model_validate(small("other"))]
    places = row_standings(own, board, BENCHMARK)
    assert [standing.regime for standing in places] == ["full", "1shot"]
    assert [(standing.rows, standing.before) for standing in places] == [(2, None), (2, None)]


def test_nothing_is_decided_without_sizes_of_tasks(tmp_path):
    base = BaseBranch(find_layout(repository(tmp_path)))
    assert base.decision_function(base.rows[0]) is None
    assert not any(task.n_test for task in base.benchmark.tasks)
    assert audit_estimate(base.benchmark, base.policy).sequences == 0


def test_bytes_that_were_disputed_still_are(tmp_path):
    raw = submission_bytes()
    root = repository(tmp_path)
    put(root, outcome_of(plan_for(raw), raw, shift=0.05))
    base = BaseBranch(find_layout(root))
    (own,) = base.rows
    assert own.model_id == MODEL
    file = parse_document(raw, root / "submissions" / f"{MODEL}.json", MODEL)
    assert base.trust_level(own.model_id, file) is TrustLevel.DISPUTED
    other = dataclasses.replace(file, sha256="0" * 64)
    assert base.trust_level(own.model_id, other) is TrustLevel.SELF_REPORTED


def test_the_extractor_of_a_row_is_known_however_it_is_written(tmp_path):
    """A row whose members are escaped would share its extractor with nobody, who may change it."""
    root = repository(tmp_path)
    for name in ("plain", "escaped"):
        document = small_v11(name)
        text = json.dumps(document)
        if name == "escaped":
            text = text.replace("extractor", "\\u0065xtract\\u006fr")
        (root / f"submissions/{name}.json").write_text(text, encoding="utf-8")
    modules = BaseBranch(find_layout(root)).extractor_by_model
    assert {name: modules[name] for name in ("plain", "escaped")} == {
        "plain": "model.py",
        "escaped": "model.py",
    }
