"""The mistakes that new contributors make: each is short, with its cause and not what follows."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.cli.main import main
from tests.rules.place import built
from tests.small import CARD, small_v11

LINES_MAX = 25
Change = Callable[[dict[str, Any]], None]


def cells(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for tasks in document["results"].values() for cell in tasks.values()]


def renamed(names: dict[str, str]) -> Change:
    def change(document: dict[str, Any]) -> None:
        for cell in cells(document):
            for old, new in names.items():
                cell[new] = cell.pop(old)

    return change


def scaled(document: dict[str, Any]) -> None:
    for cell in cells(document):
        cell.update({metric: 100 * value for metric, value in cell.items()})


def without_a_task(document: dict[str, Any]) -> None:
    for regime, tasks in document["results"].items():
        del tasks["splice_sites"], document["evidence"][regime]["splice_sites"]


def nan(document: dict[str, Any]) -> None:
    for cell in cells(document):
        cell["MCC"] = math.nan


def put(*path: str, value: object) -> Change:
    def change(document: dict[str, Any]) -> None:
        node = document
        for name in path[:-1]:
            node = node[name]
        node[path[-1]] = value

    return change


LOWER = {"MCC": "mcc", "Acc": "accuracy", "F1": "f1_score"}
# name: change, the rule that is named, words of the message.
MISTAKES: dict[str, tuple[Change, str, str]] = {
    "id": (put("model_id", value="My Model"), "bad-model-id", 'model_id is "My Model"'),
    "percent": (scaled, "percent-scores", "the scores are in percent"),
    "missing task": (without_a_task, "missing-task", "splice_sites"),
    "NaN": (nan, "non-finite-number", "NaN is not a JSON number"),
    "revision": (
        put("run", "model", "revision", value="main"),
        "malformed-value",
        'revision is "main"',
    ),
    "long names": (
        renamed(LOWER),
        "unknown-metric",
        '9 cells name their metrics "mcc", "accuracy", "f1_score"; expected MCC, Acc, F1',
    ),
    "lower case": (
        renamed({"MCC": "mcc", "Acc": "acc", "F1": "f1"}),
        "unknown-metric",
        '9 cells name their metrics "mcc", "acc", "f1"; expected MCC, Acc, F1',
    ),
    "placeholder": (
        put("run", "model", "location", value="OWNER/MODEL"),
        "unpinned-model",
        "is a placeholder",
    ),
}


def report(folder: Path, change: Change, capsys: Any, *options: str) -> str:
    document = small_v11("model")
    change(document)
    files = {"submissions/model.json": json.dumps(document, indent=1).encode()}
    built(files | {"submissions/cards/model.md": CARD.encode()}, folder)
    assert main(["check", "submissions/model.json", "--no-cache", *options]) == 11
    streams = capsys.readouterr()
    return str(streams.out)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_short_and_names_its_cause(name, tmp_path, monkeypatch, capsys):
    change, rule, words = MISTAKES[name]
    monkeypatch.chdir(tmp_path)
    text = report(tmp_path, change, capsys)
    # What follows says which rules need more than these three tasks have.
    assert len(text.partition("To explain a rule")[0].splitlines()) <= LINES_MAX
    assert f"error: {rule}\n" in text
    assert words in " ".join(text.split())


@pytest.mark.parametrize("name", ["long names", "lower case"])
def test_other_names_of_metrics_are_one_error(name, tmp_path, monkeypatch, capsys):
    """Each cell had six: three that are no metrics, and three that are missing."""
    monkeypatch.chdir(tmp_path)
    text = report(tmp_path, MISTAKES[name][0], capsys, "--format", "json")
    errors = [f["rule"] for f in json.loads(text)["findings"] if f["severity"] == "error"]
    assert errors == ["unknown-metric"]


def test_a_name_of_two_cells_is_listed_for_each(tmp_path, monkeypatch, capsys):
    def change(document: dict[str, Any]) -> None:
        for cell in cells(document)[:2]:
            cell["accuracy"] = cell.pop("Acc")

    monkeypatch.chdir(tmp_path)
    text = report(tmp_path, change, capsys, "--format", "json")
    rules = sorted(f["rule"] for f in json.loads(text)["findings"] if f["severity"] == "error")
    assert rules == ["missing-metric"] * 2 + ["unknown-metric"] * 2


def test_all_nan_are_counted_and_some_listed(tmp_path, monkeypatch, capsys):
    """300 were 200."""
    from geneb_ci.common.benchmark import shipped_benchmark

    monkeypatch.chdir(tmp_path)
    document = small_v11("model", shipped_benchmark())
    nan(document)
    Path("model.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    assert main(["check", "model.json", "--no-cache", "--select", "non-finite-number"]) == 11
    text = capsys.readouterr().out
    assert "and 297 more of non-finite-number\n" in text
    assert ": 300 errors" in text
    assert len(text.splitlines()) <= LINES_MAX


def test_more_than_are_listed_anywhere_are_counted_everywhere(tmp_path, monkeypatch, capsys):
    """1,800 were 1,000: the file lists no more of one rule, and says so in the last."""
    from geneb_ci.common.benchmark import shipped_benchmark

    monkeypatch.chdir(tmp_path)
    document = small_v11("model", shipped_benchmark())
    nan(document)
    for tasks in document["evidence"].values():
        for evidence in tasks.values():
            evidence["per_seed"]["MCC"] = [math.nan] * 5
    Path("model.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    options = ("--no-cache", "--select", "non-finite-number")
    pairs = ("--format", "json", "--output", "r.json", "--format", "markdown", "--output", "r.md")
    assert main(["check", "model.json", *options, "--format", "text", *pairs]) == 11
    assert ": 1,800 errors" in capsys.readouterr().out
    report = json.loads(Path("r.json").read_bytes())
    assert report["counts"]["error"] == 1800
    assert "801 more findings of non-finite-number are not" in report["findings"][-1]["message"]
    assert "1,800 errors" in Path("r.md").read_text(encoding="utf-8")


LOG = {name: {"mean": 0.5, "std": 0.1} for name in ("mcc", "accuracy", "f1_score")}


def test_a_folder_of_logs_is_refused_in_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for number in range(300):
        Path(f"results_{number:03}.json").write_text(json.dumps(LOG), encoding="utf-8")
    Path("pointer.json").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert main(["check", ".", "--no-cache"]) == 11
    text = capsys.readouterr().out
    assert text.count("this is a log of upstream's pipeline of one task") == 1
    assert "results_000.json and 299 more files\n" in text
    assert "pointer.json\n" in text
    assert ": 301 errors" in text
    assert len(text.partition("To explain a rule")[0].splitlines()) <= LINES_MAX
