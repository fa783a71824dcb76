"""What the harness writes is what the published contracts say; a reader of ours accepts it."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.check.registry import select
from geneb_ci.check.runner import Checker
from geneb_ci.common.benchmark import shipped_benchmark
from reference_harness.data import benchmark
from reference_harness.errors import OptionError
from reference_harness.formats import run_record
from reference_harness.formats.files import dumps, dumps_tables
from reference_harness.formats.submission import MODELS, Meta, SubmissionV12
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX
from reference_harness.probe import metrics
from reference_harness.run import submission
from tests.harness.support import REPOSITORY, TEN_LINES, Harness
from tests.paths import SUBMISSIONS
from tests.small import DIGEST, small, small_v12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    harness = Harness(tmp_path_factory.mktemp("submission"))
    done = harness("run", "--output", "record.json", "--submission", "one.json", "--quiet")
    assert done.returncode == 0, done.stderr
    done = harness(
        "run", "--output", "r.json", "--submission", "old.json", "--format-version", "1.0",
        "--tasks", "mini_tf", "--quiet", "--display", "Words of four", "--submitted-by", "someone",
        "--no-zero-shot",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return harness.folder


@pytest.mark.parametrize(
    ("name", "version", "tasks"),
    [
        ("one.json", "1.1", [task.id for task in benchmark.mini().tasks]),
        ("old.json", "1.0", ["mini_tf"]),
    ],
)
def test_is_valid(folder: Path, name: str, version: str, tasks: list[str]) -> None:
    submission = MODELS[version].model_validate_json((folder / name).read_bytes())
    assert submission.model_id == "4-mer-frequency"
    assert submission.meta.provenance == "self-reported"
    assert list(submission.results) == ["full", "10shot", "1shot"]
    assert list(submission.results["full"]) == tasks


def test_1_0_has_upstreams_keys_alone(folder: Path) -> None:
    old = json.loads((folder / "old.json").read_text())
    theirs = json.loads((SUBMISSIONS / "space.json").read_text())
    assert list(old) == list(theirs)
    assert list(old["meta"]) == list(theirs["meta"])
    assert (old["meta"]["display"], old["meta"]["zero_shot"]) == ("Words of four", False)
    results = json.loads((folder / "one.json").read_text())["results"]
    assert old["results"] == {
        regime: {"mini_tf": cells["mini_tf"]} for regime, cells in results.items()
    }


def test_1_1_says_what_ran(folder: Path) -> None:
    run = json.loads((folder / "one.json").read_text())["run"]
    mini = benchmark.mini()
    assert run["benchmark"] == {"name": "GENEB-mini", "sha256": mini.sha256}
    assert run["dataset"] == {
        "repo_id": mini.dataset.repo_id, "revision": mini.dataset.revision,
    }  # fmt: skip
    assert run["extractor"]["path"] == "builtin:kmer"
    assert run["embedding"]["dim"] == 256
    assert run["packages"]["scikit-learn"]


def test_submission_is_the_records_projection(folder: Path) -> None:
    document = json.loads((folder / "one.json").read_text())
    made = json.loads((folder / "record.json").read_text())
    for regime, tasks in document["results"].items():
        for task_id, cell in tasks.items():
            known = made["tasks"][task_id]["regimes"][regime]
            evidence = document["evidence"][regime][task_id]
            assert cell == known["scores"]
            assert evidence["per_seed"] == known["per_seed"]
            assert evidence["predictions_sha256"] == known["predictions_sha256"]
            assert evidence["n_test"] == 160


def test_record_agrees_with_itself_and_its_schema(folder: Path) -> None:
    made = json.loads((folder / "record.json").read_text())
    schema = json.loads((REPOSITORY / "schemas" / "run-record.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(made, schema)
    assert run_record.RunRecord.model_validate(made).model_dump() == made
    for task in made["tasks"].values():
        for regime in task["regimes"].values():
            triples = [metrics.scores_of(np.array(m)) for m in regime["confusion"]]
            for column, name in enumerate(("MCC", "Acc", "F1")):
                assert [t[column] for t in triples] == regime["per_seed"][name]
                assert np.mean(regime["per_seed"][name]) == regime["scores"][name]


@pytest.mark.parametrize(
    "change",
    [{"extra": 1}, {"tasks": {}}, {"regimes": []}, {"started_at": "now"}, {"limit": -1}],
    ids=str,
)
def test_schema_refuses(folder: Path, change: dict[str, Any]) -> None:
    made = json.loads((folder / "record.json").read_text())
    made["tasks"] = {"mini_tf": made["tasks"]["mini_tf"]}
    assert run_record.RunRecord.model_validate(made)
    made |= change
    schema = json.loads((REPOSITORY / "schemas" / "run-record.schema.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(made, schema)
    with pytest.raises(ValueError, match="validation error"):
        run_record.RunRecord.model_validate(made)


def test_constant_predictions_are_marked(folder: Path) -> None:
    made = json.loads((folder / "record.json").read_text())
    regime = made["tasks"]["mini_lncrna"]["regimes"]["full"]
    assert regime["scores"]["MCC"] == 0.0
    (warned,) = regime["warnings"]
    assert warned["kind"] == "constant-prediction"
    assert warned["seeds"] == made["probe"]["seeds"]


def test_gaps_say_what_is_missing(folder: Path) -> None:
    harness = Harness(folder)
    done = harness(
        "run", "--output", "part.json", "--submission", "part-sub.json", "--quiet",
        "--tasks", "mini_tf", "--regimes", "full,1shot",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads((folder / "part-sub.json").read_text())
    MODELS["1.1"].model_validate(document)
    assert list(document["results"]) == ["full", "1shot"]
    assert document["gaps"]["full"] == dict.fromkeys(
        (t.id for t in benchmark.mini().tasks if t.id != "mini_tf"), "not asked for"
    )
    assert document["gaps"]["10shot"]["mini_tf"] == "regime not asked for"


def test_ten_lines_are_an_extractor_once_their_length_is_declared(harness: Harness) -> None:
    (harness.folder / "mine.py").write_text(TEN_LINES)
    spec = "mine.py:Composition"
    words = ("run", "--extractor", spec, "--output", "r.json", "--tasks", "mini_tf", "--quiet")
    done = harness(*words, "--submission", "s.json")
    assert done.returncode == 2
    assert "does not declare max_length, truncation, dtype, source" in done.stderr
    assert not (harness.folder / "r.json").exists(), "refused after the work"
    declared = [
        word
        for name in ("max_length=none", "truncation=none", "dtype=float32", "source=none")
        for word in ("--declare", name)
    ]
    done = harness(*words, "--submission", "s.json", *declared)
    assert done.returncode == 0, done.stderr
    submission = MODELS["1.1"].model_validate_json((harness.folder / "s.json").read_bytes())
    assert submission.model_id == "Composition"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--display", "W" * 81, "display: String should have at most 80 characters; found"),
        ("--params", str(10**14 + 1), "params: Input should be less than or equal to"),
    ],
)
def test_metadata_that_check_would_refuse_is_refused_before_the_work(
    harness: Harness, option: str, value: str, message: str
) -> None:
    done = harness("run", "--output", "r.json", "--submission", "s.json", option, value)
    assert done.returncode == 2
    assert f"the metadata of the submission are invalid: {message}" in done.stderr
    assert not (harness.folder / "r.json").exists(), "refused after the work"


def test_a_run_that_no_submission_can_hold_is_refused(folder: Path) -> None:
    made = json.loads((folder / "record.json").read_text())
    made["extractor"]["options"] = {"k": "4" * 301}
    meta = Meta.model_validate(small("x")["meta"])
    record = run_record.RunRecord.model_validate(made)
    with pytest.raises(OptionError, match="run/extractor/options/k: String should have at most"):
        submission.build_submission(record, benchmark.mini(), meta)
    assert (
        submission.build_submission(record, benchmark.mini(), meta, "1.0")["model_id"]
        == record.model_id
    )


def test_a_limited_record_is_no_submission(folder: Path) -> None:
    made = json.loads((folder / "record.json").read_text()) | {"limit": 20}
    meta = Meta.model_validate(small("x")["meta"])
    with pytest.raises(OptionError, match="run it without --limit"):
        submission.build_submission(
            run_record.RunRecord.model_validate(made), benchmark.mini(), meta
        )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)  # fmt: skip


@given(JSON)
def test_tables_on_one_line_are_the_same_document(value: Any) -> None:
    assert json.loads(dumps_tables(value)) == json.loads(dumps(value))


def test_a_list_of_numbers_is_one_line() -> None:
    value = {"a": [[[1, 2], [3, 4]]], "b": [], "c": [{"d": [0.5]}, "x"]}
    assert dumps_tables(value).decode() == (
        '{\n "a": [[[1,2],[3,4]]],\n "b": [],\n "c": [\n  {\n   "d": [0.5]\n  },\n  "x"\n ]\n}\n'
    )


def test_a_submission_with_every_matrix_is_what_check_reads(tmp_path: Path) -> None:
    """All 100 tasks with five seeds, two of them with 20 and 40 classes, and a receipt."""
    definition, draw = shipped_benchmark(), np.random.default_rng(0)
    document = small_v12("model", definition)
    classes = {"fungi_species_20": 20, "virus_species_40": 40, "virus_covid": 9}
    for tasks in document["evidence"].values():
        for name, cell in tasks.items():
            size = next((n for end, n in classes.items() if name.endswith(end)), 0)
            if size:
                cell["classes"] = list(range(size))
                for cell_member in (cell, cell["canonical"]):
                    cell_member["confusion"] = draw.integers(1000, size=(5, size, size)).tolist()
    task = {"train": 40_000, "test": 10_000, "scale_log2": 0, "bytes": 76_800_000}
    document["receipt"] = {
        "version": "1",
        "dtype": "float16",
        "compute_dtype": "float32",
        "tf32": False,
        "dim": 768,
        "rows": 5_000_000,
        "root": DIGEST,
        "location": {"kind": "huggingface-dataset", "address": "a/b", "revision": "0" * 40},
        "tasks": dict.fromkeys(definition.task_ids, task | {"sha256": DIGEST, "root": DIGEST}),
    }
    assert len(dumps(document)) > SUBMISSION_BYTES_MAX
    raw = dumps_tables(document)
    assert len(raw) < 0.7 * SUBMISSION_BYTES_MAX
    path = tmp_path / "model.json"
    path.write_bytes(raw)
    result = Checker(select(["structure"], [])).check(path)
    assert [finding.message for finding in result.findings] == []
    assert isinstance(result.submission, SubmissionV12)
