"""A pull request from its trees to its comment, and the queue that it stands in: whole outputs."""

import pytest

from tests.forge.conftest import REGULAR, ROW, encoded, golden, sound
from tests.forge.server import Files
from tests.small import small


def broken() -> Files:
    document = small("model")
    document["results"]["full"]["promoter_tata"]["MCC"] = 1.5
    document["meta"]["provenance"] = "verified"
    del document["results"]["1shot"]["splice_sites"]
    return sound() | {ROW: (REGULAR, encoded(document))}


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
    golden(f"{name}.md", place.both(number), update=update_golden)
    assert place.status(number) == state
    assert place.server.labels(number) == [label]
    # Again: nothing is new, so nothing is written.
    assert len(place.server.writes()) == 3
    place.both(number)
    assert len(place.server.writes()) == 3
