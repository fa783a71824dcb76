"""`geneb-ci pack`: upstream's logs into a submission."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.submission.result_files import task_and_regime
from tests import forked
from tests.paths import PUBLIC, SUBMISSIONS

SUFFIXES = {"full": "", "10shot": "_k-10", "1shot": "_k-1"}
NAMES = [
    "--model-id",
    "dnabert",
    "--display",
    "DNABERT",
    "--params",
    "117000000",
    "--submitted-by",
    "me",
]


def logs(folder: Path) -> Any:
    """Write the logs that upstream's pipeline would have left of a public row."""
    results = json.loads((SUBMISSIONS / "space.json").read_bytes())["results"]
    folder.mkdir()
    for regime, tasks in results.items():
        for task, scores in tasks.items():
            entry = {
                key: {"mean": scores[metric], "std": 0.0}
                for key, metric in (("mcc", "MCC"), ("accuracy", "Acc"), ("f1_score", "F1"))
            }
            path = folder / f"results_dna_bert_{task}_MyExtractor{SUFFIXES[regime]}.json"
            path.write_text(json.dumps(entry), encoding="utf-8")
    return results


def pack(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return forked.run("geneb_ci", "pack", str(folder), *NAMES, *arguments, cwd=folder.parent)


def test_a_whole_run_gives_its_numbers_back_and_passes_the_check(tmp_path):
    results = logs(tmp_path / "logs")
    done = pack(tmp_path / "logs")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "wrote dnabert.json: 300 of 300 cells\nnext: geneb-ci check dnabert.json\n",
        "",
    )
    packed = json.loads((tmp_path / "dnabert.json").read_bytes())
    assert packed["results"] == results
    assert list(packed["results"]["1shot"]) == list(shipped_benchmark().task_ids)
    check = forked.run("geneb_ci", "check", str(tmp_path / "dnabert.json"), cwd=PUBLIC)
    assert check.returncode == 0


def test_what_is_missing_doubled_broken_or_foreign_is_listed_by_regime(tmp_path):
    logs(tmp_path / "logs")
    folder = tmp_path / "logs"
    task = "leannmlindsey_GUE_mouse_0"
    (folder / f"results_dna_bert_{task}_MyExtractor_k-1.json").unlink()
    doubled = folder / f"results_other_{task}_MyExtractor.json"
    doubled.write_bytes((folder / f"results_dna_bert_{task}_MyExtractor.json").read_bytes())
    (folder / "results_dna_bert_iDHS-EL_DNase_I_MyExtractor_k-10.json").write_text(
        '{"mcc": {"mean": NaN}}'
    )
    (folder / "notes.json").write_text("{}")
    done = pack(folder)
    assert done.returncode == 11
    assert (
        done.stdout == "wrote dnabert.json: 297 of 300 cells\nnext: geneb-ci check dnabert.json\n"
    )
    assert done.stderr.splitlines() == [
        "10shot: 1 missing cell: iDHS-EL_DNase_I",
        f"1shot: 1 missing cell: {task}",
        (
            f"full: {task} has 2 result files, expected one: "
            f'"results_dna_bert_{task}_MyExtractor.json", "results_other_{task}_MyExtractor.json"'
        ),
        (
            '"results_dna_bert_iDHS-EL_DNase_I_MyExtractor_k-10.json" cannot be used: '
            "mcc.mean is nan: find out why, and score the task again"
        ),
        'ignored, since the file name has no task id: "notes.json"',
    ]


PREFIX = "InstaDeepAI_nucleotide_transformer_downstream_tasks_"


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        (f"results_m_{PREFIX}enhancers_E", (f"{PREFIX}enhancers", "full")),
        (f"results_m_{PREFIX}enhancers_types_E", (f"{PREFIX}enhancers_types", "full")),
        (f"results_m_{PREFIX}H3K14ac_E_k-1", (f"{PREFIX}H3K14ac", "1shot")),
        (f"results_m_{PREFIX}H3_E_k-10", (f"{PREFIX}H3", "10shot")),
        (f"results_m_{PREFIX}H3x_E", (None, "full")),
        ("results", (None, "full")),
    ],
)
def test_a_name_that_fits_two_tasks_takes_the_longer_id(stem, expected):
    assert task_and_regime(stem, shipped_benchmark()) == expected


def test_an_empty_folder_is_nothing_checked(tmp_path):
    (tmp_path / "logs").mkdir()
    done = pack(tmp_path / "logs")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        3,
        f"geneb-ci: {tmp_path}/logs: the folder contains no *.json",
    )
