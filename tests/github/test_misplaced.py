"""A row, a card or an extractor in another folder is told where it belongs, by its path alone."""

import pytest

from tests.github.conftest import MODULE, REGULAR, ROW, BoardCheckout, sound
from tests.github.test_scope import rules

CARD = "submissions/cards/model.md"
# Where it lies, and where it belongs.
MOVES = {
    "model.json": ROW,
    "submissions/model/model.json": ROW,
    "results/model.json": ROW,
    "submissions/cards/model.json": ROW,
    "submission/model.json": ROW,
    "model_cards/model.md": CARD,
    "submissions/model.md": CARD,
    "submissions/model/model.md": CARD,
    "cards/model.md": CARD,
    "harness/extractors/model.py": MODULE,
    "extractors/model.py": MODULE,
    "model.py": MODULE,
    "submissions/model.py": MODULE,
    "submissions/extractors/own/model.py": MODULE,
}


@pytest.mark.parametrize("path", MOVES)
def test_a_misplaced_file_is_told_where_it_belongs(
    path: str, board_checkout: BoardCheckout
) -> None:
    changes = sound()
    changes[path] = changes.pop(MOVES[path])
    verdict = board_checkout.verdict(board_checkout.pull(changes))
    assert verdict["outcome"] == "changes-needed"
    findings = [f for f in verdict["findings"] if f["rule"] == "misplaced-file"]
    assert [finding["file"] for finding in findings] == [path]
    assert f"`git mv {path} {MOVES[path]}`" in findings[0]["fix"]


OTHERS = (
    ".github/model.json",
    "geneb_ci/model.py",
    "leaderboard/policy/model.json",
    "docs/model.md",
    "README.md",
    "package.json",
    "setup.py",
    "submissions/conftest.py",
    "results/mo del.json",
    "submissions/README.md",
)


@pytest.mark.parametrize("path", OTHERS)
def test_a_file_of_another_kind_needs_a_maintainer(
    path: str, board_checkout: BoardCheckout
) -> None:
    changes = sound() | {path: (REGULAR, b"{}\n")}
    verdict = board_checkout.verdict(board_checkout.pull(changes))
    assert verdict["outcome"] == "needs-maintainer"
    assert "misplaced-file" not in rules(verdict)


def test_a_change_of_a_file_that_is_there_is_no_misplaced_file(
    board_checkout: BoardCheckout,
) -> None:
    """Only a new file may be meant for another folder."""
    board_checkout.files["results/model.json"] = (REGULAR, b"{}\n")
    board_checkout.base = board_checkout.server.default_head = board_checkout.server.commit(
        board_checkout.files
    )
    changes = sound() | {"results/model.json": (REGULAR, b"[]\n")}
    rule_ids = rules(board_checkout.verdict(board_checkout.pull(changes)))
    assert "foreign-file" in rule_ids
    assert "misplaced-file" not in rule_ids


def test_all_three_in_upstreams_folders(board_checkout: BoardCheckout) -> None:
    changes = sound()
    changes["model_cards/model.md"] = changes.pop(CARD)
    changes["harness/extractors/model.py"] = changes.pop(MODULE)
    changes["results/model.json"] = changes.pop(ROW)
    verdict = board_checkout.verdict(board_checkout.pull(changes))
    assert (verdict["outcome"], rules(verdict)) == ("changes-needed", {"misplaced-file"})
