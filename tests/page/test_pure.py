"""The functions that compute, called as the modules they are, without the page."""

import csv
import io
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.page.boards import values
from tests.page.rows import DASH, FULL, MINUS, display, shown

TEXT = {"key": "x", "kind": "text"}
MODELS = [
    {"name": "b", "x": "T"},
    {"name": "a"},
    {"name": "c", "x": "a"},
    {"name": "d", "x": "t"},
]
SCORES = [0.1, 0.2, 0.3, 0.4]
CHECKED = {"params": 4e9, "evidence": "checked"}
DISPUTED = CHECKED | {"evidence": "disputed"}
BY_COLUMN = [[0.1, 0.4], [0.2, 0.3]]


@pytest.mark.parametrize(
    ("view_address", "arguments", "expected"),
    [
        ("words.scoreText", [-0.0004], "0.000"),
        ("words.scoreText", [-0.0126], f"{MINUS}0.013"),
        ("words.scoreText", [0.9995], "1.000"),
        ("words.rangeText", [3, 3], "3"),
        ("words.rangeText", [3, 9], f"3{DASH}9"),
        ("words.sizeText", [0], "none"),
        ("words.sizeText", [999], "999"),
        ("words.sizeText", [19_700_000], "19.7M"),
        ("words.sizeText", [1_200_000_000], "1.2B"),
        ("words.weightText", [3_000_000_000], "6 GB"),
        ("words.weightText", [19_700_000], "39 MB"),
        ("words.memoryText", [0], "no weights"),
        ("words.memoryText", [87_100_000], "170 MB weights (fp16)"),
        ("words.limitText", [None], "any size"),
        ("words.regimeWords", ["full"], "full (all training examples)"),
        ("words.regimeWords", ["1shot"], "1shot (1 training example per class)"),
        ("words.regimeWords", ["constructor"], "constructor"),
        ("words.metricName", ["toString"], "toString"),
        ("words.counted", [1, "model"], "1 model"),
        ("words.counted", [1025, "model"], "1,025 models"),
        ("words.shortened", ["\U0001d544" * 30, 5], "\U0001d544" * 4 + "\u2026"),
        ("ranks.plainRanks", [[0.5, 0.7, 0.5, 0.1]], [2, 1, 2, 4]),
        ("ranks.rankOf", [[0.5, 0.7, 0.5, 0.1], 2], 2),
        ("ranks.heat", [0.5, [0, 1]], "h8"),
        ("ranks.heat", [1, [0, 1]], "h15"),
        ("ranks.heat", [-0.2, [0, 1]], "h0"),
        ("ranks.heat", [0.3, [0.3, 0.3]], "h8"),
        ("ranks.frontOf", [[0, 1, 2, 3], [5, 1, 3, 0], [0.9, 0.2, 0.1, 1]], [1, 0]),
        ("words.byExamples", [["full", "10shot", "1shot"]], ["1shot", "10shot", "full"]),
        ("words.byExamples", [["b", "2shot", "a"]], ["2shot", "b", "a"]),
        ("ranks.rangesOf", [[[0.1, 0.4, 0.9], [0.2, 0.3, 0]], [0, 1], True], BY_COLUMN),
        ("ranks.rangesOf", [[[0.1, 0.4], [0.2, 0.3]], [0, 1], False], [[0.1, 0.4], [0.1, 0.4]]),
        ("csv.roundedTo", [0.123456789, 0.0081], 0.1235),
        ("csv.roundedTo", [0.123456789, 0.012], 0.123),
        ("csv.roundedTo", [0.123456789, None], 0.123457),
        ("rows.hasEvidence", ["disputed", "any"], True),
        ("rows.fits", [CHECKED, {"memory": "16", "evidence": "any"}], True),
        ("rows.fits", [CHECKED | {"params": 5e9}, {"memory": "16", "evidence": "any"}], False),
        (
            "rows.fits",
            [CHECKED | {"evidence": "disputed"}, {"memory": "any", "evidence": "any"}],
            False,
        ),
        ("rows.hasEvidence", ["disputed", "audited+"], False),
        ("rows.hasEvidence", ["reproduced", "audited+"], True),
        ("rows.hasEvidence", ["checked", "audited"], False),
        ("words.boundText", [0], "0.000"),
        ("words.boundText", [1e-9], "0.001"),
        ("words.boundText", [0.010000001], "0.011"),
        ("words.boundText", [0.01], "0.010"),
        ("words.probabilityText", [0.5269], "at least 0.526"),
        ("words.probabilityText", [0.527], "at least 0.527"),
        ("words.probabilityText", [0.999], "more than 0.999"),
        ("words.warningsText", [{"a": 1, "b": 2}], "a, b (2)"),
        ("words.markTexts", [{}], []),
        (
            "words.markTexts",
            [{"defects": [{"id": "d", "what": "D."}], "warnings": {"a": 1, "b": 2}}],
            [
                {"text": "1 published defect", "kind": "defect", "ids": ["d"], "title": "D."},
                {
                    "text": "warnings of 2 rules",
                    "kind": "rule",
                    "ids": ["a", "b"],
                    "title": "a, b (2)",
                },
            ],
        ),
        # What has no value comes last in either order; equals stand by score.
        ("rows.sorted", [[0, 1, 2, 3], MODELS, SCORES, "up", TEXT], [2, 3, 0, 1]),
        ("rows.sorted", [[0, 1, 2, 3], MODELS, SCORES, "down", TEXT], [3, 0, 2, 1]),
        ("rows.sorted", [[0, 1, 2, 3], MODELS, SCORES, "up", None], [0, 1, 2, 3]),
        ("facts.factText", [{"key": "n", "kind": "count"}, {"n": 1024}], "1,024"),
        ("facts.factText", [{"key": "n", "kind": "count"}, {}], ""),
        ("facts.factText", [{"key": "n", "kind": "flag", "words": ["a", "b"]}, {"n": False}], "b"),
        ("facts.factText", [{"key": "n", "kind": "text"}, {"n": "<b>"}], "<b>"),
        ("facts.factCells", [[{"key": "n", "kind": "text", "download": "N"}], {"n": 0}], {"N": 0}),
        ("facts.factCells", [[{"key": "n", "kind": "text", "download": ""}], {"n": 0}], {}),
        ("csv.csvText", [[{"a": True, "b": None}]], '"a","b"\r\n"true",""\r\n'),
        ("rows.paged", [[4, 5, 6], 2, 9], {"pages": 2, "page": 2, "first": 2, "pageItems": [6]}),
        ("rows.paged", [[], 2, 1], {"pages": 1, "page": 1, "first": 0, "pageItems": []}),
    ],
)
def test_a_function_gives_what_it_says(call, view_address, arguments, expected):
    assert call(view_address, *arguments) == expected


def test_the_front_is_that_of_diagnostics(call):
    places = list(range(len(FULL)))
    scores = [row["macro_MCC"] for row in FULL]
    page_result = call("ranks.frontOf", places, [row["params"] for row in FULL], scores)
    front = values()["diagnostics.json"]["size"]["full"]["pareto"]
    assert [FULL[index]["disp"] for index in page_result] == [
        display(row["model"]) for row in front
    ]


def test_scores_are_written_as_python_writes_them(call):
    for row in FULL[:5]:
        for score in row["cat_MCC"].values():
            assert call("words.scoreText", score) == shown(score)


AUDIT = {"tasks": 13, "of": 100, "sandbox": 2, "date": "2026-11-20", "verdict": "agrees"}


def test_evidence_is_said_with_its_audits(call):
    audited = {"evidence": "audited", "audit": AUDIT}
    message = "audited: rerun 13 of 100 tasks, sandbox level 2, 2026-11-20"
    assert call("words.evidenceText", audited) == message
    assert call("words.auditText", audited) == "13 of 100, 2026-11-20"
    rows = AUDIT | {"tasks": 0, "cells": "299/300", "rows": 10_300, "verdict": "differs"}
    by_receipt = {"evidence": "disputed", "audit": rows}
    assert call("words.auditText", by_receipt) == "299/300 cells, 10300 embeddings, 2026-11-20"
    disputed = {"evidence": "disputed", "audit": AUDIT | {"verdict": "differs"}}
    message = "disputed: rerun, with other scores, 13 of 100 tasks, sandbox level 2, 2026-11-20"
    assert call("words.evidenceText", disputed) == message
    score: dict[str, object] = {"task": "promoters", "regime": "full", "metric": "MCC"}
    score |= {"claimed": 0.9, "rerun": 0.70004, "tolerance": 0.01}
    dispute = {"record": "0a", "signer": "A", "date": "2026-11-20", "why": ["1 of 2 tasks"]}
    assert call("words.disputeText", dispute | {"scores": [score]}) == (
        "1 of 2 tasks; MCC of promoters, full: claimed 0.9000, rerun 0.7000, tolerance 0.0100; "
        "audit 0a, signed by A, 2026-11-20"
    )
    assert call("words.disputeText", {"why": ["runs were aborted"], "scores": []}) == (
        "runs were aborted"
    )
    assert call("words.evidenceText", {"evidence": "stale", "audit": None}) == "stale"
    checked = {"evidence": "checked"}
    assert call("words.evidenceText", checked) == "checked, not rerun"
    done = "cells recomputed from published embeddings: 300/300, 9,300 embeddings computed again"
    recomputed = checked | {"recomputed": done}
    assert call("words.evidenceText", recomputed) == f"checked, not rerun; {done}"
    message = "not rerun; cells recomputed from published embeddings"
    assert call("words.auditText", recomputed) == message
    assert call("words.auditText", audited | {"recomputed": done}) == (
        "13 of 100, 2026-11-20; cells recomputed from published embeddings"
    )


FORMULAS = ["=1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "\uff0b1", "\uff20a"]
PLAIN = ["a", 'a"b', "a,b", "a\r\nb", "", "'=1", "1-2", "\u202egnp"]


def test_a_csv_gives_texts_back_and_runs_none(call):
    rows = [{"model": text, "score": -0.25} for text in (*FORMULAS, *PLAIN)]
    text = str(call("csv.csvText", rows))
    head, *lines = list(csv.reader(io.StringIO(text, newline="")))
    assert head == ["model", "score"]
    expected = [f"'{text}" for text in FORMULAS] + PLAIN
    assert lines == [[text, "-0.25"] for text in expected]
    assert call("csv.csvText", []) == '"model"\r\n'


USUAL = {"view": "table", "model": "", "models": [], "q": "", "page": 1, "size": "any"}
USUAL |= {"hide": ""}
KNOWN = {"choices": {"view": ["table", "model"], "size": ["any", "5"]}, "ids": [], "compared": 4}
KNOWN |= {"columns": ["a", "b c"]}


@pytest.mark.parametrize(
    ("state", "address"),
    [
        ({}, "#/table"),
        ({"q": "a b&c=d#e", "page": 3}, "#/table?q=a+b%26c%3Dd%23e&page=3"),
        ({"view": "model", "model": "a/b?c#d%"}, "#/model/a%2Fb%3Fc%23d%25"),
        ({"size": "5"}, "#/table?size=5"),
        ({"hide": "a|b c"}, "#/table?hide=a%7Cb+c"),
    ],
)
def test_an_address_gives_the_state_back(call, state, address):
    assert call("address.written", USUAL | state, USUAL) == address
    assert call("address.read", address, USUAL, KNOWN) == USUAL | state


@pytest.mark.parametrize(
    "address",
    ["", "#", "#/x?size=6", "#/table?page=-1&size=__proto__", "#?view=model", "#?hide=d|e"],
)
def test_an_address_that_makes_no_sense_is_what_is_usual(call, address):
    assert call("address.read", address, USUAL, KNOWN) == USUAL


points = st.tuples(st.integers(60, 860), st.integers(30, 370))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(points, st.integers(1, 26), st.booleans()), max_size=20))
def test_names_in_a_chart_cover_neither_each_other_nor_a_point(call, given_names):
    room = {"left": 60, "right": 860, "top": 14}
    dots = [point for point, _, _ in given_names]
    names = [
        {"text": "x" * length, "at": point, "isNeeded": is_needed}
        for point, length, is_needed in given_names
    ]
    page_result = call("labels.placed", names, dots, room)
    assert len(page_result) <= len(names)
    boxes = [(x, y, x + 6.8 * len(text), text) for x, y, text in page_result]
    for left, y, right, _ in boxes:
        assert room["left"] < left
        assert right < room["right"]
        assert y > room["top"]
    for (left, y, right, _), (other, high, end, _) in itertools.combinations(boxes, 2):
        assert right <= other or end <= left or abs(y - high) >= 13
    lengths = {length for _, length, is_needed in given_names if is_needed}
    for left, y, right, text in boxes:
        if len(text) not in lengths:
            assert not any(left < dot < right and y - 10 < high < y for dot, high in dots)
