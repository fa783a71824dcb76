"""Published receipts that are there, that are gone, and what the board says of them."""

import datetime as dt
import json
import shutil
from pathlib import Path

import pytest

from geneb_ci.audit.sampling.design import policy_text
from geneb_ci.board.board import board_of, read_checked_rows
from geneb_ci.check.registry import select
from geneb_ci.common.benchmark import load_benchmark
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.receipt.seen import (
    ReceiptNote,
    ReceiptNotes,
    published_state,
    read_receipt_notes,
    updated_notes,
)
from reference_harness.formats.submission import SubmissionV12
from tests.paths import ROOT as CHECKOUT
from tests.publish.command import environment, geneb_ci
from tests.publish.conftest import hub
from tests.publish.hub import Hub
from tests.receipt.test_push_pull import NAME, RESOURCE
from tests.receipt.test_push_pull import files_of as rows_in
from tests.receipt.written import MODEL, UNSCALED_MIN, Written, changed
from tests.small import CARD

__all__ = ["hub"]  # a fixture: pytest finds it by its name here
ROOT, OTHER = "a" * 64, "b" * 64


def published(written: Written, revision: str) -> None:
    """Let a submission say that its receipt is on the Hub."""
    location = {"kind": "huggingface-dataset", "address": NAME, "revision": revision}
    changed(written, lambda document: document["receipt"].update(location=location))


def repository(written: Written, folder: Path) -> Path:
    """Lay out a repository of one row, on a board of the small tasks."""
    root = folder / "board"
    for path in ("submissions/cards", "leaderboard/policy", "schemas"):
        (root / path).mkdir(parents=True)
    shutil.copy(written.file, root / "submissions")
    (root / f"submissions/cards/{MODEL}.md").write_text(CARD)
    shutil.copy(written.options[3], root / "schemas/benchmark.json")
    for name in ("official.json", "keys.json"):
        shutil.copy(CHECKOUT / "leaderboard/policy" / name, root / "leaderboard/policy")
    text = policy_text(load_benchmark(root / "schemas/benchmark.json"))
    (root / "leaderboard/policy/policy.toml").write_text(text)
    (root / "pyproject.toml").write_text("[tool.geneb-ci]\n")
    return root


def test_what_is_there_and_what_is_gone(hub: Hub, of_small: Written, tmp_path: Path) -> None:
    written = of_small.copied(tmp_path / "place")
    files = rows_in(written.receipt)
    repo = hub.create(RESOURCE, files)
    repo.lfs_over = 20_000
    published(written, repo.head.oid)
    root = repository(written, tmp_path)
    env = environment(hub, tmp_path / "home")
    notes = root / "leaderboard/policy/receipts.json"

    def seen(*words: str) -> tuple[int, list[str]]:
        code, output, errors = geneb_ci("receipt", "seen", *words, cwd=root, env=env)
        assert errors == ""
        return code, output.splitlines()

    assert seen() == (0, [f"submissions/{MODEL}.json: available", "1 published receipt, 0 missing"])
    assert not notes.exists()
    assert seen("--write")[1][-1] == f"wrote {notes}"
    today = dt.datetime.now(dt.UTC).date().isoformat()
    known = {"root": written.document["receipt"]["root"], "since": today, "looked": today}
    assert json.loads(notes.read_text())["rows"] == {MODEL: known | {"seen": today}}
    assert hub.served == [], "no file is fetched"

    shorter = files | {f"{UNSCALED_MIN[2]}.f16": files[f"{UNSCALED_MIN[2]}.f16"][:-1]}
    repo.add(shorter, "a file is cut")
    published(written, repo.head.oid)
    shutil.copy(written.file, root / "submissions")
    code, (line, _) = seen()
    assert code == 11
    assert line.endswith(
        f"{UNSCALED_MIN[2]}.f16 has 51711 bytes; expected 51712, as in the receipt"
    )
    del hub.shelf.repos[RESOURCE]
    (root / "submissions/broken.json").write_text("{")
    code, (unread, line, last) = seen("--write")
    assert unread.startswith("submissions/broken.json: cannot be read; ")
    assert (code, last) == (11, "1 published receipt, 1 missing")
    assert "the server answered 401" in line
    assert json.loads(notes.read_text())["rows"][MODEL]["seen"] == today
    (root / f"submissions/{MODEL}.json").unlink()
    code, (_, last) = seen()
    nothing = "no submission that can be read has a published receipt"
    assert (code, last) == (3, nothing)


def day(number: int) -> str:
    return (dt.date(2026, 11, 1) + dt.timedelta(number)).isoformat()


def test_days_are_noted_and_counted(of_small: Written) -> None:
    document = of_small.document
    document["receipt"] |= {"root": ROOT}
    unpublished = SubmissionV12.model_validate(document)
    document["receipt"]["location"] = {
        "kind": "url", "address": "https://example.org/rows", "revision": None,
    }  # fmt: skip
    row = SubmissionV12.model_validate(document)
    seen = ReceiptNotes()
    assert published_state(unpublished, seen, 30) is None
    assert published_state(row, seen, 30) == "published"
    seen = updated_notes(seen, MODEL, ROOT, day(0), is_available=False)
    assert seen.rows[MODEL] == ReceiptNote(root=ROOT, since=day(0), seen=None, looked=day(0))
    seen = updated_notes(seen, MODEL, ROOT, day(31), is_available=False)
    assert published_state(row, seen, 30) == "missing"
    assert published_state(row, seen, 31) == "published"
    seen = updated_notes(seen, MODEL, ROOT, day(40), is_available=True)
    assert published_state(row, seen, 30) == "published"
    seen = updated_notes(seen, MODEL, ROOT, day(70), is_available=False)
    assert published_state(row, seen, 30) == "published"
    seen = updated_notes(seen, MODEL, ROOT, day(71), is_available=False)
    assert seen.rows[MODEL] == ReceiptNote(root=ROOT, since=day(0), seen=day(40), looked=day(71))
    assert published_state(row, seen, 30) == "missing"
    seen = updated_notes(seen, MODEL, OTHER, day(72), is_available=False)
    assert seen.rows[MODEL].since == day(72), "another receipt starts again"
    assert published_state(row, seen, 30) == "published"


@pytest.mark.parametrize(("looked", "state"), [(30, "published"), (31, "missing")])
def test_the_board_says_it(of_small: Written, tmp_path: Path, looked: int, state: str) -> None:
    written = of_small.copied(tmp_path / "place")
    published(written, "1" * 40)
    root = repository(written, tmp_path)
    notes = ReceiptNotes(
        rows={
            MODEL: ReceiptNote(
                root=written.document["receipt"]["root"], since=day(0), seen=day(0),
                looked=day(looked),
            )
        }
    )  # fmt: skip
    (root / "leaderboard/policy/receipts.json").write_text(notes.model_dump_json())
    entries = list(read_checked_rows(root, select(("structure",), ())).rows)
    files = board_of(entries, find_layout(root), has_intervals=False).files
    board = json.loads(files["leaderboard.json"])
    (row,) = board["data"]["full"]
    assert row["receipt"] == state


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "receipts.json: "),
        ('{"rows": {"a": {}}}', "rows/a/root: Field required"),
        (
            json.dumps({"rows": {"a": {"root": ROOT, "since": "2026-02-31", "seen": None,
                                       "looked": "2026-03-01"}}}),
            "day is out of range",
        ),
    ],
)  # fmt: skip
def test_notes_that_are_not_right(tmp_path: Path, text: str, message: str) -> None:
    root = tmp_path / "board"
    (root / "submissions").mkdir(parents=True)
    (root / "leaderboard/policy").mkdir(parents=True)
    (root / "pyproject.toml").write_text("[tool.geneb-ci]\n")
    (root / "leaderboard/policy/receipts.json").write_text(text)
    with pytest.raises(BadConfiguration) as caught:
        read_receipt_notes(find_layout(root))
    assert message in caught.value.message
