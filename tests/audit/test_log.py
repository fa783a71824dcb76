"""A log that cannot forget: what was deleted, back-dated or slipped in is named, offline."""

import json
import shutil

import pytest

from geneb_ci.audit.canonical import moment_of
from geneb_ci.audit.log.entries import LogBroken, log_files, read_log
from geneb_ci.audit.record.events import AuditStart
from geneb_ci.audit.record.keys import log_keys
from geneb_ci.audit.record.verify import StepState, Verification
from geneb_ci.audit.sampling.beacon import time_of
from geneb_ci.audit.trust.evidence import BrokenRecordError, gather_evidence
from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import UsageProblem
from tests.audit.examples import ROUNDS
from tests.audit.log_place import (
    BEFORE,
    aborted,
    audited,
    begun,
    entry_of,
    extend,
    forced,
    kept,
    key_file,
    log_of,
    read,
    signed,
)
from tests.audit.recorded import (
    FIRST,
    MODEL,
    SECOND,
    commitment,
    entry,
    key,
    mutated,
    outcome_of,
    plan_for,
    put,
    repository,
    submission_bytes,
    withdraw,
)

RAW = submission_bytes()
FAILED = 0.01
OTHER = key("another")


def verified(root, path) -> Verification:
    return read(root).verification(path)


def step(found: Verification, name: str = "log") -> tuple[StepState, str]:
    (one,) = (one for one in found.steps if one.name == name)
    return one.state, one.message


def test_a_whole_audit_is_four_entries_and_verifies(tmp_path):
    root = kept(tmp_path)
    path = audited(root, RAW)
    assert [one.kind for one in log_of(root).entries] == ["commitment", "start", "result"]
    found = verified(root, path)
    assert found.holds
    assert step(found) == (StepState.HOLDS, "")
    withdraw(path)
    extend(root, FIRST + 2)
    assert [one.kind for one in log_of(root).entries][-1] == "withdrawal"
    assert verified(root, path).withdrawn is not None


def test_a_record_that_is_not_logged_yet_neither_counts_nor_stops_anything(tmp_path):
    root = kept(tmp_path)
    plan = begun(root, plan_for(RAW))
    path = put(root, outcome_of(plan, RAW))
    state, message = step(verified(root, path))
    assert (state, "not in the log yet" in message) == (StepState.UNKNOWN, True)
    evidence = gather_evidence(find_layout(root))
    assert (evidence.audits, evidence.broken) == ((), ())


def test_deleting_a_failed_record_is_named(tmp_path, monkeypatch, capsys):
    root = kept(tmp_path)
    failed = audited(root, RAW, shift=FAILED)
    other = put(root, outcome_of(plan_for(RAW), RAW))
    extend(root, FIRST + 2)
    failed.unlink()
    name = f"{MODEL}/{failed.name}"
    assert f"{name} was deleted: it is entry 2 of the log" in step(verified(root, other))[1]
    with pytest.raises(BrokenRecordError, match=f"{name} is broken at log: .* was deleted"):
        gather_evidence(find_layout(root)).require_sound()
    monkeypatch.chdir(root)
    assert main(["audit", "verify"]) == 11
    assert main(["label"]) == 11
    assert main(["audit", "log", "verify"]) == 11
    assert f"{name} was deleted" in capsys.readouterr().err


def test_deleting_from_the_log_too_is_found_by_an_earlier_checkpoint(tmp_path, monkeypatch, capsys):
    root = kept(tmp_path)
    plan = begun(root, plan_for(RAW))
    log = root / "leaderboard/audits/log"
    before = shutil.copytree(log, tmp_path / "before")
    failed = put(root, outcome_of(plan, RAW, FAILED))
    extend(root, FIRST + 1)
    shutil.copy(log / "checkpoint", tmp_path / "published")
    # Whoever has the log's key takes it back, and adds another record in its place.
    failed.unlink()
    shutil.rmtree(log)
    shutil.copytree(before, log)
    put(root, outcome_of(plan, RAW))
    extend(root, FIRST + 1)
    monkeypatch.chdir(root)
    assert main(["audit", "verify"]) == 0
    assert main(["audit", "log", "verify", "--checkpoint", "published"]) == 11
    assert "its first 3 entries are not those of the earlier checkpoint" in capsys.readouterr().err
    shutil.rmtree(log)
    shutil.copytree(before, log)
    assert main(["audit", "log", "verify", "--checkpoint", "published"]) == 11
    assert "it has 2 entries, and had 3 before: entries were removed" in capsys.readouterr().err


def test_a_time_before_the_entry_of_the_commitment_is_refused(tmp_path):
    root = kept(tmp_path)
    path = audited(root, RAW, SECOND)
    # A plan for the same commitment that says 2023, with the round of that time.
    dated = put(root, outcome_of(plan_for(RAW, FIRST), RAW))
    state, message = step(verified(root, dated))
    assert state is StepState.DIFFERS
    assert f"public at {moment_of(time_of(FIRST - BEFORE))}; the log has it as entry 0, at " in (
        message
    )
    assert [one.reason for one in extend(root, SECOND + 2).refused] == [f"log: {message}"]
    assert step(verified(root, path))[0] is StepState.HOLDS


def test_a_record_without_a_logged_commitment_is_refused(tmp_path):
    root = kept(tmp_path)
    path = put(root, outcome_of(plan_for(RAW), RAW))
    assert step(verified(root, path)) == (
        StepState.DIFFERS,
        "its commitment is not in the log: when it was made is not known",
    )
    batch = extend(root, FIRST)
    assert ([one.file for one in batch.refused], batch.entries) == ([f"{MODEL}/{path.name}"], ())


def test_a_commitment_that_was_never_drawn_blocks_the_next_one(tmp_path):
    root = kept(tmp_path)
    # The draw for the first version would have been public; it was passed over.
    skipped = signed(root, commitment(submission_bytes(" before")))
    extend(root, FIRST - BEFORE)
    path = audited(root, RAW, SECOND)
    state, message = step(verified(root, path))
    assert state is StepState.DIFFERS
    assert message.startswith("entry 0 is a commitment of the same model id, and its tasks were")
    assert f"{MODEL}/{skipped.name}" in message
    # Drawn late, its draw is one that the plan should have listed.
    early = plan_for(submission_bytes(" before"), FIRST)
    signed(root, AuditStart(schema_version="1.0", plan=early))
    extend(root, SECOND + 2)
    found = verified(root, path)
    assert step(found)[0] is StepState.HOLDS
    assert step(found, "earlier")[0] is StepState.DIFFERS


def test_the_order_of_the_entries_counts(tmp_path):
    root = kept(tmp_path)
    plan = plan_for(RAW)
    signed(root, plan.commitment)
    extend(root, FIRST - BEFORE)
    path = put(root, outcome_of(plan, RAW))
    assert extend(root, FIRST).refused[0].reason == "log: no start of this draw is in the log"
    record = read(root).parsed(path)
    sha256, name = record.sha256, f"{MODEL}/{path.name}"  # type: ignore[union-attr]
    forced(root, entry_of("result", name, sha256, FIRST, commitment=plan.commitment_sha256))
    assert step(verified(root, path)) == (
        StepState.DIFFERS,
        "the order of its entries is wrong: commitment 0, start none, record 1",
    )


def test_an_abort_and_its_start_are_shown_and_drawn_again(tmp_path, monkeypatch, capsys):
    root = kept(tmp_path)
    plan = begun(root, plan_for(RAW))
    monkeypatch.chdir(root)
    assert main(["audit", "log", "show"]) == 0
    assert "(open: no record or abort follows)" in capsys.readouterr().out
    signed(root, aborted(plan))
    extend(root, FIRST + 1)
    assert main(["audit", "log", "show", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(one["kind"], one["open"]) for one in shown["entries"]] == [
        ("commitment", False),
        ("start", False),
        ("abort", False),
    ]
    # Another version of the file: the draw of the run that was aborted is left out.
    other = submission_bytes(" again")
    (root / f"submissions/{MODEL}.json").write_bytes(other)
    path = audited(root, other, SECOND)
    assert step(verified(root, path), "earlier") == (
        StepState.DIFFERS,
        f"the earlier draw for commitment {plan.commitment_sha256[:16]}... is left out",
    )


def test_another_name_is_drawn_with_what_the_first_one_drew(tmp_path):
    root = kept(tmp_path)
    first = audited(root, RAW)
    renamed = json.loads(RAW)
    renamed["model_id"] = "another"
    raw = json.dumps(renamed).encode()
    (root / "submissions/another.json").write_bytes(raw)
    path = audited(root, raw, SECOND, model_id="another")
    drawn = read(root).parsed(first)
    digest = drawn.outcome.plan.commitment_sha256  # type: ignore[union-attr]
    assert step(verified(root, path), "earlier") == (
        StepState.DIFFERS,
        f"the earlier draw for commitment {digest[:16]}... is left out",
    )


def test_a_record_that_another_key_signed_again_is_named(tmp_path):
    root = kept(tmp_path, keys=[entry(), entry(OTHER, owner="somebody else")])
    path = audited(root, RAW)
    outcome = read(root).parsed(path).outcome  # type: ignore[union-attr]
    put(root, outcome, OTHER)
    assert "was signed again by another key" in step(verified(root, path))[1]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, bytes]:
    root = kept(tmp_path_factory.mktemp("log"))
    audited(root, RAW)
    return log_files(root / "leaderboard/audits/log")


def refused(files: dict[str, bytes], root) -> str:
    keys = log_keys(find_layout(kept(root)))
    assert keys is not None
    with pytest.raises(LogBroken) as caught:
        read_log(files, keys)
    return caught.value.message


def test_every_changed_file_of_the_log_is_refused(files, tmp_path):
    assert sorted(files) == [
        "checkpoint",
        *(f"tile/0/000.p/{width}" for width in (1, 2, 3)),
        *(f"tile/entries/000.p/{width}" for width in (1, 2, 3)),
    ]
    for name, content in files.items():
        at = len(content) // 2
        changed = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        assert refused(files | {name: changed}, tmp_path).startswith("log: ")
    for name in ("checkpoint", "tile/0/000.p/3", "tile/entries/000.p/3"):
        left = {path: content for path, content in files.items() if path != name}
        assert "missing" in refused(left, tmp_path)
    assert "tile/9/000 does not follow" in refused(files | {"tile/9/000": b""}, tmp_path)


def test_time_goes_forward(tmp_path):
    root = kept(tmp_path)
    signed(root, commitment(RAW))
    extend(root, SECOND - BEFORE)
    signed(root, commitment(submission_bytes(" again")))
    with pytest.raises(UsageProblem, match="is older than that of the last entry"):
        extend(root, FIRST)
    with pytest.raises(LogBroken, match="time goes forward"):
        forced(root, entry_of("revocation", "", "0" * 64, FIRST))


def test_append_is_idempotent_and_its_order_does_not_depend_on_the_day(tmp_path, monkeypatch):
    root = kept(tmp_path)
    for tag in ("c", "a", "b"):
        signed(root, commitment(submission_bytes(tag)))
    (root / "round.json").write_text(json.dumps({"round": FIRST, "signature": ROUNDS[FIRST]}))
    monkeypatch.chdir(root)
    command = ["audit", "log", "append", "--log-key", str(key_file(root)), "--beacon-file"]
    assert main([*command, "round.json"]) == 0
    before = log_files(root / "leaderboard/audits/log")
    names = [one.file for one in log_of(root).entries]
    assert names == sorted(names)
    assert len(names) == 3
    assert main([*command, "round.json"]) == 0
    assert log_files(root / "leaderboard/audits/log") == before
    assert main(["audit", "log", "verify"]) == 0


def test_a_key_that_is_not_the_logs_cannot_append(tmp_path, monkeypatch, capsys):
    root = kept(tmp_path)
    monkeypatch.chdir(root)
    assert main(["audit", "keygen", "--output", "other.pem"]) == 0
    assert main(["audit", "log", "append", "--log-key", "other.pem"]) == 2
    assert "is not one of the log example.org/audits in keys.json" in capsys.readouterr().err


def test_a_proof_of_an_entry_and_the_request_to_a_witness(tmp_path, monkeypatch, capsys):
    root = kept(tmp_path)
    audited(root, RAW)
    monkeypatch.chdir(root)
    note = log_of(root).checkpoint.note
    assert main(["audit", "log", "proof", "2"]) == 0
    head, _, rest = capsys.readouterr().out.partition("\n\n")
    assert head.splitlines()[:2] == ["c2sp.org/tlog-proof@v1", "index 2"]
    assert rest == note
    assert main(["audit", "log", "proof", "--from", "1"]) == 0
    head, _, rest = capsys.readouterr().out.partition("\n\n")
    assert (head.splitlines()[0], len(head.splitlines()), rest) == ("old 1", 3, note)
    assert main(["audit", "log", "proof", "3"]) == 2


def test_without_a_log_verify_says_what_cannot_be_known(tmp_path):
    root = repository(tmp_path)
    state, message = step(verified(root, put(root, outcome_of(plan_for(RAW), RAW))))
    assert (state, "names no log" in message) == (StepState.HOLDS, True)


def test_a_statement_that_was_changed_and_signed_again_is_another_entry(tmp_path):
    root = kept(tmp_path)
    plan = begun(root, plan_for(RAW))
    outcome = outcome_of(plan, RAW, FAILED)
    failed = put(root, outcome)
    extend(root, FIRST + 1)
    failed.write_bytes(mutated(outcome, lambda value: value["predicate"]["notes"].append("x")))
    assert "was changed: it is entry 2" in " ".join(read(root).logged.lost.values())  # type: ignore[union-attr]
