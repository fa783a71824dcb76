"""The commands of an audit: which files each opens, and that a sample is drawn once."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import forked
from tests.audit import place as committed
from tests.audit import unboxed
from tests.audit.installed import Installed
from tests.audit.recorded import outcome_of, plan_for, put, repository, submission_bytes, withdraw
from tools.demo_audit import COMMITTED_AT

MODEL = "two-mers"
TASKS = "mini_splice,mini_promoter"


class Traced(NamedTuple):
    """What one command did."""

    opened: dict[str, int]
    """Files of the repository that were opened for reading, and how often."""
    calls: list[tuple[str, str]]


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Traced]:
    """Run the commands of one audit, from its commitment to the label of its row."""
    installed = Installed(tmp_path_factory.mktemp("audit"), drawn=1)
    installed.environment |= {"TMPDIR": str(tmp_path_factory.mktemp("scratch"))}
    installed.audit_one_regime()
    installed.run(
        *("reference_harness", "run", "--extractor", "kmer", "--option", "k=2", "--quiet"),
        *("--tasks", TASKS, "--output", "record.json", "--model-id", MODEL),
        *("--submission", f"submissions/{MODEL}.json", "--submitted-by", "a test"),
        *("--receipt", "receipt"),
    )
    beacon = ("--committed-at", COMMITTED_AT, "--beacon-file", "round.json")
    file = ("audit", f"submissions/{MODEL}.json", "--practice", "--unsigned")
    receipt = ("--sample", "embeddings", "--size", "60", "--receipt", "receipt")
    commands = {
        "file": (*file, "--work", "work"),
        "file by receipt": (*file, *receipt, "--work", "work-by-receipt"),
        "commit": ("audit", "commit", f"submissions/{MODEL}.json", "--output", "c.json"),
        "plan": ("audit", "plan", "c.json", *beacon, "--targeted", "1", "--output", "p.json"),
        "run": ("audit", "run", "p.json", "--key", "key.pem"),
        "verify": ("audit", "verify"),
        "trust": ("trust", "--format", "json"),
    }
    # With earlier scores, a file of the receipt would be read once more: for their key.
    without = {k: v for k, v in installed.environment.items() if k != unboxed.SCORES}
    return {
        name: traced(
            installed.root,
            without if name == "file by receipt" else installed.environment,
            *arguments,
        )
        for name, arguments in commands.items()
    }


def traced(root: Path, environment: Mapping[str, str], *arguments: str) -> Traced:
    root = root.resolve()
    out = root.with_name("trace.json")
    script = Path(__file__).with_name("traced.py")
    code = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    done = forked.start(
        *("traced", str(out), *arguments),
        cwd=root, env=environment, before=Path(unboxed.__file__), code=code,
    )  # fmt: skip
    errors = done.communicate()[1]
    assert done.returncode == 0, errors
    document: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    inside = {Path(path): count for path, count in document["opened"].items()}
    return Traced(
        {
            path.relative_to(root).as_posix(): count
            for path, count in inside.items()
            if path.is_relative_to(root) and path.is_file()
        },
        [(caller, callee) for caller, callee in document["calls"]],
    )


@pytest.mark.parametrize("command", ["commit", "plan", "run", "verify"])
def test_each_file_is_read_once(journey, command):
    opened = journey[command].opened
    assert opened == dict.fromkeys(opened, 1)
    expected = {"schemas/benchmark.json", f"submissions/{MODEL}.json"}
    files = {
        "commit": {"leaderboard/policy/policy.toml"},
        "plan": {"leaderboard/policy/policy.toml", "c.json", "round.json"},
        "run": {"leaderboard/policy/keys.json", "p.json", "key.pem"},
        "verify": {"leaderboard/policy/keys.json", "leaderboard/policy/policy.toml"},
    }
    assert opened.keys() >= expected | files[command]
    records = [name for name in opened if name.startswith("leaderboard/audits/")]
    # A run reads the start that it signed, which its record names.
    assert len(records) == {"run": 1, "verify": 2}.get(command, 0)


@pytest.mark.parametrize("command", ["file", "file by receipt"])
def test_a_whole_audit_reads_the_submission_once(journey, command):
    opened = journey[command].opened
    assert {path: opened[path] for path in opened if "submissions/" in path} == {
        f"submissions/{MODEL}.json": 1
    }


def test_an_audit_by_receipt_verifies_each_file_of_it_once(journey):
    """A file may be larger than memory. It is digested, then mapped: for the cells, for the draw
    and, of some tasks, for a refit; one that has changed since is digested again."""
    traced = journey["file by receipt"]
    files = {f"receipt/{task}.f16" for task in TASKS.split(",")}
    opened = {path: n for path, n in traced.opened.items() if path.startswith("receipt/")}
    assert opened.keys() == files
    assert max(opened.values()) <= 4
    verified = [callee for _, callee in traced.calls if callee.endswith("receipt/source.py:_read")]
    assert len(verified) == len(files)


@pytest.mark.parametrize(
    ("command", "draws"), [("commit", 0), ("plan", 1), ("run", 1), ("verify", 1), ("trust", 1)]
)
def test_a_sample_is_drawn_once(journey, command, draws):
    """`run`, `verify` and `trust` draw to compare the plan with it."""
    for function in ("tickets_of", "sampled_tasks"):
        called = [callee for _, callee in journey[command].calls]
        assert called.count(f"geneb_ci/audit/sampling/design.py:{function}") == draws


def test_each_extractor_is_read_once(tmp_path):
    root = tmp_path / "place"
    committed.repository(root)
    opened = traced(root, os.environ, "audit", "commit", "submissions/model.json").opened
    assert opened == dict.fromkeys(opened, 1)
    assert opened.keys() >= {
        "submissions/extractors/model.py",
        "submissions/extractors/helper.py",
        "submissions/cards/model.md",
        "submissions/model.json",
    }


def test_each_record_and_withdrawal_is_read_once(tmp_path):
    raw = submission_bytes()
    root = repository(tmp_path / "place")
    record_path = put(root, outcome_of(plan_for(raw), raw))
    withdrawn = put(root, outcome_of(plan_for(raw), raw, shift=0.05))
    paths = [record_path, withdrawn, withdraw(withdrawn)]
    for command in (["audit", "verify"], ["trust"]):
        opened = traced(root, os.environ, *command).opened
        assert [opened[path.relative_to(root).as_posix()] for path in paths] == [1, 1, 1]
    verified = traced(root, os.environ, "audit", "verify").opened
    assert verified == dict.fromkeys(verified, 1)
