"""Labels: one of ours at most, none of others lost, and one request for it."""

import re

import pytest

from geneb_ci.github.report import AUDIT_STATES, LABELS
from geneb_ci.github.settings.required import SETTINGS
from geneb_ci.github.verdict.model import STATES, PullOutcome
from tests.github.conftest import CARD_PATH, REGULAR, Place, sound
from tests.paths import ROOT


def labelled_by_another(place: Place, number: int, verb: str) -> None:
    """Let a maintainer set a label in the moment before our first request of a kind."""

    def meanwhile(asked: str, _path: str) -> None:
        if asked == verb and "dataset" not in place.server.labels(number):
            place.server.pulls[number]["labels"].append({"name": "dataset"})

    place.server.before = meanwhile


def test_a_label_that_a_maintainer_sets_while_the_first_is_written_stays(place):
    number = place.pull(sound(), labels=[{"name": "help wanted"}])
    labelled_by_another(place, number, "POST")
    place.both(number)
    assert place.server.labels(number) == ["help wanted", "dataset", "geneb: passed"]


def change_of_verdict(place: Place) -> int:
    """Return a pull request that passed, and then lost its card's text."""
    number = place.pull(sound())
    place.both(number)
    broken = place.files | sound() | {CARD_PATH: (REGULAR, b"")}
    place.server.pulls[number]["head"]["sha"] = place.server.commit(broken, place.base)
    place.server.requests.clear()
    return number


def test_another_verdict_takes_one_label_away_and_sets_one_in_three_writes(place):
    number = change_of_verdict(place)
    place.server.pulls[number]["labels"].append({"name": "dataset"})
    place.both(number)
    assert place.server.labels(number) == ["dataset", "geneb: warnings"]
    assert [verb for verb, _ in place.server.writes()] == ["PUT", "PATCH", "POST"]


def test_all_labels_are_written_anew_right_after_they_were_read(place):
    """Between the two, a label of another's is lost: no request of ours comes in between."""
    number = change_of_verdict(place)
    place.both(number)
    written = next(n for n, (verb, _) in enumerate(place.server.requests) if verb == "PUT")
    assert place.server.requests[written - 1] == ("GET", f"/repos/org/board/pulls/{number}")


def test_every_outcome_has_a_label_of_its_own_and_the_settings_create_it():
    assert len(set(LABELS.values())) == len(LABELS) == len(PullOutcome)
    text = (ROOT / "docs/maintainer/github.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| `([\w-]+)` \| `([\w: -]+)` \| (\w+) \|$", text, re.MULTILINE)
    assert table == [(outcome.value, LABELS[outcome], STATES[outcome]) for outcome in PullOutcome]
    (setting,) = (one for one in SETTINGS if one.id == "labels-of-verdicts")
    assert setting.hand == f"Issues > Labels: {', '.join((*LABELS.values(), *AUDIT_STATES))}"


@pytest.mark.parametrize("by_hand", [["geneb: passed"], ["geneb: passed", "geneb: warnings"]])
def test_row_19_labels_of_ours_that_somebody_set_by_hand_go(place, by_hand):
    """Threat 19: a label says what the verdict says, whoever set another one."""
    number = place.pull({"submissions/x/y": (REGULAR, b"")})
    place.server.pulls[number]["labels"] = [{"name": name} for name in by_hand]
    place.both(number)
    assert place.server.labels(number) == ["needs-maintainer"]
