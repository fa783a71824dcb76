"""Tasks of one's own: from a folder of CSV files to a run in two commands, every error at once."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.common.benchmark import load_benchmark
from reference_harness import mini
from reference_harness.data import benchmark
from reference_harness.data.define import define
from reference_harness.errors import DataError, OptionError
from tests.harness.support import Harness, write_flat, write_remote
from tests.paths import ROOT

HOW_TO_DEFINE = "geneb-harness data define DIR writes a definition for the task files in DIR"


def test_two_commands_lead_to_a_verified_run(harness: Harness) -> None:
    write_flat(mini.load("mini_tf"), harness.folder / "own")
    write_remote(mini.load("mini_enhancer"), harness.folder / "own")
    done = harness("data", "define", "own", "--name", "Mine")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads((harness.folder / "own/benchmark.json").read_text())
    assert done.stdout.splitlines() == [
        f"wrote own/benchmark.json: 2 tasks, revision {document['dataset']['revision']}",
        (
            "run it: geneb-harness run --data own --benchmark own/benchmark.json "
            "--output record.json"
        ),
    ]
    assert document["name"] == "Mine"
    assert document["tasks"] == [
        {
            "id": name, "label": name, "category": "Own tasks", "n_test": 160,
            "test_class_counts": sorted(mini.load(name).test.class_counts.values()),
        }
        for name in ("mini_tf", "mini_enhancer")
    ]  # fmt: skip
    # The toolkit takes it as well.
    assert load_benchmark(harness.folder / "own/benchmark.json").task_ids == (
        "mini_tf", "mini_enhancer",
    )  # fmt: skip
    command = done.stdout.splitlines()[1].removeprefix("run it: geneb-harness ").split()
    done = harness(*command, "--quiet", "--regimes", "1shot")
    assert (done.returncode, done.stderr) == (0, "")
    record = json.loads((harness.folder / "record.json").read_text())
    assert record["dataset"]["verified"] is True
    assert sorted(record["tasks"]) == ["mini_enhancer", "mini_tf"]
    # Other data are noticed.
    task = harness.folder / "own/mini_tf.csv"
    task.write_text(task.read_text().replace("A", "C", 1))
    done = harness(*command, "--quiet")
    assert done.returncode == 3
    assert "own/mini_tf.csv: sha256 " in done.stderr


def test_in_a_board_its_benchmark_is_the_one_that_is_run(harness: Harness) -> None:
    write_flat(mini.load("mini_tf"), harness.folder / "own")
    definition, bench = define(harness.folder / "own", "Mine")
    (harness.folder / "schemas").mkdir()
    (harness.folder / "submissions").mkdir()
    shutil.copy(definition, harness.folder / "schemas/benchmark.json")
    assert harness("tasks").stdout.split("\t")[0] == bench.tasks[0].id
    assert harness("data", "verify", "own").returncode == 0
    done = harness("run", "--extractor", "kmer", "--output", "r.json")
    assert (done.returncode, "add --data DIR" in done.stderr) == (2, True), done.stderr
    assert "this folder is a board of Mine" in done.stderr
    done = harness("data", "pull", "there")
    assert (done.returncode, "(local:Mine) are not on a Hub" in done.stderr) == (2, True), (
        done.stderr
    )


def test_every_error_of_a_folder_is_said_at_once(tmp_path: Path) -> None:
    write_flat(mini.load("mini_tf"), tmp_path)
    (tmp_path / "two words.csv").write_text("text,label,split\n")
    (tmp_path / "named.csv").write_text("sequence,label\nACGT,1\n")
    (tmp_path / "letters.csv").write_text("text,label,split\nACXT,1,train\nACGT,yes,dev\n")
    (tmp_path / "mini_tf.csv.gz").write_bytes(b"")
    (tmp_path / "half").mkdir()
    (tmp_path / "half/train.csv").write_text("text,label\nA,1\n")
    with pytest.raises(DataError) as caught:
        define(tmp_path)
    assert list(caught.value.faults) == [
        f"{tmp_path}/letters.csv:2: character 'X' at position 3 of the sequence is no IUPAC letter",
        f"{tmp_path}/letters.csv:3: label 'yes' is not an integer of at most 9 digits",
        (
            f"{tmp_path}/mini_tf.csv.gz: task mini_tf is already in {tmp_path}/mini_tf.csv: "
            "delete one of the two"
        ),
        f"{tmp_path}/named.csv:1: columns are 'sequence,label', expected 'text,label,split'",
        (
            f"{tmp_path}/two words.csv: the name is the task's id, but 'two words' has other "
            "characters than letters, digits, '.', '_' and '-': rename the file"
        ),
        f"{tmp_path}/half: expected test.csv or test.csv.gz, found neither",
    ]
    assert not (tmp_path / "benchmark.json").exists()
    assert not (tmp_path / "manifest.json").exists()


def test_tasks_that_no_board_can_use_leave_no_definition(tmp_path: Path) -> None:
    write_flat(mini.load("mini_tf"), tmp_path)
    (tmp_path / "MINI_tf.csv").write_text((tmp_path / "mini_tf.csv").read_text())
    with pytest.raises(
        OptionError, match='tasks have ids that look alike: "MINI_tf" and "mini_tf"'
    ):
        define(tmp_path)
    assert not (tmp_path / "benchmark.json").exists()
    assert not (tmp_path / "manifest.json").exists()


@pytest.mark.parametrize("name", ["benchmark.json", "manifest.json"])
def test_nothing_is_replaced(tmp_path: Path, name: str) -> None:
    write_flat(mini.load("mini_tf"), tmp_path)
    (tmp_path / name).write_text("mine")
    with pytest.raises(OptionError, match=f"{name} exists and is not replaced"):
        define(tmp_path)
    assert (tmp_path / name).read_text() == "mine"


def test_a_folder_without_tasks_says_what_belongs_there(tmp_path: Path) -> None:
    says = "no task found: expected <task_id>.csv with the columns text,label,split, or tasks/"
    with pytest.raises(DataError, match=says):
        define(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        define(tmp_path / "none")


def load_error(path: Path, answer: Any) -> list[str]:
    path.write_text(json.dumps(answer))
    with pytest.raises(OptionError) as caught:
        benchmark.load(path)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


def test_an_empty_definition_names_every_key_and_what_belongs_there(tmp_path: Path) -> None:
    """What is said is enough: taken as it stands, it is a definition."""
    *lines, last = load_error(tmp_path / "own.json", {})
    assert last == HOW_TO_DEFINE
    example_parts = [line.partition(": missing, expected for example ") for line in lines]
    example_by_member = {member: json.loads(example) for member, _, example in example_parts}
    assert list(example_by_member) == [
        "schema_version", "name", "harness_version", "regimes", "metrics", "primary_metric",
        "protocol", "dataset", "category_order", "tasks",
    ]  # fmt: skip
    (tmp_path / "own.json").write_text(json.dumps(example_by_member))
    assert benchmark.load(tmp_path / "own.json").name == "GENEB"


def test_missing_wrong_and_contradictory_keys_are_said_at_once(tmp_path: Path) -> None:
    document = json.loads((ROOT / "schemas/benchmark-mini.json").read_text())
    del document["name"], document["tasks"][1]["label"]
    document["protocol"]["logreg"]["C"] = 2.0
    document["protocol"]["feature_scaling"] = "standard"
    document["regimes"].append("3shot")
    document["dataset"]["revision"] = "main"
    document["tasks"][3]["id"] = document["tasks"][2]["id"]
    assert load_error(tmp_path / "own.json", document) == [
        'name: missing, expected for example "GENEB"',
        (
            'protocol/logreg: found {"C": 2.0, "max_iter": 1000, "solver": "lbfgs"}; expected '
            '{"C": 1.0, "max_iter": 1000, "solver": "lbfgs"}: the harness fits with these settings'
        ),
        (
            'protocol/feature_scaling: found "standard"; expected null: features are fitted as '
            "they are"
        ),
        'dataset/revision: found "main"; expected a commit: 40 digits of 0-9 and a-f',
        'tasks/1/label: missing, expected for example "NT H3"',
        (
            'regimes: found "3shot"; expected "full" or a name in protocol.few_shot_k: '
            '["1shot", "10shot"]'
        ),
        (
            'tasks have ids that look alike: "mini_enhancer" and "mini_enhancer"; expected names '
            "that differ by more than letter case"
        ),
        HOW_TO_DEFINE,
    ]


@pytest.mark.parametrize("answer", [[], {"tasks": 3}, {"protocol": []}, {"tasks": [[]]}, "GENEB"])
def test_a_definition_of_another_shape_is_a_sentence(tmp_path: Path, answer: Any) -> None:
    assert load_error(tmp_path / "own.json", answer)[-1] == HOW_TO_DEFINE
