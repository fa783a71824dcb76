"""Fresh sets: what is committed to, released, and refused."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from geneb_ci.audit.compare.outcome import AuditOutcome
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.rerun.fresh import (
    FreshCommitment,
    check_release,
    commit_to_fresh_set,
    fresh_release,
    parse_fresh_set,
    read_fresh_commitment,
    read_fresh_set,
    read_release,
    require_used_set,
)
from geneb_ci.audit.rerun.honesty import FreshResult, FreshTask
from geneb_ci.audit.sampling.plan import json_text_of
from geneb_ci.common.benchmark import load_benchmark
from geneb_ci.common.errors import NothingChecked
from geneb_ci.harness.process import TaskSource
from reference_harness import mini
from reference_harness.formats.rescored import LabelledDecisions
from tests.audit import unboxed
from tests.audit.recorded import outcome_of, plan_for, submission_bytes
from tests.paths import ROOT

MINI = load_benchmark(ROOT / "schemas/benchmark-mini.json")
SOURCE = TaskSource(None, None)
TASK = "mini_splice"
ROWS = [f"{TASK},{label},{letter * 20}TTACG" for label, letter in ((0, "A"), (1, "C"), (2, "G"))]
HEAD = "task,label,sequence"
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def written(folder: Path, *rows: str) -> Path:
    path = folder / "set.csv"
    path.write_text("\n".join([HEAD, *(rows or ROWS), ""]), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _harness_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it list the public sequences without a process of its own, as audits have it."""
    unboxed.install_harness(monkeypatch.setattr)


@pytest.fixture
def committed(tmp_path: Path) -> tuple[Path, FreshCommitment]:
    path = written(tmp_path)
    return path, commit_to_fresh_set(path, MINI, SOURCE)


def test_a_set_is_committed_to_opened_and_released(committed, tmp_path):
    path, commitment = committed
    assert (commitment.tasks, commitment.benchmark) == ({TASK: 3}, MINI.sha256)
    salt = tmp_path / "set.csv.salt"
    assert salt.stat().st_mode & 0o777 == 0o600
    opened = read_fresh_set(path, commitment, MINI)
    assert (opened.sha256, [sequence.label for sequence in opened.sequences]) == (
        commitment.sha256,
        [0, 1, 2],
    )
    (tmp_path / "f.json").write_text(json_text_of(commitment), encoding="utf-8")
    (tmp_path / "r.json").write_text(json_text_of(fresh_release(path)), encoding="utf-8")
    again = check_release(
        read_release(tmp_path / "r.json"), read_fresh_commitment(tmp_path / "f.json"), MINI, "r"
    )
    assert again == opened


@pytest.mark.nightly  # in the gate, release and check of a set
def test_one_set_has_one_commitment_and_another_salt_another_digest(committed, tmp_path):
    path, commitment = committed
    with pytest.raises(AuditRefused, match=r"set\.csv\.salt: exists already"):
        commit_to_fresh_set(path, MINI, SOURCE)
    (tmp_path / "set.csv.salt").unlink()
    assert commit_to_fresh_set(path, MINI, SOURCE).sha256 != commitment.sha256


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["mini_x,0,ACGT"], 'line 2: GENEB-mini has no task "mini_x"'),
        ([f"{TASK},-1,ACGT"], 'line 2: label "-1", expected a class number'),
        ([f"{TASK},0,AC-T"], 'line 2: sequence "AC-T", expected letters of nucleotides'),
        ([f"{TASK},0"], "line 2: 2 values, expected 3"),
        ([f"{TASK},0,ACGT", f"{TASK},1,acgt"], "line 3: the sequence is in the set twice"),
        (['"open'], "not a CSV file in ASCII: unexpected end of data"),
        (["é"], "not a CSV file in ASCII: 'ascii' codec can't decode byte 0xc3"),
    ],
)
def test_what_is_no_set_is_refused_with_its_line(tmp_path, rows, message):
    path = written(tmp_path, *rows)
    with pytest.raises(NothingChecked, match=re.escape(message)):
        commit_to_fresh_set(path, MINI, SOURCE)
    assert not (tmp_path / "set.csv.salt").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", 'begins with "nothing"'),
        (b"a,b\n", 'begins with "a,b", expected task,label,sequence'),
        (f"{HEAD}\n".encode(), "contains no sequence"),
    ],
)
def test_a_file_without_rows_is_refused(content, message):
    with pytest.raises(NothingChecked, match=re.escape(message)):
        parse_fresh_set(content, "set.csv", MINI)


@pytest.mark.parametrize("strand", [str, str.lower, lambda s: s[::-1].translate(COMPLEMENT)])
def test_a_public_sequence_is_refused_on_either_strand(tmp_path, strand: Callable[[str], str]):
    known = strand(mini.load(TASK).test.sequences[0])
    path = written(tmp_path, *ROWS, f"{TASK},0,{known}")
    with pytest.raises(AuditRefused, match="1 sequence of the set are in the public data"):
        commit_to_fresh_set(path, MINI, SOURCE)


def test_another_set_salt_benchmark_or_number_is_refused(committed, tmp_path):
    path, commitment = committed
    other = commitment.model_copy(update={"benchmark": "0" * 64})
    with pytest.raises(AuditRefused, match="the commitment is for the benchmark 0000"):
        read_fresh_set(path, other, MINI)
    with pytest.raises(AuditRefused, match="the commitment states 4 sequences of mini_splice"):
        read_fresh_set(path, commitment.model_copy(update={"tasks": {TASK: 4}}), MINI)
    path.write_text(path.read_text() + f"{TASK},0,ACGTTT\n")
    with pytest.raises(AuditRefused, match="set and salt have the digest"):
        read_fresh_set(path, commitment, MINI)
    (tmp_path / "set.csv.salt").write_text("short")
    with pytest.raises(NothingChecked, match="not a salt of 64 hex digits"):
        read_fresh_set(path, commitment, MINI)
    (tmp_path / "set.csv.salt").unlink()
    with pytest.raises(NothingChecked, match=r"set\.csv\.salt"):
        fresh_release(path)
    (tmp_path / "f.json").write_text(json.dumps({"schema_version": "1.0"}))
    with pytest.raises(NothingChecked, match="benchmark"):
        read_fresh_commitment(tmp_path / "f.json")


def test_a_record_that_used_another_set_or_a_part_of_it_is_refused(committed):
    path, commitment = committed
    opened = read_fresh_set(path, commitment, MINI)
    raw = submission_bytes()
    outcome = outcome_of(plan_for(raw), raw)
    with pytest.raises(AuditRefused, match="the audit of this record used no fresh set"):
        require_used_set(outcome, opened)
    task = outcome.tasks[0].task
    moved = opened._replace(
        sequences=tuple(sequence._replace(task=task) for sequence in opened.sequences)
    )
    require_used_set(used(outcome, commitment.sha256, task, 3), moved)
    with pytest.raises(
        AuditRefused, match=f"{task}: the record scored 2 fresh sequences, expected the 3 of"
    ):
        require_used_set(used(outcome, commitment.sha256, task, 2), moved)
    with pytest.raises(AuditRefused, match="used the fresh set with the digest 0000"):
        require_used_set(used(outcome, "0" * 64, task, 3), moved)


def used(outcome: AuditOutcome, sha256: str, task: str, rows: int) -> AuditOutcome:
    tested = LabelledDecisions(rows=rows, right=1, MCC=0.0)
    result = FreshResult(
        commitment=sha256, tasks={task: FreshTask(public=tested, fresh=tested)}, dropped=False
    )
    return outcome.model_copy(update={"fresh": result})
