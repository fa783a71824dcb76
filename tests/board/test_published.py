"""Every figure that the benchmark's authors print, from these files, to the printed digits."""

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest

from geneb_ci.board.reasons import score_text
from geneb_ci.board.rows import leaderboards
from geneb_ci.common.benchmark import shipped_benchmark
from tests.board.board import entries, found_diagnostics
from tests.each import each

SPEARMAN = 0.565
BY_CATEGORY = {
    "Histone Mod.": 0.579,
    "lncRNA": 0.568,
    "Splice Sites": 0.537,
    "Enhancers": 0.490,
    "Promoters": 0.487,
    "Coding/NC": 0.482,
    "Mouse Enh.": 0.474,
    "Virus/Phage": 0.434,
    "Regulatory": 0.377,
    "TF Binding": 0.356,
    "DNA Methyl.": 0.345,
    "Species Clf.": 0.304,
    "Chromatin Acc.": 0.238,
}
MEAN_MACRO = {"full": 0.488, "10shot": 0.253, "1shot": 0.106}
DIFFERENCES = {
    ("MutBERT", "eccdnamamba_weights"): 0.110,
    ("Omni-DNA-1B", "eccdnamamba_weights"): 0.149,
}
MICRO_MACRO = {
    "agro-nucleotide-transformer-1b": [0.4962853848839059, 0.49693228727837996],
    "BioFM-265M": [0.336277704417613, 0.341721876987488],
    "deepgene": [0.42439187083758967, 0.4303465443177157],
}


def twice_rounded(value: float) -> float:
    """Round to four digits, then to three, as the paper's Virus/Phage shows that it was done."""
    once = Decimal(value).quantize(Decimal("0.0001"), ROUND_HALF_UP)
    return float(once.quantize(Decimal("0.001"), ROUND_HALF_UP))


def figures(name: str, scope: str = "paper") -> list[dict[str, Any]]:
    """Return the figures of one kind as diagnostics.json has them."""
    findings = found_diagnostics()["findings"]
    return [finding for finding in findings if (finding["id"], finding["scope"]) == (name, scope)]


def figure(name: str, scope: str = "paper", **parameters: Any) -> dict[str, Any]:
    """Return the one figure with these parameters."""
    (published_figure,) = (
        parameters_row
        for parameters_row in figures(name, scope)
        if parameters.items() <= parameters_row["parameters"].items()
    )
    return published_figure


def official_rows(regime: str) -> dict[str, dict[str, Any]]:
    rows = leaderboards(entries(), shipped_benchmark())[0]["data"][regime]
    return {row["model"]: row for row in rows if row["official"]}


def rho(category: str) -> float:
    parts = {part["name"]: part["value"] for part in figure("size-correlation")["parts"]}
    value: float = parts[category]
    return value


def test_size_against_macro():
    board_figure = figure("size-correlation")
    assert (score_text(board_figure["value"]), board_figure["rows"]) == (str(SPEARMAN), 40)
    assert board_figure["parameters"] == {"regime": "full", "exclude": []}


@each("category", BY_CATEGORY)
def test_size_against_a_category(category):
    assert twice_rounded(rho(category)) == BY_CATEGORY[category]


def test_one_printed_category_was_rounded_twice():
    once = {name: float(score_text(rho(name))) for name in BY_CATEGORY}
    assert {n: r for n, r in once.items() if r != BY_CATEGORY[n]} == {"Virus/Phage": 0.433}
    assert rho("Virus/Phage") == pytest.approx(0.433452, abs=5e-7)


def test_categories_stand_in_the_printed_order():
    assert sorted(BY_CATEGORY, key=lambda name: -rho(name)) == list(BY_CATEGORY)


def test_the_boards_counts_give_other_figures():
    board = figure("size-correlation", "board")
    assert board["rows"] == 41
    assert score_text(board["value"]) == "0.522"


@pytest.mark.parametrize("regime", MEAN_MACRO)
def test_mean_macro(regime):
    assert score_text(figure("mean-macro", regime=regime)["value"]) == f"{MEAN_MACRO[regime]:.3f}"


@pytest.mark.parametrize("pair", DIFFERENCES, ids=lambda pair: pair[0])
def test_difference_of_macro(pair):
    board_figure = figure("controlled-pair", first=pair[0], second=pair[1])
    assert score_text(board_figure["value"]) == f"{DIFFERENCES[pair]:.3f}"


def test_a_published_difference_is_a_controlled_pair():
    pairs = found_diagnostics()["pairs"]["full"]["architecture"]["pairs"]
    assert {
        "first": "Omni-DNA-1B",
        "second": "eccdnamamba_weights",
        "values": ["T-dec", "Mamba"],
        "difference": 0.149,
        "significant": True,
    } in pairs


@pytest.mark.parametrize("model", MICRO_MACRO)
def test_micro_and_macro_of_official_rows(model):
    row = official_rows("full")[model]
    assert [row["micro_MCC"], row["macro_MCC"]] == pytest.approx(MICRO_MACRO[model], abs=1e-12)
