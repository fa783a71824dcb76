"""A row of format 1.0 is audited by its entry, from wherever the files are published."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from tests.audit.installed import Installed
from tests.loopback import loopback
from tests.models.publishers import Shelf, tar_gz
from tools.demo_audit import COMMITTED_AT

FORMAT_1_0 = ("schema_version", "model_id", "harness_version", "meta", "results")
BEACON = ("--committed-at", COMMITTED_AT, "--beacon-file", "round.json")
NUMBERS = {"config.json": "11", "words.npy": "12"}
EXTRACTOR = "submissions/extractors/letters.py:Letters"
MODULE = """
from pathlib import Path

import numpy as np
from .base import BaseEmbeddingExtractor


class Letters(BaseEmbeddingExtractor):
    layer, pooling, max_length, truncation, dtype = "none", "mean", None, "none", "float32"
    source = {"kind": "local", "location": "tiny", "revision": None}

    def __init__(self, name_model, device="cpu"):
        super().__init__(name_model, device)
        self.vectors = np.load(Path(name_model) / "words.npy")

    def extract_embeddings(self, sequences, batch_size=1):
        shares = [[s.count(x) / len(s) for x in "ACGT"] for s in sequences]
        return np.array(shares, dtype=np.float32) @ self.vectors
"""


def table(name: str, values: dict[str, Any]) -> str:
    """Return a table of TOML."""
    lines = [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join([f"[{name}]", *lines, ""])


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Lay out a repository with the row of a small model, as upstream's pipeline would write it."""
    made = Installed(tmp_path_factory.mktemp("audit"), drawn=1, boxed=False)
    made.allowed = frozenset({"127.0.0.1"})  # the server of the tests stands for a public one
    made.environment |= {"TMPDIR": str(tmp_path_factory.mktemp("scratch"))}
    made.audit_one_regime()
    (made.root / "leaderboard/policy/models").mkdir()
    (made.root.parent / "tiny").mkdir()
    np.save(made.root.parent / "tiny/words.npy", np.eye(4, dtype=np.float32))
    (made.root.parent / "tiny/config.json").write_text("{}", encoding="utf-8")
    (made.root / "submissions/extractors").mkdir()
    (made.root / EXTRACTOR.partition(":")[0]).write_text(MODULE, encoding="utf-8")
    made.run(
        *("reference_harness", "run", "--extractor", EXTRACTOR, "--model", "../tiny"),
        *("--output", "record.json", "--model-id", "tiny"),
        *("--submission", "submissions/tiny.json", "--submitted-by", "a test", "--quiet"),
    )
    submission = made.root / "submissions/tiny.json"
    document = json.loads(submission.read_bytes())
    old = {key: document[key] for key in FORMAT_1_0} | {"schema_version": "1.0"}
    submission.write_text(json.dumps(old), encoding="utf-8")
    return made


def files(installed: Installed) -> dict[str, bytes]:
    """Return the files that were published, by name."""
    return {path.name: path.read_bytes() for path in (installed.root.parent / "tiny").iterdir()}


def entry(installed: Installed, kind: str, location: str, *more: str, **source: str) -> Path:
    """Write the entry of the model: published at this place, run by its contributor's module."""
    path = installed.root / "leaderboard/policy/models/tiny.toml"
    digests = {name: hashlib.sha256(raw).hexdigest() for name, raw in files(installed).items()}
    parts = [
        'schema_version = "1.0"\n',
        table("weights", {"kind": kind, "location": location} | source),
        table("weights.files", digests),
        *more,
        table("run", {"extractor": EXTRACTOR}),
    ]
    path.write_text("".join(parts), encoding="utf-8")
    return path


def commit(installed: Installed) -> Any:
    arguments = ("audit", "commit", "submissions/tiny.json", "--output", "c.json")
    return installed.run("geneb_ci", *arguments, check=False)


def planned(installed: Installed) -> dict[str, Any]:
    """Commit and draw; returns the commitment."""
    done = commit(installed)
    assert done.returncode == 0, done.stderr
    installed.run("geneb_ci", "audit", "plan", "c.json", *BEACON, "--output", "p.json")
    commitment: dict[str, Any] = json.loads((installed.root / "c.json").read_bytes())["commitment"]
    return commitment


PUBLISHED = {
    "zenodo": ("7995778", {"archive": "models.tar.gz", "folder": "models/Tiny"}),
    "dataverse": ("doi:10.7910/DVN/HDT0RN", {}),
}


def shelf_of(kind: str, content: dict[str, bytes]) -> Shelf:
    """Return the files as this kind of server has them."""
    if kind == "zenodo":
        archive = tar_gz({f"models/Tiny/{name}": raw for name, raw in content.items()})
        return Shelf({"/records/7995778/files/models.tar.gz": archive})
    return Shelf({f"/api/access/datafile/{NUMBERS[name]}": raw for name, raw in content.items()})


@pytest.mark.nightly  # in the gate, the row that is not upgraded: one command has these steps
def test_an_upgraded_row_is_audited_with_the_files_from_where_they_are_published(installed):
    """Commit, plan, run, verify, label, command by command; the row is as format 1.1 has it."""
    kind = "dataverse"
    location, source = PUBLISHED[kind]
    upgrade = ("upgrade", "submissions/tiny.json", "--output", "submissions/tiny.json")
    with installed.without_audits():
        with loopback(shelf_of(kind, files(installed)).handler()) as server:
            entry(installed, kind, location, table("weights.ids", NUMBERS), host=server, **source)
            installed.run("geneb_ci", *upgrade)
            weights = planned(installed)["weights"]
            done = installed.run(
                "geneb_ci", "audit", "run", "p.json", "--key", "key.pem", check=False
            )
        assert done.returncode == 0, done.stderr
        assert weights["kind"] == kind
        digests = {name: hashlib.sha256(raw).hexdigest() for name, raw in files(installed).items()}
        assert weights["files"] == digests
        (record,) = record_files(installed.root / "leaderboard/audits")
        outcome = json.loads(parse_envelope(record.read_bytes()).payload)["predicate"]
        assert outcome["verdict"] == "agrees"
        assert installed.run("geneb_ci", "audit", "verify", str(record)).returncode == 0
        (row,) = json.loads(installed.run("geneb_ci", "trust", "--format", "json").stdout)["rows"]
        assert row["level"] == "self-reported"
        assert "the run names no scorer of record" in json.dumps(row)
    installed.run("geneb_ci", *upgrade, "--undo")


def test_a_row_of_format_1_0_is_audited_by_its_entry_and_not_verified(installed):
    """One command, from the file to the signed record; what nobody can prove stays unverified."""
    kind = "zenodo"
    location, source = PUBLISHED[kind]
    with loopback(shelf_of(kind, files(installed)).handler()) as server:
        path = entry(installed, kind, location, host=server, **source)
        command = ("audit", "submissions/tiny.json", "--key", "key.pem", "--work", "work")
        # The one value that is typed; the round is a file, where the relay would be asked.
        done = installed.run("geneb_ci", *command, *BEACON, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads((installed.root / "work/commitment.json").read_bytes())
    commitment = document.get("commitment", document)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert commitment["entry"] == sha256
    assert (commitment["weights"]["kind"], commitment["extractor"]["path"]) == (
        kind,
        EXTRACTOR.partition(":")[0],
    )
    described = f"the run is described by the model registry (entry {sha256[:16]}...), not by the "
    assert described in done.stdout
    (record,) = record_files(installed.root / "leaderboard/audits")
    outcome = json.loads(parse_envelope(record.read_bytes()).payload)["predicate"]
    assert outcome["verdict"] == "agrees"
    verified = installed.run("geneb_ci", "audit", "verify", str(record))
    assert described in verified.stdout
    rows = json.loads(installed.run("geneb_ci", "trust", "--format", "json").stdout)["rows"]
    assert [row["level"] for row in rows] == ["self-reported"]
    assert "the run names no scorer of record" in json.dumps(rows)


WRONG = {
    "not yet": (
        'schema_version = "1.0"\n[weights]\nkind = "none"\n[run]\nmissing = "its tokenizer"',
        "does not say how to run it: its tokenizer",
    ),
    "unpinned": (
        (
            'schema_version = "1.0"\n[weights]\nkind = "url"\nlocation = "https://example.org"\n'
            '[run]\nextractor = "builtin:huggingface"'
        ),
        "the entry of tiny in the model registry pins no file",
    ),
    "unknown extractor": (
        'schema_version = "1.0"\n[weights]\nkind = "none"\n[run]\nextractor = "builtin:nope"',
        "builtin:nope: the harness gave no digest of this extractor",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_missing_is_said_before_the_draw(installed, name):
    text, message = WRONG[name]
    (installed.root / "leaderboard/policy/models/tiny.toml").write_text(text, encoding="utf-8")
    done = commit(installed)
    assert done.returncode != 0
    assert message in done.stderr
    assert "\n  fix: " in done.stderr
