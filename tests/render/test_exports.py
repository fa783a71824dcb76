"""What `geneb-ci export` writes, read back with programs of others, and what it refuses."""

import csv
import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.audit.trust.attestation import RowAttestation
from geneb_ci.board.columns import Row
from geneb_ci.board.page import write_page
from geneb_ci.board.rows import leaderboards
from geneb_ci.board.site.inputs import Site, SourceCommit, site_of
from geneb_ci.board.tables import FORMULA_GUARD, FORMULA_START, DescribedTable, TableColumn
from geneb_ci.common import parquet
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import Layout, LayoutKind
from geneb_ci.common.types import Evidence
from geneb_ci.render.export_entries import eval_results, every_eval_ever
from geneb_ci.render.export_tables import (
    croissant_files,
    csv_bytes,
    csv_files,
    exported_tables,
    parquet_files,
)
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import MODELS
from tests import small
from tests.board.board import entry as board_entry
from tests.paths import SUBMISSIONS
from tests.render.exported import PARQUET, WHEN, unmarked, validated

REPOSITORY = "https://github.com/owner/board"
HOSTILE = "=1+1\n- verifyToken: x\r\t#,;\"'{{%\u2028é\x85</script>"


def read(document: dict[str, Any], **more: Any) -> Row:
    submission = MODELS[document["schema_version"]].model_validate(document)
    return replace(board_entry(submission, registry={}), **more)


def site(entries: list[Row], benchmark: Benchmark = small.BENCHMARK, **more: Any) -> Site:
    layout = Layout(LayoutKind.GENEB_CI, Path("/nowhere"), **more)
    return site_of(entries, {}, benchmark, layout, SourceCommit("c" * 40, WHEN))


@pytest.fixture(scope="module")
def public() -> Site:
    documents = [json.loads(path.read_bytes()) for path in sorted(SUBMISSIONS.glob("*.json"))]
    return site([read(document) for document in documents], shipped_benchmark())


@pytest.fixture(scope="module")
def narrow(public: Site) -> Site:
    """Return all public rows with one task of each category: a seventh of the cells."""
    whole = public.benchmark
    first = {tasks[0] for tasks in whole.categories.values()}
    benchmark = replace(whole, tasks=[task for task in whole.tasks if task.id in first])
    results_of_rows = [
        {
            regime: {task: cells[task] for task in benchmark.task_ids}
            for regime, cells in entry.submission.results.items()
        }
        for entry in public.rows
    ]
    entries = [
        replace(entry, submission=entry.submission.model_copy(update={"results": results}))
        for entry, results in zip(public.rows, results_of_rows, strict=True)
    ]
    return site(entries, benchmark)


def three(**more: Any) -> list[Row]:
    """Return a row of each format, with hostile texts, one of which rests on an audit record."""
    v10, v11, v12 = small.small("a"), small.small_v11("b"), small.small_v12("c")
    v10["meta"] |= {"url": "", "display": "@SUM(A1)", "training_data": HOSTILE}
    v10["harness_version"] = HOSTILE
    v11["gaps"] = {"1shot": {"splice_sites": HOSTILE}}
    for part in ("results", "evidence"):
        del v11[part]["1shot"]["splice_sites"]
    v11["run"]["hardware"]["name"] = HOSTILE
    regimes = small.BENCHMARK.regimes
    rerun = dict.fromkeys(regimes, frozenset(small.BENCHMARK.task_ids))
    attestation = RowAttestation(Evidence.AUDITED, rerun, tuple(regimes))
    return [read(v10), read(v11), read(v12, records=("0a1b",), attestation=attestation, **more)]


@pytest.fixture
def audited(tmp_path: Path) -> Site:
    """Lay a repository whose row `c` has an audit record, with an address."""
    record = tmp_path / "audits/c/0a1b.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}", encoding="utf-8")
    layout = Layout(
        LayoutKind.GENEB_CI, tmp_path, audits=record.parent.parent, repository=REPOSITORY
    )
    return site_of(three(), {}, small.BENCHMARK, layout, SourceCommit("c" * 40, WHEN))


LINK = f"{REPOSITORY}/blob/{'c' * 40}/audits/c/0a1b.json"


def scores_of(made: Site) -> dict[tuple[str, ...], float]:
    """Return every score that was submitted, by model, regime, task and metric."""
    return {
        (entry.submission.model_id, regime, task, metric): float(getattr(scores, metric))
        for entry in made.rows
        for regime, cells in entry.submission.results.items()
        for task, scores in cells.items()
        for metric in made.benchmark.metrics
    }


def csv_scores(files: dict[str, bytes]) -> dict[tuple[str, ...], float]:
    return {
        (line["model"], line["regime"], line["task"], metric): float(line[metric])
        for line in unmarked(files["scores.csv"])
        for metric in small.METRICS
    }


def test_csv_gives_every_score_and_text_of_the_public_rows_back(narrow: Site) -> None:
    files = dict(csv_files(narrow))
    assert csv_scores(files) == scores_of(narrow)
    line_by_model = {line["model"]: line for line in unmarked(files["models.csv"])}
    assert len(line_by_model) == len(narrow.rows)
    for entry in narrow.rows:
        submission, line = entry.submission, line_by_model[entry.submission.model_id]
        meta = submission.meta.model_dump() | {"format": "1.0"}
        texts = {name: str(meta[name]) for name in meta if name != "zero_shot"}
        assert {name: line[name] for name in texts} == texts
        assert line["zero_shot"] == str(submission.meta.zero_shot).lower()


def test_csv_has_seeds_records_and_hostile_texts(audited: Site) -> None:
    files = dict(csv_files(audited))
    assert csv_scores(files) == scores_of(audited)
    first, second, third = unmarked(files["models.csv"])
    assert (first["display"], first["training_data"]) == ("@SUM(A1)", HOSTILE)
    assert [record_set["records"] for record_set in (first, second, third)] == ["", "", LINK]
    cells = csv.reader(io.StringIO(files["models.csv"].decode(), newline=""))
    assert not [
        cell_text
        for line in cells
        for cell_text in line
        if FORMULA_START.match(cell_text) and cell_text[0] != FORMULA_GUARD
    ]
    seeds = unmarked(files["scores.csv"])[-1]["MCC_per_seed"]
    assert json.loads(seeds) == list(third_evidence(audited).per_seed.MCC)


def test_every_value_stands_in_one_long_table_with_the_digits_of_its_error(narrow: Site) -> None:
    files = dict(csv_files(narrow))
    lines = [*csv.DictReader(io.StringIO(files["values.csv"].decode(), newline=""))]
    exact = scores_of(narrow)
    keys = [tuple(line[key] for key in ("model", "regime", "task", "metric")) for line in lines]
    assert set(keys) == set(exact)
    assert len(keys) == len(exact)
    digits = {len(line["value"].partition(".")[2]) for line in lines if line["standard_error"]}
    assert max(digits) <= 5
    for key, line in zip(keys, lines, strict=True):
        known = line["standard_error"] != ""
        assert known is (key[-1] == "MCC")
        # Half of the last digit: of two digits of the error, or the sixth decimal.
        most = float(line["standard_error"]) / 18 if known else 0.51e-6
        assert abs(float(line["value"]) - exact[key]) <= most
    evidence_by_model = {entry.submission.model_id: str(entry.evidence) for entry in narrow.rows}
    assert {line["model"]: line["evidence"] for line in lines} == evidence_by_model
    book = json.loads(files["codebook.json"])
    for name, table in book.items():
        header = next(csv.reader(io.StringIO(files[f"{name}.csv"].decode(), newline="")))
        assert [column["name"] for column in table["columns"]] == header
        assert all(column["about"] for column in table["columns"])


def third_evidence(made: Site) -> Any:
    return made.rows[2].submission.evidence["1shot"]["splice_sites"]  # type: ignore[attr-defined]


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_no_text_becomes_a_formula_and_each_comes_back(texts: list[str]) -> None:
    columns = tuple(TableColumn(f"c{n}", "text", "") for n in range(len(texts)))
    content = csv_bytes(DescribedTable("t", "", columns, lambda: [tuple(texts)])).decode()
    (_, line) = csv.reader(io.StringIO(content, newline=""))
    assert [
        cell_text
        for cell_text in line
        if cell_text[:1] in set("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
    ] == []
    assert [
        cell_text[1:] if cell_text.startswith(FORMULA_GUARD) else cell_text for cell_text in line
    ] == texts


def values_of(content: bytes) -> dict[str, float]:
    eval_result_entries = parse_eval_result_entries(yaml.load(content, yaml.CSafeLoader))
    assert len({eval_result_entry.task_id for eval_result_entry in eval_result_entries}) == len(
        eval_result_entries
    )
    return {
        eval_result_entry.task_id: eval_result_entry.value
        for eval_result_entry in eval_result_entries
    }


def test_eval_results_give_every_score_and_mean_of_the_public_rows_back(narrow: Site) -> None:
    files = dict(eval_results(narrow, {}))
    assert len(files) == 2 * len(narrow.rows)
    back = {
        (name.partition("/")[0], *(regime, task, metric)): value
        for name, content in files.items()
        if name.endswith("-tasks.yaml")
        for task_id, value in values_of(content).items()
        for task, regime, metric in [task_id.rsplit(".", 2)]
    }
    assert back == scores_of(narrow)
    for regime, rows in leaderboards(narrow.rows, narrow.benchmark)[0]["data"].items():
        for row in rows[:3]:
            means = values_of(files[f"{row['model']}/.eval_results/geneb.yaml"])
            assert means[f"macro.{regime}.MCC"] == row["macro_MCC"]
            assert means[f"micro.{regime}.F1"] == row["micro_F1"]


def test_eval_results_have_only_tokens_that_were_given_and_link_the_record(audited: Site) -> None:
    files = dict(eval_results(audited, {"b": "tok.en"}))
    for name, content in files.items():
        for entry in parse_eval_result_entries(yaml.load(content, yaml.CSafeLoader)):
            assert entry.verify_token == ("tok.en" if name.startswith("b/") else None)
            assert entry.dataset_revision == small.BENCHMARK.dataset.revision
            assert entry.source_url == (LINK if name.startswith("c/") else None)
            assert entry.date == (None if name.startswith("a/") else "2026-11-20T09:30:00Z")
            assert (HOSTILE in str(entry.notes)) is name.startswith("a/")
    assert not {"macro.1shot.MCC"} & {*values_of(files["b/.eval_results/geneb.yaml"])}
    unlinked = dict(
        eval_results(replace(audited, layout=replace(audited.layout, repository="")), {})
    )
    assert "audit records: audits/c/0a1b.json" in unlinked["c/.eval_results/geneb.yaml"].decode()


def document_of(log: dict[str, Any]) -> dict[str, Any]:
    """Return the submission that a log of Every Eval Ever was made from."""
    source, model = (log[k]["additional_details"] for k in ("source_metadata", "model_info"))
    submission: dict[str, Any] = {
        "schema_version": source["submission_format"],
        "model_id": model["model_id"],
        "harness_version": log["eval_library"]["version"],
        "meta": {
            "display": log["model_info"]["name"],
            "params": int(model["params"]),
            "url": model["url"],
            "zero_shot": model["zero_shot"] == "true",
            "training_data": model["training_data"],
            "provenance": source["provenance"],
            "submitted_by": source["submitted_by"],
        },
        "results": {},
    }
    run = log["eval_library"]["additional_details"].get("run")
    if run is not None:
        submission |= {"run": json.loads(run), "gaps": json.loads(source.get("gaps", "{}"))}
        submission |= {"evidence": {}}
    for evaluation_result in log["evaluation_results"]:
        task, regime, metric = evaluation_result["evaluation_result_id"].split("/")
        cell = submission["results"].setdefault(regime, {}).setdefault(task, {})
        cell[metric] = evaluation_result["score_details"]["score"]
        details = evaluation_result["score_details"].get("details", {})
        if "per_seed" in details:
            cell_members = submission["evidence"].setdefault(regime, {}).setdefault(task, {})
            cell_members |= json.loads(details.get("cell", "{}"))
            cell_members.setdefault("per_seed", {})[metric] = json.loads(details["per_seed"])
    return submission


EEE = """
import json, os, pathlib, sys
from every_eval_ever.validator.validation_core import validate_aggregate
from every_eval_ever.schemas import __file__ as schemas
os.chdir(sys.argv[1])
found = {}
for path in sorted(pathlib.Path("data").rglob("*.json")):
    one = validate_aggregate(path, repo_path=path.as_posix(), run_semantic_checks=True)
    found[path.as_posix()] = [one.valid, one.errors, one.warnings]
print(json.dumps([str(pathlib.Path(schemas).parent / "eval.schema.json"), found], default=str))
"""


def test_logs_of_every_eval_ever_are_valid_and_lose_nothing(
    narrow: Site, audited: Site, tmp_path: Path
) -> None:
    files = dict(every_eval_ever(audited)) | dict(every_eval_ever(narrow))
    logs = {name: json.loads(content) for name, content in files.items()}
    sources = {e.submission.model_id: e.submission for e in (*narrow.rows, *audited.rows)}
    assert len(files) == len(narrow.rows) + len(audited.rows) == len(sources)
    for log in logs.values():
        back = document_of(log)
        source = sources[back["model_id"]]
        assert MODELS[back["schema_version"]].model_validate(back) == source
    linked = [
        log
        for log in logs.values()
        if "audit_records" in log["source_metadata"]["additional_details"]
    ]
    assert [
        linked_record["source_metadata"]["source_organization_url"] for linked_record in linked
    ] == [LINK]

    write_page(tmp_path / "out", files)
    schema, reports = validated(EEE, tmp_path / "out")
    assert reports == {name: [True, [], []] for name in files}
    checker = jsonschema.Draft7Validator(json.loads(Path(schema).read_bytes()))
    for log in logs.values():
        if log["model_info"]["additional_details"]["model_id"] in {"a", "b", "c"}:
            assert [error.message for error in checker.iter_errors(log)] == []


CROISSANT = """
import json, logging, sys
import mlcroissant
said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
logging.getLogger("absl").addHandler(handler)
board = mlcroissant.Dataset(jsonld=sys.argv[1] + "/croissant.json")
def read(data, name):
    plain = lambda value: value.decode() if isinstance(value, bytes) else value
    return [{key: plain(value) for key, value in row.items()} for row in data.records(name)]
models, scores = read(board, "models"), read(board, "scores")
files = {"tasks/splice_sites/train.csv": sys.argv[2]}
tasks = mlcroissant.Dataset(jsonld=sys.argv[1] + "/tasks-croissant.json", mapping=files)
rows = read(tasks, "splice_sites/train")
issues = [str(one.metadata.ctx.issues.report()) for one in (board, tasks)]
print(json.dumps([said, issues, models, scores, rows]))
"""


def test_croissant_describes_tables_and_task_data_so_that_they_can_be_read(
    audited: Site, tmp_path: Path
) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    names = [f"tasks/splice_sites/{split}.csv" for split in ("train", "test")]
    content = b"text,label\nACGT,0\nTTTT,1\n"
    write_page(data, dict.fromkeys(names, content))
    pinned = small.BENCHMARK.dataset
    facts = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    manifest = {
        "schema_version": "1.0",
        "repo_id": pinned.repo_id,
        "revision": pinned.revision,
        "files": dict.fromkeys(names, facts),
        "tasks": {},
    }
    (data / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    plain = replace(audited, rows=audited.rows[2:])
    write_page(out, dict(croissant_files(plain, data)))
    message, issues, models, scores, rows = validated(CROISSANT, out, data / names[0])
    lacking = 'GENEB-small tasks)] Property "https://schema.org/license" is recommended'
    assert (len(message), issues[0], issues[1].count("  -  "), lacking in issues[1]) == (
        1,
        "",
        1,
        True,
    )
    assert [model["models/records"] for model in models] == [LINK]
    assert {
        ("c", score["scores/regime"], score["scores/task"], metric): score[f"scores/{metric}"]
        for score in scores
        for metric in small.METRICS
    } == scores_of(plain)
    assert rows == [
        {"splice_sites/train/text": "ACGT", "splice_sites/train/label": 0},
        {"splice_sites/train/text": "TTTT", "splice_sites/train/label": 1},
    ]
    described = json.loads((out / "tasks-croissant.json").read_bytes())
    assert [distribution["contentUrl"] for distribution in described["distribution"]] == [
        f"https://huggingface.co/datasets/{pinned.repo_id}/resolve/{pinned.revision}/{name}"
        for name in sorted(names)
    ]


@pytest.mark.parametrize(
    "group_rows", [pytest.param(parquet.GROUP_ROWS_MAX, marks=pytest.mark.nightly), 7]
)
def test_parquet_gives_every_row_back_and_the_same_bytes_again(
    audited: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group_rows: int
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS_MAX", group_rows)
    files = dict(parquet_files(audited))
    assert files == dict(parquet_files(audited))
    write_page(tmp_path / "out", files)
    document = validated(PARQUET, tmp_path / "out")
    for table in exported_tables(audited):
        types, rows = document[table.name]
        names = {"text": "string", "number": "double", "count": "int64", "flag": "bool"}
        names["numbers"] = "list<element: double>"
        assert types == {column.name: names[column.type] for column in table.columns}
        assert [list(row.values()) for row in rows] == [*map(list, table.rows())]


def test_the_order_of_rows_changes_no_byte(audited: Site) -> None:
    turned = site_of(
        list(reversed(audited.rows)), {}, audited.benchmark, audited.layout, audited.built
    )
    for made in (csv_files, every_eval_ever, lambda s: croissant_files(s, None)):
        assert list(made(turned)) == list(made(audited))
    assert list(eval_results(turned, {})) == list(eval_results(audited, {}))
