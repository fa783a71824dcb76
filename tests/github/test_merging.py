"""The rules of main that `init --apply` writes can be satisfied, and by whom."""

import pytest

from geneb_ci.common.answers import ALONE, ANSWERS_FILE
from geneb_ci.github import errors
from geneb_ci.github.settings import apply, diagnosis
from geneb_ci.github.settings.required import SETTINGS
from tests.github.conftest import IMPATIENT
from tests.github.merging import ACTIONS_APP, Pull, merge_refusals, push_refusals
from tests.github.serving import serving
from tests.github.settings_server import SettingsServer
from tests.github.test_settings import board_files, observed

A, B, OUTSIDER = "maintainer", "another", "outsider"
OWNED = frozenset({A, B})
APP = 7
ROW = Pull(OUTSIDER, OUTSIDER, (A,))
"""The usual pull request: a row of an outsider, approved."""


def rulesets_of(*, alone: bool = False, app: int | None = None) -> dict[int, dict[str, object]]:
    """Return the rulesets that `init --apply` writes."""
    files = board_files()
    if alone:
        mode, raw = files[ANSWERS_FILE]
        files[ANSWERS_FILE] = (mode, raw + f"{ALONE} = true\n".encode())
    with pytest.MonkeyPatch.context() as patch, serving(SettingsServer()) as server:
        patch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
        assert isinstance(server, SettingsServer)
        server.push(files)
        if app is not None:
            server.variables[""]["VERDICT_APP"] = str(app)
        settings = [
            setting
            for setting in SETTINGS
            if setting.apply in {"set_guard_ruleset", "set_verdict_ruleset"}
        ]
        client = observed(server)
        apply.set_wrong_settings(client, diagnosis.diagnoses_of(client, settings))
        return server.rulesets


@pytest.fixture(scope="module")
def team() -> dict[int, dict[str, object]]:
    return rulesets_of()


@pytest.fixture(scope="module")
def single() -> dict[int, dict[str, object]]:
    return rulesets_of(alone=True)


@pytest.fixture(scope="module")
def pinned() -> dict[int, dict[str, object]]:
    return rulesets_of(app=APP)


CASES: dict[str, tuple[str, Pull, list[str]]] = {
    "a row with approval and verdict": ("write", ROW, []),
    "a row that nobody approved": ("maintain", Pull(OUTSIDER, OUTSIDER), ["pull_request"]),
    "a row with errors": (
        "write",
        Pull(OUTSIDER, OUTSIDER, (A,), status="failure"),
        ["geneb/verdict"],
    ),
    "a change of a maintainer, by the other": ("maintain", Pull(A, A, (B,), OWNED), []),
    "a change that its author approves": ("maintain", Pull(A, A, (A,), OWNED), ["pull_request"]),
    "a row to which its reviewer pushed": (
        "maintain",
        Pull(OUTSIDER, A, (A,)),
        ["pull_request"],
    ),
    "code that no owner looked at": (
        "maintain",
        Pull(OUTSIDER, OUTSIDER, ("reader",), OWNED),
        ["pull_request"],
    ),
    "code without a verdict, by a maintainer": (
        "maintain",
        Pull(A, A, (B,), OWNED, status="pending"),
        [],
    ),
    "code without a verdict, by somebody who may write": (
        "write",
        Pull(A, A, (B,), OWNED, status="pending"),
        ["geneb/verdict"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_who_merges_what_on_a_board_of_two(case, team):
    role, pull, refusals = CASES[case]
    assert list(merge_refusals(team, role, pull)) == refusals


def test_one_maintainer_alone_is_not_locked_out_and_pushes_nothing(single, team):
    """Nobody approves his own pull request: without its bypass such a board would stand still."""
    own = Pull(A, A, (), OWNED)
    assert list(merge_refusals(single, "admin", own)) == []
    assert list(merge_refusals(team, "admin", own)) == ["pull_request"]
    # The rights of others stay, and so does the way of every change.
    assert list(merge_refusals(single, "write", own)) == ["pull_request"]
    for rulesets in (single, team):
        assert "pull_request" in push_refusals(rulesets, "admin")


def test_with_an_app_its_status_alone_allows_a_merge(pinned, team):
    """A job of a fork may be named like the verdict, and whoever may write can set a status."""
    by_app = Pull(OUTSIDER, OUTSIDER, (A,), source=APP)
    assert list(merge_refusals(pinned, "write", by_app)) == []
    assert list(merge_refusals(pinned, "write", ROW)) == ["geneb/verdict"]
    assert ROW.source == ACTIONS_APP
    assert list(merge_refusals(team, "write", ROW)) == []
