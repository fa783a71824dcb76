"""What an audit by the workflow refuses: each is a comment with what to do, before it costs."""

import pytest

from geneb_ci.github import audits, report
from geneb_ci.github.one_line import decode
from tests.audit.recorded import outcome_of, pem_of
from tests.github.audit_flow import APP_TOKEN, MODEL, committed, flow, founded
from tests.github.test_audit_pull import merged
from tools.rehearse import row
from tools.rehearse.forge import git

__all__ = ["committed", "flow", "founded"]
OPEN = ("audit", "open", "--relay")


def test_nothing_is_drawn_where_nothing_could_rerun_it(flow):
    """A label queued a job for a day, for a runner that nobody had registered."""
    number = flow.propose(row.sound(flow.checkout))
    code, _, err = flow.run(*OPEN, flow.relay, AUDIT_FLAVOR="", AUDIT_RUNNER="")
    assert (code, flow.forge.statuses) == (11, {})
    assert "nothing can run this audit: neither AUDIT_FLAVOR nor AUDIT_RUNNER is set" in err
    comment = flow.comment(number)
    assert comment.splitlines()[1] == f"### The audit of `pull request {number}` did not begin"
    assert "set the variable AUDIT_FLAVOR of the repository to a machine of the Hub" in comment
    assert flow.forge.labels(number) == ["by hand", report.FAILED]
    # One that is named is enough, and the comment is then about the draw.
    flow.forge.pulls[number]["labels"] = [{"name": "audit"}]
    assert flow.run(*OPEN, flow.relay, AUDIT_RUNNER="gpu-box")[0] == 0
    assert "tasks are drawn" in flow.comment(number)


def test_a_row_with_errors_has_a_comment_that_says_so(flow):
    number = flow.propose(row.impossible(flow.checkout, MODEL))
    code, _, err = flow.run(*OPEN, flow.relay)
    assert (code, "score-out-of-range" in err, flow.forge.statuses) == (11, True, {})
    assert flow.forge.labels(number) == ["by hand", report.FAILED]
    comment = flow.comment(number)
    assert (
        f"`pull request {number} cannot be audited, because it has errors: score-out-of-range"
        in comment
    )
    assert "push a row that passes every check" in comment
    assert "Then set the label `audit` again." in comment


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"AUDIT_KEY": ""}, "AUDIT_KEY is not set: there is no key to sign with"),
        ({"AUDIT_KEY": "ssh-ed25519 AAAA"}, "AUDIT_KEY is not an Ed25519 private key in PEM"),
        ({"AUDIT_TOKEN": "ghs_ended"}, "GitHub refuses the token in AUDIT_TOKEN: "),
    ],
    ids=["no key", "no PEM", "a token that has ended"],
)
def test_a_secret_that_is_wrong_is_named_before_the_rerun(flow, variables, message):
    """It failed after hours of GPU time, and the message named another variable."""
    code, _, err = flow.run("audit", "ready", **variables)
    assert (code, message in err) == (2, True), err
    assert "of the environment geneb-audit" in err
    assert "GH_TOKEN" not in err


def test_a_key_that_main_does_not_have_is_named_before_the_rerun(flow):
    code, _, err = flow.run("audit", "ready", AUDIT_KEY=pem_of("somebody else").decode())
    assert (code, "keys.json of main does not have the key to sign with" in err) == (2, True), err


def test_without_a_token_the_record_is_ready_to_be_attached(flow):
    assert flow.run("audit", "ready")[0] == 0
    code, _, err = flow.run("audit", "ready", AUDIT_TOKEN="")
    assert (code, err) == (
        0,
        "AUDIT_TOKEN is not set: the signed record will be attached to a comment\n",
    )


@pytest.mark.parametrize("shift", [0.0, 0.05], ids=["agrees", "differs"])
def test_without_a_token_one_command_proposes_the_record(flow, shift):
    """From the label to the level with no secret but the key: one command, and one merge."""
    number = flow.propose(row.sound(flow.checkout))
    order = flow.opened()
    flow.patch.setenv("AUDIT_TOKEN", "")
    outcome = outcome_of(order.plan, flow.raw(order), shift=shift)
    assert flow.delivered(order, outcome)[0] == 0
    message, attached = (comment["body"] for comment in flow.forge.comments[number])
    assert f"`geneb-ci audit propose {number}`" in message
    assert "part 1 of 1" in attached
    assert list(flow.forge.pulls) == [number]
    # Run again, it attaches nothing twice.
    assert flow.delivered(order, outcome)[0] == 0
    assert len(flow.forge.comments[number]) == 2
    code, out, err = flow.run("audit", "propose", str(number), GH_TOKEN=APP_TOKEN)
    assert code == 0, err
    assert out.endswith(f"\nopened pull request #{number + 1} with the record: merge it\n")
    assert flow.forge.pulls[number]["state"] == ("closed" if shift == 0 else "open")
    merged(flow, number + 1)
    is_audited = flow.run("explain", MODEL)[1].startswith(f"{MODEL}  audited: audit ")
    assert is_audited is (shift == 0)


def test_a_token_that_ends_during_the_rerun_costs_no_record(flow):
    """A token of an App lives an hour, a rerun for longer."""
    number = flow.propose(row.sound(flow.checkout))
    order = flow.opened()
    flow.patch.setenv("AUDIT_TOKEN", "ghs_ended")
    code, err = flow.delivered(order, outcome_of(order.plan, flow.raw(order)))
    assert (code, "GitHub refuses the token in AUDIT_TOKEN" in err) == (0, True), err
    assert "part 1 of 1" in flow.forge.comments[number][-1]["body"]
    assert flow.forge.labels(number) == ["by hand", report.AGREES]


def test_a_secret_that_stopped_the_rerun_is_the_reason_in_the_comment(flow):
    number = flow.propose(row.sound(flow.checkout))
    order = flow.opened()
    flow.patch.setenv("AUDIT_TOKEN", "ghs_ended")
    assert flow.delivered(order, None)[0] == 2
    comment = flow.comment(number)
    assert "**No record**: `GitHub refuses the token in AUDIT_TOKEN" in comment
    assert "**Next step**: `make an App: geneb-ci init --app; or store a token" in comment


def test_a_record_in_a_strangers_comment_is_none(flow):
    number = flow.propose(row.sound(flow.checkout))
    order = flow.opened()
    flow.patch.setenv("AUDIT_TOKEN", "")
    assert flow.delivered(order, outcome_of(order.plan, flow.raw(order)))[0] == 0
    flow.forge.comments[number][-1]["user"] = {"id": 7, "login": "stranger"}
    code, _, err = flow.run("audit", "propose", str(number), GH_TOKEN=APP_TOKEN)
    assert (code, f"the comments on #{number} have no complete signed record" in err) == (2, True)


def test_a_row_of_main_is_audited_by_an_issue(flow):
    """One run from the id of a row to its record; the issue keeps the draw, whatever main is."""
    merged(flow, flow.propose(row.sound(flow.checkout)))
    open_row = ("audit", "open", "--row", MODEL, "--relay", flow.relay)
    code, out, err = flow.run(*open_row)
    assert code == 0, err
    order = decode(out, audits.AuditOrder, "the order", audits.RETRY_FIX)
    ((number, issue),) = flow.forge.issues.items()
    assert (order.number, order.head_sha, order.is_on_main) == (number, flow.forge.main, True)
    assert issue["title"] == f"Audits of {MODEL}"
    assert flow.forge.labels(number) == [report.RUNNING]
    # Main moves on, and somebody asks again: the draw is the same.
    head = flow.forge.push("NEWS.md", b"News.")
    git(flow.checkout, "fetch", "--quiet", "origin", head)
    git(flow.checkout, "checkout", "--quiet", "FETCH_HEAD")
    flow.forge.stamp = "2023-08-24T00:00:00Z"
    code, out, err = flow.run(*open_row)
    assert code == 0, err
    again = decode(out, audits.AuditOrder, "the order", audits.RETRY_FIX)
    assert (again.plan, again.published_on) == (order.plan, order.head_sha)
    code, err = flow.delivered(again, outcome_of(again.plan, flow.raw(again)))
    assert code == 0, err
    assert (issue["state"], flow.forge.labels(number)) == ("closed", [report.AGREES])
    merged(flow, max(flow.forge.pulls))
    assert flow.run("explain", MODEL)[1].startswith(f"{MODEL}  audited: audit ")


def test_a_row_that_main_does_not_have_is_refused_by_name(flow):
    code, _, err = flow.run("audit", "open", "--row", "nothing", "--relay", flow.relay)
    assert (code, "is not a row of main" in err, flow.forge.issues) == (2, True, {})


def test_row_17_to_publish_a_commitment_twice_moves_no_time(flow):
    """Threat 17: a second time would give another round of the beacon to choose from."""
    merged(flow, flow.propose(row.sound(flow.checkout)))
    publish = ("audit", "publish", f"submissions/{MODEL}.json")
    code, first, err = flow.run(*publish)
    assert code == 0, err
    (status,) = flow.forge.statuses[flow.forge.main]
    assert status["context"] == "geneb/audit-commit"
    time = f"--committed-at {status['created_at']} --shown-on {flow.forge.main}"
    assert first == f"{time}\n"
    assert f"\nnext: geneb-ci audit {publish[-1]} --key KEY.pem {time}\n" in err
    flow.forge.stamp = "2023-08-24T00:00:00Z"
    assert flow.run(*publish)[:2] == (0, first)
    assert flow.forge.statuses[flow.forge.main] == [status]
