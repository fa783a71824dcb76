"""Rows beside those of a task: the file of them, the commands that write it, what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from reference_harness import mini
from reference_harness.cli.main import cli
from reference_harness.cli.rescore import rescore
from reference_harness.errors import DataError, EmbeddingError, OptionError
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.probe import logistic
from reference_harness.probe.decisions import further_decisions
from reference_harness.rescore.further_sequences import (
    FurtherFiles,
    read_further,
    read_further_embeddings,
)

DATA = mini.load("mini_splice")
EXTRACTOR = KmerExtractor(k=2)


def run(*words: str) -> None:
    result = CliRunner().invoke(cli, list(words), catch_exceptions=False, standalone_mode=False)
    assert result.exit_code == 0


def problem() -> logistic.Problem:
    train, test = (EXTRACTOR.extract_embeddings(s.sequences) for s in (DATA.train, DATA.test))
    return logistic.Problem(train, DATA.train.labels, test, DATA.test.labels)


def files(folder: Path, rows: list[dict[str, object]]) -> FurtherFiles:
    """Write rows with their embeddings."""
    (folder / "rows.json").write_text(json.dumps({"schema_version": "1.0", "rows": rows}))
    values = EXTRACTOR.extract_embeddings([str(row_read["sequence"]) for row_read in rows])
    np.save(folder / "rows.npy", values)
    return FurtherFiles(folder / "rows.json", folder / "rows.npy")


def row(split: str, number: int, sequence: str, **more: object) -> dict[str, object]:
    return {"split": split, "row": number, "kind": "same", "sequence": sequence} | more


def test_rows_as_published_change_no_decision(tmp_path):
    """Every row of both splits beside itself, and the test split as a fresh set."""
    rows = [row("test", i, s) for i, s in enumerate(DATA.test.sequences)]
    rows += [row("train", i, s) for i, s in enumerate(DATA.train.sequences)]
    rows += [
        row("fresh", i, s, label=int(label))
        for i, (s, label) in enumerate(zip(DATA.test.sequences, DATA.test.labels, strict=True))
    ]
    whole = problem()
    decision = further_decisions(whole, read_further_embeddings(files(tmp_path, rows), whole))
    count = len(DATA.test.labels)
    assert decision.kinds["same"].model_dump() == {"rows": count, "worse": 0, "better": 0}
    assert decision.training is not None
    assert decision.training.model_dump() == {"rows": count, "worse": 0, "better": 0}
    assert decision.fresh == decision.public


def test_a_fresh_set_alone_has_no_variants(tmp_path):
    whole = problem()
    rows = [row("fresh", 0, "ACGTACGTAC", label=0)]
    decision = further_decisions(whole, read_further_embeddings(files(tmp_path, rows), whole))
    assert (decision.kinds, decision.training) == ({}, None)
    assert decision.fresh is not None
    assert decision.fresh.rows == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row("fresh", 0, "ACGT", label=7)], "sequence 0: the task has no label 7"),
        ([row("fresh", 0, "ACGT")], "sequence 0: the task has no label None"),
        (
            [row("test", 160, "ACGT")],
            "sequence 0: found the index 160 in the split test, expected less than 160, the number",
        ),
    ],
)
def test_a_row_that_the_task_does_not_have_is_refused(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        read_further_embeddings(files(tmp_path, rows), problem())


def test_files_that_do_not_fit_are_refused(tmp_path):
    made = files(tmp_path, [row("test", 0, "ACGT")])
    np.save(made.embeddings, np.zeros((2, 16)))
    with pytest.raises(
        EmbeddingError, match=r"shape \(2, 16\), expected 1 embedding of 16 columns"
    ):
        read_further_embeddings(made, problem())
    made.sequences.write_text(json.dumps({"schema_version": "1.0", "rows": [{"split": "other"}]}))
    with pytest.raises(DataError, match=r"rows\.json: rows/0/split"):
        read_further(made.sequences)


def test_the_commands_write_what_is_read(tmp_path):
    path = tmp_path / "v.json"
    run("variants", "--task", "mini_splice", "--seed", "s", "--rows", "5", "--output", str(path))
    first = path.read_bytes()
    assert [further_row.split for further_row in read_further(path)] == ["test"] * 15 + [
        "train"
    ] * 5
    run("variants", "--task", "mini_splice", "--seed", "s", "--rows", "5", "--output", str(path))
    assert path.read_bytes() == first
    run("fresh", "--seed", "7", "--tasks", "mini_splice,mini_tf", "--output", str(path))
    lines = path.read_text().splitlines()
    assert lines[0] == "task,label,sequence"
    assert len(lines) == 1 + 2 * 520
    public = {*DATA.train.sequences, *DATA.test.sequences}
    assert not public & {line.split(",")[2] for line in lines[1:]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--seed", str(mini.SEED)), "generates the public sequences: pass another seed"),
        (("--seed", "7", "--tasks", "mini_x"), "GENEB-mini has no such task"),
    ],
)
def test_a_fresh_set_that_is_none_is_refused(tmp_path, words, message):
    with pytest.raises(OptionError, match=message):
        run("fresh", *words, "--output", str(tmp_path / "f.csv"))


def test_further_rows_need_their_embeddings_and_one_task(tmp_path):
    common = ["--sequences", "s", "--embeddings", "e", "--noise", "float32", "--seed", "1"]
    common += ["--output", str(tmp_path / "o")]
    for words in (
        ["--tasks", "mini_tf", "--further", "f"],
        ["--tasks", "mini_tf", "--further-embeddings", "f"],
        ["--tasks", "mini_tf,mini_splice", "--further", "f", "--further-embeddings", "g"],
    ):
        with pytest.raises(OptionError, match="go together, with one task"):
            rescore.main([*words, *common], standalone_mode=False)
