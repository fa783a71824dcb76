"""Two rows of format 1.0 that need different versions of a package, audited by one queue."""

import hashlib
import json
from pathlib import Path

import pytest

from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from geneb_ci.models.entry import Environment
from tests.audit.file_place import GO
from tests.audit.installed import Installed
from tests.loopback import loopback
from tests.models.index import handler, lock, wheel
from tests.sandbox.conftest import sandbox_of

MODULE = """
import numpy as np
import tinyformers
from .base import BaseEmbeddingExtractor


class Words(BaseEmbeddingExtractor):
    layer, pooling, max_length, truncation, dtype = "none", "mean", None, "none", "float32"
    source = {"kind": "none", "location": "", "revision": None}

    def extract_embeddings(self, sequences, batch_size=1):
        words = tinyformers.words()
        rows = [[SHARE for word in words] for s in sequences]
        return np.array(rows, dtype=np.float32)
"""
SHARES = {"4.38.0": "s.count(word) / len(s)", "4.46.0": "s.count(word) / (1 + len(s) // 2)"}
"""Different code: rows of one code without weights are one method, which shares its draws."""
WORDS = {"4.38.0": ["A", "C", "G", "CG"], "4.46.0": ["A", "C", "G", "AA", "TA", "GC"]}
WHEELS = {
    version: wheel(
        "tinyformers", version, {"tinyformers.py": f"def words():\n    return {words!r}\n"}
    )
    for version, words in WORDS.items()
}
TOKENIZERS = wheel("tokenizers", "0.13.3", {"tokenizers.py": ""})
"""A package that the harness has in another version, and this extractor does not import."""
FORMAT_1_0 = ("schema_version", "model_id", "harness_version", "meta", "results")


def module_of(version: str) -> str:
    return f"submissions/extractors/words_{version.replace('.', '_')}.py:Words"


def row(installed: Installed, site: Path, version: str) -> str:
    """Run the extractor with a version of the package; return the file, of format 1.0."""
    model_id = f"words-{version}"
    (site / version).mkdir(parents=True)
    (site / version / "tinyformers.py").write_text(
        f"def words():\n    return {WORDS[version]!r}\n", encoding="utf-8"
    )
    path = installed.environment["PYTHONPATH"]
    installed.environment["PYTHONPATH"] = f"{path}:{site / version}"
    file = installed.root / "submissions" / f"{model_id}.json"
    installed.run(
        *("reference_harness", "run", "--extractor", module_of(version)),
        *("--output", f"{model_id}.record.json", "--model-id", model_id),
        *("--submission", str(file), "--submitted-by", "a test", "--quiet"),
    )
    installed.environment["PYTHONPATH"] = path
    document = json.loads(file.read_bytes())
    old = {key: document[key] for key in FORMAT_1_0} | {"schema_version": "1.0"}
    file.write_text(json.dumps(old), encoding="utf-8")
    return f"submissions/{model_id}.json"


def entry(installed: Installed, version: str) -> Environment:
    """Write the lock of a version and the entry of its row."""
    policy = installed.root / "leaderboard/policy"
    text = lock("tinyformers", version, WHEELS[version][1])
    if version == min(WHEELS):
        text += lock("tokenizers", "0.13.3", TOKENIZERS[1])
    expected = Environment(
        lock=f"tinyformers-{version}.txt", sha256=hashlib.sha256(text.encode()).hexdigest()
    )
    for name in ("models", "environments"):
        (policy / name).mkdir(exist_ok=True)
    (policy / "environments" / expected.lock).write_text(text, encoding="utf-8")
    (policy / f"models/words-{version}.toml").write_text(
        'schema_version = "1.0"\n[weights]\nkind = "none"\n[run]\n'
        f'extractor = "{module_of(version)}"\n'
        f'[run.environment]\nlock = "{expected.lock}"\nsha256 = "{expected.sha256}"\n',
        encoding="utf-8",
    )
    return expected


@pytest.mark.nightly
def test_each_runs_with_its_own_version(tmp_path, monkeypatch):
    for _ in sandbox_of(2, tmp_path / "trial"):
        pass  # fails or skips where there is none
    for name in ("UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    installed = Installed(tmp_path / "audit", drawn=1)
    (tmp_path / "scratch").mkdir()
    installed.audit_one_regime()
    modules = installed.root / "submissions/extractors"
    modules.mkdir()
    for version, share in SHARES.items():
        name = module_of(version).partition(":")[0]
        (installed.root / name).write_text(MODULE.replace("SHARE", share), encoding="utf-8")
    rows = [row(installed, tmp_path / "site", version) for version in WORDS]
    locks = {f"words-{version}": entry(installed, version).sha256 for version in WORDS}
    with loopback(handler(dict([*WHEELS.values(), TOKENIZERS]))) as server:
        installed.environment |= {
            "TMPDIR": str(tmp_path / "scratch"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "UV_CACHE_DIR": str(tmp_path / "uv"),
            "UV_DEFAULT_INDEX": f"{server}/simple",
        }
        command = ("geneb_ci", "audit", "queue", *rows, "--key", "key.pem", *GO[2:])
        workers = ("--device", "cpu", "--device", "cpu")  # one worker each
        stopped = installed.run(*command, *workers, check=False)
        assert (stopped.returncode, stopped.stdout.count("to be published")) == (0, 2), (
            stopped.stderr
        )
        listed = "".join(
            f'[[audit]]\nfile = "{file}"\ncommitted-at = "{GO[1]}"\nbeacon-file = "round.json"\n'
            for file in rows
        )
        (installed.root / "list.toml").write_text(listed, encoding="utf-8")
        done = installed.run(
            *("geneb_ci", "audit", "queue", "--from", "list.toml", "--key", "key.pem", *workers),
            check=False,
        )
    assert done.returncode == 0, done.stderr
    records = record_files(installed.root / "leaderboard/audits")
    outcomes = {
        path.parent.name: json.loads(parse_envelope(path.read_bytes()).payload)["predicate"]
        for path in records
    }
    assert {name: outcome["verdict"] for name, outcome in outcomes.items()} == dict.fromkeys(
        locks, "agrees"
    )
    tails = ["; it embedded with tokenizers 0.13.3; `packages` are those that scored", ""]
    for (name, sha256), tail in zip(locks.items(), tails, strict=True):
        assert f"environment: lock with sha256 {sha256}{tail}" in outcomes[name]["notes"]
    verified = installed.run("geneb_ci", "audit", "verify")
    assert verified.stdout.endswith("2 records: 2 verified\n")
    # Format 1.0 names no scorer, which the policy asks for: the audits are shown beside.
    rows_of = json.loads(installed.run("geneb_ci", "trust", "--format", "json").stdout)["rows"]
    assert {item["level"] for item in rows_of} == {"self-reported"}
