"""Task data: both layouts give the same task, and each fault is named with file, line and value."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reference_harness import generate, mini
from reference_harness.data import benchmark, statistics, task_folder
from reference_harness.data.task_data import Split, TaskData
from reference_harness.errors import DataError, OptionError
from tests.harness.support import REPOSITORY, write_flat, write_remote

BENCH = benchmark.mini()
TASK = BENCH.tasks[0]
GOOD = "text,label,split\nACGT,0,train\nCCGT,1,train\nACGA,0,test\nCCGA,1,test\n"


def read(folder: Path, text: str | bytes, name: str = "mini_tf.csv") -> TaskData:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return task_folder.read_task("mini_tf", (path,))


def test_generated_contracts_are_what_the_code_gives() -> None:
    for path, content in generate.contents().items():
        assert path.read_bytes() == content, (
            f"{path.name}: run python -m reference_harness.generate"
        )


def test_mini_has_one_task_a_category() -> None:
    assert [task.category for task in BENCH.tasks] == benchmark.geneb().category_order
    assert len(BENCH.tasks) == 13
    ours = benchmark.geneb().protocol
    assert replace(BENCH.protocol, pooling=ours.pooling) == ours


def test_mini_is_the_same_every_time() -> None:
    task = mini.TASKS[0]
    assert mini.generate(task).sha256 == mini.load(task.id).sha256
    assert mini.generate(task, seed=1).sha256 != mini.load(task.id).sha256


def test_both_layouts_give_the_same_task(tmp_path: Path) -> None:
    made = mini.load(TASK.id)
    write_flat(made, tmp_path / "flat")
    write_remote(made, tmp_path / "remote")
    for folder in ("flat", "remote"):
        source = task_folder.Folder(tmp_path / folder, BENCH)
        assert source.available() == {TASK.id}
        assert source.load(TASK).sha256 == made.sha256


def test_gzip_is_read(tmp_path: Path) -> None:
    path = write_flat(mini.load(TASK.id), tmp_path)
    (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert task_folder.Folder(tmp_path, BENCH).load(TASK).sha256 == mini.load(TASK.id).sha256


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("text,label\nA,0\n", ":1: columns are 'text,label', expected 'text,label,split'"),
        ("", ":1: columns are '', expected 'text,label,split'"),
        (GOOD + "ACGT,x,train\n", ":6: label 'x' is not an integer of at most 9 digits"),
        (GOOD + "ACGT,1.0,train\n", ":6: label '1.0' is not an integer of at most 9 digits"),
        (GOOD + "ACGT,1,dev\n", ":6: split 'dev' is neither train nor test"),
        (GOOD + ",1,train\n", ":6: the sequence is empty"),
        (GOOD + "ACGT-A,1,train\n", ":6: character '-' at position 5 of the sequence"),
        (GOOD + "ACGÜ,1,train\n", ":6: character 'Ü' at position 4 of the sequence"),
        (GOOD + "ACGT,1\n", ":6: 2 values, expected 3"),
        (GOOD.replace("1,train", "0,train"), ": every train sequence has the label 0,"),
        (GOOD.replace("1,test", "0,test"), ": every test sequence has the label 0,"),
        (GOOD.replace("train", "test"), ": no train sequence"),
    ],
    ids=[
        "columns", "empty file", "word as label", "float as label", "split", "empty sequence",
        "gap", "not ASCII", "short row", "one class in train", "one class in test", "no train",
    ],
)  # fmt: skip
def test_each_fault_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/mini_tf.csv{says}")


def test_ambiguity_codes_and_lower_case_pass(tmp_path: Path) -> None:
    read(tmp_path, GOOD + "acgtnNRYSWKMBDHVU,1,train\n")


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    bad = "".join(f"A*,{i},train\n" for i in range(12))
    with pytest.raises(DataError) as caught:
        read(tmp_path, GOOD + bad)
    assert len(caught.value.faults) == 12
    assert str(caught.value).endswith("\nand 2 more")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\x1f\x8b broken"], ids=["not utf-8", "gzip"])
def test_unreadable_files_are_named(tmp_path: Path, content: bytes) -> None:
    name = "mini_tf.csv.gz" if content.startswith(b"\x1f") else "mini_tf.csv"
    with pytest.raises(DataError, match=r"mini_tf\.csv.*cannot be read"):
        read(tmp_path, content, name)


def test_a_task_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = write_flat(mini.load(TASK.id), tmp_path)
    (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(
        DataError, match=r"task mini_histone is already in .*: delete one of the two"
    ):
        task_folder.Folder(tmp_path, BENCH)


def test_a_folder_without_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no task of GENEB-mini: expected <task_id>"):
        task_folder.Folder(tmp_path, BENCH)
    with pytest.raises(DataError, match="no such folder"):
        task_folder.Folder(tmp_path / "none", BENCH)


def test_half_a_remote_task_is_refused(tmp_path: Path) -> None:
    (write_remote(mini.load(TASK.id), tmp_path) / "test.csv").unlink()
    with pytest.raises(DataError, match=r"expected test\.csv or test\.csv\.gz, found neither"):
        task_folder.Folder(tmp_path, BENCH)


def test_other_data_than_the_benchmark_says_are_refused(tmp_path: Path) -> None:
    made = mini.load(TASK.id)
    write_flat(TaskData(TASK.id, made.train, made.test.balanced_subset(50)), tmp_path)
    with pytest.raises(DataError, match="50 test sequences, expected 160 as in the benchmark"):
        task_folder.Folder(tmp_path, BENCH).load(TASK)


def test_strange_files_are_ignored_and_told(tmp_path: Path) -> None:
    write_flat(mini.load(TASK.id), tmp_path)
    (tmp_path / "notes.csv").write_text("x")
    assert task_folder.Folder(tmp_path, BENCH).ignored == ["notes.csv"]


def test_a_definition_with_another_probe_is_refused(tmp_path: Path) -> None:
    document = json.loads((REPOSITORY / "schemas" / "benchmark-mini.json").read_text())
    document["protocol"]["logreg"]["C"] = 2.0
    path = tmp_path / "other.json"
    path.write_text(json.dumps(document))
    with pytest.raises(OptionError, match="the harness fits with these settings"):
        benchmark.load(path)


def test_cutting_a_split_keeps_classes_in_equal_parts() -> None:
    split = Split(list("AACCCCCC"), np.array([0, 0, 1, 1, 1, 1, 1, 1]))
    assert split.balanced_subset(4).labels.tolist() == [0, 0, 1, 1]
    assert split.balanced_subset(2).labels.tolist() == [0, 1]
    assert split.balanced_subset(99).labels.tolist() == split.labels.tolist()


def test_audit_counts_by_hand() -> None:
    train = Split(["AAC", "aac", "CCG", "CCG", "TTT"], np.array([0, 1, 1, 1, 0]))
    test = Split(["AAC", "CCG", "AAA", "GGG", "GGG"], np.array([1, 0, 0, 1, 1]))
    outcome = statistics.task_statistics(TaskData("t", train, test))
    assert (outcome.train.duplicates, outcome.test.duplicates) == (2, 1)
    assert (outcome.train.contradictions, outcome.test.contradictions) == (2, 0)
    assert (outcome.overlap, outcome.overlap_other_label, outcome.overlap_reverse) == (2, 1, 1)
    assert not outcome.clean


def test_audit_finds_what_the_real_tasks_have(real_tasks: Path) -> None:
    bench = benchmark.geneb()
    source = task_folder.Folder(real_tasks, bench)
    reports_by_task = {
        i: statistics.task_statistics(source.load(bench.by_id[i])) for i in source.available()
    }
    short = {
        key.removeprefix("leannmlindsey_GUE_"): value for key, value in reports_by_task.items()
    }
    assert {k: v.overlap for k, v in short.items() if v.overlap} == {
        "human_tf_1": 1, "prom_300_tata": 6, "prom_core_tata": 16,
    }  # fmt: skip
    doubled = {k: v.train.duplicates for k, v in short.items() if v.train.duplicates}
    assert doubled == {"human_tf_0": 8, "prom_300_tata": 56, "prom_core_tata": 57}
