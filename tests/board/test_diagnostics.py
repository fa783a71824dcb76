"""diagnostics.json: whole figures on small boards made by hand, and what the public rows say."""

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from scipy.stats import kendalltau, spearmanr

from geneb_ci.board.agreement import kendall_taus
from geneb_ci.board.diagnostics.findings import _centred_ranks, _correlation
from geneb_ci.board.diagnostics.whole import (
    COMPARED_ATTRIBUTES,
    _ComparedModel,
    pairs_with_one_difference,
    pareto_models,
    rounded,
)
from geneb_ci.board.rows import board_file_bytes
from geneb_ci.common.benchmark import shipped_benchmark
from reference_harness.formats.submission import SubmissionV10
from tests.board.board import diagnostics, entries, entry, found_diagnostics
from tests.board.test_board import drop
from tests.examples import examples
from tests.paths import ROOT
from tests.small import BENCHMARK, small

SIZED = replace(BENCHMARK, tasks=[replace(task, n_test=500) for task in BENCHMARK.tasks])
REGIMES = ["full", "10shot", "1shot"]


def board(*names: str, params: dict[str, int] | None = None) -> dict[str, Any]:
    """Build diagnostics of made-up rows on three tasks."""
    rows = []
    for name in names:
        document = small(name)
        document["meta"]["params"] = (params or {}).get(name, 86_000_000)
        rows.append(entry(SubmissionV10.model_validate(document)))
    return diagnostics(rows, SIZED)


SCHEMA = Draft202012Validator(
    json.loads((ROOT / "schemas/diagnostics-2.0.schema.json").read_bytes())
)


@pytest.mark.parametrize("rows", [4, pytest.param(None, marks=pytest.mark.nightly)])
def test_the_order_of_rows_changes_no_byte(rows):
    """Of some public rows, and by night of all of them."""
    own, benchmark = entries()[:rows], shipped_benchmark()
    raw = [
        board_file_bytes("diagnostics.json", diagnostics(rows, benchmark))
        for rows in (own, own[::-1])
    ]
    assert raw[0] == raw[1]


@pytest.mark.nightly  # in the gate: boards of few models and one with gaps, below
def test_the_public_rows_fit_the_schema():
    SCHEMA.validate(json.loads(board_file_bytes("diagnostics.json", found_diagnostics())))


def test_every_public_row_is_in_the_diagnostics():
    diagnostics_found = found_diagnostics()
    assert list(diagnostics_found["ranks"]) == REGIMES
    assert len(diagnostics_found["models"]) == 41


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b"), ("a", "b", "c")])
def test_boards_of_few_models_have_figures_where_those_are_defined(names):
    board_document = board(*names)
    SCHEMA.validate(json.loads(board_file_bytes("diagnostics.json", board_document)))
    assert [row["model"] for row in board_document["models"]] == list(names)
    figures = {(finding["id"], finding["scope"]): finding for finding in board_document["findings"]}
    assert figures["size-correlation", "board"]["value"] is None  # all of one size
    assert figures["size-correlation", "board"]["rows"] == len(names)
    assert (figures["mean-macro", "board"]["value"] is None) == (not names)


def test_a_row_with_gaps_is_left_out_of_its_regime_only(submission_v11):
    task = shipped_benchmark().task_ids[0]
    row = submission_v11(lambda document: drop(document, "1shot", task))
    rows = [*entries()[:3], entry(row)]
    rows = [e for e in rows if e.submission.model_id != "splicebert-1024nt"] + rows[-1:]
    board_diagnostics = diagnostics(rows, shipped_benchmark())
    SCHEMA.validate(json.loads(board_file_bytes("diagnostics.json", board_diagnostics)))
    counts = [len(board_diagnostics["ranks"][regime]["macro"]) for regime in REGIMES]
    assert counts == [4, 4, 3]
    assert next(m for m in board_diagnostics["models"] if m["model"] == "splicebert-1024nt")[
        "regimes"
    ] == [
        "full",
        "10shot",
    ]


def test_ranks_of_categories_and_regimes():
    for ranks in found_diagnostics()["ranks"].values():
        assert list(ranks["categories"]) == list(shipped_benchmark().category_order)
        for models in (ranks["macro"], ranks["micro"], *ranks["categories"].values()):
            scores = [s["score"] for s in models.values()]
            assert scores == sorted(scores, reverse=True)
            for model in models.values():
                above = sum(score > model["score"] for score in scores)
                assert model["rank"] == above + 1 or model["score"] in scores[: model["rank"] - 1]


def test_tau_by_hand():
    first, other, even = np.array([1.0, 2, 3]), np.array([1.0, 3, 2]), np.ones(3)
    taus = kendall_taus([first, other, even])
    assert rounded(taus[0, 1]) == 0.3333
    assert taus[0, 0] == 1.0
    assert np.isnan(taus[2]).all()
    assert np.isnan(kendall_taus([first[:1], other[:1]])).all()
    assert np.isnan(kendall_taus([first[:0], other[:0]])).all()


@given(st.integers(0, 2**32 - 1), st.integers(2, 40) | st.integers(60, 700))
@settings(max_examples=examples(50))
def test_tau_and_rho_are_those_of_scipy(seed, models):
    rng = np.random.default_rng(seed)
    columns = [rng.integers(4, size=models) / 4, rng.random(models), rng.normal(size=models)]
    taus = kendall_taus(columns)
    for (i, first), (j, other) in itertools.product(enumerate(columns), repeat=2):
        expected = kendalltau(first, other).statistic
        assert taus[i, j] == pytest.approx(expected, abs=1e-14, nan_ok=True)
        if models >= 3 and len(set(first)) > 1 and len(set(other)) > 1:
            expected = spearmanr(first, other).statistic
            rho = _correlation(_centred_ranks(first.tolist()), _centred_ranks(other.tolist()))
            assert rho == pytest.approx(expected, abs=1e-14)


def test_winners_change_from_full_to_10shot_in_nine_of_thirteen_categories():
    pair = found_diagnostics()["stability"]["regime_pairs"][0]
    ranks = found_diagnostics()["ranks"]
    changed = [
        name
        for name in shipped_benchmark().category_order
        if next(iter(ranks["full"]["categories"][name]))
        != next(iter(ranks["10shot"]["categories"][name]))
    ]
    assert (pair["regimes"], pair["winners_changed"], pair["categories"]) == (
        ["full", "10shot"],
        9,
        13,
    )
    assert [change["category"] for change in pair["changes"]] == changed
    assert (
        pair["winners_significantly_changed"] == sum(c["significant"] for c in pair["changes"]) < 9
    )


def test_who_wins_where():
    winners = found_diagnostics()["stability"]["winners"]["full"]
    assert winners["TF Binding"]["model"] == "enformer-official-rough"
    assert winners["Splice Sites"]["model"] == "nucleotide-transformer-2.5b-multi-species"
    assert winners["Chromatin Acc."]["could_be_best"] == 36


def test_agreement_of_categories_is_a_symmetric_matrix():
    for table in found_diagnostics()["stability"]["category_tau"].values():
        for a, b in itertools.product(table, repeat=2):
            assert table[a][b] == table[b][a]
            assert a != b or table[a][b] == 1.0


def test_the_front_by_hand():
    rows_of_models = zip("abcde", (1, 1, 2, 3, 4), (0.3, 0.2, 0.3, 0.5, 0.4), strict=True)
    assert [(m.model, m.params) for m in pareto_models(rows_of_models)] == [("a", 1), ("d", 3)]


def test_no_model_is_both_no_larger_and_better_than_one_of_the_front():
    diagnostics_found = found_diagnostics()
    for regime, size in diagnostics_found["size"].items():
        macro = {m: s["score"] for m, s in diagnostics_found["ranks"][regime]["macro"].items()}
        params = {row["model"]: row["params"] for row in diagnostics_found["models"]}
        for size_row in size["pareto"]:
            assert not [
                m for m in macro if params[m] <= size_row["params"] and macro[m] > size_row["macro"]
            ]


def facts(model: str, params: float, **kinds: str) -> _ComparedModel:
    return _ComparedModel(model, params, dict.fromkeys(COMPARED_ATTRIBUTES[1:], "x") | kinds)


def test_controlled_pairs_differ_in_one_attribute():
    models = [
        facts("a", 100),
        facts("b", 120),  # of one size with a: no pair, as nothing differs
        facts("c", 100, tokenization="y"),
        facts("d", 500),
        facts("e", 500, tokenization="y", pretraining="y"),
    ]
    assert [
        (name, first.model, other.model) for name, first, other in pairs_with_one_difference(models)
    ] == [
        ("tokenization", "c", "a"),
        ("size", "d", "a"),
        ("tokenization", "c", "b"),
        ("size", "d", "b"),
    ]


def test_controlled_pairs_of_the_public_rows():
    full_pairs = found_diagnostics()["pairs"]["full"]
    assert {name: len(part["pairs"]) for name, part in full_pairs.items()} == {
        "size": 26,
        "architecture": 7,
        "tokenization": 4,
        "pretraining": 5,
        "pooling": 0,
    }
    assert full_pairs["size"]["contrasts"] == [
        {
            "values": ["larger", "smaller"],
            "pairs": 26,
            "mean_difference": 0.0424,
            "first_better": 23,
        }
    ]
