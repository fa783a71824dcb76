"""A digest that differs by line ends alone says so, and how to get the bytes that were meant."""

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from geneb_ci.cli.main import main
from reference_harness.formats.files import line_ends_of
from tests.paths import ROOT
from tests.rules.place import built
from tests.small import CARD, small_v11

MODULE = "submissions/extractors/model.py"
UNIX = b'"""An extractor."""\n\n\nclass Model:\n    pass\n'
WINDOWS = UNIX.replace(b"\n", b"\r\n")
MIXED = UNIX.replace(b"\n", b"\r\n", 1)


def digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def mismatches(
    root: Path, committed: bytes, ran: bytes, capsys, monkeypatch
) -> list[dict[str, str]]:
    """Return what is found of an extractor that was run with other bytes."""
    document = small_v11("model")
    document["run"]["extractor"] |= {"path": MODULE, "sha256": digest(ran)}
    files = {"submissions/model.json": json.dumps(document).encode(), MODULE: committed}
    built(files | {"submissions/cards/model.md": CARD.encode()}, root)
    monkeypatch.chdir(root)
    main(["check", "submissions/model.json", "--format", "json", "--no-cache"])
    report = json.loads(capsys.readouterr().out)
    return [f for f in report["findings"] if f["rule"] == "extractor-mismatch"]


@pytest.mark.parametrize(
    ("committed", "ran", "ends", "fix"),
    [
        (UNIX, WINDOWS, "CRLF", "git add --renormalize submissions/extractors/model.py"),
        (WINDOWS, UNIX, "LF", "dos2unix submissions/extractors/model.py"),
        (MIXED, UNIX, "LF", "dos2unix"),
        (MIXED, WINDOWS, "CRLF", "git config core.autocrlf false"),
    ],
)
def test_an_extractor_with_other_line_ends_says_so(
    committed, ran, ends, fix, tmp_path, capsys, monkeypatch
):
    (finding,) = mismatches(tmp_path, committed, ran, capsys, monkeypatch)
    assert finding["message"].endswith(f"only the line ends differ, which were {ends} in the run")
    assert fix in finding["fix"]


def test_another_extractor_is_another_one(tmp_path, capsys, monkeypatch):
    (finding,) = mismatches(tmp_path, UNIX + b"x = 1\n", WINDOWS, capsys, monkeypatch)
    assert "line ends" not in finding["message"] + finding["fix"]


@pytest.mark.parametrize(
    ("raw", "meant", "ends"),
    [
        (UNIX, UNIX, "LF"),
        (b"", b"", "LF"),
        (b"a\rb\r\n", b"a\rb\n", "LF"),
        (b"a\rb", b"a\nb", ""),
        (b"a\n", b"b\n", ""),
    ],
)
def test_line_ends_with_which_bytes_have_a_digest(raw, meant, ends):
    assert line_ends_of(raw, digest(meant)) == ends


def test_no_line_end_of_the_repository_is_translated():
    """A clone on Windows has the bytes of the commit, whatever git's settings there."""
    command = ["git", "check-attr", "text", "--", *(f"{name}" for name in HASHED)]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert lines.splitlines() == [f"{name}: text: unset" for name in HASHED]


HASHED = (
    "submissions/GROVER.json",
    "submissions/cards/GROVER.md",
    "submissions/extractors/any.py",
    "schemas/benchmark.json",
    "leaderboard/policy/policy.toml",
    "leaderboard/policy/models/GROVER.toml",
    "leaderboard/policy/environments/transformers-4.28.0.txt",
    "reference_harness/extractors/kmer.py",
    "tests/benchmark-small.json",
)
