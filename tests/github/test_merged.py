"""`geneb-ci diff --pr`: the board with open pull requests merged, over the API alone."""

import json

from tests.github.conftest import REGULAR, sound
from tests.github.test_motion import corrected


def test_one_and_two_pull_requests(place):
    one, two = place.pull(sound("one")), place.pull(corrected("alpha", 0.61))
    code, out, err = place.run("diff", "--pr", str(one), "--format", "json")
    assert code == 0, err
    assert "one" in json.dumps(json.loads(out)["added"])
    code, out, err = place.run("diff", "--pr", str(one), "--pr", str(two))
    assert code == 0, err
    assert "rows: 1 added, 1 changed" in out
    assert place.server.writes() == []


def test_a_pull_request_without_a_row(place):
    number = place.pull({"README.md": (REGULAR, b"x")})
    code, out, err = place.run("diff", "--pr", str(number))
    assert (code, out) == (2, "")
    assert f"pull request {number} changes no row" in err


def test_either_a_base_or_pull_requests(place):
    for arguments in ([], ["--base", "main", "--pr", "1"]):
        code, _, err = place.run("diff", *arguments)
        assert code == 2
        given = "both" if arguments else "neither"
        assert err.startswith(f"geneb-ci: found {given} of --base and --pr, expected one")
