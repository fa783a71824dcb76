"""The columns of the board: what follows from the one list, and what is promised of the files.

`pytest tests/board/test_columns.py --update-golden` writes golden/columns.json and
golden/board.sha256 anew: read the difference.
"""

import dataclasses
import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from geneb_ci.audit.trust.level import AuditSummary
from geneb_ci.board.board import board_of, checked_rows
from geneb_ci.board.columns import (
    COLUMNS,
    PUBLISHED_COLUMNS,
    Column,
    ValueKind,
    facts_of,
    page_columns,
)
from geneb_ci.board.diff import COMPARED_FACTS, BoardSide, board_diff
from geneb_ci.board.rows import board_file_bytes, leaderboards
from geneb_ci.check.runner import files_of
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import find_layout
from geneb_ci.common.types import TrustLevel
from geneb_ci.models.tasks import task_notes
from reference_harness.formats.submission import SubmissionV11, SubmissionV12
from tests.board.board import entries, entry
from tests.each import each
from tests.paths import ROOT
from tests.rules.deltas import entry_of
from tests.small import BENCHMARK_FILE, CARD, small, small_v11, small_v12

GOLDEN = Path(__file__).with_name("golden")
SCHEMA = json.loads((ROOT / "schemas/leaderboard.schema.json").read_bytes())
ROW = SCHEMA["$defs"]["CategoryRow"]
AUDIT = AuditSummary(tasks=13, of=100, date="2026-11-20", sandbox=2, agrees=True)
SCORES = re.compile(r"_(MCC|Acc|F1)$")
# What readers of the files rely on: no release takes one of these away or changes its type.
PROMISED = {
    "model": "string",
    "disp": "string",
    "params": "integer",
    "official": "boolean",
    "zero_shot": "boolean",
    "submitted": "string",
    **{f"{mean}_{m}": "number" for m in ("MCC", "Acc", "F1") for mean in ("micro", "macro")},
    **{f"cat_{m}": "object" for m in ("MCC", "Acc", "F1")},
}


def row(**changes: Any) -> dict[str, Any]:
    """Return the row of GROVER in leaderboard.json, audited, with other values of some keys."""
    own = next(item for item in entries() if item.submission.model_id == "GROVER")
    made = leaderboards([entry(own.submission, TrustLevel.VERIFIED, AUDIT)], shipped_benchmark())
    result: dict[str, Any] = made[0]["data"]["full"][0]
    return result | changes


def test_a_run_is_shown_where_a_format_records_it():
    document = small_v11("fast")
    document["run"] |= {
        "hardware": {"device": "cuda", "name": "NVIDIA H100"},
        "started_at": "2026-11-20T08:30:00Z",
        "finished_at": "2026-11-20T11:35:40.5Z",
    }
    (column,) = (column for column in COLUMNS if column.key == "run")
    fast = entry(SubmissionV11.model_validate(document))
    assert column.value(fast) == "NVIDIA H100 (cuda), 3 h 6 min from start to end"
    plain = next(item for item in entries() if item.submission.schema_version == "1.0")
    assert column.value(plain) is None


def test_what_embedding_took_is_shown_where_the_run_measured_it():
    document = small_v12("fast")
    measured = {"letters": 9_000_001, "seconds": 4.0, "peak_memory_bytes": 3_210_000_000}
    document["run"]["embedding_cost"] = measured
    keys = ("letters_a_second", "peak_memory")
    columns = [column for column in COLUMNS if column.key in keys]
    fast = entry(SubmissionV12.model_validate(document))
    assert facts_of(fast, columns) == {keys[0]: 2_250_000, keys[1]: 3_210_000_000}
    document["run"]["embedding_cost"]["peak_memory_bytes"] = None
    assert facts_of(entry(SubmissionV12.model_validate(document)), columns) == {keys[0]: 2_250_000}
    document["run"]["embedding_cost"] = None
    assert facts_of(entry(SubmissionV12.model_validate(document)), columns) == {}
    assert facts_of(entries()[0], columns) == {}


def test_all_that_the_columns_say_of_one_model(update_golden):
    """Its row, its record on the page, and what the page knows of every column."""
    own = next(item for item in entries() if item.submission.model_id == "GROVER")
    audited = entry(own.submission, TrustLevel.VERIFIED, AUDIT)
    values_by_output = {
        "leaderboard.json": {key: value for key, value in row().items() if not SCORES.search(key)},
        "page": facts_of(audited, COLUMNS),
        "columns": page_columns(),
    }
    text = json.dumps(values_by_output, indent=1, ensure_ascii=False) + "\n"
    path = GOLDEN / "columns.json"
    if update_golden:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_bytes_of_the_public_board(update_golden):
    """What any Python from 3.11 to 3.13 must give for the 41 public submissions."""
    values = zip(
        ("leaderboard.json", "leaderboard_tasks.json"),
        leaderboards(entries(), shipped_benchmark(), task_notes(find_layout(ROOT))),
        strict=True,
    )
    lines = [
        f"{hashlib.sha256(board_file_bytes(name, value)).hexdigest()}  {name}\n"
        for name, value in values
    ]
    path = GOLDEN / "board.sha256"
    if update_golden:
        path.write_text("".join(lines), encoding="utf-8")
    assert "".join(lines) == path.read_text(encoding="utf-8")


def test_the_schema_has_the_columns_in_the_order_of_the_rows():
    facts = [key for key in ROW["properties"] if not SCORES.search(key)]
    assert facts == [column.key for column in PUBLISHED_COLUMNS]
    left_out = {column.key for column in PUBLISHED_COLUMNS if not column.is_required}
    assert ROW["required"] == [key for key in ROW["properties"] if key not in left_out]
    assert list(row()) == [key for key in ROW["properties"] if key in row()]


def test_what_was_promised_is_still_there():
    kinds = {key: ROW["properties"][key].get("type") for key in PROMISED}
    assert kinds == PROMISED


def test_what_is_not_known_is_left_out_and_never_null():
    assert "null" not in json.dumps(SCHEMA)
    made = leaderboards(entries(), shipped_benchmark())[0]["data"]["full"]
    assert all(value is not None for item in made for value in item.values())
    assert all("audit" not in item for item in made)


def test_every_column_says_what_it_means_and_has_a_key_of_its_own():
    assert len({column.key for column in COLUMNS}) == len(COLUMNS)
    headings = [column.download for column in COLUMNS if column.download]
    sorts = [column.table.sort for column in COLUMNS if column.table]
    assert len(set(headings)) == len(headings)
    assert len(set(sorts)) == len(sorts)
    for column in COLUMNS:
        assert column.kind in get_args(ValueKind)
        assert column.about.endswith("."), column.key
        # A table that shows what nobody can download, or sort by a column without a name.
        assert column.table is None or (column.download and column.label), column.key


@each("column", COLUMNS, ids=lambda column: column.key)
def test_the_public_rows_have_values_of_its_type(column):
    """Where the registry is wrong about one model, the golden row of GROVER does not show it."""
    values = {entry.submission.model_id: column.value(entry) for entry in entries()}
    lacking = [model for model, value in values.items() if value is None]
    assert lacking == [] or not column.is_required, "write is_required=False"
    type_of = TypeAdapter(column.type)
    for model, value in values.items():
        if value is not None:
            read = type_of.validate_python(value, strict=True)
            assert type_of.dump_python(read) == value, model


def side(own: dict[str, Any]) -> BoardSide:
    board = {"data": {"full": [own]}}
    return BoardSide(board, board, None)


@each("key", COMPARED_FACTS)
def test_diff_names_a_column_that_changed_and_one_that_came(key):
    before, after = row(**{key: "before"}), row(**{key: "after"})
    (changed,) = board_diff(side(before), side(after)).changed
    assert changed.facts == ((key, "before", "after"),)
    del before[key]
    (changed,) = board_diff(side(before), side(after)).changed
    assert changed.facts == ((key, None, "after"),)


KNOWN = {"architecture": "T-enc", "params": 1}
FROM_REGISTRY = Column(
    key="architecture",
    type=str,
    about="Architecture.",
    value=lambda own: own.attributes.get("architecture"),
    kind="text",
    label="Architecture",
    is_required=False,
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Write two contributed rows, one of which the registry knows."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.geneb-ci]\nbenchmark = "benchmark.json"\npolicy = "policy"\n'
    )
    shutil.copy(BENCHMARK_FILE, tmp_path / "benchmark.json")
    others = shutil.ignore_patterns("models", "policy.toml")  # which draws more than three tasks
    shutil.copytree(ROOT / "leaderboard/policy", tmp_path / "policy", ignore=others)
    (tmp_path / "submissions/cards").mkdir(parents=True)
    for name in ("known", "unknown"):
        (tmp_path / f"submissions/{name}.json").write_text(json.dumps(small(name)))
        (tmp_path / f"submissions/cards/{name}.md").write_text(CARD)
    known = KNOWN | {"params": small("known")["meta"]["params"]}
    (tmp_path / "policy/models").mkdir()
    (tmp_path / "policy/models/known.toml").write_bytes(entry_of(known))
    return tmp_path


def test_the_registry_speaks_of_contributed_rows_too(repository):
    layout = find_layout(repository)
    entries_checked = checked_rows(layout, files_of([repository / "submissions"]))
    known, unknown = entries_checked
    assert [str(known.level), str(known.authorship)] == ["self-reported", "contributed"]
    assert facts_of(known, [FROM_REGISTRY]) == {"architecture": "T-enc"}
    assert facts_of(unknown, [FROM_REGISTRY]) == {}
    # Size is what was submitted, whatever the registry has: it is a claim like the scores.
    lying = dataclasses.replace(known, attributes=dict.fromkeys(PROMISED, "x"))
    submitted = [column for column in COLUMNS if column.key in PROMISED]
    assert facts_of(lying, submitted) == facts_of(known, submitted)
    made = json.loads(
        board_of(entries_checked, layout, has_intervals=False).files["leaderboard.json"]
    )
    assert [item["model"] for item in made["data"]["full"]] == ["known", "unknown"]


def test_tests_make_entries_as_the_board_does():
    """A row of a test's own stays what it was when `row_of` changes."""
    tests = [path for path in (ROOT / "tests").rglob("*.py") if "lock" not in path.name]
    own = [path.name for path in tests if re.search(r"(?<![\w\"(])Row\(", path.read_text("utf-8"))]
    assert own == []
