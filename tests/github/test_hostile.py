"""Threats 19 and 20: whatever a stranger wrote, whole commands command nobody and ping nobody."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.github.conftest import CARD_PATH, REGULAR, ROW, BoardCheckout, encoded, sound
from tests.github.text import CONTROL, calm, commands, outside_code
from tests.render.hostile import texts
from tests.small import CARD, small

PINGS = (
    *("@everyone", "@org/team", "#1", "GH-1", "gh-1", "org/board#1", "org/board@" + "a" * 40),
    *("https://github.com/org/board/pull/1", "http://t.example/p.png", "a" * 40),
    *("![x](http://t/p.png)", "<img src=x>", "<!-- geneb-ci:verdict:1 e30= -->", "`@x`", "``@x``"),
)
hostile = st.one_of(
    texts, st.sampled_from(PINGS), st.tuples(texts, st.sampled_from(PINGS)).map("".join)
)


@st.composite
def submissions(draw: st.DrawFn) -> dict[str, tuple[str, bytes]]:
    """Return a row and a card of which an attacker chose every text, and a file with a name."""
    document: dict[str, Any] = small("model")
    for field in draw(st.sets(st.sampled_from(sorted(document["meta"])))):
        document["meta"][field] = draw(hostile)
    if draw(st.booleans()):
        document[draw(hostile)] = draw(hostile)
    if draw(st.booleans()):
        document["results"]["full"][draw(hostile)] = {"MCC": 0.5, "Acc": 0.5, "F1": 0.5}
    card = CARD.replace("86M", draw(hostile)).replace("BERT encoder", draw(hostile))
    changes = sound() | {
        ROW: (REGULAR, encoded(document)),
        CARD_PATH: (REGULAR, card.encode("utf-8", "surrogatepass")),
    }
    if draw(st.booleans()):
        name = draw(hostile).replace("\ud800", "").replace("\udc80", "").strip("/") or "x"
        changes[f"submissions/extractors/{name}"] = (REGULAR, b"x = 1\n")
    return changes


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=submissions(), title=hostile, branch=hostile)
def test_rows_19_and_20_no_output_of_any_command_obeys_a_stranger(
    board_checkout: BoardCheckout, changes: dict[str, tuple[str, bytes]], title: str, branch: str
) -> None:
    """Threats 19, 20: standard output and error, the job's output, comment, status and labels."""
    number = board_checkout.pull(changes, title=title)
    board_checkout.server.pulls[number]["head"] |= {"ref": branch, "label": branch}
    code, line, error_text = board_checkout.run("reconcile", "--pr", str(number))
    assert code == 0
    assert line.isascii()
    assert line.count("\n") == 1
    code, out, err = board_checkout.report(line)
    assert (code, out) == (0, "")
    assert calm(board_checkout.comment(number))
    assert board_checkout.comment(number).count("<!--") == 1
    assert set(board_checkout.server.labels(number)) <= {
        *("geneb: passed", "geneb: warnings", "geneb: changes needed", "needs-maintainer"),
    }
    queues = [
        board_checkout.run("triage", "--no-cache", *style)[1]
        for style in ([], ["--format", "markdown"], ["--format", "json"])
    ]
    board_checkout.server.pulls[number]["state"] = "closed"
    for text in (line, error_text, err, board_checkout.status(number)[1], *queues):
        assert commands(text) == []
        assert CONTROL.search(text) is None
    assert "@e" not in outside_code(queues[1])
    assert json.loads(queues[2])["pulls"][0]["number"] == number
