"""Whatever the board publishes of a row names what attests it, and nothing is shown as more."""

import copy
import csv
import hashlib
import html
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from geneb_ci.audit.compare.embedding_outcome import EmbeddingOutcome
from geneb_ci.audit.sampling.embedding_draw import draw_embeddings
from geneb_ci.audit.trust.attestation import FIELD_GROUPS, SUBMITTERS_WORD, Author, Confirmation
from geneb_ci.board import columns
from geneb_ci.board.page import BASE
from geneb_ci.board.rows import DIAGNOSTICS, LEADERBOARD, TASKS
from geneb_ci.cli.main import main
from geneb_ci.common.benchmark import parse_benchmark
from geneb_ci.receipt.cells import differences_from_claims
from geneb_ci.receipt.draw import EmbeddingCounts
from reference_harness.formats.base import Scores, StrictModel
from reference_harness.formats.receipt_cells import ReceiptCells, TaskCells
from reference_harness.formats.run_record import Canonical, Regime
from reference_harness.formats.submission import SubmissionV12
from tests.audit.recorded import (
    FIRST,
    committed_at,
    outcome_of,
    plan_for,
    put,
    repository,
)
from tests.audit.test_embedding_verify import ROOT as RECEIPT_ROOT
from tests.audit.test_embedding_verify import varied
from tests.board.attested import group_of
from tests.page.boards import name_of, value_in
from tests.rules.deltas import entry_of
from tests.small import BENCHMARK, CARD, small_v12

TIME = ("--time", "2026-11-20T08:30:00Z")
AUDITED, BY_RECEIPT, ALONE = "audited", "by-receipt", "alone"
SIZES = ([180, 320], [250, 250], [150, 150, 200])
_TASKS = [
    replace(task, n_test=500, test_class_counts=sizes)
    for task, sizes in zip(BENCHMARK.tasks, SIZES, strict=True)
]
SIZED = parse_benchmark(
    json.dumps(replace(BENCHMARK, tasks=_TASKS).document()).encode(), "the sized benchmark"
)
MODELS = (AUDITED, BY_RECEIPT, ALONE)
PIN = {
    "name": SIZED.name,
    "sha256": SIZED.sha256,
    "dataset": SIZED.dataset.repo_id,
    "revision": SIZED.dataset.revision,
}


def raw(model: str) -> bytes:
    """Return a submission; the audited one has no canonical scores, as its record has none."""
    document = small_v12(model, SIZED)
    for regime, tasks in document["evidence"].items():
        for task, cell in tasks.items():
            digest = hashlib.sha256(f"{model} {regime} {task}".encode()).hexdigest()
            cell["predictions_sha256"] = digest
            cell["canonical"]["predictions_sha256"] = hashlib.sha256(digest.encode()).hexdigest()
            if model == AUDITED:
                cell["canonical"] = None
    return json.dumps(document).encode()


PLAN = plan_for(raw(AUDITED), model_id=AUDITED, benchmark=PIN, regimes=["full", "10shot"])


def by_receipt(model: str) -> EmbeddingOutcome:
    plan = plan_for(raw(model), model_id=model, benchmark=PIN)
    counts = EmbeddingCounts(test=1500, training=3, support=9, whole=False)
    drawn = draw_embeddings(
        plan.commitment, committed_at(FIRST), plan.beacon, RECEIPT_ROOT, counts, ()
    )
    value = json.loads(varied().model_dump_json())
    (task,) = value["tasks"]
    task["rows"] = {
        "training": "1 4 1",
        "test full": "12 4",
        "test 10shot": "12",
        "test 1shot": "12",
    }
    value["tasks"] = [task | {"task": name} for name in SIZED.task_ids]
    value["receipt"]["tasks"] = len(SIZED.task_ids)
    value["plan"] = json.loads(drawn.model_dump_json())
    value["benchmark_sha256"] = SIZED.sha256
    return EmbeddingOutcome.model_validate_json(json.dumps(value))


@pytest.fixture(scope="module")
def repository_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with an audited row, one audited by receipt and one that nobody audited."""
    root = repository(tmp_path_factory.mktemp("attested"), raw(AUDITED))
    (root / "submissions/model.json").unlink()
    (root / "schemas/benchmark.json").write_bytes(json.dumps(SIZED.document()).encode())
    policy = root / "leaderboard/policy/policy.toml"
    policy.write_text(policy.read_text().replace(', "1shot"', ""))
    (root / "leaderboard/policy/models").mkdir()
    known = {"architecture": "T-enc", "params": 86_000_001}
    (root / f"leaderboard/policy/models/{ALONE}.toml").write_bytes(entry_of(known))
    (root / "submissions/cards").mkdir()
    for model in MODELS:
        (root / f"submissions/{model}.json").write_bytes(raw(model))
        (root / f"submissions/cards/{model}.md").write_text(CARD)
    put(root, outcome_of(PLAN, raw(AUDITED), benchmark=SIZED))
    put(root, by_receipt(BY_RECEIPT))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        assert main(["build", "--output", "board"]) == 0
        for kind in ("csv", "eval-results", "every-eval-ever"):
            assert main(["export", "--format", kind, "--output", kind, *TIME]) == 0
    return root


def published(folder: Path) -> dict[str, Any]:
    """Return what is published of rows, by the names that the table has for it."""
    board = folder / "board"
    documents_by_name: dict[str, Any] = {
        name: json.loads((board / name).read_bytes()) for name in (LEADERBOARD, TASKS, DIAGNOSTICS)
    }
    page = value_in((board / name_of(BASE, board)).read_bytes())
    for part in ("scores-0", "tasks-0", "matrices", "history"):
        found_part = value_in((board / name_of(part, board)).read_bytes())
        page[part.removesuffix("-0")] = found_part
    heads = {
        path.name: dict.fromkeys(next(csv.reader(io.StringIO(path.read_text("utf-8")))), "")
        for path in (folder / "csv").glob("*.csv")
    }
    return documents_by_name | {"page": page} | heads


def leaves(value: Any, path: str) -> Iterator[str]:
    """Yield the path of each value that has no parts."""
    parts: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    has_parts = False
    for name, part in parts:
        has_parts = True
        # A name with a slash in it is one name.
        yield from leaves(part, f"{path}/{str(name).replace('/', '|')}")
    if not has_parts:
        yield path


def unattested(files: Mapping[str, Any]) -> list[str]:
    """Return the fields that are in no group."""
    return [
        path
        for name, value in files.items()
        for path in leaves(value, name)
        if group_of(path) is None
    ]


def test_every_published_field_names_what_attests_it(repository_folder: Path) -> None:
    assert unattested(published(repository_folder)) == [], (
        "name them in geneb_ci/audit/trust/attestation.py"
    )


def test_every_number_of_a_submission_that_is_exported_names_what_attests_it() -> None:
    document = small_v12("any", SIZED)
    arguments = {key: document[key] for key in ("results", "evidence", "run")}
    assert unattested({"submission": arguments}) == []


def test_every_group_is_published(repository_folder: Path) -> None:
    files = published(repository_folder) | {"submission": small_v12("any", SIZED)}
    paths = [path for name, value in files.items() for path in leaves(value, name)]
    assert {group_of(path) for path in paths} - {None} == set(FIELD_GROUPS)


@pytest.mark.parametrize(
    ("file", "where", "name"),
    [
        (LEADERBOARD, ("data", "full", 0), "novel"),
        (LEADERBOARD, ("data", "1shot", 2), "macro_AUC"),
        (LEADERBOARD, ("data", "full", 1, "audit"), "novel"),
        (LEADERBOARD, ("data", "full", 1, "attested", 0), "novel"),
        (TASKS, ("data", "10shot", 0), "task_AUC"),
        (DIAGNOSTICS, ("ranks", "full", "macro", ALONE), "novel"),
        (DIAGNOSTICS, ("models", 0), "novel"),
        (DIAGNOSTICS, (), "novel"),
        ("page", ("models", 0), "novel"),
        ("page", (), "novel"),
        ("scores.csv", (), "AUC"),
        ("models.csv", (), "novel"),
    ],
)
def test_a_field_that_is_added_is_found(
    repository_folder: Path, file: str, where: tuple[str | int, ...], name: str
) -> None:
    files = published(repository_folder)
    own = files[file]
    for key in where:
        own = own[key]
    own[name] = 1.0
    assert unattested(files) == ["/".join(map(str, (file, *where, name)))]


def test_no_board_is_built_with_a_column_that_nobody_stands_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    novel = replace(columns.COLUMNS[0], key="novel")
    monkeypatch.setattr(columns, "COLUMNS", (*columns.COLUMNS, novel))
    with pytest.raises(KeyError, match="novel"):
        columns.page_columns()


def test_what_a_group_is_computed_from_are_groups() -> None:
    names = [group.name for group in FIELD_GROUPS]
    assert len(set(names)) == len(names)
    for group in FIELD_GROUPS:
        assert set(group.basis) <= set(names) - {group.name}
        # Only a claim can be compared with a computation, and only a computation has a basis.
        assert not group.confirmations or group.author is Author.SUBMITTER
        assert not group.basis or group.author is Author.BOARD


def test_a_score_is_audited_where_its_task_was_rerun_and_nowhere_else(
    repository_folder: Path,
) -> None:
    with (repository_folder / "csv/scores.csv").open(newline="", encoding="utf-8") as file:
        standing = {
            (r["model"], r["regime"], r["task"]): r["attested"] for r in csv.DictReader(file)
        }
    drawn = set(PLAN.drawn)
    assert len(drawn) == 2
    assert standing == {
        (model, regime, task): "submitted"
        if model != AUDITED or regime == "1shot"
        else ("rerun" if task in drawn else "sampled")
        for model in MODELS
        for regime in SIZED.regimes
        for task in SIZED.task_ids
    }


RERUN = "rerun by a maintainer (2 of 3 tasks; full, 10shot), equal within the tolerance"
SAMPLE = "not rerun; a random sample of the tasks was, and agrees"
OF_AUDITED = [
    {"fields": "scores of rerun tasks", "by": RERUN},
    {"fields": "scores of the other tasks in full, 10shot", "by": SAMPLE},
    {"fields": "scores in 1shot", "by": SUBMITTERS_WORD},
]
OF_RECEIPT = [
    {"fields": "scores of tasks", "by": SUBMITTERS_WORD},
    {"fields": "canonical scores", "by": "recomputed from published embeddings (3 of 3 cells)"},
]


def test_a_row_says_who_stands_for_its_scores(repository_folder: Path) -> None:
    board = published(repository_folder)
    for rows in board[LEADERBOARD]["data"].values():
        attested = {row["model"]: row.get("attested") for row in rows}
        assert attested == {AUDITED: OF_AUDITED, BY_RECEIPT: OF_RECEIPT, ALONE: None}
        unaudited = {row["model"]: row.get("audit", {}).get("unaudited") for row in rows}
        assert unaudited == {AUDITED: ["1shot"], BY_RECEIPT: None, ALONE: None}
    sources = {column["key"]: column["source"] for column in board["page"]["columns"]}
    assert {key: sources[key] for key in ("params", "licence", "evidence", "defects")} == {
        "params": "as submitted",
        "licence": "model registry",
        "evidence": "computed from evidence",
        "defects": "noted by maintainers",
    }


def test_label_says_of_each_group_who_stands_for_it(
    repository_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository_folder)
    assert main(["trust", "--format", "json"]) == 0
    rows = {row["model_id"]: row["attested"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows[AUDITED][:3] == OF_AUDITED
    authors_by_model = {
        model: {own["fields"]: own["by"] for own in row} for model, row in rows.items()
    }
    names = {group.name for group in FIELD_GROUPS}
    assert set(authors_by_model[ALONE]) == set(authors_by_model[BY_RECEIPT]) == names
    for fields in (
        "scores by seed",
        "name and size",
        "confusion matrices and digests of predictions",
    ):
        assert {own[fields] for own in authors_by_model.values()} == {SUBMITTERS_WORD}
    assert (
        authors_by_model[ALONE]["scores of tasks"]
        == authors_by_model[BY_RECEIPT]["scores of tasks"]
        == SUBMITTERS_WORD
    )
    assert authors_by_model[BY_RECEIPT]["canonical scores"] == OF_RECEIPT[1]["by"]
    assert authors_by_model[ALONE]["canonical scores"] == SUBMITTERS_WORD
    assert authors_by_model[AUDITED]["means"] == "computed by the board from scores of tasks"


def test_pages_do_not_show_a_row_as_audited_where_it_is_not(repository_folder: Path) -> None:
    pages = {
        name: html.unescape((repository_folder / "board" / name).read_text("utf-8"))
        for name in ("scores/full-MCC.html", "scores/1shot-MCC.html", f"models/{AUDITED}.html")
    }
    assert "<td>audited</td>" in pages["scores/full-MCC.html"]
    assert "<td>checked here, audited in other regimes</td>" in pages["scores/1shot-MCC.html"]
    assert "<td>audited</td>" not in pages["scores/1shot-MCC.html"]
    own = pages[f"models/{AUDITED}.html"]
    assert "rerun 2 of 3 tasks, none in 1shot, sandbox level 2" in own
    for statement in OF_AUDITED:
        assert f"{statement['fields']}: {statement['by']}" in own
    badges = {
        model: (repository_folder / f"board/badges/{model}.svg").read_text("utf-8")
        for model in MODELS
    }
    assert "<title>GENEB-small: audited 2/3 \u00b7 rank " in badges[AUDITED]
    assert "<title>GENEB-small: checked \u00b7 rank " in badges[BY_RECEIPT]


def test_exports_link_a_record_only_with_what_it_is_about(repository_folder: Path) -> None:
    folder = repository_folder / "eval-results" / AUDITED / ".eval_results"
    cells = yaml.safe_load((folder / "geneb-tasks.yaml").read_text("utf-8"))
    means = yaml.safe_load((folder / "geneb.yaml").read_text("utf-8"))
    notes = {own["dataset"]["task_id"]: own["notes"] for own in [*cells, *means]}
    (other,) = set(SIZED.task_ids) - set(PLAN.drawn)
    assert "; attested: rerun, equal within the tolerance; " in notes[f"{PLAN.drawn[0]}.full.MCC"]
    assert f"; attested: {SAMPLE}; " in notes[f"{other}.full.MCC"]
    assert notes[f"{other}.1shot.MCC"].endswith(f"; attested: {SUBMITTERS_WORD}")
    assert (
        "; attested: computed by the board from 3 scores, of which 2 were rerun; "
        in (notes["macro.10shot.MCC"])
    )
    assert notes["micro.1shot.F1"].endswith("from 3 scores, of which 0 were rerun")
    linked = {name for name, text in notes.items() if "audit records: " in text}
    assert linked == {name for name in notes if ".1shot." not in name}


def test_a_log_says_of_each_score_who_stands_for_it(repository_folder: Path) -> None:
    logs = [
        json.loads(path.read_bytes())
        for path in (repository_folder / "every-eval-ever").rglob("*.json")
    ]
    own = {log["model_info"]["additional_details"]["model_id"]: log for log in logs}
    details = {
        result["evaluation_result_id"]: result["score_details"]["details"]["attested"]
        for result in own[AUDITED]["evaluation_results"]
    }
    assert details[f"{PLAN.drawn[1]}/10shot/F1"] == "rerun, equal within the tolerance"
    assert details[f"{PLAN.drawn[1]}/1shot/F1"] == SUBMITTERS_WORD
    document = json.loads(own[AUDITED]["source_metadata"]["additional_details"]["attested"])
    assert {"fields": "scores by seed", "by": SUBMITTERS_WORD} in document


def submission_paths() -> Iterator[str]:
    """Yield one field of each group of the cells of a submission."""
    document = small_v12("any", SIZED)
    seen: set[str] = set()
    claims = {key: document[key] for key in ("results", "evidence")}
    for path in leaves(claims, "submission"):
        group = group_of(path)
        if group is not None and group.name not in seen and group.author is Author.SUBMITTER:
            seen.add(group.name)
            yield path


@pytest.mark.parametrize("scorer", [None, "5c" * 32])
@pytest.mark.parametrize("path", list(submission_paths()))
def test_an_audit_by_receipt_compares_what_the_table_says(path: str, scorer: str | None) -> None:
    """A field that is altered differs from what the receipt gives, or is never looked at.

    Shown scores are compared where the run names the scorer of record, as does who recomputes.
    """
    document = small_v12("any", SIZED)
    reference: dict[str, Any] = {
        "digest": scorer,
        "kernel": "Haswell",
        "threads": 1,
        "packages": {},
    }
    document["run"]["scorer"] = reference | {"openblas": {}}
    honest, altered = (SubmissionV12.model_validate(altered_at(document, by)) for by in ("", path))
    tasks = {
        task: constructed(
            TaskCells,
            regimes={regime: canonical_of(honest, regime, task) for regime in SIZED.regimes},
            record={regime: record_of(honest, regime, task) for regime in SIZED.regimes},
        )
        for task in SIZED.task_ids
    }
    cells = constructed(ReceiptCells, tasks=tasks, scorer=honest.run.scorer)
    assert differences_from_claims(honest, cells) == []
    group = group_of(path)
    assert group is not None
    checks = {Confirmation.RECEIPT} | ({Confirmation.RECORD} if scorer else set())
    assert bool(differences_from_claims(altered, cells)) == bool(checks & set(group.confirmations))


def record_of(submission: SubmissionV12, regime: str, task: str) -> Any:
    """Return what the scorer of record gives for a receipt whose claims are right."""
    evidence = submission.evidence[regime][task]
    names = ("per_seed", "classes", "confusion", "predictions_sha256")
    parts = {name: getattr(evidence, name) for name in names}
    return constructed(Regime, scores=submission.results[regime][task], **parts)


def constructed(kind: type[StrictModel], **parts: Any) -> Any:
    """Return a value of which the comparison needs some parts alone."""
    return kind.model_construct(**parts)


def canonical_of(submission: SubmissionV12, regime: str, task: str) -> Any:
    """Return what the harness gives for a receipt whose claims are right."""
    claim = submission.evidence[regime][task].canonical
    assert claim is not None
    return constructed(
        Canonical,
        scores=Scores(MCC=claim.MCC, Acc=claim.Acc, F1=claim.F1),
        confusion=claim.confusion,
        predictions_sha256=claim.predictions_sha256,
    )


def altered_at(document: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return a document with another value at a path below "submission"; unchanged for ""."""
    changed: dict[str, Any] = copy.deepcopy(dict(document))
    if path:
        *parts, last = path.split("/")[1:]
        own: Any = changed
        for part in parts:
            own = own[int(part) if isinstance(own, list) else part]
        key: Any = int(last) if isinstance(own, list) else last
        value = own[key]
        own[key] = (
            "f" * len(value) if isinstance(value, str) else value + (1 if value == 0 else -value)
        )
    return changed
