"""Labels: one of ours at most, none of others lost, and one request for it."""

import re

import pytest

from geneb_ci.github.report import AUDIT_STATES, LABELS
from geneb_ci.github.settings.required import SETTINGS
from geneb_ci.github.verdict.model import STATE_BY_OUTCOME, PullOutcome
from tests.github.conftest import CARD_PATH, REGULAR, BoardCheckout, sound
from tests.paths import ROOT


def labelled_by_another(board_checkout: BoardCheckout, number: int, verb: str) -> None:
    """Let a maintainer set a label in the moment before our first request of a kind."""

    def meanwhile(request: str, _path: str) -> None:
        if request == verb and "dataset" not in board_checkout.server.labels(number):
            board_checkout.server.pulls[number]["labels"].append({"name": "dataset"})

    board_checkout.server.before = meanwhile


def test_a_label_that_a_maintainer_sets_while_the_first_is_written_stays(board_checkout):
    number = board_checkout.pull(sound(), labels=[{"name": "help wanted"}])
    labelled_by_another(board_checkout, number, "POST")
    board_checkout.both(number)
    assert board_checkout.server.labels(number) == ["help wanted", "dataset", "geneb: passed"]


def change_of_verdict(board_checkout: BoardCheckout) -> int:
    """Return a pull request that passed, and then lost its card's text."""
    number = board_checkout.pull(sound())
    board_checkout.both(number)
    broken = board_checkout.files | sound() | {CARD_PATH: (REGULAR, b"")}
    board_checkout.server.pulls[number]["head"]["sha"] = board_checkout.server.commit(
        broken, board_checkout.base
    )
    board_checkout.server.requests.clear()
    return number


def test_another_verdict_takes_one_label_away_and_sets_one_in_three_writes(board_checkout):
    number = change_of_verdict(board_checkout)
    board_checkout.server.pulls[number]["labels"].append({"name": "dataset"})
    board_checkout.both(number)
    assert board_checkout.server.labels(number) == ["dataset", "geneb: warnings"]
    assert [verb for verb, _ in board_checkout.server.writes()] == ["PUT", "PATCH", "POST"]


def test_all_labels_are_written_anew_right_after_they_were_read(board_checkout):
    """Between the two, a label of another's is lost: no request of ours comes in between."""
    number = change_of_verdict(board_checkout)
    board_checkout.both(number)
    written = next(n for n, (verb, _) in enumerate(board_checkout.server.requests) if verb == "PUT")
    assert board_checkout.server.requests[written - 1] == (
        "GET",
        f"/repos/org/board/pulls/{number}",
    )


def test_every_outcome_has_a_label_of_its_own_and_the_settings_create_it():
    assert len(set(LABELS.values())) == len(LABELS) == len(PullOutcome)
    text = (ROOT / "docs/maintainer/github.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| `([\w-]+)` \| `([\w: -]+)` \| (\w+) \|$", text, re.MULTILINE)
    assert table == [
        (outcome.value, LABELS[outcome], STATE_BY_OUTCOME[outcome]) for outcome in PullOutcome
    ]
    (setting,) = (setting for setting in SETTINGS if setting.id == "labels-of-verdicts")
    assert setting.by_hand == f"Issues > Labels: {', '.join((*LABELS.values(), *AUDIT_STATES))}"


@pytest.mark.parametrize("by_hand", [["geneb: passed"], ["geneb: passed", "geneb: warnings"]])
def test_row_19_labels_of_ours_that_somebody_set_by_hand_go(board_checkout, by_hand):
    """Threat 19: a label says what the verdict says, whoever set another one."""
    number = board_checkout.pull({"submissions/x/y": (REGULAR, b"")})
    board_checkout.server.pulls[number]["labels"] = [{"name": name} for name in by_hand]
    board_checkout.both(number)
    assert board_checkout.server.labels(number) == ["needs-maintainer"]
