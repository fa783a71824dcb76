"""What the public rows say, for tests that hold the page against it."""

from tests.page.boards import tables

ALL = 41
MINUS, DASH = "\u2212", "\u2013"
PROMOTER = "InstaDeepAI_nucleotide_transformer_downstream_tasks_promoter_no_tata"
FULL = tables()["leaderboard.json"]["data"]["full"]
BY_MACRO = [row["disp"] for row in sorted(FULL, key=lambda row: -row["macro_MCC"])]


def display(model: str) -> str:
    return next(str(row["disp"]) for row in FULL if row["model"] == model)


def shown(score: float) -> str:
    """Write a score as the page does."""
    text = f"{score:.3f}"
    return "0.000" if text == "-0.000" else text.replace("-", MINUS)
