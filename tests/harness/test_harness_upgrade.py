"""Upgrades of submissions: real files are refused with what they lack, records supply it."""

import json
from pathlib import Path
from typing import Any

import pytest

from reference_harness.errors import OptionError
from reference_harness.formats.submission import SubmissionV12
from reference_harness.run.upgrade import read_submission, refuse_without_record
from tests import forked
from tests.harness.support import Harness
from tests.paths import ROOT

PUBLIC = sorted((ROOT / "submissions").glob("*.json"))
RUN = ("run", "--tasks", "mini_tf", "--quiet", "--output", "record.json")


@pytest.mark.parametrize("path", PUBLIC[:1] + PUBLIC[-1:], ids=lambda path: path.stem)
def test_a_public_row_is_refused_with_what_it_lacks(path: Path) -> None:
    document = read_submission(path)
    assert document["schema_version"] == "1.0"
    with pytest.raises(OptionError) as refused:
        refuse_without_record(document, path)
    assert str(refused.value) == (
        f"{path}: for format 1.2, the file lacks the details of the run, and for each of 300 cells "
        "the scores of every seed, the digest of its predictions, its classes and its confusion "
        "matrices. The run record contains all of this: pass the file of `geneb-harness run "
        "--output` as --record. Without a record, run again with `geneb-harness run --receipt DIR "
        "--submission FILE`, as none of this follows from the scores. Format 1.1 needs no record: "
        "`geneb-ci upgrade FILE --output NEW` adds the entry of the model registry, which an audit "
        "uses"
    )


def test_every_public_row_is_read() -> None:
    assert {read_submission(path)["schema_version"] for path in PUBLIC} == {"1.0"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one run: its record, and its submission in every format."""
    harness = Harness(tmp_path_factory.mktemp("upgrade"))
    done = harness(*RUN, "--submission", "1.2.json", "--receipt", "receipt", "--display", "Mine")
    assert (done.returncode, done.stderr) == (0, "")
    latest = read(harness.folder / "1.2.json")
    older = {key: value for key, value in latest.items() if key != "receipt"}
    older["evidence"] = {
        regime: {task: _as_11(cell) for task, cell in cells.items()}
        for regime, cells in latest["evidence"].items()
    }
    older["gaps"] |= {"full": {**latest["gaps"]["full"], "mini_histone": "a reason of mine"}}
    write(harness.folder / "1.1.json", older | {"schema_version": "1.1"})
    oldest = {
        key: older[key] for key in ("model_id", "harness_version", "meta", "results")
    } | {"schema_version": "1.0"}  # fmt: skip
    for cells in oldest["results"].values():
        for cell in cells.values():
            cell["MCC"] = round(cell["MCC"], 4)
    write(harness.folder / "1.0.json", oldest)
    by_entry = oldest | {"schema_version": "1.1", "registry_entry": {}}
    write(harness.folder / "by-entry.json", by_entry)
    return harness.folder


def _as_11(cell: Any) -> Any:
    return {key: value for key, value in cell.items() if key not in {"classes", "confusion"}}


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


def upgrade(folder: Path, *words: str) -> Any:
    return forked.run("geneb_ci", "upgrade", *words, cwd=folder)


@pytest.mark.parametrize("version", ["1.0", "1.1", "by-entry"])
def test_a_record_supplies_what_is_needed(made: Path, version: str) -> None:
    done = upgrade(made, f"{version}.json", "--record", "record.json", "--output", "new.json")
    assert (done.returncode, done.stderr) == (
        0, "wrote new.json: format 1.2, with its receipt\n",
    )  # fmt: skip
    content, expected = read(made / "new.json"), read(made / "1.2.json")
    if version == "1.1":
        assert content["gaps"]["full"]["mini_histone"] == "a reason of mine"
        expected["gaps"] = content["gaps"]
    assert content == expected
    SubmissionV12.model_validate(content)


def other_score(document: Any) -> None:
    document["results"]["1shot"]["mini_tf"]["MCC"] += 1e-5


def other_digest(document: Any) -> None:
    document["evidence"]["full"]["mini_tf"]["predictions_sha256"] = "0" * 64


def other_run(document: Any) -> None:
    document["run"]["extractor"]["sha256"] = "0" * 64


def more_cells(document: Any) -> None:
    document["results"]["full"]["mini_coding"] = document["results"]["full"]["mini_tf"]


def renamed(document: Any) -> None:
    document["model_id"] = "other"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_score, "mini_tf in 1shot has other scores"),
        (other_digest, "mini_tf in full has other predictions"),
        (other_run, "run.extractor differs"),
        (more_cells, "mini_coding in full has other scores"),
        (renamed, "the record is of '4-mer-frequency', but the submission is of 'other'"),
    ],
)
def test_the_record_of_another_run_is_refused(made: Path, change: Any, message: str) -> None:
    document = read(made / "1.1.json")
    change(document)
    write(made / "changed.json", document)
    done = upgrade(made, "changed.json", "--record", "record.json", "--output", "no.json")
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not (made / "no.json").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("1.1.json",), 2, "for each of 3 cells its classes and its confusion matrices."),
        (("1.2.json",), 2, "the submission already has format 1.2: use it as it is"),
        (("1.2.json", "--undo"), 2, "1.2.json: the file describes its run, so it was not"),
        (("record.json",), 2, "record.json: not a valid submission: this is a run record, not a "),
        (("none.json",), 3, "none.json: cannot be read: No such file or directory"),
        (("1.0.json",), 3, 'the model registry has no entry for "4-mer-frequency"'),
        (
            ("record.json", "--record", "record.json"),
            2,
            "is not a valid submission: run `geneb-ci che",
        ),
        (
            ("none.json", "--record", "record.json"),
            2,
            "none.json: cannot be read: No such file or directory",
        ),
        (("1.0.json", "--record", "1.0.json"), 2, "1.0.json: not a run record of this version: "),
        (
            ("1.0.json", "--record", "none.json"),
            2,
            "none.json: cannot be read: No such file or directory",
        ),
    ],
)
def test_what_cannot_be_upgraded_is_refused(
    made: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    done = upgrade(made, *words, "--output", "no.json")
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert not (made / "no.json").exists()
