"""Other probes on receipts: the page's example, the kinds of probe, ranks, and what is refused."""

import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from reference_harness.data import benchmark
from reference_harness.data.task_folder import MiniSource
from reference_harness.errors import ProbeError
from reference_harness.formats.base import Scores
from reference_harness.formats.run_record import DatasetRef, HarnessRef, PerSeed, TaskReceipt
from reference_harness.formats.submission import BenchmarkRef
from reference_harness.formats.submission_terms import receipt_file
from reference_harness.other_probes import DESCRIPTIONS, KINDS
from reference_harness.other_probes.cost import TaskOfReceipt, cost_sentence, estimated_cost
from reference_harness.other_probes.kinds import (
    TrainingData,
    column_statistics,
    fit_and_predict,
    is_seeded,
)
from reference_harness.other_probes.ranks import macro_mcc, rank_agreements
from reference_harness.other_probes.report import (
    Agreement,
    ProbedReceipt,
    Probes,
    ProbeScores,
    Standing,
)
from reference_harness.other_probes.table import TERMINAL_COLUMNS, as_markdown, as_text
from reference_harness.receipt.cells import CellsJob, receipt_in
from reference_harness.receipt.rounding import WidenedEmbeddings
from tests.harness.support import Harness
from tests.paths import ROOT

PAGE = (ROOT / "docs/reader/probes.md").read_text(encoding="utf-8")
TOLERANCE = 0.02
"""A row of 160 that another BLAS gives another label moves an MCC by 0.0125."""
NUMBER = re.compile(r"-?\d+\.\d+")


def example() -> tuple[list[list[str]], str]:
    """Return the commands of the page's example, in words, and what it says they print."""
    block = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)[0]
    lines = block.replace("\\\n", " ").splitlines()
    words = [line.split()[1:] for line in lines if line.startswith("$ ")]
    return words, "\n".join(line for line in lines if not line.startswith("$ ")) + "\n"


def run_example(folder: Path, runs: int, *more: str) -> Harness:
    """Run the first commands of the page's example, each of which writes a receipt."""
    harness = Harness(folder)
    for program, *words in example()[0][:runs]:
        assert program == "geneb-harness"
        done = harness(*words, *more)
        assert done.returncode == 0, done.stderr
    return harness


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """Make the first receipt of the page's example, of two of the tasks."""
    return run_example(tmp_path_factory.mktemp("probes"), 1, "--tasks", "mini_splice,mini_tf")


@pytest.mark.nightly  # in the gate, a receipt of it as JSON
def test_the_example_of_the_page(tmp_path: Path) -> None:
    commands, expected = example()
    assert len(commands) == 5
    done = run_example(tmp_path, 4)(*commands[-1][1:])
    assert done.returncode == 0, done.stderr
    assert NUMBER.sub("N", done.stdout) == NUMBER.sub("N", expected)
    numbers_printed, numbers_expected = (
        [float(match) for match in NUMBER.findall(each)] for each in (done.stdout, expected)
    )
    assert numbers_printed == pytest.approx(numbers_expected, abs=TOLERANCE)
    assert done.stderr.startswith("4 receipts, 13 tasks, 3 kinds of probe: 73.5 MB to read, ")


def test_the_page_explains_every_kind() -> None:
    for kind in DESCRIPTIONS:
        assert f"| `{kind}` |" in PAGE


def test_a_receipt_of_it_as_json(made: Harness) -> None:
    """The first kind has the scores at the optimum of the receipt's probe, to the last digit."""
    done = made(
        "probe", f"3-mer.json={made.folder / '3-mer'}", "--tasks", "mini_splice",
        "--regimes", "full", "--format", "json", "--output", "probes.json", "--quiet",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads((made.folder / "probes.json").read_bytes())
    jsonschema.validate(document, json.loads((ROOT / "schemas/probes.schema.json").read_bytes()))
    assert document["kinds"] == list(KINDS)
    for name, receipt in document["receipts"].items():
        submission = json.loads((made.folder / f"{name}.json").read_bytes())
        assert receipt["root"] == submission["receipt"]["root"]
        _, entries = receipt_in(made.folder / f"{name}.json")
        job = CellsJob(
            "mini_splice", receipt_file(made.folder / name, "mini_splice"), entries["mini_splice"],
            benchmark.mini(), MiniSource(), ("full",), canonical=True,
        )  # fmt: skip
        scores = receipt["scores"]["logistic"]["full"]["mini_splice"]["scores"]
        assert scores == job.execute().cells.regimes["full"].scores.model_dump()
        assert set(receipt["scores"]) == set(KINDS)
        of_mlp = receipt["scores"]["mlp"]["full"]["mini_splice"]["per_seed"]["MCC"]
        assert len(set(of_mlp)) > 1  # five networks, not one


def copied(made: Harness, folder: Path, **changes: Any) -> Path:
    """Copy the receipt of the 3-mers, with members of the submission changed."""
    shutil.copytree(made.folder / "3-mer", folder / "X")
    document = json.loads((made.folder / "3-mer.json").read_bytes()) | changes
    (folder / "X.json").write_text(json.dumps(document))
    return folder / "X"


def test_what_cannot_be_probed_is_refused_by_name(made: Harness, tmp_path: Path) -> None:
    folder = copied(made, tmp_path)
    submission = json.loads((tmp_path / "X.json").read_bytes())
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps({key: submission[key] for key in ("model_id", "results", "run")}))
    other = tmp_path / "other.json"
    run = submission["run"] | {"benchmark": {"name": "other", "sha256": "0" * 64}}
    other.write_text(json.dumps(submission | {"run": run}))
    cases: dict[str, tuple[tuple[object, ...], int]] = {
        f"{bare}: not a submission with a receipt": ((f"{bare}={folder}",), 2),
        f"{tmp_path / 'no.json'}: no such file": ((tmp_path / "no",), 2),
        f"{tmp_path / 'no'}: no such folder": ((f"{folder}.json={tmp_path / 'no'}",), 2),
        "two receipts have the model_id '3-mer'": ((folder, made.folder / "3-mer"), 2),
        f"3-mer: its benchmark definition has the sha256 {'0' * 64}": ((f"{other}={folder}",), 2),
        "--tasks 'mini_no': expected one of mini_splice": ((folder, "--tasks", "mini_no"), 2),
        "--regimes '5shot': expected one of full": ((folder, "--regimes", "5shot"), 2),
        "--seeds '-1': expected whole numbers": ((folder, "--seeds", "1,-1"), 2),
    }
    for message, (words, code) in cases.items():
        done = made("probe", *words)
        assert (done.returncode, message in done.stderr) == (code, True), done.stderr


def test_files_that_are_not_the_receipts_are_refused(made: Harness, tmp_path: Path) -> None:
    folder = copied(made, tmp_path)
    file = folder / "mini_tf.f16"
    words = ("probe", folder, "--tasks", "mini_tf", "--kind", "knn", "--quiet")
    raw = bytearray(file.read_bytes())
    raw[0] ^= 1
    file.write_bytes(raw)
    done = made(*words)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{file}: its sha256 is " in done.stderr
    file.write_bytes(raw[:-1])
    assert f"{file}: 66559 bytes, expected 66560" in made(*words).stderr
    file.unlink()
    assert f"files of a receipt are missing: {file}" in made(*words).stderr


CLASSES = 3
RNG = np.random.default_rng(5)
LABELS = RNG.integers(0, CLASSES, 240)
CENTRES = RNG.normal(size=(CLASSES, 12)) * 4


def rows(labels: np.ndarray, seed: int, constant: float = 1000.0) -> WidenedEmbeddings:
    """Return rows around the centre of each class, with a large constant column."""
    noise = np.random.default_rng(seed).normal(size=(len(labels), 12))
    features = np.hstack([CENTRES[labels] + noise, np.full((len(labels), 1), constant)])
    return WidenedEmbeddings(features.astype(np.float16), -3)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_learns_and_is_a_function_of_its_seed(kind: str) -> None:
    train, test = rows(LABELS, 1, 4.0), rows(LABELS, 2, 4.0)
    columns = column_statistics(train)
    first, again, other = (
        fit_and_predict(kind, TrainingData(train, LABELS), test, columns, seed=seed, shots=None)
        for seed in (1, 1, 2)
    )
    assert (first == LABELS).mean() > 0.95
    assert np.array_equal(first, again)
    assert is_seeded(kind) or np.array_equal(first, other)


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_of_each_class_is_enough(kind: str) -> None:
    drawn = np.array([list(LABELS).index(label) for label in range(CLASSES)])
    train = rows(LABELS, 1, 4.0)
    part = TrainingData(WidenedEmbeddings(train.values[drawn], train.scale_log2), LABELS[drawn])
    test = rows(LABELS, 2, 4.0)
    predictions = fit_and_predict(kind, part, test, column_statistics(train), seed=1, shots=1)
    assert (predictions == LABELS).mean() > 0.5


def test_columns_are_standardised_and_constant_ones_left() -> None:
    train = rows(LABELS, 1)
    standardised = column_statistics(train).standardised(train)
    assert standardised.dtype == np.float32
    assert np.abs(standardised.mean(axis=0)).max() < 1e-3
    assert standardised[:, :12].std(axis=0) == pytest.approx(np.ones(12), abs=1e-3)
    assert not standardised[:, 12].any()


def test_what_scikit_learn_refuses_names_the_kind() -> None:
    train = rows(LABELS, 1)
    with pytest.raises(ProbeError, match="ridge: the probe cannot be fitted: ValueError"):
        fit_and_predict(
            "ridge",
            TrainingData(train, LABELS[:5]),
            train,
            column_statistics(train),
            seed=1,
            shots=None,
        )


def scores(value: float) -> ProbeScores:
    return ProbeScores(
        scores=Scores(MCC=value, Acc=0.5, F1=0.5),
        per_seed=PerSeed(MCC=[value], Acc=[0.5], F1=[0.5]),
        seconds=0.0,
    )


def test_macro_is_the_mean_over_categories() -> None:
    bench = benchmark.geneb()
    by_task = {task.id: scores(0.5) for task in bench.tasks}
    first = bench.tasks[0]
    of_category = sum(task.category == first.category for task in bench.tasks)
    by_task[first.id] = scores(1.0)
    expected = 0.5 + 0.5 / of_category / len(bench.category_order)
    assert macro_mcc(by_task, bench) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.tuples(*[st.integers(-3, 3)] * 2), min_size=1, max_size=8))
def test_tau_and_swapped_pairs(values: list[tuple[int, int]]) -> None:
    by_kind = {
        kind: {str(n): Standing(macro=pair[i] / 4, rank=1) for n, pair in enumerate(values)}
        for i, kind in enumerate(("a", "b"))
    }
    (rank_agreement,) = rank_agreements(by_kind)
    pairs = list(itertools.combinations(values, 2))
    assert rank_agreement.pairs == len(pairs)
    assert rank_agreement.swapped == sum((a - c) * (b - d) < 0 for (a, b), (c, d) in pairs)
    expected = kendalltau(*zip(*values, strict=True)).statistic if len(values) > 1 else np.nan
    assert rank_agreement.tau == (None if np.isnan(expected) else pytest.approx(expected))
    (exchanged,) = rank_agreements({kind: by_kind[kind] for kind in ("b", "a")})
    assert exchanged.swapped == rank_agreement.swapped
    assert exchanged.tau == (
        rank_agreement.tau if rank_agreement.tau is None else pytest.approx(rank_agreement.tau)
    )


HOSTILE = "a|[red]<b>" + "x" * 118


def result() -> Probes:
    standing = {
        HOSTILE: Standing(macro=-0.25, rank=2),
        "second": Standing(macro=0.5, rank=1),
    }
    receipt = ProbedReceipt(root="0" * 64, dim=1, scores={})
    return Probes(
        benchmark=BenchmarkRef(name="x", sha256="0" * 64),
        dataset=DatasetRef(repo_id="x", revision="0" * 40, verified=False),
        harness=HarnessRef(version="1", commit=None, dirty=False),
        packages={},
        libraries=[],
        seeds=[1],
        seconds=0.0,
        kinds=["logistic", "mlp"],
        tasks=["one"],
        receipts={HOSTILE: receipt, "second": receipt},
        standings={"full": {"logistic": standing, "mlp": standing}},
        agreement={
            "full": [Agreement(first="logistic", second="mlp", tau=None, swapped=0, pairs=1)]
        },
    )


def test_tables_keep_to_their_width_and_their_cells() -> None:
    lines = as_text(result()).splitlines()
    assert max(map(len, lines)) <= TERMINAL_COLUMNS
    assert lines[0] == "full: macro MCC of 1 task, and rank"
    assert lines[2].split() == ["model", "logistic", "mlp"]
    assert lines[3].split() == ["second", "0.500", "1", "0.500", "1"]
    # Each cell of the first column is folded, and no letter of it is lost.
    folded = "".join(line.split()[0] for line in lines[4 : lines.index("", 4)])
    assert folded == HOSTILE
    table = as_markdown(result()).splitlines()
    assert table[:5] == [
        "**full: macro MCC of 1 task, and rank**",
        "",
        "| model | logistic | mlp |",
        "| --- | ---: | ---: |",
        "| second | 0.500  1 | 0.500  1 |".replace("  ", " "),
    ]
    assert "a\\|[red]&lt;b>x" in table[5]
    assert "| full | mlp | undefined | 0 of 1 |" in table


def test_the_cost_grows_with_the_work_and_is_said_in_a_sentence() -> None:
    bench = benchmark.mini()
    task_receipt = TaskReceipt(
        train=20_000, test=2_000, dim=768, scale_log2=0, bytes=2 * 768 * 22_000, sha256="0" * 64,
        root="0" * 64,
    )  # fmt: skip
    work = [TaskOfReceipt("mini_tf", task_receipt)]
    first, two = (
        estimated_cost(work * n, bench, KINDS, has_full_regime=True, seeds=5) for n in (1, 2)
    )
    assert (two.seconds, two.file_bytes, two.memory_bytes) == (
        2 * first.seconds,
        2 * first.file_bytes,
        first.memory_bytes,
    )
    assert estimated_cost(work, bench, KINDS, has_full_regime=False, seeds=5).seconds == 0
    assert cost_sentence(first, 1, 1, 4, 2) == (
        "1 receipt, 1 task, 4 kinds of probe: 33.8 MB to read, 135 MB of memory per worker, "
        "about 26 s with 2 workers (rough: up to three times more or less)"
    )
