"""A submitted extractor with a lock: its run and its audit have the packages that it names."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from geneb_ci.audit.commit import AuditSubject
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from geneb_ci.check.folder_context import practice_benchmark
from tests.audit.file_place import GO
from tests.audit.installed import Installed
from tests.audit.test_queue_environments import MODULE, WHEELS
from tests.loopback import loopback
from tests.models.index import handler, lock
from tests.sandbox.conftest import sandbox_of

VERSION = "4.46.0"
LOCK = lock("tinyformers", VERSION, WHEELS[VERSION][1])
SHA256 = hashlib.sha256(LOCK.encode()).hexdigest()
NAME = "submissions/extractors/words.lock.txt"


def subject(files: dict[str, bytes], environment: str = SHA256) -> AuditSubject:
    run = {"extractor": {"path": "submissions/extractors/words.py"}}
    document = {"run": run | ({"environment": environment} if environment else {})}
    return AuditSubject(document, practice_benchmark(), files, None)


@pytest.mark.parametrize(
    ("files", "environment", "message"),
    [
        ({}, SHA256, "the lock of the packages in this checkout is missing, expected sha256 "),
        ({"words.lock.txt": b"x==1"}, SHA256, 'words.lock.txt:1: the lock has no hash of "x==1"'),
        ({"words.lock.txt": LOCK.encode()}, "0" * 64, "the lock of the packages in this checkout"),
        ({"words.lock.txt": LOCK.encode()}, "", "the lock of the packages in this checkout"),
    ],
)
def test_a_lock_that_is_not_that_of_the_run_is_refused(files, environment, message):
    with pytest.raises(AuditRefused, match="^" + message):
        _ = subject(files, environment).lock


def test_the_lock_beside_the_extractor_is_the_one_installed():
    subject_lock = subject({"words.lock.txt": LOCK.encode(), "other.lock.txt": b"-r /x"}).lock
    assert subject_lock is not None
    assert subject_lock.sha256 == SHA256
    assert subject_lock.packages == {"tinyformers"}
    assert subject({"other.lock.txt": b"-r /x"}, "").lock is None


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installed]:
    """Lay out a board with the extractor and its lock, and an index that has the package."""
    for name in ("UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    made = Installed(tmp_path / "audit", drawn=1)
    (tmp_path / "scratch").mkdir()
    made.audit_one_regime()
    (made.root / NAME).parent.mkdir()
    module = MODULE.replace("SHARE", "s.count(word) / len(s)").replace(
        '"revision": None}', '"revision": None, "weights": {}}'
    )
    (made.root / "submissions/extractors/words.py").write_text(module, encoding="utf-8")
    (made.root / NAME).write_text(LOCK, encoding="utf-8")
    with loopback(handler(dict(WHEELS.values()))) as server:
        made.environment |= {
            "TMPDIR": str(tmp_path / "scratch"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "UV_CACHE_DIR": str(tmp_path / "uv"),
            "UV_DEFAULT_INDEX": f"{server}/simple",
        }
        yield made


RUN = (
    *("reference_harness", "run", "--extractor", "submissions/extractors/words.py:Words"),
    *("--output", "words.json", "--model-id", "words", "--submission", "submissions/words.json"),
    *("--submitted-by", "a test", "--quiet"),
)


@pytest.mark.nightly  # an audit in a sandbox: 20 s
def test_run_and_audit_have_the_packages_of_the_lock(installed, tmp_path):
    for _ in sandbox_of(2, tmp_path / "trial"):
        pass  # fails or skips where there is none
    checked = installed.run(
        *("reference_harness", "extractors", "check", "--select", "loads", RUN[3]),
        *("--format", "json"),
    )
    assert json.loads(checked.stdout)["counts"]["holds"] == 1
    installed.run(*RUN)
    record = json.loads((installed.root / "words.json").read_bytes())
    row = json.loads((installed.root / "submissions/words.json").read_bytes())
    assert record["environment"] == row["run"]["environment"] == SHA256
    assert record["packages"]["tinyformers"] == VERSION
    installed.run("geneb_ci", "check", "submissions/words.json")
    installed.run("geneb_ci", "audit", "submissions/words.json", "--key", "key.pem", *GO)
    [path] = record_files(installed.root / "leaderboard/audits")
    outcome = json.loads(parse_envelope(path.read_bytes()).payload)["predicate"]
    assert outcome["verdict"] == "agrees"
    assert f"environment: lock with sha256 {SHA256}" in outcome["notes"]


def test_a_run_installs_nothing_from_a_lock_that_names_an_index(installed):
    text = f"--index-url //example.org/simple\n{LOCK}"
    (installed.root / NAME).write_text(text, encoding="utf-8")
    done = installed.run(*RUN, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f'error: {NAME}:1: the lock has the option "--index-url //example.org/simple", '
        "expected packages and their hashes\n"
    )
