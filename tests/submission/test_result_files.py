"""Files of other programs are read as leniently as their use needs; other protocols are named."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.cli.main import main
from tests import small
from tests.submission.mteb_files import LAYOUTS, MtebFiles

TASKS = small.BENCHMARK.task_ids
SEEDS = len(small.BENCHMARK.protocol.seeds)
CELLS = small.small("x")["results"]
NAN, INFINITY = math.nan, math.inf
Change = Callable[[dict[str, Any]], None]


def scores_of(result: dict[str, Any]) -> dict[str, Any]:
    scores: dict[str, Any] = result["scores"]["test"][0]
    return scores


def result_of(task: str, regime: str = "full") -> dict[str, Any]:
    """Return a result as MTEB 2 writes it, of as many experiments as the benchmark has seeds."""
    cell = CELLS[regime][task]
    scores = {"mcc": cell["MCC"], "accuracy": cell["Acc"], "f1": cell["F1"]}
    suffix = {"full": "", "10shot": "_k-10", "1shot": "_k-1"}[regime]
    return {
        "dataset_revision": small.BENCHMARK.dataset.revision,
        "task_name": task + suffix,
        "mteb_version": "2.10.0",
        "scores": {
            "test": [
                {
                    "scores_per_experiment": [dict(scores) for _ in range(SEEDS)],
                    **scores,
                    "ap": None,
                    "main_score": cell["MCC"],
                    "hf_subset": "default",
                    "languages": ["eng-Latn"],
                }
            ]
        },
        "evaluation_time": 45.5,
        "kg_co2_emissions": None,
    }


@pytest.fixture
def results_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of results of a model, below a repository of the small benchmark."""
    (tmp_path / "schemas").mkdir()
    (tmp_path / "submissions").mkdir()
    (tmp_path / "schemas/benchmark.json").write_bytes(small.BENCHMARK_FILE.read_bytes())
    folder = tmp_path / "results/org__m/0123"
    folder.mkdir(parents=True)
    meta = {"name": "org/m", "n_parameters": 5, "memory_usage_mb": NAN, "max_tokens": INFINITY}
    (folder / "model_meta.json").write_text(json.dumps(meta), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return folder


def lay(folder: Path, change: Change | None = None, text: str = "") -> None:
    """Write results of every task in full; the first is changed, or is the text."""
    for task in TASKS:
        result = result_of(task)
        if task == TASKS[0] and change is not None:
            change(result)
        content = text if text and task == TASKS[0] else json.dumps(result)
        (folder / f"{task}.json").write_text(content, encoding="utf-8")


def imported(capsys: Any, folder: str = "results") -> tuple[int, dict[str, Any], str]:
    """Return exit code, results and messages of an import."""
    code = main(["pack", folder, "--output", "out.json"])
    path = Path("out.json")
    results = json.loads(path.read_bytes())["results"] if path.exists() else {}
    return code, results, " ".join(capsys.readouterr().err.split())


def put(name: str, value: object) -> Change:
    return lambda result: scores_of(result).update({name: value})


def root(name: str, value: object) -> Change:
    return lambda result: result.update({name: value})


def experiment(name: str, value: object) -> Change:
    return lambda result: scores_of(result)["scores_per_experiment"][0].update({name: value})


LENIENT: dict[str, Change] = {
    "ap is NaN": put("ap", NAN),
    "ap is Infinity": put("ap_weighted", INFINITY),
    "an experiment has NaN": experiment("ap", NAN),
    "an emission is -Infinity": root("kg_co2_emissions", -INFINITY),
    "a new member": root("exceptions", {"a": [NAN]}),
    "a nest of lists": root("trace", [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]),
    "a long number": root("seed", 10**300),
    "a lone surrogate": root("note", "\ud83e"),
    "a control character": root("note", "\x1b[2J"),
    "a key of 5,000 letters": root("k" * 5_000, 1),
    "no experiments": lambda result: scores_of(result).pop("scores_per_experiment"),
    "an empty list of experiments": put("scores_per_experiment", []),
    "another split, too": lambda result: result["scores"].update({"train": [{"mcc": NAN}]}),
}


@pytest.mark.parametrize("name", LENIENT)
def test_what_nobody_uses_is_no_fault(name, results_folder, capsys):
    lay(results_folder, LENIENT[name])
    code, results, messages = imported(capsys)
    assert results["full"] == CELLS["full"]
    assert "cannot be used" not in messages
    assert code == 11  # the few-shot regimes are missing


def test_keys_that_occur_twice_elsewhere_are_no_fault(results_folder, capsys):
    text = json.dumps(result_of(TASKS[0]))
    lay(results_folder, text=text[:-1] + ', "evaluation_time": 1, "task_name": "' + TASKS[0] + '"}')
    assert imported(capsys)[1]["full"] == CELLS["full"]


def test_a_byte_order_mark_is_no_fault(results_folder, capsys):
    lay(results_folder, text="\ufeff" + json.dumps(result_of(TASKS[0])))
    assert imported(capsys)[1]["full"] == CELLS["full"]


UNUSABLE: dict[str, tuple[Change | str, str]] = {
    "mcc is NaN": (put("mcc", NAN), "scores.test.mcc is nan"),
    "accuracy is Infinity": (put("accuracy", INFINITY), "scores.test.accuracy is inf"),
    "f1 is a text": (put("f1", "0.5"), "scores.test.f1 is missing or not a number"),
    "f1 is huge": (put("f1", 10**400), "scores.test.f1 is inf"),
    "mcc is true": (put("mcc", value=True), "scores.test.mcc is missing or not a number"),
    "no mcc": (lambda result: scores_of(result).pop("mcc"), "scores.test lacks mcc"),
    "another revision": (root("dataset_revision", "0" * 40), "the revision of the task data is"),
    "two subsets": (
        lambda result: result["scores"].update(test=[{"hf_subset": "a"}, {"hf_subset": "b"}]),
        "scores.test has 2 subsets, of which 0 have the name 'default', expected 1",
    ),
    "mcc twice": (
        json.dumps(result_of(TASKS[0])).replace('"ap": null', '"mcc": 0.123'),
        "scores.test.mcc is written twice, with two values",
    ),
    "cut short": (json.dumps(result_of(TASKS[0]))[:-9], "it is not JSON"),
    "markers": ("<<<<<<< HEAD\n{}\n", "it has merge conflict markers on line 1"),
    "pointer": ("version https://git-lfs.github.com/spec/v1\n", "it is a Git LFS pointer"),
    "page": ("<!doctype html>", "it is an HTML page"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_fault_of_what_is_used_makes_one_file_unusable(name, results_folder, capsys):
    what, words = UNUSABLE[name]
    lay(results_folder, text=what) if isinstance(what, str) else lay(results_folder, what)
    code, results, messages = imported(capsys)
    assert code == 11
    assert results["full"] == {task: CELLS["full"][task] for task in TASKS[1:]}
    assert f'"{TASKS[0]}.json" cannot be used: ' in messages
    assert words in messages


EXPERIMENTS = [{"accuracy": 0.5, "ap": NAN}]
OTHER_PROTOCOLS: dict[str, tuple[Change, str]] = {
    "MTEB's default": (
        put("scores_per_experiment", EXPERIMENTS * 10),
        "the scores are means over 10 experiments, as by MTEB's default protocol: 8 samples",
    ),
    "3 experiments": (put("scores_per_experiment", EXPERIMENTS * 3), "over 3 experiments"),
    "1 experiment": (put("scores_per_experiment", EXPERIMENTS), "over 1 experiment;"),
    "32 experiments": (put("scores_per_experiment", EXPERIMENTS * 32), "over 32 experiments"),
    "samples a label": (put("samples_per_label", 8), "trained on 8 samples a label"),
    "samples, at the top": (root("samples_per_label", 16), "trained on 16 samples a label"),
    "number of experiments": (root("n_experiments", 10), "over 10 experiments (n_experiments)"),
    "folds": (put("n_splits", 10), "cross-validation with 10 folds"),
    "iterations": (put("max_iter", 100), "the probe has 100 iterations"),
    "another probe": (put("method", "kNN"), 'the probe is "kNN"'),
}


@pytest.mark.parametrize("name", OTHER_PROTOCOLS)
def test_numbers_of_another_protocol_are_refused_by_its_name(name, results_folder, capsys):
    change, words = OTHER_PROTOCOLS[name]
    lay(results_folder, change)
    code, results, messages = imported(capsys)
    assert code == 11
    assert results["full"] == {task: CELLS["full"][task] for task in TASKS[1:]}
    assert words in messages
    assert "run the benchmark with geneb-harness" in messages


def test_a_whole_folder_of_another_protocol_writes_nothing(results_folder, capsys):
    for task in TASKS:
        result = result_of(task)
        put("scores_per_experiment", EXPERIMENTS * 10)(result)
        (results_folder / f"{task}.json").write_text(json.dumps(result), encoding="utf-8")
    code, results, messages = imported(capsys)
    assert (code, results) == (3, {})
    assert messages.count("MTEB's default protocol") == 1
    assert 'expected all training data and 5 seeds as in "full" of GENEB-small' in messages
    assert "no file has a result of GENEB-small" in messages


@pytest.mark.parametrize(("regime", "samples"), [("10shot", 10), ("1shot", 1)])
def test_samples_of_a_regime_are_those_of_its_name(regime, samples, results_folder, capsys):
    for task in TASKS:
        result = result_of(task, regime)
        put("samples_per_label", samples if task != TASKS[0] else 8)(result)
        (results_folder / f"{task}.json").write_text(json.dumps(result), encoding="utf-8")
    _, results, messages = imported(capsys)
    assert results[regime] == {task: CELLS[regime][task] for task in TASKS[1:]}
    assert "trained on 8 samples a label (samples_per_label); " in messages
    assert f'expected {samples} a label and 5 seeds as in "{regime}" of GENEB-small' in messages


def test_experiments_beside_the_results_are_left_out_unless_named(results_folder, capsys):
    """MTEB keeps runs with other settings in experiments/NAME, each with a model_meta.json."""
    lay(results_folder)
    other = results_folder / "experiments/samples_per_label_8"
    other.mkdir(parents=True)
    lay(other)
    meta = {"name": "org/m", "n_parameters": 5, "experiment_kwargs": {"samples_per_label": 8}}
    (other / "model_meta.json").write_text(json.dumps(meta), encoding="utf-8")
    assert imported(capsys)[1]["full"] == CELLS["full"]
    Path("out.json").unlink()
    code, results, messages = imported(capsys, str(other))
    assert (code, results) == (3, {})
    assert "trained on 8 samples a label" in messages


@pytest.mark.parametrize("layout", LAYOUTS)
def test_hundreds_of_files_of_each_layout_are_read(layout, tmp_path, monkeypatch, capsys):
    """1,121 files: three layouts of 307, and 100 of an experiment beside each that can have one."""
    from geneb_ci.common.benchmark import shipped_benchmark

    monkeypatch.chdir(tmp_path)
    files = MtebFiles(shipped_benchmark(), layout, seed=41)
    folder = tmp_path / ("results/m" if layout == "old" else "results/org__m/0123")
    count = files.write(folder)
    count += files.write_experiment(folder, 8) if layout != "old" else 0
    assert count == len([*folder.rglob("*.json")]) - len([*folder.rglob("model_meta.json")])
    assert count >= 307
    arguments = ("--model-id", "m", "--display", "M", "--params", "150000000")
    assert main(["pack", "results", *arguments, "--output", "out.json"]) == 0
    document = json.loads(Path("out.json").read_bytes())
    assert document["results"] == files.cells
    assert document["meta"]["params"] == 150_000_000
    messages = " ".join(capsys.readouterr().err.split())
    assert "cannot be used" not in messages
    assert "ignored, since the file name has no task id: " in messages
    assert " and 2 more" in messages, "seven tasks are of MTEB itself"


def test_an_experiment_of_other_settings_is_refused_by_its_name(tmp_path, monkeypatch, capsys):
    from geneb_ci.common.benchmark import shipped_benchmark

    monkeypatch.chdir(tmp_path)
    files = MtebFiles(shipped_benchmark(), "2", seed=41)
    assert files.write_experiment(tmp_path / "r", 8) == 100
    assert main(["pack", "r/experiments/samples_per_label_8"]) == 3
    messages = " ".join(capsys.readouterr().err.split())
    assert " and 95 more cannot be used: the probe was trained on 8 samples a label" in messages
    assert not list(tmp_path.glob("*.json"))


LOG = {name: {"mean": 0.5, "std": 0.1} for name in ("mcc", "accuracy", "f1_score")}
LOGS: dict[str, tuple[dict[str, Any], str]] = {
    "NaN of what is not used": (LOG | {"auroc": {"mean": NAN}}, ""),
    "NaN beside the mean": (LOG | {"mcc": {"mean": 0.5, "std": NAN}}, ""),
    "NaN of what is used": (LOG | {"mcc": {"mean": NAN}}, "mcc.mean is nan"),
    "3 seeds": (LOG | {"n_seeds": 3}, "the scores are means over 3 experiments (n_seeds)"),
    "another probe": (LOG | {"classifier": "xgboost"}, 'the probe is "xgboost"'),
    "the same probe": (LOG | {"classifier": "LogisticRegression"}, ""),
}


@pytest.mark.parametrize("name", LOGS)
def test_logs_of_upstream_are_read_alike(name, results_folder, capsys):
    log, words = LOGS[name]
    path = results_folder / f"results_m_{TASKS[0]}_E.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    code, results, messages = imported(capsys)
    assert code == (3 if words else 11)
    assert words in messages
    assert bool(results) != bool(words)


EEE = {"evaluation_id": "a", "evaluation_results": [], "model_info": {}}
FOREIGN: dict[str, tuple[object, str]] = {
    "EEE": (EEE, "a record of Every Eval Ever"),
    "lm-eval": ({"results": {}, "versions": {}, "n-shot": {}}, "the LM Evaluation Harness"),
    "lighteval": ({"config_general": {}, "results": {}}, "lighteval"),
    "notebook": ({"cells": [], "nbformat": 4}, "a Jupyter notebook"),
    "a model": ({"model_name": "m", "task_results": []}, "all results of a model in one file"),
}


@pytest.mark.parametrize("command", ["import", "pack"])
@pytest.mark.parametrize("name", FOREIGN)
def test_a_folder_of_another_program_is_named(name, command, tmp_path, monkeypatch, capsys):
    value, words = FOREIGN[name]
    monkeypatch.chdir(tmp_path)
    Path("r").mkdir()
    for number in range(3):
        Path(f"r/{number}.json").write_text(json.dumps(value), encoding="utf-8")
    assert main([command, "r"]) == 3
    messages = " ".join(capsys.readouterr().err.split())
    assert '"0.json", "1.json", "2.json" cannot be used: it is ' in messages
    assert messages.count(words) == 1


OTHER_FILES: dict[str, tuple[str, bytes, str]] = {
    "eval results": ("e.yaml", b"- dataset:\n    id: org/d\n  value: 1\n", "`.eval_results`"),
    "archive": ("results.zip", b"PK\x03\x04 and more", "is a zip archive"),
    "pointer": ("a.bin", b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
    "table": ("scores.parquet", b"PAR1\x15", "is a Parquet file"),
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_a_folder_without_json_is_said_to_have_what_it_has(name, tmp_path, monkeypatch, capsys):
    file, raw, words = OTHER_FILES[name]
    monkeypatch.chdir(tmp_path)
    Path("r").mkdir()
    Path("r", file).write_bytes(raw)
    assert main(["pack", "r"]) == 3
    messages = " ".join(capsys.readouterr().err.split())
    assert f'r: there is no *.json, and "{file}" ' in messages
    assert words in messages


@pytest.mark.parametrize("name", FOREIGN)
def test_a_benchmark_definition_of_another_program_is_named(name, tmp_path, monkeypatch, capsys):
    value, words = FOREIGN[name]
    for folder in ("schemas", "submissions"):
        (tmp_path / folder).mkdir()
    (tmp_path / "schemas/benchmark.json").write_text(json.dumps(value), encoding="utf-8")
    (tmp_path / "submissions/m.json").write_text("{}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "--no-cache"]) == 1
    text = " ".join(capsys.readouterr().err.split())
    assert words in text
    assert text.count("schemas/benchmark.json: ") == 1
