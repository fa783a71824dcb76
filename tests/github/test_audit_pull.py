"""From the label on a pull request to a signed record beside its row, and what is refused."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from geneb_ci.audit.compare.outcome import AuditOutcome
from geneb_ci.audit.record.statement import STARTED_SUFFIX
from geneb_ci.audit.rerun.credentials import credential_variables
from geneb_ci.common.config import find_layout
from geneb_ci.github import audits, hub_jobs
from geneb_ci.github.hub_jobs import outcome_in, outcome_lines
from geneb_ci.github.one_line import decode, encode
from tests.audit.examples import ROUNDS
from tests.audit.linked_place import heads_of, name_of, read, step
from tests.audit.recorded import committed_at, outcome_of
from tests.audit.relay import relay, says
from tests.github.audit_flow import APP_TOKEN, JOB, MODEL, OLD, Flow, committed, flow, founded, hub
from tests.github.server import REPOSITORY, STRANGER
from tests.publish.hub import READER, WRITER
from tools.rehearse import row
from tools.rehearse.forge import git
from tools.rehearse.standins import clone

__all__ = ["committed", "flow", "founded", "hub"]


def test_a_label_leads_to_a_pull_request_with_the_row_and_its_record(flow):
    number = flow.propose(row.sound(flow.checkout))
    order = flow.opened()
    head = flow.forge.pulls[number]["head"]["sha"]
    assert (order.number, order.head_sha, order.model_id) == (number, head, MODEL)
    (status,) = flow.forge.statuses[head]
    assert (status["context"], status["description"]) == (
        "geneb/audit-commit",
        order.plan.commitment_sha256,
    )
    assert flow.forge.labels(number) == ["by hand", "geneb: audit running"]
    # The label was taken: the next run has nothing to do, and the time of the status never moves.
    assert flow.run("audit", "open")[:2] == (0, "")
    flow.forge.stamp = "2023-08-24T00:00:00Z"
    code, again, _ = flow.run("audit", "open", "--pr", str(number), "--relay", flow.relay)
    assert code == 0
    assert decode(again, audits.AuditOrder, "", audits.RETRY_FIX).plan == order.plan

    raw = flow.raw(order)
    code, err = flow.delivered(order, outcome_of(order.plan, raw))
    assert code == 0, err
    merged = number + 1
    pull = flow.forge.pulls[merged]
    assert flow.forge.pulls[number]["state"] == "closed"
    assert flow.forge.labels(number) == ["by hand", "geneb: audit agrees"]
    comment = flow.comment(number)
    assert f"Merge #{merged}" in comment
    steps = [line.split("`")[1] for line in comment.splitlines() if "| holds |" in line]
    assert {"signer", "seed", "sample", "comparison", "submission", "policy"} <= set(steps)
    # The verdict on it verifies the record again, with the row: it passes.
    code, out, err = flow.run("reconcile", "--pr", str(merged))
    assert code == 0, err
    (verdict,) = json.loads(out)["pulls"]
    assert (verdict["outcome"], verdict["model"]) == ("passed", MODEL)
    assert [file["path"].split("/")[1] for file in verdict["files"]].count("audits") == 2
    # Once it is merged, the row is verified.
    path = flow.checkout.parent / "after"
    clone(flow.forge.repository, path, pull["head"]["sha"], depth=1)
    flow.patch.chdir(path)
    assert flow.run("explain", MODEL)[1].startswith(f"{MODEL}  audited: audit ")
    # Run again, deliver writes nothing twice.
    flow.patch.chdir(flow.checkout)
    assert flow.delivered(order, outcome_of(order.plan, raw))[0] == 0
    assert max(flow.forge.pulls) == merged


def test_a_row_of_format_1_0_is_audited_by_its_registry_entry(flow):
    files = row.sound(flow.checkout, OLD)
    path = f"submissions/{OLD}.json"
    document = json.loads(files[path])
    member_names = ("model_id", "harness_version", "meta", "results")
    old = {"schema_version": "1.0"} | {name: document[name] for name in member_names}
    number = flow.propose(files | {path: json.dumps(old).encode()}, OLD)
    order = flow.opened()
    commitment = order.plan.commitment
    assert commitment.entry is not None
    assert (commitment.weights.kind, commitment.extractor.class_name) == ("zenodo", "Model")
    outcome = outcome_of(order.plan, flow.raw(order))
    document = outcome.model_dump()
    for task in document["tasks"]:
        for cell in task["regimes"].values():
            cell["predictions_equal"] = None  # the format has no digests
    code, err = flow.delivered(order, AuditOutcome.model_validate(document))
    assert code == 0, err
    code, out, _ = flow.run("reconcile", "--pr", str(number + 1))
    assert json.loads(out)["pulls"][0]["outcome"] == "passed"


Change = Callable[[audits.AuditOrder, AuditOutcome], tuple[audits.AuditOrder, AuditOutcome | None]]


def _of_another_plan(order, outcome):
    plan = outcome.plan.model_copy(update={"tickets": outcome.plan.tickets[::-1]})
    return order, outcome.model_copy(update={"plan": plan})


def _raised(order, outcome):
    tasks = [task.model_copy(update={"verdict": "differs"}) for task in outcome.tasks]
    return order, outcome.model_copy(update={"tasks": tasks})


def _other_claims(order, outcome):
    document = outcome.model_dump()
    for cell in document["tasks"][0]["regimes"].values():
        cell["claimed"]["MCC"] = cell["rescored"]["MCC"] = 0.1
    return order, AuditOutcome.model_validate(document)


def _early(order, outcome):
    return order, outcome.model_copy(update={"started_at": "2023-01-02T00:00:00Z"})


def _foreign(order, outcome):
    return order.model_copy(update={"repository": "org/other"}), outcome


def _unpublished(order, outcome):
    plan = order.plan.model_copy(update={"committed_at": "2023-08-23T15:14:30Z"})
    return order.model_copy(update={"plan": plan}), outcome.model_copy(update={"plan": plan})


def _nothing(order, _outcome):
    return order, None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_of_another_plan, "the plan of the outcome differs from that of the audit order"),
        (_raised, "comparison: "),
        (_other_claims, "the submission does not claim"),
        (_early, "committed_at"),
        (_foreign, "the audit was ordered in org/other, not in "),
        (_unpublished, "no status with the commitment of this audit that was set at"),
        (_nothing, "ended without an outcome"),
    ],
)
def test_a_forged_replayed_or_foreign_outcome_makes_no_record(flow, change: Change, message: str):
    number = flow.propose(row.sound(flow.checkout))
    order = flow.opened()
    code, err = flow.delivered(*change(order, outcome_of(order.plan, flow.raw(order))))
    assert code in {2, 11}
    assert message in err
    assert (
        change in {_early, _other_claims, _foreign}
        or f"gh workflow run audit.yml -f pr={number}" in err
    )
    assert flow.forge.labels(number) == ["by hand", "geneb: audit failed"]
    assert "No record" in flow.comment(number)
    assert list(flow.forge.pulls) == [number]
    assert git(flow.forge.repository, "for-each-ref", "refs/heads") != ""
    assert "geneb-audit" not in git(flow.forge.repository, "for-each-ref", "refs/heads")


@pytest.mark.parametrize("why", ["differs", "new commits"])
def test_the_record_goes_alone_where_the_row_must_not(flow, why: str):
    number = flow.propose(row.sound(flow.checkout))
    order = flow.opened()
    if why == "new commits":
        flow.forge.pulls[number]["head"] = dict(flow.forge.pulls[number]["head"], sha="1" * 40)
    shift = 0.05 if why == "differs" else 0.0
    assert flow.delivered(order, outcome_of(order.plan, flow.raw(order), shift=shift))[0] == 0
    assert flow.forge.pulls[number]["state"] == "open"
    head = flow.forge.pulls[number + 1]["head"]["sha"]
    changed = git(flow.forge.repository, "diff", "--name-only", flow.forge.main, head)
    assert [line.rsplit("/", 1)[0] for line in changed.splitlines()] == [
        *[f"leaderboard/audits/{MODEL}"] * 2  # its start and its record
    ]
    assert "so that this draw counts" in flow.comment(number)
    code, out, err = flow.run("reconcile", "--pr", str(number + 1))
    assert code == 0, err
    (verdict,) = json.loads(out)["pulls"]
    assert (verdict["outcome"], verdict["findings"]) == ("passed", [])


def test_a_draw_without_a_record_counts_for_the_next_head(flow):
    files = row.sound(flow.checkout)
    number = flow.propose(files)
    first = flow.opened()
    assert flow.delivered(first, None)[0] == 11
    path = f"submissions/{MODEL}.json"
    document = json.loads(files[path])
    document["meta"]["training_data"] = "human genome, again"
    second = flow.propose(files | {path: json.dumps(document).encode()})
    flow.forge.pulls[number]["head"] = flow.forge.pulls.pop(second)["head"]
    flow.forge.pulls[number]["labels"] = [{"name": "audit"}]
    flow.forge.stamp = committed_at(max(ROUNDS))
    rounds = json.dumps({"round": max(ROUNDS), "signature": ROUNDS[max(ROUNDS)]})
    with relay(says(rounds)) as (address, _):
        flow.relay = address
        again = flow.opened()
    assert [draw.commitment for draw in again.plan.earlier] == [first.plan.commitment_sha256]


def test_the_job_refuses_to_run_beside_a_token(flow, tmp_path):
    flow.propose(row.sound(flow.checkout))
    order = encode(flow.opened(), audits.RETRY_FIX)
    home = tmp_path / "home"
    home.mkdir()
    for name in credential_variables(os.environ):
        flow.patch.setenv(name, "")
    flow.patch.setenv("HOME", str(home))
    for name in ("HF_TOKEN", "ACTIONS_RUNTIME_TOKEN"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(name, "x")
            code, _, err = flow.run("audit", "job", AUDIT_ORDER=order)
            assert (code, f"contributor's code could read a credential: {name}" in err) == (2, True)
    (home / ".netrc").write_text("machine x", encoding="utf-8")
    code, _, err = flow.run("audit", "job")
    assert (code, "~/.netrc" in err) == (2, True)
    (home / ".netrc").unlink()
    # Without one it fetches the row's files, with no credential, and gets as far as the sandbox.
    request_count = len(flow.forge.requests)
    code, _, err = flow.run("audit", "job", "--data", str(home), "--level", "4")
    assert len(flow.forge.requests) == request_count
    assert (code, "--throw-away-machine" in err) == (2, True), err


SEND = ("audit", "send", "--flavor", "l4x1", "--timeout", "90m", "--namespace", "geneb")


def test_a_job_of_the_hub_has_no_token_and_answers_in_its_log(flow, hub):
    flow.propose(row.sound(flow.checkout))
    order = flow.opened()
    flow.patch.setenv("AUDIT_ORDER", encode(order, audits.RETRY_FIX))
    cost = "l4x1 (8 vCPU, 30 GB, 1 x L4 24 GB), at most 1.50 h, at most $1.20: only the time"
    code, out, err = flow.run(*SEND, "--dry-run")
    assert (code, out, err.startswith(cost), hub.shelf.jobs.specs) == (0, "", True, {})
    request_count = len(flow.forge.requests)
    code, out, err = flow.run(*SEND, "--poll", "0.05")
    assert code == 0, err
    assert err.startswith(cost)  # before it started
    (spec,) = hub.shelf.jobs.specs.values()
    assert spec["timeoutSeconds"] == 90 * 60
    assert set(spec) == {
        *("command", "arguments", "environment", "flavor", "timeoutSeconds", "labels"),
        "dockerImage",
    }
    (log,) = hub.shelf.jobs.logs.values()
    seen = dict(
        line.partition("=")[::2] for line in (log.parent / "home/seen").read_text().splitlines()
    )
    passed = {"AUDIT_SERVER", "AUDIT_REPOSITORY", "AUDIT_MAIN", "AUDIT_ORDER"}
    assert set(seen) - {"PWD", "OLDPWD", "SHLVL", "_"} == {
        *("PATH", "HOME", "LANG", "JOB_ID"),
        *passed,
    }
    assert not {WRITER, JOB, APP_TOKEN} & set(seen.values())
    assert len(flow.forge.requests) == request_count  # it asked no address that takes a token
    assert sorted(path.name for path in (log.parent / "home").iterdir()) == ["board", "seen"]
    outcome = decode(out, AuditOutcome, "the outcome", audits.RETRY_FIX)
    assert outcome.plan == order.plan
    assert flow.delivered(order, outcome)[0] == 0


def test_what_the_hub_cannot_do_is_said_before_it_costs(flow, hub):
    flow.propose(row.sound(flow.checkout))
    flow.patch.setenv("AUDIT_ORDER", encode(flow.opened(), audits.RETRY_FIX))
    for words, message in (
        (("--max-cost", "1"), " dollars, more than --max-cost 1.00"),
        (("--flavor", "h900"), "the Hub has no machine 'h900'"),
    ):
        code, _, err = flow.run(*SEND, *words)
        assert (code, message in err) == (2, True)
    flow.patch.setenv("HF_TOKEN", READER)
    code, _, err = flow.run(*SEND)
    assert (code, "the Hub refused the token in HF_TOKEN (403)" in err) == (2, True)
    flow.patch.setenv("HF_TOKEN", "")
    code, _, err = flow.run(*SEND)
    assert (code, "HF_TOKEN is not set" in err) == (2, True)
    assert hub.shelf.jobs.specs == {}


@pytest.mark.usefixtures("hub")
def test_a_job_that_fails_shows_the_end_of_its_log(flow):
    flow.propose(row.sound(flow.checkout))
    order = flow.opened().model_copy(update={"main_sha": "0" * 40})
    flow.patch.setenv("AUDIT_ORDER", encode(order, audits.RETRY_FIX))
    code, _, err = flow.run(*SEND, "--poll", "0.05")
    assert code == 3
    assert "ended as ERROR without an outcome" in err
    assert "  | " in err


def test_a_probe_says_which_sandbox_a_job_of_the_hub_reaches(flow, hub):
    flow.patch.setattr(hub_jobs, "POLL_S", 0.05)
    code, out, err = flow.run("doctor", "--github", REPOSITORY, "--hub-job")
    assert (code, err) == (0, "")
    assert out.startswith("cpu-basic (8 vCPU, 30 GB), at most 0.50 h")
    assert "levels of the sandbox in a Job of the Hub: 2\n" in out
    assert f'gh variable set AUDIT_PROBED --repo {REPOSITORY} --body "level 2"' in out
    (spec,) = hub.shelf.jobs.specs.values()
    assert (spec["flavor"], spec.get("secrets")) == ("cpu-basic", None)


def test_an_outcome_in_a_log_is_found_by_its_nonce_alone():
    line, nonce = "zlib:" + "A" * 9000, "a" * 32
    lines = ["started", *outcome_lines(line, nonce), "done"]
    assert outcome_in(lines, nonce) == line
    assert outcome_in([*outcome_lines("zlib:B", "b" * 32), *lines], nonce) == line
    assert outcome_in(lines[:-2], nonce) is None
    assert outcome_in([], nonce) is None


def test_a_stranger_cannot_plant_an_earlier_draw(flow):
    number = flow.propose(row.sound(flow.checkout))
    planted = f"{audits.AUDIT_MARKER}zlib:AAAA -->\n"
    flow.forge.add_comment(number, STRANGER, planted)
    assert flow.opened().plan.earlier == []


def merged(flow: Flow, number: int) -> Path:
    """Merge a pull request, and check main out again."""
    flow.forge.pulls[number]["state"] = "closed"
    head = flow.forge.pulls[number]["head"]["sha"]
    git(flow.forge.repository, "update-ref", "refs/heads/main", head)
    flow.forge.learn(head)
    git(flow.checkout, "fetch", "--quiet", "--depth=1000", "origin", "refs/heads/main")
    git(flow.checkout, "checkout", "--quiet", "FETCH_HEAD")
    find_layout.cache_clear()
    return flow.checkout / f"leaderboard/audits/{MODEL}"


def test_from_the_label_to_the_level_there_is_one_merge(flow):
    """On a board that `init` has just made: one key, and nothing was merged for the audit."""
    keys = json.loads((flow.checkout / "leaderboard/policy/keys.json").read_text())
    assert list(keys) == ["keys"]
    number = flow.propose(row.sound(flow.checkout))
    order = flow.opened()
    assert flow.delivered(order, outcome_of(order.plan, flow.raw(order)))[0] == 0
    proposed = number + 1
    assert set(flow.forge.pulls) == {number, proposed}
    assert "| links | holds |" in flow.comment(number).replace("`", "")
    _, out, err = flow.run("reconcile", "--pr", str(proposed))
    (verdict,) = json.loads(out)["pulls"]
    assert (verdict["outcome"], verdict["findings"]) == ("passed", []), err

    folder = merged(flow, proposed)
    assert len(list(folder.iterdir())) == 2
    (start,) = folder.glob(f"*{STARTED_SUFFIX}")
    (verification,) = read(flow.checkout).verifications()
    assert verification.holds
    head = flow.forge.pulls[number]["head"]["sha"]
    assert step(verification)[1] == (
        f"GitHub dates the commitment: its digest is in a status of commit {head[:12]}"
    )
    assert name_of(start) not in heads_of(flow.checkout)
    assert flow.run("explain", MODEL)[1].startswith(f"{MODEL}  audited: audit ")
    assert len(git(flow.checkout, "rev-list", "HEAD").split()) == 2
