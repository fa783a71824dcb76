"""`geneb-ci export` and `pack` as a user calls them, and the examples of docs/reader/exports.md."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from geneb_ci.audit.trust.level import Audit, Decision, Versions
from geneb_ci.board.columns import row_of
from geneb_ci.cli.main import main
from geneb_ci.cli.publish import FORMATS
from geneb_ci.common.types import TrustLevel
from geneb_ci.render.export_entries import portable_name
from reference_harness.formats.submission import MODELS
from tests import small
from tests.paths import PUBLIC, ROOT
from tests.render.exported import PARQUET, SITE_PACKAGES, WHEN, unmarked, validated


def export(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main(["export", *map(str, arguments)])
    done = capsys.readouterr()
    return code, done.out, done.err


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay a repository of two small rows, and enter it."""
    root = tmp_path / "board"
    (root / "submissions/cards").mkdir(parents=True)
    (root / "schemas").mkdir()
    (root / "schemas/benchmark.json").write_bytes(small.BENCHMARK_FILE.read_bytes())
    for name in ("m1", "m2"):
        (root / f"submissions/{name}.json").write_text(json.dumps(small.small(name)))
        (root / f"submissions/cards/{name}.md").write_text(small.CARD)
    monkeypatch.chdir(root)
    return root


def test_the_command_writes_what_was_asked_for(board: Path, capsys: Any) -> None:
    exported = export(capsys, "--format", "csv", "--output", "out", "--model", "m2")
    assert exported == (0, "wrote 4 files to out: 1 model\n", "")
    assert [line["model"] for line in unmarked((board / "out/models.csv").read_bytes())] == ["m2"]
    exported = export(
        capsys,
        "--format",
        "eval-results",
        "--output",
        "hub",
        "--verify-token",
        "m1=tok",
        "--time",
        WHEN,
    )
    assert exported == (0, "wrote 4 files to hub: 2 models\n", "")
    texts = {p.parts[1]: p.read_text() for p in sorted(Path("hub").rglob("geneb.yaml"))}
    assert {name: "verifyToken: tok" in text for name, text in texts.items()} == {
        "m1": True,
        "m2": False,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "csv", "--output", "submissions"], "submissions is not empty"),
        (["--format", "every-eval-ever"], "a log of Every Eval Ever needs a time"),
        (["--format", "every-eval-ever", "--time", "today"], '--time "today" is not a time'),
        (["--format", "csv", "--model", "nobody"], '"nobody" is not a model of FOLDER'),
        (["--format", "csv", "--data", "schemas"], "--data is for croissant, not for csv"),
        (["--format", "csv", "--verify-token", "m1=t"], "--verify-token is for eval-results"),
        (
            ["--format", "eval-results", "--verify-token", "m1"],
            '--verify-token "m1" is not ID=TOKEN',
        ),
        (
            ["--format", "eval-results", "--verify-token", "m1=a", "--verify-token", "M1=b"],
            '--verify-token names "m1" twice',
        ),
        (
            ["--format", "eval-results", "--verify-token", "m1=a", "--verify-token", "m1=b"],
            '--verify-token names "m1" twice',
        ),
        (["--format", "croissant", "--data", "schemas"], "schemas/manifest.json: "),
    ],
)
def test_what_cannot_be_exported_is_refused_and_nothing_is_written(
    arguments: list[str], message: str, board: Path, capsys: Any
) -> None:
    out = [] if "--output" in arguments else ["--output", "out"]
    code, printed, error = export(capsys, *arguments, *out)
    assert (code, printed, (board / "out").exists()) == (2, "", False)
    assert error.startswith(f"geneb-ci: {message}")
    assert "\n  fix: " in error


def test_task_data_of_no_repository_is_refused_for_the_hub(board: Path, capsys: Any) -> None:
    definition = json.loads(small.BENCHMARK_FILE.read_bytes())
    definition["dataset"]["repo_id"] = "builtin:small"
    (board / "schemas/benchmark.json").write_text(json.dumps(definition))
    code, _, error = export(capsys, "--format", "eval-results", "--output", "out")
    assert code == 2
    assert "'builtin:small', which is not a data set on the Hub" in error
    assert "every entry of eval-results" in error
    code, _, error = export(capsys, "--format", "croissant", "--data", ".", "--output", "out")
    assert code == 2
    assert "only such a data set can be described in Croissant" in error
    assert "fix: leave out --data" in error


def test_a_row_with_an_error_stops_the_export(board: Path, capsys: Any) -> None:
    document = small.small("m1")
    document["results"]["full"]["splice_sites"]["MCC"] = 7
    (board / "submissions/m1.json").write_text(json.dumps(document))
    code, _, error = export(capsys, "--format", "csv", "--output", "out")
    assert code == 11
    assert "nothing was exported: every submission must pass every check" in error
    assert not (board / "out").exists()


def results_of_mteb(folder: Path) -> dict[str, dict[str, float]]:
    """Lay the results of a model in one regime, one of them without MCC; return the others."""
    folder.mkdir(parents=True)
    meta = {"name": "org/My-Model", "n_parameters": None, "reference": "https://example.org/m"}
    (folder / "model_meta.json").write_text(json.dumps(meta))
    cells = small.small("x")["results"]["full"]
    for task, cell in cells.items():
        scores_of_cell = {
            "mcc": cell["MCC"],
            "accuracy": cell["Acc"],
            "f1": cell["F1"],
            "main_score": 1.0,
        }
        if task == "promoter_notata":
            del scores_of_cell["mcc"]
        result = {
            "dataset_revision": small.BENCHMARK.dataset.revision,
            "task_name": task,
            "mteb_version": "2.26.24",
            "scores": {
                "test": [scores_of_cell | {"hf_subset": "default", "languages": ["eng-Latn"]}]
            },
            "evaluation_time": 1.5,
        }
        (folder / f"{task}.json").write_text(json.dumps(result))
    return {task: cell for task, cell in cells.items() if task != "promoter_notata"}


def before_1_11(result: dict[str, Any], *, subsets: bool) -> dict[str, Any]:
    """Return a result as MTEB 1.0 to 1.10 wrote it, its evaluation time beside the scores."""
    (scores,) = result["scores"]["test"]
    scores = {k: v for k, v in scores.items() if k not in {"hf_subset", "languages"}}
    return {
        "dataset_revision": result["dataset_revision"],
        "mteb_dataset_name": result["task_name"],
        "mteb_version": "1.0.2",
        "test": ({"default": scores} if subsets else scores) | {"evaluation_time": 1.5},
    }


@pytest.mark.parametrize("subsets", [True, False])
def test_results_of_mteb_before_version_1_11_are_imported(
    board: Path, capsys: Any, *, subsets: bool
) -> None:
    results_folder = board / "results/my-model"
    cells = results_of_mteb(results_folder)
    (results_folder / "model_meta.json").unlink()
    for path in results_folder.glob("*.json"):
        old = before_1_11(json.loads(path.read_bytes()), subsets=subsets)
        path.write_text(json.dumps(old))
    named = ("--model-id", "x", "--display", "X", "--params", "5", "--output", "old.json")
    assert main(["pack", "results", *named]) == 11
    assert '"promoter_notata.json" cannot be used: scores.test lacks mcc' in capsys.readouterr().err
    assert json.loads((board / "old.json").read_bytes())["results"]["full"] == cells


def test_results_of_mteb_1_12_and_of_part_of_the_tasks_are_imported(
    board: Path, capsys: Any
) -> None:
    """Version 1.12 wrote an emission beside the time, 2 a model whose revision is null."""
    results_folder = board / "results/org__My-Model/no_revision_available"
    cells = results_of_mteb(results_folder)
    path = results_folder / "promoter_tata.json"
    result = json.loads(path.read_bytes()) | {"mteb_version": "1.12.0", "kg_co2_emissions": None}
    path.write_text(json.dumps(result))
    (results_folder / "splice_sites.json").unlink()
    assert main(["pack", "results", "--params", "5", "--output", "part.json"]) == 11
    error_output = capsys.readouterr().err
    assert "full: 2 missing cells: promoter_notata, splice_sites\n" in error_output
    imported = json.loads((board / "part.json").read_bytes())
    assert imported["results"]["full"] == {"promoter_tata": cells["promoter_tata"]}


@pytest.mark.parametrize(
    "location", ["results_2026-11-25T12-00-00.json", "org__m/results_2026.json"]
)
def test_a_result_of_the_lm_evaluation_harness_is_refused_in_a_sentence(
    board: Path, capsys: Any, location: str
) -> None:
    path = board / "lm" / location
    path.parent.mkdir(parents=True)
    result = {
        "results": {"promoter_tata": {"alias": "promoter_tata", "acc,none": 0.5, "mcc,none": 0.1}},
        "configs": {"promoter_tata": {}}, "versions": {"promoter_tata": 1.0}, "config": {},
    }  # fmt: skip
    path.write_text(json.dumps(result))
    named = ("--model-id", "x", "--display", "X", "--params", "5", "--output", "lm.json")
    assert main(["pack", "lm", *named]) == 3
    text = " ".join(capsys.readouterr().err.split())
    assert (
        f'"{path.name}" cannot be used: it is a result of the LM Evaluation Harness, which' in text
    )
    assert not (board / "lm.json").exists()


def test_results_of_several_models_are_refused(board: Path, capsys: Any) -> None:
    for name in ("a", "b"):
        results_of_mteb(board / "results" / name)
        (board / f"results/{name}/model_meta.json").unlink()
    assert main(["pack", "results", "--model-id", "x"]) == 2
    assert (
        'found results of 2 models or revisions, expected one: "a", "b"' in capsys.readouterr().err
    )


def documented() -> list[tuple[str, str]]:
    """Return each command of docs/reader/exports.md and what the page says that it prints."""
    page = (ROOT / "docs/reader/exports.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    command_and_text = [
        part.partition("\n")
        for block in blocks
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)
    ]
    return [(command, text) for command, _, text in command_and_text if command]


def test_the_examples_of_the_page_print_what_it_says(board: Path, capsys: Any) -> None:
    for name in ("m1", "m2"):
        (board / f"submissions/{name}.json").unlink()
    for name in ("baseline", "my-model"):
        (board / f"submissions/{name}.json").write_text(json.dumps(small.small(name)))
        (board / f"submissions/cards/{name}.md").write_text(small.CARD)
    cells = results_of_mteb(board / "results/org__My-Model/0123abcd")
    formats = set()
    for command, message in documented():
        program, *words = shlex.split(command)
        assert program == "geneb-ci"
        formats |= {words[words.index("--format") + 1]} if "--format" in words else set()
        main(words)
        output = capsys.readouterr()
        printed = output.err + output.out
        assert printed == message, command
    assert formats == set(FORMATS)
    imported = json.loads((board / "imported.json").read_bytes())
    assert imported["results"] == {"full": cells, "10shot": {}, "1shot": {}}
    assert imported["meta"]["url"] == "https://example.org/m"
    assert (imported["model_id"], imported["meta"]["params"]) == ("My-Model", 86000000)


@pytest.mark.parametrize(
    ("name", "folder"),
    [("a", "a"), ("data", "data_"), ("CON.x", "CON.x_"), ("lpt1", "lpt1_"), ("a.", "a._")],
)
def test_a_name_becomes_a_folder_that_every_system_takes(name: str, folder: str) -> None:
    assert portable_name(name) == folder


def test_the_citation_file_has_the_form_of_its_format() -> None:
    document = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    path = Path(validated(SITE_PACKAGES), "cffconvert/schemas/1.2.0/schema.json")
    schema = json.loads(path.read_bytes())
    jsonschema.Draft7Validator(schema).validate(document)
    assert (document["title"], document["license"]) == ("geneb-ci", "Apache-2.0")


def test_an_entry_has_the_records_that_its_evidence_rests_on() -> None:
    audit = Audit(
        audit_id="0a1b",
        model_id="a",
        submission_sha256="0" * 64,
        agrees=True,
        drawn=13,
        stratified=True,
        uncompared_regimes=(),
        rerun={},
        sandbox=2,
        all_refused=True,
        harness_unchanged=True,
        versions=Versions("v", "b", "d"),
        date="2026-11-20",
    )
    submission = MODELS["1.0"].model_validate(small.small("a"))
    decision = Decision(TrustLevel.VERIFIED, "", basis=(audit,))
    assert row_of(submission, decision, {}).records == ("0a1b",)


@pytest.mark.nightly
def test_parquet_of_a_build_has_the_scores_of_its_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(PUBLIC)
    out = tmp_path / "board"
    assert main(["build", "--parquet", "--no-cache", "--output", str(out)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "models.parquet and scores.parquet: 41 models" in text
    document = validated(PARQUET, out)
    published = json.loads((out / "leaderboard_tasks.json").read_bytes())["data"]
    expected = {
        (row["model"], regime, task, metric): score
        for regime, rows in published.items()
        for row in rows
        for metric in ("MCC", "Acc", "F1")
        for task, score in row[f"task_{metric}"].items()
    }
    _, scores = document["scores"]
    given_scores = {
        (row["model"], row["regime"], row["task"], metric): row[metric]
        for row in scores
        for metric in ("MCC", "Acc", "F1")
    }
    assert given_scores == expected
    assert len(scores) == 41 * 3 * 100
    _, models = document["models"]
    ids = sorted({row["model"] for rows in published.values() for row in rows}, key=str.lower)
    assert [row["model"] for row in models] == ids
