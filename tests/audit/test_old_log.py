"""Boards that kept a Merkle log: it is read and checked, and what is signed now comes after it.

The folder `old_log` is such a board's, as the last version that could extend a log wrote it: an
audit of three entries, then a commitment, a start and an abort for another name.
"""

import json
import shutil
from pathlib import Path

import pytest

from geneb_ci.audit.canonical import moment_of
from geneb_ci.audit.compare.tolerance import tolerance_digest
from geneb_ci.audit.record.old_log import (
    LogBroken,
    LogKeys,
    check_extends,
    entries_in,
    log_files,
    read_log,
)
from geneb_ci.audit.record.verify import StepState
from geneb_ci.audit.sampling.beacon import time_of_round
from geneb_ci.cli.main import main
from tests.audit.linked_place import (
    AUDITS,
    audited,
    committed,
    layout_of,
    name_of,
    read,
    step,
)
from tests.audit.recorded import (
    FIRST,
    MODEL,
    SECOND,
    commitment,
    entry,
    outcome_of,
    plan_for,
    put,
    repository,
    submission_bytes,
)

OLD = Path(__file__).with_name("old_log")
RECORD = f"{MODEL}/8f392e831b4776bd.json"
START = f"{MODEL}/a2b24f61f6dab8dc.started.json"
RAW = submission_bytes()
KEYS = json.loads((OLD / "keys.json").read_text(encoding="utf-8"))
LOG = LogKeys.model_validate(KEYS["log"])


POLICY = commitment(RAW).policy.model_dump() | {"tolerance": tolerance_digest()}
"""The policy of the logged commitments, with the digest of the tolerance alone."""


def old_board(root: Path) -> Path:
    """Lay out the board."""
    repository(root)
    (root / "leaderboard/policy/keys.json").write_text(json.dumps(KEYS), encoding="utf-8")
    shutil.copytree(OLD / "audits", root / AUDITS)
    return root


def links(root: Path) -> tuple[StepState, str]:
    return step(read(root).verification(root / AUDITS / RECORD))


def test_its_record_verifies_by_the_log(tmp_path, monkeypatch, capsys):
    root = old_board(tmp_path)
    assert links(root) == (StepState.HOLDS, "")
    content = read(root)
    assert content.verification(root / AUDITS / RECORD).holds
    assert content.history.log is not None
    assert [log_entry.kind for log_entry in content.history.log.entries] == [
        *("commitment", "start", "result"),
        *("commitment", "start", "abort"),
    ]
    monkeypatch.chdir(root)
    layout_of(root)
    assert main(["audit", "verify", "--evidence", "audited"]) == 0, capsys.readouterr().out


def test_what_is_signed_now_names_the_log_and_all_that_it_lists(tmp_path):
    root = old_board(tmp_path)
    path = committed(root, commitment(submission_bytes(" third"), model_id="third"))
    named = read(root).history.files[name_of(path)].heads
    assert named is not None
    assert {"log/checkpoint", RECORD, START} <= set(named)
    assert len(named) == 7
    shutil.rmtree(root / AUDITS / "log")
    state, message = links(root)
    assert (state, message) == (
        StepState.DIFFERS,
        f"log/checkpoint was deleted: {name_of(path)} names it",
    )


def test_an_audit_goes_on_after_the_log(tmp_path):
    root = old_board(tmp_path)
    path = audited(root, RAW, SECOND, policy=POLICY)
    verification = read(root).verification(path)
    # One commitment has one draw, also where the first was logged.
    assert step(verification, "earlier")[0] is StepState.DIFFERS
    assert step(verification)[0] is StepState.HOLDS


def test_what_names_nothing_and_is_not_in_the_log_does_not_count(tmp_path):
    root = old_board(tmp_path)
    path = put(root, outcome_of(plan_for(RAW, policy=POLICY), RAW, 0.01))
    state, message = step(read(root).verification(path))
    assert (state, "nothing shows when it was made" in message) == (
        StepState.UNKNOWN,
        True,
    )
    dated = put(root, outcome_of(plan_for(RAW, SECOND, policy=POLICY), RAW))
    state, message = step(read(root).verification(dated))
    assert state is StepState.DIFFERS
    assert "entry 0 of the log dates it to " in message
    other = put(root, outcome_of(plan_for(submission_bytes(" x"), SECOND), RAW))
    assert step(read(root).verification(other))[1].startswith(
        "the commitment is not in the old log"
    )


@pytest.mark.parametrize("name", [RECORD, START])
def test_a_file_that_the_log_lists_is_never_lost(tmp_path, name: str):
    root = old_board(tmp_path)
    path = root / AUDITS / name
    raw = path.read_bytes()
    path.unlink()
    number = 2 if name == RECORD else 1
    assert read(root).history.loss_reasons == {
        name: f"{name} was deleted: it is entry {number} of the log"
    }
    path.write_bytes(raw[: len(raw) // 2] + b"x" + raw[len(raw) // 2 + 1 :])
    assert "was changed: it is entry" in read(root).history.loss_reasons[name]


def test_each_changed_file_of_the_log_is_refused():
    files = log_files(OLD / "audits/log")
    assert len(read_log(files, LOG).entries) == 6
    for name in ("checkpoint", "tile/entries/000.p/6"):
        content = files[name]
        at = len(content) // 2
        changed = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        with pytest.raises(LogBroken):
            read_log(files | {name: changed}, LOG)
        left = {path: raw for path, raw in files.items() if path != name}
        with pytest.raises(LogBroken, match="missing"):
            read_log(left, LOG)
    for cut in (1, 100):
        with pytest.raises(LogBroken, match="does not hold 6 entries"):
            read_log(files | {"tile/entries/000.p/6": files["tile/entries/000.p/6"][:-cut]}, LOG)


def test_a_broken_log_stops_every_record(tmp_path):
    root = old_board(tmp_path)
    (root / AUDITS / "log/checkpoint").write_bytes(b"no checkpoint\n")
    state, message = links(root)
    assert (state, "the checkpoint of the log cannot be used" in message) == (
        StepState.DIFFERS,
        True,
    )


def test_another_log_and_another_key_are_refused(tmp_path):
    files = log_files(OLD / "audits/log")
    other = "example.org/other"
    with pytest.raises(ValueError, match="is not a key of the log"):
        LogKeys.model_validate({"origin": other, "keys": KEYS["log"]["keys"]})
    root = old_board(tmp_path)
    text = (root / AUDITS / "log/checkpoint").read_text(encoding="utf-8")
    body, _, line = text.rpartition("\n\n")
    unknown = line.replace(line.split()[2], "A" * 92)
    with pytest.raises(LogBroken, match="none of the log's keys signed it"):
        read_log(files | {"checkpoint": f"{body}\n\n{unknown}".encode()}, LOG)


def test_a_log_that_was_cut_does_not_follow_the_published_one():
    files = log_files(OLD / "audits/log")
    assert len(entries_in(files)) == 6
    check_extends(files, files["checkpoint"])
    with pytest.raises(LogBroken, match="existed before"):
        check_extends({}, files["checkpoint"])
    longer = files["checkpoint"].replace(b"\n6\n", b"\n7\n")
    with pytest.raises(LogBroken, match="the log has 6 entries, and had 7 before"):
        check_extends(files, longer)
    other = files["checkpoint"].replace(b"\n6\n", b"\n5\n")
    with pytest.raises(LogBroken, match="the log's first 5 entries are not those"):
        check_extends(files, other)


def test_what_the_log_had_before_a_key_was_stolen_goes_on_counting(tmp_path):
    root = old_board(tmp_path)
    for size, holds in ((3, True), (2, False)):
        keys = {**KEYS, "keys": [entry(revoked_at="2024-01-01T00:00:00Z", revoked_from=size)]}
        (root / "leaderboard/policy/keys.json").write_text(json.dumps(keys), encoding="utf-8")
        verification = read(root).verification(root / AUDITS / RECORD)
        assert (step(verification, "signer")[0] is StepState.HOLDS) is holds
    assert moment_of(time_of_round(FIRST)).startswith("2023-")
