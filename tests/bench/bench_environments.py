"""Rows of format 1.0 under real, different versions of transformers, audited by one queue.

Each row is a small model with random weights, written from its configuration by the version of
transformers of its own lock in `leaderboard/policy/environments`, and run by the harness under
that version. `audit queue` then audits all of them, one after another, each in its environment.
The packages come from the package index that uv is set up for. The test of the same, with a
package of ours from an index on this machine, is `tests/audit/test_queue_environments.py`.
`python -m tests.bench.bench_environments`.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from geneb_ci.audit.envelope import parse_envelope
from geneb_ci.audit.fetching import install
from geneb_ci.audit.record import record_files
from geneb_ci.models.entry import Environment
from tests.audit.file_place import GO
from tests.audit.test_by_entry import FORMAT_1_0, table
from tests.bench.bench_families import OwnPlace, place_of
from tests.harness.extractors.models import MAX_LENGTH
from tools.demo_audit import ROOT

POLICY = ROOT / "leaderboard/policy"
MODELS = {"4.28.0": "bert", "4.38.1": "esm", "4.57.3": "llama"}
"""Version of transformers to the kind of model; each version is that of a published row."""
OPTIONS = {
    "pooling": "mean", "max_length": str(MAX_LENGTH - 2), "truncation": "right", "dtype": "float32",
}  # fmt: skip
WRITE = """
import sys
from pathlib import Path
import transformers
from tests.harness.extractors.models import save
save(sys.argv[1], Path(sys.argv[2]))
print(transformers.__version__)
"""


def environment(version: str) -> Environment:
    """Return what an entry says of the lock of a version."""
    lock = f"transformers-{version}.txt"
    raw = (POLICY / "environments" / lock).read_bytes()
    return Environment(lock=lock, sha256=hashlib.sha256(raw).hexdigest())


def row(place: OwnPlace, version: str, kind: str) -> str:
    """Write the model, run it and describe it by an entry; return its file of format 1.0."""
    wanted = environment(version)
    site = install(wanted, POLICY, print).folder
    folder = place.root.parent / kind
    written = subprocess.run(
        [sys.executable, "-c", WRITE, kind, str(folder)],
        env=place.environment | {"PYTHONPATH": f"{site}:{ROOT}"},
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split()[-1]  # fmt: skip
    assert written == version, f"written by transformers {written}"
    words = [word for key, value in OPTIONS.items() for word in ("--option", f"{key}={value}")]
    file = place.root / "submissions" / f"{kind}.json"
    path = place.environment["PYTHONPATH"]
    place.environment["PYTHONPATH"] = f"{path}:{site}"
    place.run(
        *("reference_harness", "run", "--extractor", "huggingface", "--model", str(folder)),
        *words,
        *("--output", f"{kind}.record.json", "--model-id", kind, "--quiet"),
        *("--no-canonical", "--submission", str(file), "--submitted-by", "a bench"),
    )
    place.environment["PYTHONPATH"] = path
    document = json.loads(file.read_bytes())
    old = {key: document[key] for key in FORMAT_1_0} | {"schema_version": "1.0"}
    file.write_text(json.dumps(old), encoding="utf-8")
    digests = {
        one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in sorted(folder.iterdir())
    }
    (place.root / f"leaderboard/policy/models/{kind}.toml").write_text(
        'schema_version = "1.0"\n'
        + table("weights", {"kind": "url", "location": f"https://example.org/{kind}"})
        + table("weights.files", digests)
        + table("run", {"extractor": "builtin:huggingface", "dtype": "float32"})
        + table("run.environment", {"lock": wanted.lock, "sha256": wanted.sha256})
        + table("run.options", OPTIONS),
        encoding="utf-8",
    )
    return f"submissions/{kind}.json"


def main() -> None:
    """Print a line for each row."""
    with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as name:
        place = place_of(Path(name))
        locks = place.root / "leaderboard/policy/environments"
        locks.symlink_to(POLICY / "environments")
        rows = {kind: row(place, version, kind) for version, kind in MODELS.items()}
        audit = f'[[audit]]\ncommitted-at = "{GO[1]}"\nbeacon-file = "round.json"\n'
        (place.root / "list.toml").write_text(
            "".join(
                f'{audit}file = "{file}"\nweights = "{place.root.parent / kind}"\n'
                for kind, file in rows.items()
            ),
            encoding="utf-8",
        )
        done = place.run(
            *("geneb_ci", "audit", "queue", "--from", "list.toml", "--key", "key.pem"), check=False
        )
        print(done.stdout, done.stderr)
        print("| row | audit | environment in the record |\n|---|---|---|")
        for path in record_files(place.root / "leaderboard/audits"):
            predicate = json.loads(parse_envelope(path.read_bytes()).payload)["predicate"]
            (lock,) = [note for note in predicate["notes"] if note.startswith("environment: ")]
            print("|", path.parent.name, "|", predicate["verdict"], "|", lock, "|")


if __name__ == "__main__":
    main()
