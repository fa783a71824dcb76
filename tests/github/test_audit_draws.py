"""A draw that was made counts: for new commits of a pull request, and for other pull requests."""

import json

import pytest

from geneb_ci.github import audits
from tests.audit.examples import ROUNDS
from tests.audit.recorded import committed_at, outcome_of
from tests.audit.relay import relay, says
from tests.github.audit_flow import MODEL, Flow, committed, flow, founded
from tests.github.server import BOT, STRANGER
from tools.rehearse import row

__all__ = ["committed", "flow", "founded"]
LATE = max(ROUNDS)


def moved(flow: Flow, number: int, files: row.Files) -> None:
    """Push another commit to a pull request, and label it again."""
    other = flow.propose(files, "again")
    flow.forge.pulls[number]["head"] = flow.forge.pulls.pop(other)["head"]
    flow.forge.pulls[number]["labels"].append({"name": "audit"})


def late(flow: Flow) -> audits.AuditOrder:
    """Open the next audit a day later, when another round is due."""
    flow.forge.stamp = committed_at(LATE)
    both = json.dumps({"round": LATE, "signature": ROUNDS[LATE]})
    with relay(says(both)) as (address, _):
        flow.relay, before = address, flow.relay
        try:
            return flow.opened()
        finally:
            flow.relay = before


def corrected(files: row.Files) -> row.Files:
    path = f"submissions/{MODEL}.json"
    document = json.loads(files[path])
    document["meta"]["training_data"] = "human genome, again"
    return files | {path: json.dumps(document).encode()}


@pytest.mark.parametrize(
    "where", ["another commit", pytest.param("another pull request", marks=pytest.mark.nightly)]
)
def test_the_same_commitment_has_the_same_draw(flow, where: str):
    files = row.sound(flow.checkout)
    number = flow.propose(files)
    first = flow.opened()
    assert flow.delivered(first, None)[0] == 11
    if where == "another commit":
        moved(flow, number, files)
    else:
        flow.forge.pulls[number]["state"] = "closed"
        number = flow.propose(files, "again")
    flow.forge.stamp = committed_at(LATE)
    again = flow.opened()
    assert again.head_sha != first.head_sha
    assert again.plan == first.plan
    # The time is that of the first status: no other is set, and the record that follows verifies.
    assert list(flow.forge.statuses) == [first.head_sha]
    code, err = flow.delivered(again, outcome_of(again.plan, flow.raw(again)))
    assert code == 0, err
    assert flow.forge.labels(number) == ["by hand", "geneb: audit agrees"]


def test_a_draw_counts_in_every_later_pull_request_of_the_model(flow):
    files = row.sound(flow.checkout)
    number = flow.propose(files)
    for _ in range(30):  # more than are read together with those of other pull requests
        flow.forge.add_comment(number, STRANGER, "hello")
    flow.forge.add_comment(number, STRANGER, f"{audits.AUDIT_MARKER}zlib:AAAA -->\n")
    first = flow.opened()
    assert flow.delivered(first, None)[0] == 11
    flow.forge.pulls[number]["state"] = "closed"
    flow.propose(corrected(files), "again")
    again = late(flow)
    assert [draw.commitment for draw in again.plan.earlier] == [first.plan.commitment_sha256]


def test_a_draw_that_cannot_be_read_is_not_passed_over(flow):
    files = row.sound(flow.checkout)
    number = flow.propose(files)
    flow.opened()
    (ours,) = [comment for comment in flow.forge.comments[number] if comment["user"] == BOT]
    ours["body"] = f"{audits.AUDIT_MARKER}zlib:AAAA -->\n"
    flow.forge.pulls[number]["state"] = "closed"
    flow.propose(corrected(files), "again")
    code, _, err = flow.run("audit", "open", "--relay", flow.relay)
    assert (code, f"the draws in the comment on #{number}" in err) == (3, True), err


def test_the_oldest_of_very_many_audits_are_left_out_and_counted(flow, monkeypatch):
    monkeypatch.setattr(audits, "AUDITED_PULLS_MAX", 1)
    files = row.sound(flow.checkout)
    for name in ("one", "two"):
        flow.propose(files, name)
        flow.opened()
    flow.propose(files, "three")
    code, _, err = flow.run("audit", "open", "--relay", flow.relay)
    assert (code, "draws of the newest 1 audited pull requests are read" in err) == (0, True), err
