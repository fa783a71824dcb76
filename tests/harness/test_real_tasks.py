"""`make real-tasks` against the Hub of the tests, and what a run without the tasks says."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reference_harness import mini
from reference_harness.data import benchmark, task_folder
from tests import forked
from tests.gate import gated
from tests.harness.conftest import PINNED
from tests.harness.support import write_remote
from tests.paths import ROOT
from tests.publish.command import environment
from tests.publish.hub import Hub

NAME = "geneb/task-data"
IDS = [task.id for task in mini.TASKS][:2]
PATIENCE = 120
"""Seconds for one command of a busy machine."""


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()
    yield hub
    hub.close()


def served(hub: Hub, folder: Path, definition: str, task_folder: Path) -> Path:
    """Put a folder of tasks on the Hub; return a benchmark that pins it as it is there."""
    tree = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.csv")}
    repo = hub.create(f"datasets/{NAME}", tree)
    text = (ROOT / f"schemas/{definition}").read_text()
    text = re.sub(r'("repo_id": )"[^"]*"', rf'\1"{NAME}"', text, count=1)
    path = task_folder / "pinned.json"
    path.write_text(re.sub(r'("revision": )"[0-9a-f]{40}"', rf'\1"{repo.head.oid}"', text))
    return path


def run(
    hub: Hub, folder: Path, pinned: Path, pins: Path, **more: str
) -> tuple[int, list[str], str]:
    """Run the tool as make does; return its exit code, lines and what it gave to the next step."""
    code = (
        "import sys; from pathlib import Path; from tools.real_tasks import main;"
        "sys.exit(main(Path('real'), ['--benchmark', sys.argv[1]], Path(sys.argv[2])))"
    )
    output = folder / "output"
    output.touch()
    env = environment(hub, folder / "home", HF_HUB_DISABLE_XET="1", GITHUB_OUTPUT=str(output))
    words = ("tools.real_tasks", str(pinned), str(pins))
    process = forked.start(*words, cwd=folder, env=env | more, code=code)
    message, _ = process.communicate(PATIENCE)
    return process.returncode, message.splitlines(), output.read_text()


@pytest.fixture
def small(hub: Hub, tmp_path: Path) -> tuple[Path, Path]:
    """Serve two tasks of mini; return the benchmark that pins them and the file of digests."""
    for model_id in IDS:
        write_remote(mini.load(model_id), tmp_path / "there")
    pins = tmp_path / "pins.json"
    pins.write_text(
        json.dumps({"tasks": {model_id: mini.load(model_id).sha256 for model_id in IDS}})
    )
    return served(hub, tmp_path / "there", "benchmark-mini.json", tmp_path), pins


@pytest.mark.nightly  # in the gate: other content, and a Hub that has them not
def test_tasks_as_pinned_are_handed_to_the_next_step(hub, small, tmp_path):
    code, lines, output = run(hub, tmp_path, *small)
    assert (code, lines[-1]) == (0, "real tasks: 2 in real, as pinned")
    assert output == f"folder={tmp_path / 'real'}\n"
    assert sorted(p.name for p in (tmp_path / "real/tasks").iterdir()) == sorted(IDS)


def test_other_content_stops_the_job_even_in_a_fork(hub, small, tmp_path):
    pinned, pins = small
    pins.write_text(json.dumps({"tasks": {IDS[0]: mini.load(IDS[0]).sha256, IDS[1]: "0" * 64}}))
    code, lines, output = run(hub, tmp_path, pinned, pins, FORK="true")
    assert (code, output) == (1, "")
    assert lines[-1] == (
        f"real tasks: {IDS[1]}: the contents differ from the digests in pins.json; "
        "if the benchmark pins a new revision, review the changes and update these digests"
    )


ABSENT = (
    ("true", 0, "the tests that need them will not run"),
    ("false", 1, "run this job again"),
    ("", 1, "run this job again"),
)


@pytest.mark.parametrize(("fork", "code", "then"), gated(ABSENT, ABSENT[1]))
def test_a_hub_that_has_them_not_stops_upstreams_job_alone(hub, small, tmp_path, fork, code, then):
    hub.shelf.repos.clear()
    result, lines, output = run(hub, tmp_path, *small, FORK=fork)
    assert (result, output) == (code, "")
    assert lines[-1] == (f"real tasks: they could not be fetched (see above); {then}")


@pytest.mark.nightly  # in the gate: other content, and a Hub that has them not
def test_the_real_tasks_come_from_a_hub_as_pinned(hub, real_tasks, tmp_path):
    bench = benchmark.geneb()
    source = task_folder.Folder(real_tasks, bench)
    for pinned_task in PINNED:
        write_remote(source.load(bench.by_id[pinned_task]), tmp_path / "there")
    pinned = served(hub, tmp_path / "there", "benchmark.json", tmp_path)
    code, lines, _ = run(hub, tmp_path, pinned, ROOT / "tests/real_tasks.json")
    assert (code, lines[-1]) == (0, "real tasks: 6 in real, as pinned")


ONE = "tests/harness/test_harness_data.py::test_audit_finds_what_the_real_tasks_have"


def suite(nowhere: Path, **environment: str) -> tuple[int, str]:
    """Run a test that needs the tasks, where they are in none of their places."""
    code = (
        "import sys, pytest, tests.paths; from pathlib import Path;"
        "tests.paths.REAL_TASKS = Path(sys.argv[1]);"
        "sys.exit(pytest.main(['--assert=plain', '-p', 'no:cacheprovider', sys.argv[2]]))"
    )
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "GENEB_"))}
    words = ("pytest", str(nowhere), ONE)
    process = forked.start(*words, cwd=ROOT, env=clean | environment, code=code)
    message, _ = process.communicate(PATIENCE)
    return process.returncode, message


def test_without_the_tasks_a_run_passes_and_says_how_many_did_not_run(tmp_path):
    code, output = suite(tmp_path, CI="true")
    assert code == 0
    assert "not run: 1 tests need the six real tasks (`make real-tasks`)" in output


@pytest.mark.nightly  # in the gate: other content, and a Hub that has them not
def test_a_job_that_declares_the_tasks_and_lacks_them_fails(tmp_path):
    code, output = suite(tmp_path, GENEB_REAL_TASKS=str(tmp_path))
    assert code == 1
    assert "run `make real-tasks`" in output
