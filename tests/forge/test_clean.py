"""A pull request from its trees to its comment, and the queue that it stands in: whole outputs."""

import json
from pathlib import Path

import pytest

from geneb_ci.forge.wire import PATIENCE
from tests.forge.conftest import CARD_PATH, MODULE, REGULAR, ROW, encoded, sound
from tests.forge.server import BOT
from tests.small import small

GOLDEN = Path(__file__).with_name("golden")


def broken():
    document = small("model")
    document["results"]["full"]["promoter_tata"]["MCC"] = 1.5
    document["meta"]["provenance"] = "verified"
    del document["results"]["1shot"]["splice_sites"]
    return sound() | {ROW: (REGULAR, encoded(document))}


def golden(name: str, text: str, update: bool) -> None:
    path = GOLDEN / name
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "changes", "state", "label"),
    [
        ("clean", sound(), ("success", "1 note"), "geneb: passed"),
        ("broken", broken(), ("failure", "3 errors, 1 note"), "geneb: changes needed"),
        (
            "foreign",
            sound() | {".github/workflows/x.yml": (REGULAR, b"on: push\n")},
            ("pending", "this is not for a program to decide: a maintainer looks at it"),
            "needs-maintainer",
        ),
    ],
)
def test_a_pull_request_gets_its_comment_its_status_and_its_label(
    place, update_golden, name, changes, state, label
):
    number = place.pull(changes)
    golden(f"{name}.md", place.both(number), update_golden)
    assert place.status(number) == state
    assert place.server.labels(number) == [label]
    # Again: nothing is new, so nothing is written.
    assert len(place.server.writes()) == 3
    place.both(number)
    assert len(place.server.writes()) == 3
