"""Figures on boards of two or three models, whole, as diagnostics.json has them."""

from collections.abc import Mapping
from typing import Any

import pytest

from geneb_ci.common.types import TrustLevel
from reference_harness.formats.submission import SubmissionV11
from tests.board.board import diagnostics, entry
from tests.board.test_diagnostics import SIZED
from tests.small import small_v11

KINDS = {"architecture": "T-dec", "tokenization": "BPE", "pretraining": "human", "pooling": "mean"}


def board(models: Mapping[str, float], params: Mapping[str, int | None]) -> dict[str, Any]:
    """Return diagnostics of models that score the same MCC on every task; "partial" has a gap."""
    rows = []
    for name, score in models.items():
        document = small_v11(name)
        document["evidence"] = {}
        for tasks in document["results"].values():
            for cell in tasks.values():
                cell["MCC"] = score
        known = {name: {"params": params.get(name)} | KINDS}
        if name == "partial":
            del document["results"]["1shot"][SIZED.task_ids[0]]
            document["gaps"] = {"1shot": {SIZED.task_ids[0]: "the run failed"}}
        row = SubmissionV11.model_validate(document)
        rows.append(entry(row, TrustLevel.OFFICIAL, registry=known))
    return diagnostics(rows, SIZED)


def sizes(document: dict[str, Any], regime: str) -> list[tuple[Any, ...]]:
    """Return the pairs of one regime that differ in size."""
    pairs = document["pairs"][regime]["size"]["pairs"]
    return [(p["first"], p["second"], p["values"], p["difference"]) for p in pairs]


def test_a_pair_counts_where_both_models_are_ranked():
    board_document = board({"a": 0.5, "partial": 0.25}, {"a": 500, "partial": 100})
    whole = [("a", "partial", ["500", "100"], 0.25)]
    assert {regime: sizes(board_document, regime) for regime in board_document["pairs"]} == {
        "full": whole,
        "10shot": whole,
        "1shot": [],
    }
    turned = board({"a": 0.5, "partial": 0.25}, {"a": 100, "partial": 500})
    assert sizes(turned, "full") == [("partial", "a", ["500", "100"], -0.25)]
    assert sizes(turned, "1shot") == []


def test_a_model_of_unknown_size_has_no_pair():
    """However small a known size is."""
    board_document = board(
        {"a": 0.5, "b": 0.25, "c": 0.1, "d": 0.2}, {"a": 1, "b": 2, "c": 0, "d": None}
    )
    assert sizes(board_document, "full") == [("b", "a", ["2", "1"], -0.25)]


def test_one_model_alone_has_hard_tasks_and_no_variance():
    figures_by_id = {
        (finding["id"], finding["scope"]): finding for finding in board({"a": 0.2}, {})["findings"]
    }
    hard = figures_by_id["hard-tasks", "board"]
    assert (hard["value"], hard["parts"]) == (
        3,
        [{"name": task, "value": pytest.approx(0.2)} for task in sorted(SIZED.task_ids)],
    )
    assert figures_by_id["high-variance-tasks", "board"]["value"] == 0


def test_a_winner_alone_could_be_best():
    winners = board({"a": 0.9, "b": 0.1, "c": 0.1}, {})["stability"]["winners"]["full"]
    assert {
        name: (member["model"], member["could_be_best"]) for name, member in winners.items()
    } == (dict.fromkeys(SIZED.category_order, ("a", 1)))
