"""`audit run` from end to end on GENEB-mini: rerun in a sandbox, compared, signed, labelled."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from geneb_ci.audit.record.envelope import parse_envelope
from geneb_ci.audit.record.statement import record_files
from tests.audit.installed import Installed
from tests.sandbox.conftest import sandbox_of
from tools.demo_audit import COMMITTED_AT, FORGED, HONEST, HONEST_K
from tools.demo_forge import forge

TASKS = 2  # drawn: enough for every path, and quick
REGIMES = '["full", "1shot"]'
"""Regimes of the policy: with all data and with few. tests/audit/test_compare.py has all three."""
SOME = ("mini_splice", "mini_tf")
MODULE = """
import numpy as np
from .base import BaseEmbeddingExtractor


class Composition(BaseEmbeddingExtractor):
    layer, pooling, max_length, truncation, dtype = "none", "mean", None, "none", "float32"
    source = {"kind": "none", "location": "", "revision": None}

    def __init__(self, name_model, device="cpu", scale=1):
        super().__init__(name_model, device)
        self.scale = scale

    def extract_embeddings(self, sequences, batch_size=1):
        rows = [[s.count(x) / len(s) for x in ("A", "C", "G", "T", "CG")] for s in sequences]
        return self.scale * np.array(rows, dtype=np.float32)
"""


class Ended(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    for _ in sandbox_of(2, tmp_path_factory.mktemp("trial") / "scratch"):
        pass  # fails or skips where there is none
    made = Installed(tmp_path_factory.mktemp("audit"), drawn=TASKS, boxed=False)
    policy = made.root / "leaderboard/policy/policy.toml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text.replace('["full", "10shot", "1shot"]', REGIMES), encoding="utf-8")
    # Audits of different test workers may not find each other's scratch folder.
    made.environment |= {"TMPDIR": str(tmp_path_factory.mktemp("scratch"))}
    made.harness(HONEST, HONEST_K)
    made.harness(FORGED, 3)
    record = made.root / f"{FORGED}.record.json"
    tasks = list(json.loads(record.read_bytes())["tasks"])
    forge(record, made.root / "submissions" / f"{FORGED}.json", FORGED, tasks)
    return made


@pytest.fixture(scope="module")
def honest_plan(installed: Installed) -> str:
    """Return the name of a plan that no other test writes."""
    return (
        (installed.root / planned(installed, HONEST))
        .rename(installed.root / "honest-plan.json")
        .name
    )


@pytest.fixture
def narrow(installed: Installed) -> Iterator[None]:
    """Let the policy have one task of one regime: the honest row is audited in all."""
    policy = installed.root / "leaderboard/policy/policy.toml"
    text = policy.read_text(encoding="utf-8")
    less = text.replace(REGIMES, '["full"]')
    policy.write_text(less.replace(f"drawn = {TASKS} ", "drawn = 1 "), encoding="utf-8")
    yield
    policy.write_text(text, encoding="utf-8")


def ran(installed: Installed, *arguments: str) -> Ended:
    done = installed.run("geneb_ci", *arguments, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def planned(installed: Installed, model_id: str, *sample: str) -> str:
    c, p = f"{model_id}.c.json", f"{model_id}.p.json"
    done = ran(installed, "audit", "commit", f"submissions/{model_id}.json", "--output", c)
    assert done.code == 0, done.err
    beacon = ("--committed-at", COMMITTED_AT, "--beacon-file", "round.json")
    done = ran(installed, "audit", "plan", c, *beacon, *sample, "--output", p)
    assert done.code == 0, done.err
    return p


def records(installed: Installed, model_id: str) -> list[Path]:
    result = record_files(installed.root / "leaderboard" / "audits")
    return [path for path in result if path.parent.name == model_id]


def level(installed: Installed, model_id: str) -> dict[str, object]:
    done = ran(installed, "trust", "--format", "json")
    rows = json.loads(done.out)["rows"]
    return next(row for row in rows if row["model_id"] == model_id)


@pytest.mark.nightly  # in the gate, the extractor of a contributor: below
@pytest.mark.usefixtures("narrow")
def test_an_honest_row_of_a_built_in_extractor_becomes_verified(installed: Installed) -> None:
    plan = planned(installed, HONEST)
    with installed.in_sandbox():
        done = ran(installed, "audit", "run", plan, "--key", "key.pem")
    assert done.code == 0, done.err
    assert "agrees: 1 task rerun, every score within its tolerance" in done.out
    (record,) = records(installed, HONEST)
    assert ran(installed, "audit", "verify", str(record)).code == 0
    assert level(installed, HONEST)["level"] == "verified"
    assert_sound(record)


def assert_sound(record: Path) -> dict[str, Any]:
    """Return what a record says of a rerun in a sandbox that gave the same predictions."""
    outcome: dict[str, Any] = json.loads(parse_envelope(record.read_bytes()).payload)["predicate"]
    assert outcome["verdict"] == "agrees"
    full = [task["regimes"]["full"] for task in outcome["tasks"]]
    assert [regime["predictions_equal"] for regime in full] == [True]
    assert outcome["sandbox"]["level"] == 2
    assert all(escape["refused"] for escape in outcome["sandbox"]["escapes"])
    return outcome


@pytest.mark.usefixtures("narrow")
def test_a_consistent_forgery_is_disputed(installed: Installed) -> None:
    checked = ran(installed, "check", "--select", "arithmetic", f"submissions/{FORGED}.json")
    assert checked.code == 0, "arithmetic cannot tell it"
    done = ran(installed, "audit", "run", planned(installed, FORGED), "--key", "key.pem")
    assert done.code == 11, done.err
    assert done.out.split("differs: ")[1].startswith("mini_"), "each task was raised"
    assert level(installed, FORGED)["level"] == "disputed"
    built = ran(installed, "build", "--no-diagnostics", "--output", "board")
    assert built.code == 0, built.err
    rows = json.loads((installed.root / "board/leaderboard.json").read_bytes())["data"]["full"]
    row = next(row for row in rows if row["model"] == FORGED)
    assert (row["submitted"], row["audit"]["verdict"]) == ("disputed", "differs")


def community(installed: Installed, model_id: str, source: str = MODULE, scale: str = "2") -> Path:
    folder = installed.root / "submissions" / "extractors"
    folder.mkdir(exist_ok=True)
    module = folder / f"{model_id}.py"
    module.write_text(source, encoding="utf-8")
    installed.run(
        *("reference_harness", "run", "--extractor", f"{module}:Composition"),
        *("--option", f"scale={scale}", "--output", f"{model_id}.record.json"),
        *(
            "--tasks",
            ",".join(SOME),
            "--model-id",
            model_id,
            "--submission",
            f"submissions/{model_id}.json",
            "--quiet",
        ),
    )
    return module


@pytest.mark.usefixtures("narrow")
def test_an_honest_row_becomes_verified(installed: Installed) -> None:
    """The module of a contributor and its options travel into the sandbox."""
    community(installed, "composition")
    plan = planned(installed, "composition")
    with installed.in_sandbox():
        done = ran(installed, "audit", "run", plan, "--key", "key.pem")
    assert done.code == 0, done.err + done.out
    assert "agrees: 1 task rerun, every score within its tolerance" in done.out
    (record,) = records(installed, "composition")
    assert ran(installed, "audit", "verify", str(record)).code == 0
    assert level(installed, "composition")["level"] == "verified"
    outcome = assert_sound(record)
    assert outcome["plan"]["commitment"]["extractor"]["options"] == {"scale": "2"}
    assert all(task["regimes"]["full"]["canonical"] is None for task in outcome["tasks"])


def test_what_changed_since_the_commitment_is_refused_by_name(installed: Installed) -> None:
    module = community(installed, "moved")
    plan = planned(installed, "moved")
    stored_bytes = module.read_bytes()
    module.write_bytes(stored_bytes + b"# another\n")
    done = ran(installed, "audit", "run", plan, "--unsigned")
    assert (done.code, "the extractor 'moved.py' is not the one that ran" in done.err) == (11, True)
    module.write_bytes(stored_bytes)
    (module.parent / "neighbour.py").write_text("", encoding="utf-8")
    done = ran(installed, "audit", "run", plan, "--unsigned")
    assert "the extractors' folder in this checkout has sha256 " in done.err
    (module.parent / "neighbour.py").unlink()
    submission = installed.root / "submissions" / "moved.json"
    submission.write_bytes(submission.read_bytes() + b"\n")
    done = ran(installed, "audit", "run", plan, "--unsigned")
    assert (done.code, "the submission in this checkout has sha256 " in done.err) == (11, True)


def test_a_plan_that_does_not_recompute_is_refused_before_anything_runs(
    installed: Installed, honest_plan: str
) -> None:
    plan = installed.root / honest_plan
    changed = json.loads(plan.read_bytes())
    changed["chosen"][0]["task"], changed["chosen"][1]["task"] = (
        changed["chosen"][1]["task"],
        changed["chosen"][0]["task"],
    )
    (installed.root / "changed.json").write_text(json.dumps(changed), encoding="utf-8")
    done = ran(installed, "audit", "run", "changed.json", "--unsigned")
    assert (done.code, done.out) == (11, "")
    assert done.err.startswith("geneb-ci: sample: the drawn tasks are not in the order of their")


# In the gate, what a sandbox reports of an extractor that fails: tests/sandbox/test_run_hostile.py;
# what an audit makes of it: test_rerun_faults.py.
@pytest.mark.nightly
@pytest.mark.usefixtures("narrow")
def test_an_extractor_that_fails_ends_the_audit_with_its_own_words(installed: Installed) -> None:
    outside = f"import os\n        assert os.path.exists({str(installed.root)!r}), 'no home here'"
    broken = MODULE.replace("rows = [[", f"{outside}\n        rows = [[")
    community(installed, "homesick", broken)
    plan = planned(installed, "homesick")
    with installed.in_sandbox():
        done = ran(installed, "audit", "run", plan, "--unsigned")
    assert done.code == 3
    assert "no home here" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ((), 2, "key"),
        (("--unsigned", "--level", "0"), 2, "--i-wrote-this-code"),
        (("--unsigned", "--level", "4"), 2, "--throw-away-machine"),
        (("--unsigned", "--noise", "bfloat16"), 2, "declares float32"),
        (("--unsigned", "--copies", "3"), 2, "--copies"),
        (("--unsigned", "--data", "submissions"), 3, "`geneb-harness sequences` failed"),
    ],
)
def test_what_is_missing_or_contradicts_is_said(
    installed: Installed, honest_plan: str, options: tuple[str, ...], code: int, message: str
) -> None:
    done = ran(installed, "audit", "run", honest_plan, *options)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert "Traceback" not in done.err


def test_what_is_left_of_an_audit_stops_the_next_and_is_named(
    installed: Installed, honest_plan: str
) -> None:
    scratch = Path(installed.environment["TMPDIR"]) / f"geneb-ci-audit-{os.getuid()}"
    scratch.mkdir()
    done = ran(installed, "audit", "run", honest_plan, "--unsigned")
    assert done.code == 3
    assert str(scratch) in done.err
    shutil.rmtree(scratch)
