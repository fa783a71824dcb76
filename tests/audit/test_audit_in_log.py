"""`audit FILE` where a log is kept: one command, real time, a loopback relay, rounds made here."""

import hashlib
import http.server
import json
import time
from collections.abc import Iterator
from pathlib import Path

import py_arkworks_bls12381 as curve
import pytest

from geneb_ci.audit.canonical import moment_of
from geneb_ci.audit.record import statement as record
from geneb_ci.audit.sampling import beacon
from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from tests.audit import unboxed
from tests.audit.file_place import MODEL, made
from tests.audit.installed import UNBOXED_SITE
from tests.audit.log_place import log_of, read
from tests.audit.relay import relay

FILE = f"submissions/{MODEL}.json"
SECRET = curve.Scalar(20_261_122)
"""Private key of the chain of this test."""
PUBLIC = (curve.G2Point() * SECRET).to_compressed_bytes().hex()
HASTE = 1
"""Seconds between commitment and round, here; the real ones are waited for nowhere."""


def round_of(number: int) -> str:
    message = hashlib.sha256(number.to_bytes(beacon.ROUND_BYTES, "big")).digest()
    signed = curve.G1Point.hash_to_curve(message, beacon.DST) * SECRET
    return json.dumps({"round": number, "signature": signed.to_compressed_bytes().hex()})


def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
    raw = round_of(int(handler.path.rpartition("/")[2])).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(raw)))
    handler.end_headers()
    handler.wfile.write(raw)


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return a relay whose rounds are those of the real chain, signed by a key of our own."""
    check = beacon.verify_round.__wrapped__
    monkeypatch.setattr(check, "__defaults__", (PUBLIC,))
    for module in (beacon, record):
        monkeypatch.setattr(module, "DELAY", HASTE)
    beacon.verify_round.cache_clear()
    with relay(answer) as (address, _):
        yield address
    beacon.verify_round.cache_clear()


@pytest.fixture
def place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Path:
    installed = made(tmp_path / "audit", tmp_path)
    root = installed.root
    monkeypatch.chdir(root)
    unboxed.install(monkeypatch.setattr)
    for name in ("TMPDIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, installed.environment[name])
    keys = []
    for words in (("key.pem", "--owner", "an auditor"), ("log.pem", "--log", "example.org/x")):
        (root / words[0]).unlink(missing_ok=True)
        assert main(["audit", "keygen", "--output", *words]) == 0
        keys.append(json.loads(capsys.readouterr().out))
    policy = {"keys": [keys[0] | {"valid_from": "2023-01-01T00:00:00Z"}], "log": keys[1]["log"]}
    (root / "leaderboard/policy/keys.json").write_text(json.dumps(policy), encoding="utf-8")
    find_layout.cache_clear()
    return root


def audit(*options: str) -> int:
    find_layout.cache_clear()
    return main(["audit", FILE, "--key", "key.pem", *options])


def test_one_command_goes_from_a_file_to_a_record_in_the_log(place, chain, capsys):
    assert audit("--log-key", "log.pem", "--relay", chain) == 0, capsys.readouterr().err
    said = capsys.readouterr()
    assert "agrees" in said.out
    log = log_of(place)
    assert [one.kind for one in log.entries] == ["commitment", "start", "result"]
    (found,) = read(place).verifications()
    assert {one.name: str(one.state) for one in found.steps}["log"] == "holds", found
    assert main(["audit", "verify"]) == 0, capsys.readouterr().err


def test_a_time_typed_after_the_first_call_is_before_the_start(place, chain, capsys):
    policy = place / "leaderboard/policy/keys.json"
    keys = json.loads(policy.read_text(encoding="utf-8"))
    del keys["log"]
    policy.write_text(json.dumps(keys), encoding="utf-8")
    assert audit() == 0
    assert "publish this digest" in capsys.readouterr().out
    published = moment_of(int(time.time()))
    assert audit("--committed-at", published, "--relay", chain) == 0, capsys.readouterr().err
    (found,) = read(place).verifications()
    assert found.record is not None
    assert found.record.outcome.started_at >= published
    assert main(["audit", "verify"]) == 0, capsys.readouterr().err


def test_two_hands_commit_append_and_run(place, chain, capsys):
    assert audit() == 0
    said = capsys.readouterr().out
    assert "next: commit" in said
    assert "log append" in said
    advice = said.splitlines()[-1].split()
    assert advice == ["geneb-ci", "audit", FILE, "--key", "key.pem"]
    append = ["audit", "log", "append", "--log-key", "log.pem", "--relay", chain]
    find_layout.cache_clear()
    assert main(append) == 0
    assert main([*advice[1:], "--relay", chain]) == 0, capsys.readouterr().err
    find_layout.cache_clear()
    assert main(append) == 0
    assert [one.kind for one in log_of(place).entries] == ["commitment", "start", "result"]
    assert main(["audit", "verify"]) == 0, capsys.readouterr().err


@pytest.mark.nightly  # of the gate is each step by hand, above
def test_a_queue_extends_the_log_between_commitment_and_draw(
    place, chain, tmp_path, monkeypatch, capsys
):
    (tmp_path / "chain").mkdir()
    (tmp_path / "chain/sitecustomize.py").write_text(
        "from geneb_ci.audit.sampling import beacon\n"
        "from geneb_ci.audit.record import statement as record\n"
        f"beacon.verify_round.__wrapped__.__defaults__ = ({PUBLIC!r},)\n"
        f"beacon.DELAY = record.DELAY = {HASTE}\n"
        f"import runpy; runpy.run_path({str(UNBOXED_SITE / 'sitecustomize.py')!r})\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "chain"))
    find_layout.cache_clear()
    words = ["audit", "queue", FILE, "--key", "key.pem", "--device", "cpu", "--relay", chain]
    assert main([*words, "--log-key", "key.pem"]) == 2
    assert "is not one of the log" in capsys.readouterr().err
    assert main([*words, "--log-key", "log.pem"]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.splitlines()[1].split(maxsplit=2) == ["0", FILE, "agrees"]
    assert [one.kind for one in log_of(place).entries] == ["commitment", "start", "result"]
    find_layout.cache_clear()
    assert main(["audit", "verify"]) == 0, capsys.readouterr().err
