"""A row whose run loaded its model from the Hub is audited: from the Hub, and from a folder."""

import json
import shutil
from pathlib import Path

import pytest

from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from tests.audit.installed import Installed
from tests.harness.extractors.models import save
from tests.publish.hub import Hub
from tests.sandbox.conftest import sandbox_of
from tools.demo_audit import COMMITTED_AT

# In the gate: the audit of extractors without torch in test_rerun.py, the download of a committed
# revision in test_weights.py, and the extractor in tests/harness/extractors/test_huggingface.py.
pytestmark = pytest.mark.nightly
REPOSITORY = "geneb/tiny"
TASK = "mini_splice"
BEACON = ("--committed-at", COMMITTED_AT, "--beacon-file", "round.json")


@pytest.fixture(scope="module")
def installed(
    tmp_path_factory: pytest.TempPathFactory, hub: Hub, hub_settings: dict[str, str]
) -> Installed:
    """Run a tiny BERT of the Hub, at a commit, on a task."""
    for _ in sandbox_of(2, tmp_path_factory.mktemp("trial") / "scratch"):
        pass  # fails or skips where there is none
    made = Installed(tmp_path_factory.mktemp("audit"), drawn=1)
    made.environment |= {"TMPDIR": str(tmp_path_factory.mktemp("scratch")), **hub_settings}
    made.torch = True
    made.harness_alone = False
    made.audit_one_regime()
    folder = save("bert", made.root.parent / "tiny")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    revision = hub.create(f"models/{REPOSITORY}", files).head.oid
    made.run(
        *("reference_harness", "run", "--extractor", "huggingface", "--model", REPOSITORY),
        *("--option", f"revision={revision}", "--tasks", TASK, "--output", "record.json"),
        *("--model-id", "tiny", "--submission", "submissions/tiny.json"),
        *("--submitted-by", "a test", "--quiet"),
    )
    return made


def test_the_run_names_repository_and_commit(installed, hub):
    model = json.loads((installed.root / "submissions/tiny.json").read_bytes())["run"]["model"]
    assert (model["kind"], model["location"], model["revision"]) == (
        "huggingface",
        REPOSITORY,
        hub.shelf.repos[f"models/{REPOSITORY}"].head.oid,
    )
    assert list(model["weights"]) == ["model.safetensors"]


@pytest.mark.parametrize(
    ("folder", "boxed"),
    [
        pytest.param(False, False, id="from the Hub"),
        pytest.param(False, True, id="in a sandbox"),
        pytest.param(True, False, id="from a folder"),
    ],
)
def test_it_becomes_verified(installed, hub, folder, boxed):
    for path in Path(installed.environment["HF_HOME"]).iterdir():
        shutil.rmtree(path)  # the auditor has none of its files yet
    installed.run("geneb_ci", "audit", "commit", "submissions/tiny.json", "--output", "c.json")
    installed.run("geneb_ci", "audit", "plan", "c.json", *BEACON, "--output", "p.json")
    served = len(hub.served)
    more = ("--weights", str(installed.root.parent / "tiny")) if folder else ()
    installed.boxed = boxed
    done = installed.run(
        "geneb_ci", "audit", "run", "p.json", "--key", "key.pem", *more, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (len(hub.served) > served) is not folder
    (record,) = record_files(installed.root / "leaderboard/audits")
    assert installed.run("geneb_ci", "audit", "verify", str(record)).returncode == 0
    outcome = json.loads(parse_envelope(record.read_bytes()).payload)["predicate"]
    assert outcome["verdict"] == "agrees"
    assert any(note.startswith("weights: model.safetensors ") for note in outcome["notes"])
    rows = json.loads(installed.run("geneb_ci", "trust", "--format", "json").stdout)["rows"]
    assert [row["level"] for row in rows] == ["verified"]
    record.unlink()
