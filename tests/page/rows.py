"""What the public rows say, for tests that hold the page against it."""

from typing import Any

from tests.page.boards import tables, values

ALL = 41
MINUS, DASH = "\u2212", "\u2013"
PROMOTER = "InstaDeepAI_nucleotide_transformer_downstream_tasks_promoter_no_tata"
FULL = tables()["leaderboard.json"]["data"]["full"]
BY_MACRO = [row["disp"] for row in sorted(FULL, key=lambda row: -row["macro_MCC"])]


def advice(
    regime: str = "full",
    category: str | None = None,
    max_params: int | None = None,
    evidence: str | None = None,
) -> dict[str, Any]:
    need = {"category": category, "regime": regime, "max_params": max_params, "evidence": evidence}
    found: list[dict[str, Any]] = values()["recommendations.json"]["advice"]
    return next(one for one in found if one["need"] == need)


def display(model: str) -> str:
    return next(str(row["disp"]) for row in FULL if row["model"] == model)


def shown(score: float) -> str:
    """Write a score as the page does."""
    text = f"{score:.3f}"
    return "0.000" if text == "-0.000" else text.replace("-", MINUS)
