"""Published and signed bytes, against digests taken before the packages were moved and renamed.

Inputs are fixed: the 41 rows of tests/public, a bad submission written here, and a record signed
with a key and at times that never change. The digests were taken by this very file at the last
commit before the move (c9f4299). Board and signed files are compared byte by byte; the board of the
public rows in tests/board/test_columns.py. Findings and SARIF are compared
without their texts, which may be reworded, and without the number of rules: rule, severity, file,
pointer, line, column and score are what other programs act on.

A digest changes only with a decision to change what is published or signed; say so in CHANGELOG.md.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.cli.main import main
from tests.audit import recorded
from tests.paths import PUBLIC, SUBMISSIONS

TEXTS = {"message", "found", "expected", "fix", "shortDescription", "fullDescription", "help"}
VERSION = "version"
"""Of the program: the format's own version is `format_version`, and SARIF's is its `$schema`."""

RULES_RUN = "rules"
"""Number of rules that were run: a new rule without a finding changes nothing that is acted on."""
AUDITED_BOARD = Path(__file__).with_name("golden") / "audited_board.json"
"""Digests of a board with an audited row."""
PUBLISHED = ("leaderboard.json", "leaderboard_tasks.json")
FINDINGS = {
    ("public", "json"): "c0f06d3da0c9706401157adb74764b6e3271ec3e61442a9a632a417b117141b1",
    ("public", "sarif"): "3ae57067e4db53a29614068038fa9dcced925cd745afe9a27787a89bf1b52b1c",
    ("bad", "json"): "192cf377f599a6e666927e6584154806be49d570c660d732eb5623ba3f2dc374",
    ("bad", "sarif"): "4dd00deae075c6ad681ba8a2ba9aab0d0c812d8ca372992417d7cd683c9726f2",
}
SIGNED = {
    "agreeing": "6e77ea8d2324789b9b65e51106ed332cc2a73d1dda5b349a04e5158cf2dde11c",
    "differing": "19093b8397051c8afaaa7d958c25f9250640fa503a16f39ee75d685e43e99e84",
    "second round": "585826e909307cd34490e1eb9c81872be631afe675e9b6c5b5cd363bc7f13a94",
    "withdrawal": "f3fcb57c74e295d692e46743f4872e283587224e8953be9752996b7b84dd3eea",
}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def bad_submission() -> bytes:
    """Return a row that breaks rules of several families, each in its own place."""
    document = json.loads((SUBMISSIONS / "splicebert-1024nt.json").read_bytes())
    document["model_id"] = "bad"
    document["meta"]["url"] = "no-address"
    document["meta"]["provenance"] = "verified"
    full = document["results"]["full"]
    first, second, third, fourth = list(full)[:4]
    full[first]["MCC"] = 1.5
    full[second]["Acc"] = 87.5
    full[third] = {"MCC": 0.9, "Acc": 0.2, "F1": 0.2}
    del full[fourth]
    full["no-such-task"] = {"MCC": 0.0, "Acc": 0.5, "F1": 0.5}
    document["surprise"] = None
    return json.dumps(document, indent=1).encode()


def without_texts(value: Any) -> Any:
    if isinstance(value, dict):
        compared_keys = value.keys() - TEXTS - {VERSION}
        if isinstance(value.get(RULES_RUN), int):  # SARIF has a list of that name
            compared_keys -= {RULES_RUN}
        return {key: without_texts(inner) for key, inner in value.items() if key in compared_keys}
    return [without_texts(inner) for inner in value] if isinstance(value, list) else value


def built(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    out = folder / "board"
    assert main(["build", "--no-diagnostics", "--output", str(out)]) == 0, capsys.readouterr()
    return {name: sha256((out / name).read_bytes()) for name in PUBLISHED}


def test_the_board_of_an_audited_row(tmp_path, monkeypatch, capsys, update_golden):
    raw = recorded.submission_bytes()
    root = recorded.repository(tmp_path / "repository", raw)
    recorded.put(root, recorded.outcome_of(recorded.plan_for(raw), raw))
    monkeypatch.chdir(root)
    digests = built(tmp_path, capsys)
    if update_golden:
        AUDITED_BOARD.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")
    assert digests == json.loads(AUDITED_BOARD.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("what", "form"), FINDINGS)
def test_findings_without_their_texts(what, form, tmp_path, monkeypatch, capsys):
    if what == "public":
        monkeypatch.chdir(PUBLIC)
        path = "submissions"
    else:
        monkeypatch.chdir(tmp_path)
        path = "bad.json"
        (tmp_path / path).write_bytes(bad_submission())
    main(["check", path, "--format", form])
    document = json.loads(capsys.readouterr().out)
    canonical = json.dumps(without_texts(document), sort_keys=True).encode()
    assert sha256(canonical) == FINDINGS[what, form], without_texts(document)


def signed(tmp_path: Path) -> dict[str, bytes]:
    """Return signed files: fixed key, fixed rounds of the beacon, fixed times."""
    raw = recorded.submission_bytes()
    first, second = recorded.plan_for(raw), recorded.plan_for(raw, recorded.SECOND)
    honest = recorded.outcome_of(first, raw)
    record = recorded.put(recorded.repository(tmp_path, raw), honest)
    return {
        "agreeing": recorded.record_bytes(honest),
        "differing": recorded.record_bytes(recorded.outcome_of(first, raw, shift=0.2)),
        "second round": recorded.record_bytes(recorded.outcome_of(second, raw, level=0)),
        "withdrawal": recorded.withdraw(record).read_bytes(),
    }


def test_signed_files(tmp_path):
    assert {name: sha256(raw) for name, raw in signed(tmp_path).items()} == SIGNED
