"""`geneb-ci diff --pr`: the board with open pull requests merged, over the API alone."""

import json

from tests.github.conftest import REGULAR, sound
from tests.github.test_motion import corrected


def test_one_and_two_pull_requests(board_checkout):
    first, two = board_checkout.pull(sound("one")), board_checkout.pull(corrected("alpha", 0.61))
    code, out, err = board_checkout.run("diff", "--pr", str(first), "--format", "json")
    assert code == 0, err
    assert "one" in json.dumps(json.loads(out)["added"])
    code, out, err = board_checkout.run("diff", "--pr", str(first), "--pr", str(two))
    assert code == 0, err
    assert "rows: 1 added, 1 changed" in out
    assert board_checkout.server.writes() == []


def test_a_pull_request_without_a_row(board_checkout):
    number = board_checkout.pull({"README.md": (REGULAR, b"x")})
    code, out, err = board_checkout.run("diff", "--pr", str(number))
    assert (code, out) == (2, "")
    assert f"pull request {number} changes no row" in err


def test_either_a_base_or_pull_requests(board_checkout):
    for arguments in ([], ["--base", "main", "--pr", "1"]):
        code, _, err = board_checkout.run("diff", *arguments)
        assert code == 2
        text = "both" if arguments else "neither"
        assert err.startswith(f"geneb-ci: found {text} of --base and --pr, expected one")
