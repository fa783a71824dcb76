"""Pull requests in time: main moves, others are open, some cannot be written or read."""

import copy
import datetime as dt

import pytest

from geneb_ci.github import report
from geneb_ci.github.queue import read_queue
from geneb_ci.github.reconcile import FAILURES_MAX, LOCKED_REASON, SweepResult, group_verdict, sweep
from geneb_ci.github.waiting_list import LONGEST_WAIT, read_waits
from tests.github.conftest import REGULAR, encoded, sound
from tests.github.history import Files
from tests.github.refusals import STATUSES_MAX
from tests.github.server import READ, WRITE
from tests.github.world import World
from tests.small import CARD, small

OFFICIAL = b'{"files": {"a": "%b"}}\n' % (b"b" * 64)
"""A list of official files that names another one."""
NOTE = CARD + "\n- **Correction:** 2026-11-20, full regime rerun\n"


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path / "board")


def written_of(world: World, sweep_result: SweepResult) -> list[report.WriteResult]:
    return list(report.write_verdicts(world.github(), sweep_result.verdicts))


def copied(name: str, of: str) -> Files:
    """Return a submission with the scores of another."""
    document = small(name) | {"results": small(of)["results"]}
    return sound(name) | {f"submissions/{name}.json": (REGULAR, encoded(document))}


def corrected(name: str, score: float) -> Files:
    """Return an edit of a published row."""
    document = copy.deepcopy(small(name))
    document["results"]["full"]["promoter_tata"]["MCC"] = score
    return {
        f"submissions/{name}.json": (REGULAR, encoded(document)),
        f"submissions/cards/{name}.md": (REGULAR, NOTE.encode()),
    }


def test_two_ids_that_differ_in_case_never_both_pass(world):
    """Both were green, both were merged, and `build` ended with exit code 11 from then on."""
    first, two = world.open(sound("copycat")), world.open(copied("CopyCat", "copycat"))
    world.sweep()
    assert (world.state(first), world.state(two)) == ("success", "failure")
    verdict = world.commented_verdict(two)
    assert verdict is not None
    assert verdict.rivals == [first]
    assert world.merge(first)
    assert not world.merge(two)
    assert world.errors_of_main() == []
    # After it, the other one collides with what is published.
    world.sweep()
    assert world.state(two) == "failure"


def test_pull_requests_with_one_head_have_one_verdict(world):
    """Each found the status to be that of the other, and both were checked in every sweep: 50 of
    them would have left no place for others, and a commit takes 1,000 statuses."""
    pull_request = world.open(sound("copycat"))
    head = world.server.pulls[pull_request]["head"]["sha"]
    others = [world.server.open_pull(head, world.server.main_sha()) for _ in range(3)]
    for _ in range(3):
        world.sweep()
    assert [status["state"] for status in world.server.statuses[head]] == ["success"]
    assert [len(world.server.comments[n]) for n in (pull_request, *others)] == [1, 0, 0, 0]
    rows = {row.number: row for row in read_queue(world.github()).rows}
    assert rows[others[0]].action == f"close it: it has the commit of pull request {pull_request}"
    assert rows[pull_request].action == "review and merge"
    world.server.pulls[pull_request]["state"] = "closed"
    world.sweep()
    assert [len(world.server.comments[n]) for n in others] == [1, 0, 0]


@pytest.mark.parametrize("away", [{"state": "closed"}, {"base": {"ref": "dev"}}])
def test_what_is_open_again_does_not_pass_on_an_old_verdict(world, away):
    """A status stays on its commit: closed, overtaken by main and opened again, it passed."""
    first, two = world.open(sound("copycat")), world.open(sound("CopyCat"))
    world.sweep()
    pull = world.server.pulls[first]
    was = {"state": pull["state"], "base": pull["base"]}
    world.server.pulls[first] |= away | (
        {"base": pull["base"] | away["base"]} if "base" in away else {}
    )
    world.sweep()
    assert (world.state(first), world.state(two)) == ("pending", "success")
    written = len(world.server.writes())
    world.sweep()
    assert len(world.server.writes()) == written
    assert world.merge(two)
    world.server.pulls[first] |= was
    assert not world.merge(first)
    world.sweep()
    assert world.state(first) == "failure"


def test_a_commit_with_all_its_statuses_is_named(world):
    """GitHub takes 1,000 of one commit; only new commits help."""
    number = world.open(sound())
    head = world.server.pulls[number]["head"]["sha"]
    old = {"context": "geneb/verdict", "state": "pending", "created_at": "2026-11-20T00:00:00Z"}
    world.server.statuses[head] = [old] * STATUSES_MAX
    world.sweep()
    (wait,) = read_waits(world.github()).waits.values()
    assert wait.reason == (
        "GitHub refused the request (422): Validation Failed: "
        "This SHA and context has reached the maximum number of statuses."
    )
    world.push(number, sound())
    world.sweep()
    assert world.state(number) == "success"


def test_an_archived_repository_is_named_and_a_second_limit_loses_nothing(world):
    numbers = [world.open(sound(f"model-{n}")) for n in range(4)]
    world.server.archived = True
    sweep_result = sweep(world.github(), world.layout)
    problems = {
        str(written.problem and written.problem.message)
        for written in written_of(world, sweep_result)
    }
    assert problems == {"the repository is archived, so nothing can be written"}
    world.server.archived = False
    world.server.content_max = world.server.content + 2
    world.sweep()
    assert [world.state(n) for n in numbers] == ["success", "success", "", ""]
    world.server.content_max += 500
    world.clock += LONGEST_WAIT
    world.sweep()
    assert {world.state(n) for n in numbers} == {"success"}
    assert {len(world.server.comments[n]) for n in numbers} == {1}


def test_a_fork_that_was_deleted_is_judged_all_the_same(world):
    number = world.open(sound())
    world.server.pulls[number]["head"] |= {"repo": None, "label": "unknown repository"}
    world.sweep()
    assert world.state(number) == "success"


def test_a_name_is_free_again_when_the_other_pull_request_is_closed(world):
    first, two = world.open(sound("copycat")), world.open(sound("CopyCat"))
    world.sweep()
    assert world.state(two) == "failure"
    world.server.pulls[first]["state"] = "closed"
    world.sweep()
    assert world.state(two) == "success"


def test_a_name_that_a_failing_pull_request_claims_is_free(world):
    document = small("copycat")
    document["results"]["full"]["promoter_tata"]["MCC"] = 1.5
    broken = world.open(
        sound("copycat") | {"submissions/copycat.json": (REGULAR, encoded(document))}
    )
    honest = world.open(sound("CopyCat"))
    world.sweep()
    assert (world.state(broken), world.state(honest)) == ("failure", "success")
    world.push(broken, sound("copycat"))
    world.sweep()
    assert (world.state(broken), world.state(honest)) == ("failure", "success")


def test_the_same_scores_under_two_ids_are_said_on_both(world):
    first, two = world.open(sound("first")), world.open(copied("second", "first"))
    world.sweep()
    world.sweep()
    verdicts = [world.commented_verdict(n) for n in (first, two)]
    assert [r and (r.outcome, r.rivals) for r in verdicts] == [
        ("warnings", [two]),
        ("warnings", [first]),
    ]
    assert "`pull request 1`" not in world.server.comments[two][0]["body"]
    assert world.merge(first)
    world.sweep()
    body = world.server.comments[two][0]["body"]
    assert "identical-results" in body
    assert "open-copy" not in body


def test_copies_take_no_place_of_a_collision(world):
    """Six pull requests that copy one row hid a seventh that claimed a name."""
    copies = [world.open(copied(f"fam-{n}", "seed")) for n in range(5)]
    honest = world.open(sound("zebra"))
    world.sweep()
    late = world.open(copied("ZEBRA", "seed"))
    for _ in range(3):
        world.sweep()
    assert (world.state(honest), world.state(late)) == ("success", "failure")
    verdict = world.commented_verdict(late)
    assert verdict is not None
    assert verdict.rivals == [*copies, honest]
    assert world.merge(honest)
    assert not world.merge(late)
    assert world.errors_of_main() == []


def test_the_first_of_two_names_passes_among_copies(world):
    """Opened together, the later of the two took the name."""
    for n in range(5):
        world.open(copied(f"fam-{n}", "seed"))
    honest, late = world.open(copied("zebra", "seed")), world.open(copied("ZEBRA", "seed"))
    for _ in range(3):
        world.sweep()
    assert (world.state(honest), world.state(late)) == ("success", "failure")


def test_two_edits_of_one_row_never_both_pass(world):
    first, two = world.open(corrected("alpha", 0.61)), world.open(corrected("alpha", 0.62))
    world.sweep()
    assert (world.state(first), world.state(two)) == ("success", "failure")
    assert world.merge(first)
    world.sweep()
    assert "outdated-branch" in world.server.comments[two][0]["body"]
    again = NOTE.replace("full regime", "whole full regime")
    card = {"submissions/cards/alpha.md": (REGULAR, again.encode())}
    world.push(two, corrected("alpha", 0.62) | card)
    world.sweep()
    assert world.state(two) == "success"


def test_a_verdict_does_not_outlive_the_main_it_was_compared_with(world):
    """The first run after a merge takes the pass back, and the same run gives the new verdict."""
    first, two = world.open(sound("one")), world.open(sound("two"))
    world.sweep()
    before = world.commented_verdict(two)
    assert world.merge(first)
    assert world.is_stale(two)
    world.sweep(events=True)
    states = [s["state"] for s in world.server.statuses[world.server.pulls[two]["head"]["sha"]]]
    assert states == ["success", "pending", "success"]
    after = world.commented_verdict(two)
    assert before is not None
    assert after is not None
    assert before.main_digest != after.main_digest
    written = len(world.server.writes())
    world.sweep()
    assert len(world.server.writes()) == written


def test_what_no_verdict_depends_on_makes_none_stale(world):
    number = world.open(sound())
    world.sweep()
    world.change_main({"README.md": (REGULAR, b"Another text.\n")})
    written = len(world.server.writes())
    world.sweep()
    assert world.state(number) == "success"
    assert len(world.server.writes()) == written


def test_a_verdict_that_main_overtook_is_not_written(world):
    number = world.open(sound())
    sweep_result = sweep(world.github(), world.layout)
    world.change_main({"leaderboard/policy/official.json": (REGULAR, OFFICIAL)})
    world.write(sweep_result)
    assert world.server.writes() == []
    world.sweep()
    assert world.state(number) == "success"


def test_a_stacked_pull_request_is_judged_by_what_it_adds(world):
    """Its parent was squashed into main: judged against its old base, it had two models."""
    parent = world.open(sound("parent"))
    head = world.server.pulls[parent]["head"]["sha"]
    child = world.server.open_pull(
        world.server.commit(world.files(head) | sound("child"), head), world.server.main_sha()
    )
    world.sweep()
    assert (world.state(parent), world.state(child)) == ("success", "pending")
    assert world.merge(parent)
    world.sweep()
    verdict = world.commented_verdict(child)
    assert verdict is not None
    assert (verdict.model, verdict.outcome) == ("child", "passed")


def test_locked_conversations_hold_up_no_other_and_pass_at_no_time(world):
    """Four of them took every place of every sweep, and got four statuses each time."""
    locked = [world.open(sound(f"locked-{n}"), locked=True) for n in range(4)]
    honest = world.open(sound())
    for _ in range(8):
        world.sweep()
    assert world.state(honest) == "success"
    assert {world.state(n) for n in locked} == {"pending"}
    heads = [world.server.pulls[n]["head"]["sha"] for n in locked]
    assert {len(world.server.statuses[head]) for head in heads} == {3}  # at 0, 30 and 90 minutes
    waits = read_waits(world.github()).waits
    assert {wait.reason for wait in waits.values()} == {LOCKED_REASON}
    (issue,) = world.server.issues.values()
    assert f"| #{locked[0]} | `{LOCKED_REASON}` | 3 | 2026-11-23T11:30:00Z |" in issue["body"]
    world.server.pulls[locked[0]]["locked"] = False
    world.clock += LONGEST_WAIT
    world.sweep()
    assert world.state(locked[0]) == "success"
    assert locked[0] not in read_waits(world.github()).waits


def test_unreadable_heads_stop_no_sweep(world):
    """Ten of them ended every sweep, with the advice to check --repo."""
    hidden = [world.open(sound(f"hidden-{n}")) for n in range(FAILURES_MAX + 5)]
    for number in hidden:
        world.hide(number)
    honest = world.open(sound())
    world.sweep()
    world.sweep()
    assert world.state(honest) == "success"
    waits = read_waits(world.github()).waits
    assert set(waits) == set(hidden)
    assert {wait.reason for wait in waits.values()} == {
        (
            "the pull request has no head, or no commit in common with main: ask its author to "
            "rebase it onto main"
        )
    }


def test_new_commits_end_a_wait(world):
    number = world.open(sound())
    world.hide(number)
    world.sweep()
    world.push(number, sound())
    world.sweep(events=True)
    assert world.state(number) == "success"
    assert read_waits(world.github()).waits == {}


def test_a_missing_label_stops_nothing_and_is_named(world):
    number = world.open(sound())
    world.server.known_labels = set()
    sweep_result = sweep(world.github(), world.layout)
    (result,) = report.write_verdicts(world.github(), sweep_result.verdicts)
    assert world.state(number) == "success"
    assert result.problem is not None
    assert result.problem.message == "the repository has no label 'geneb: passed'"
    assert result.problem.fix == 'create it once: gh label create "geneb: passed"'
    assert world.server.issues == {}


def test_without_the_right_to_issues_the_verdicts_are_written_all_the_same(world):
    world.server.permissions = WRITE - {"issues:read", "issues:write"}
    locked, honest = world.open(sound("locked"), locked=True), world.open(sound())
    world.sweep()
    assert (world.state(locked), world.state(honest)) == ("pending", "success")


def test_a_group_of_a_merge_queue_is_checked_as_a_whole(world):
    first, two = world.open(sound("one")), world.open(sound("two"))
    world.sweep()
    assert world.merge_by_queue(first)
    # No sweep in between: the verdict on the second is stale, the one on the group is not.
    assert world.is_stale(two)
    assert world.merge_by_queue(two)
    assert world.errors_of_main() == []


def test_a_group_with_a_row_that_collides_with_the_new_main_is_refused(world):
    number = world.open(sound("copycat"))
    world.sweep()
    world.change_main(sound("CopyCat"))
    assert world.state(number) == "success"
    assert not world.merge_by_queue(number)
    (last, *_) = list(world.server.statuses.values())[-1]
    assert (last["state"], last["description"]) == (
        "failure",
        "confusable-name, model-id-collision",
    )


def test_a_group_with_a_file_of_no_model_is_refused(world):
    number = world.open(sound())
    world.sweep()
    head = world.server.pulls[number]["head"]["sha"]
    files = world.files(head) | {".github/workflows/publish.yml": (REGULAR, b"on: push\n")}
    group = world.server.commit(files, world.server.main_sha())
    world.write(group_verdict(world.github(), world.layout, group))
    assert world.status(group) == "failure"
    assert world.server.statuses[group][0]["description"] == "foreign-file"


def test_the_job_that_reads_writes_nothing(world):
    world.open(sound())
    world.server.permissions = READ
    assert len(sweep(world.github(), world.layout).verdicts.pulls) == 1
    assert world.server.writes() == []


def test_a_wait_doubles_up_to_a_day(world):
    number = world.open(sound(), locked=True)
    spans = []
    for _ in range(9):
        world.sweep()
        wait = read_waits(world.github()).waits[number]
        spans.append(
            dt.datetime.fromisoformat(wait.until) - (world.clock - dt.timedelta(minutes=15))
        )
        world.clock = dt.datetime.fromisoformat(wait.until)
    minutes = [int(span.total_seconds() / 60) for span in spans]
    assert minutes == [30, 60, 120, 240, 480, 960, 1440, 1440, 1440]
