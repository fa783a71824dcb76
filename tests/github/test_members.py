"""What decides is read strictly, what is only shown leniently, and each pull request on its own."""

import copy
import json
from typing import Any

import pytest

from geneb_ci.github.api import connect
from geneb_ci.github.audit_targets import pull_to_audit
from tests.github import server
from tests.github.conftest import REGULAR, BoardCheckout, sound, swept
from tests.github.graphql import graphql
from tests.github.refusals import Fault
from tests.github.server import STRANGER
from tests.github.world import World

OTHER = {"of": "another type"}
MAINTAINER = {"id": 50, "login": "maintainer"}
SHOWN: dict[str, list[Any]] = {
    "assignees": [[None], [{"id": None, "login": "x"}], "nobody"],
    "user": [{"id": 7, "login": None}, {"login": "ghost"}],
    "body": [],
    "title": [5],
    "html_url": [],
    "draft": ["later"],
    "locked": [],
    "labels": [[None], [{"name": None}], ["bug"], [{"id": 1}]],
    "created_at": ["yesterday", "2026-11-02T01:00:00"],
    "updated_at": [],
    "milestone": [],
    "mergeable": [],
    "mergeable_state": ["a state of next year"],
    "auto_merge": [],
    "author_association": ["A_NEW_ONE"],
    "requested_teams": [],
}
"""Members that decide nothing, with values that are neither null nor of another type."""
DECIDING: dict[str, list[Any]] = {
    "head": [{"sha": None}, {"sha": "main"}],
    "base": [{"sha": "a" * 40, "ref": "main", "repo": None}],
    "state": ["frozen"],
}


@pytest.fixture(autouse=True)
def _malformed(board_checkout: BoardCheckout) -> None:
    board_checkout.server.excused = (
        "members are null or of another type, as GitHub never describes them"
    )


@pytest.fixture
def three(board_checkout: BoardCheckout) -> BoardCheckout:
    for name in ("one", "two", "three"):
        board_checkout.pull(sound(name))
    return board_checkout


def changed(board_checkout: BoardCheckout, table: dict[str, list[Any]]) -> dict[int, str]:
    """Open a pull request for each value of a member; return its member by number.

    Each member also is null, and of another type.
    """
    member_by_number: dict[int, str] = {}
    for member, values in table.items():
        for value in (None, OTHER, *values):
            number = board_checkout.pull({f"notes/{len(member_by_number)}.md": (REGULAR, b"x")})
            board_checkout.server.pulls[number][member] = copy.deepcopy(value)
            member_by_number[number] = member
    return member_by_number


@pytest.mark.parametrize("is_graphql", [True, False], ids=["graphql", "rest"])
def test_a_member_that_is_only_shown_stops_no_verdict(board_checkout, is_graphql):
    """With `assignees: null` on one pull request, the whole sweep ended."""
    board_checkout.server.is_graphql = is_graphql
    member_by_number = changed(board_checkout, SHOWN)
    code, line, err = board_checkout.run("reconcile")
    judged = {pull["number"] for pull in json.loads(line)["pulls"]}
    assert (code, {member_by_number[n] for n in member_by_number if n not in judged}) == (
        0,
        set(),
    ), err
    code, _, err = board_checkout.report(line)
    assert code == 0, err
    assert {board_checkout.status(n)[0] for n in member_by_number} == {"pending"}
    assert all("needs-maintainer" in board_checkout.server.labels(n) for n in member_by_number)
    code, out, err = board_checkout.run("triage", "--format", "json", "--no-cache", "--limit", "99")
    assert (code, {row["number"] for row in json.loads(out)["pulls"]}) == (
        0,
        set(member_by_number),
    ), err
    assert board_checkout.run("triage", "--no-cache")[0] == 0
    assert swept(board_checkout)[:2] == (0, [])


def test_a_member_that_decides_stops_the_verdict_on_its_pull_request_alone(board_checkout):
    member_by_number = changed(board_checkout, DECIDING)
    sound_ones = [board_checkout.pull(sound("one")), board_checkout.pull(sound("two"))]
    code, judged, err = swept(board_checkout)
    assert (code, judged) == (0, sound_ones)
    assert (
        f"{len(member_by_number) + 2} open pull requests: 2 judged now, {len(member_by_number)} "
        "cannot be judged, and "
        f"wait: 1 to {len(member_by_number)}" in err
    )
    # Nor does the next sweep say that every one has its verdict.
    code, judged, err = swept(board_checkout)
    assert (code, judged) == (0, [])
    assert "every open pull request has its verdict" not in err
    code, out, _ = board_checkout.run("triage", "--format", "json", "--no-cache")
    queue = json.loads(out)
    assert (code, sorted(row["number"] for row in queue["pulls"])) == (3, sound_ones)
    assert {pull_request["number"] for pull_request in queue["unread"]} == set(member_by_number)
    for unread in queue["unread"]:
        assert unread["reason"].startswith(
            "unexpected answer of GitHub in the list of pull requests, at "
            f"{member_by_number[unread['number']]}"
        )
    assert f"{len(member_by_number)} that cannot be read" in queue["clock"]
    out = board_checkout.run("triage", "--no-cache")[1]
    assert all(
        f"#{number} cannot be read: " in " ".join(out.split()) for number in member_by_number
    )


def test_one_without_a_number_is_an_error_and_nothing_is_judged(board_checkout):
    """Nobody could be told, and another would be compared without it."""
    board_checkout.server.pulls[board_checkout.pull(sound("one"))]["number"] = None
    code, out, err = board_checkout.run("reconcile")
    assert (code, out) == (3, "")
    assert "the list of pull requests: unexpected answer of GitHub, at number" in err


def test_a_fork_that_was_deleted_stops_no_verdict(three):
    three.server.pulls[2]["head"]["repo"] = None
    assert swept(three)[:2] == (0, [1, 2, 3])


def test_what_cannot_be_read_any_more_does_not_go_on_passing(three):
    """Others would be compared without it, and could pass beside it."""
    swept(three)
    three.server.pulls[2]["state"] = None
    code, _, err = swept(three)
    assert (code, three.status(2)[0], three.status(1)[0]) == (0, "pending", "success")
    assert (
        "pull request 2 waits: unexpected answer of GitHub in the list of pull requests, at state"
        in err
    )
    three.server.pulls[2]["state"] = "open"
    assert swept(three)[0] == 0


def test_a_head_that_only_one_interface_has_does_not_go_on_passing(three, monkeypatch):
    """The list has no head, GraphQL has: the status on it is taken back."""
    swept(three)
    whole = three.server.pulls[2]["head"]["sha"]

    def answered(state: server.GitHubServer, query: str) -> dict[str, Any] | None:
        state.pulls[2]["head"]["sha"] = whole
        answer = graphql(state, query)
        state.pulls[2]["head"]["sha"] = None
        return answer

    monkeypatch.setattr(server, "graphql", answered)
    three.server.pulls[2]["head"]["sha"] = None
    assert swept(three)[0] == 0
    assert three.server.statuses[whole][0]["state"] == "pending"


def test_a_head_that_may_be_of_one_that_cannot_be_read_did_not_move(three):
    """Exit code 4 ends the job as if new commits were queued."""
    head = three.server.pulls[2]["head"]["sha"]
    three.server.pulls[2]["state"] = None
    code, out, err = three.run("reconcile", "--head-sha", head)
    assert (code, out) == (3, "")
    assert f"whether a pull request has the head {head} is not known: pull request #2: " in err


# Comments, as REST and GraphQL have them.


@pytest.mark.parametrize("is_graphql", [True, False], ids=["graphql", "rest"])
@pytest.mark.parametrize(
    "comment",
    [{"user": None}, {"body": None}, {"user": {"id": 7, "login": None}}],
    ids=["ghost", "no-text", "no-login"],
)
def test_a_comment_of_nobody_stops_no_verdict(three, comment, is_graphql):
    three.server.is_graphql = is_graphql
    three.server.add_comment(2, STRANGER, "Nice.")
    three.server.comments[2][0] |= comment
    assert swept(three)[:2] == (0, [1, 2, 3])
    assert swept(three)[:2] == (0, [])


def test_a_command_whose_author_cannot_be_read_lets_nothing_pass(three):
    """GraphQL has no login that is null: whoever wrote that comment is nobody."""
    three.server.is_graphql = False
    three.server.rights = {"maintainer": "write"}
    three.server.add_comment(2, MAINTAINER | {"login": None}, "/dispute copied")
    code, judged, err = swept(three)
    assert (code, judged) == (0, [1, 3])
    assert "pull request 2 waits: comment 1000 has a command, but its author cannot be read" in err
    assert three.status(2)[0] == "pending"


def test_a_comment_without_an_id_holds_up_no_other(three):
    three.server.is_graphql = False
    three.server.add_comment(2, STRANGER, "Nice.")
    three.server.comments[2][0]["id"] = None
    assert swept(three)[:2] == (0, [1, 3])


MANGLED = {
    "no-nodes": lambda talk: talk["comments"].update(nodes=None),
    "null-node": lambda talk: talk["comments"].update(nodes=[None]),
    "no-count": lambda talk: talk["comments"].pop("totalCount"),
    "no-latest": lambda talk: talk.update(latest={"nodes": []}),
    "new-state": lambda talk: talk.update(state="FROZEN"),
    "null-commit": lambda talk: talk["commits"].update(nodes=[None]),
    "null-labels": lambda talk: talk.update(labels=None),
    "null-pull-request": lambda talk: talk.clear(),
}


@pytest.mark.parametrize("name", MANGLED)
def test_a_part_that_graphql_leaves_out_hides_no_dispute(three, name, monkeypatch):
    """Without the last comments, or their number, it counted as read whole, and was lost."""
    three.server.rights = {"maintainer": "write"}
    swept(three)
    three.server.add_comment(2, MAINTAINER, "/dispute copied")

    def answered(state: server.GitHubServer, query: str) -> dict[str, Any] | None:
        answer = graphql(state, query)
        talk = (answer or {}).get("data", {}).get("repository", {}).get("p2")
        if talk:
            MANGLED[name](talk)
        return answer

    monkeypatch.setattr(server, "graphql", answered)
    assert swept(three)[:2] == (0, [2])
    assert three.status(2) == ("pending", "disputed by maintainer: copied")


def test_one_closed_pull_request_that_cannot_be_read_hides_no_other(three, monkeypatch):
    """What was closed and passes is taken back: for none of them, where one node was null."""
    swept(three)
    for number in (1, 2):
        three.server.pulls[number]["state"] = "closed"

    def answered(state: server.GitHubServer, query: str) -> dict[str, Any] | None:
        answer = graphql(state, query)
        if answer is not None and "c" in answer["data"]["repository"]:
            nodes = answer["data"]["repository"]["c"]["nodes"]
            nodes[:] = [None if node["number"] == 1 else node for node in nodes]
        return answer

    monkeypatch.setattr(server, "graphql", answered)
    assert swept(three)[0] == 0
    assert (three.status(1)[0], three.status(2)[0]) == ("success", "pending")


# Labels, statuses, issues, the merge queue.


@pytest.mark.parametrize("labels", [None, [{"name": None}]], ids=["no-list", "no-name"])
def test_labels_that_cannot_be_read_are_not_removed(three, labels):
    """All labels are set at once: what cannot be read would be gone."""
    swept(three)
    ours = [{"name": "geneb: warnings"}]
    three.server.pulls[2]["labels"] = None if labels is None else [*labels, *ours]
    three.server.statuses.clear()
    three.run("reconcile")
    assert swept(three)[:2] == (0, [1, 2, 3])
    assert [label for label in three.server.pulls[2]["labels"] if label not in (labels or ())] == [
        {"name": "geneb: passed"}
    ]
    assert all(label in three.server.pulls[2]["labels"] for label in labels or ())
    assert not any(verb == "PUT" for verb, _ in three.server.writes())


def test_labels_that_cannot_be_read_are_no_sign_that_no_audit_is_asked_for(three):
    three.server.pulls[2]["labels"] = None
    code, _, err = three.run("audit", "open")
    assert code == 3
    assert err.startswith("geneb-ci: the labels of pull request 2 cannot be read\n")
    three.server.pulls[3]["labels"] = [{"name": "audit"}]
    with connect(None) as github:
        pull = pull_to_audit(github, None)
    assert pull is not None
    assert pull.number == 3


def test_a_status_of_another_program_stops_no_group(tmp_path):
    """Its time is of no concern; it ended the sweep."""
    world = World(tmp_path / "board")
    number = world.open(sound("one"))
    world.sweep()
    group = world.queue(number)
    world.server.statuses[group] = [
        {"context": "ci/other", "description": None, "state": "success", "created_at": None}
    ]
    world.sweep()
    assert world.status(group) == "success"


def test_a_merge_queue_that_cannot_be_read_stops_no_verdict(three):
    three.server.queued = {"refs/heads/gh-readonly-queue/main/pr-9": None}
    code, judged, err = swept(three)
    assert (code, judged) == (0, [1, 2, 3])
    assert (
        "geneb-ci: the branches gh-readonly-queue/main/*: unexpected answer of GitHub, at " in err
    )


def test_a_list_of_issues_that_cannot_be_read_is_not_begun_anew(three):
    """A second list was opened, which began without what the first one has."""
    three.server.faults.append(Fault("GET", "/compare/.*", 404, times=99))
    three.server.is_graphql = False
    swept(three)
    (issue,) = three.server.issues.values()
    line = three.run("reconcile")[1]
    three.server.faults.append(Fault("GET", "/issues", 502, times=99))
    three.report(json.dumps(json.loads(line) | {"settled": [1]}))
    assert list(three.server.issues.values()) == [issue]


def test_a_group_without_a_file_of_a_submission_does_not_pass(tmp_path):
    """Nothing was checked, so nothing was wrong."""
    world = World(tmp_path / "board")
    world.open(sound("one"))
    world.sweep()
    files = world.server.commits[world.server.main_sha()][0]
    group = world.server.commit_tree(world.server.trees[files], world.server.main_sha())
    world.server.queued[f"refs/heads/gh-readonly-queue/main/pr-1-{group}"] = group
    world.sweep()
    assert world.status(group) == "failure"
