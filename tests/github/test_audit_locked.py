"""A locked conversation and the label `audit`: no draw, and no other audit waits for it."""

from geneb_ci.github import report
from tests.audit.recorded import outcome_of
from tests.github.audit_flow import OLD, committed, flow, founded
from tests.github.refusals import Fault
from tools.rehearse import row

__all__ = ["committed", "flow", "founded"]

OPEN = ("audit", "open", "--relay")


def test_a_locked_conversation_stops_no_other_audit(flow):
    locked = flow.propose(row.sound(flow.checkout))
    other = flow.propose(row.sound(flow.checkout, OLD), OLD)
    flow.forge.pulls[locked]["locked"] = True
    assert flow.opened().number == other
    # Then it is its turn: it is refused before anything is drawn, and asks no more.
    code, _, err = flow.run(*OPEN, flow.relay)
    assert (code, "token" in err) == (2, False)
    assert f"the conversation of pull request {locked} is locked" in err
    assert "unlock the conversation, and set the label audit again" in err
    assert flow.forge.pulls[locked]["head"]["sha"] not in flow.forge.statuses
    assert flow.forge.labels(locked) == ["by hand", report.FAILED]
    assert flow.run(*OPEN, flow.relay)[:2] == (0, "")


def test_one_that_is_locked_meanwhile_has_its_label(flow):
    number = flow.propose(row.sound(flow.checkout))
    message = "Unable to create comment because issue is locked."
    flow.forge.faults.append(Fault("POST", f"/issues/{number}/comments", 403, message=message))
    code, _, err = flow.run(*OPEN, flow.relay)
    assert (code, "the conversation is locked" in err) == (2, True)
    assert flow.forge.labels(number) == ["by hand", report.FAILED]
    # Locked while the audit runs: the label says so where no comment can.
    flow.forge.pulls[number]["labels"] = [{"name": report.AUDIT_LABEL}]
    order = flow.opened()
    flow.forge.faults.append(Fault("PATCH", "/issues/comments/", 403, message=message, times=2))
    code, err = flow.delivered(order, outcome_of(order.plan, flow.raw(order)))
    assert (code, "the conversation is locked" in err) == (2, True)
    assert flow.forge.labels(number) == [report.FAILED]
