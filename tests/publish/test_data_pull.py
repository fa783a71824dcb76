"""`data pull`, `verify` and `manifest` as a user runs them, against the Hub of the tests.

`geneb-ci` hands them to the harness, which tests/cli/test_harness.py tests.
"""

import json
import re
import signal
import threading
from pathlib import Path

import pytest

from reference_harness import mini
from tests import forked
from tests.harness.support import write_flat, write_remote
from tests.paths import ROOT
from tests.publish.command import environment
from tests.publish.hub import Fault, Hub

NAME = "geneb/task-data"
IDS = [task.id for task in mini.TASKS]
KILLED_AT = 13  # files, of which the client fetches eight at once: five are whole by then


@pytest.fixture
def repo(hub, tmp_path):
    """Put all tasks of mini on the Hub."""
    path = tmp_path / "there"
    for model_id in IDS:
        write_remote(mini.load(model_id), path)
    tree = {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*.csv")}
    return hub.create(f"datasets/{NAME}", tree | {"flat/x.csv": b"not fetched", "README.md": b""})


@pytest.fixture
def pinned(repo, tmp_path):
    """Write a benchmark that pins the data as they are, and give the options that name it."""
    text = (ROOT / "schemas/benchmark-mini.json").read_text()
    text = re.sub(r'("repo_id": )"[^"]*"', rf'\1"{NAME}"', text)
    path = tmp_path / "pinned.json"
    path.write_text(re.sub(r'("revision": )"[0-9a-f]{40}"', rf'\1"{repo.head.oid}"', text))
    return "--benchmark", str(path)


@pytest.fixture
def run(hub, pinned, tmp_path):
    def run(verb, *arguments, of=hub):
        env = environment(of, tmp_path / "home")
        words = ("data", verb, *map(str, arguments), *pinned)
        done = forked.run("reference_harness", *words, cwd=tmp_path, env=env)
        return done.returncode, done.stdout, done.stderr

    return run


def held(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.csv")}


@pytest.mark.nightly  # in the gate, of an audit: tests/audit/test_audit_kills.py
def test_a_download_that_is_killed_goes_on_where_it_was(hub, repo, run, pinned, tmp_path):
    here = tmp_path / "here"
    expected = {name: raw for name, raw in repo.head.tree.items() if name.startswith("tasks/")}
    halves, guard, killed = iter(range(len(expected))), threading.Lock(), threading.Event()

    def kill(step, when):
        if (step, when) == ("resolve", "half"):
            with guard:
                number = next(halves)
            if number == KILLED_AT:
                process.kill()
                process.wait(30)
                killed.set()
            elif number > KILLED_AT:
                killed.wait(30)

    hub.watch = kill
    # Who kills the command kills the download: there is no child that would go on.
    env = environment(hub, tmp_path / "home")
    words = ("data", "pull", str(here), *pinned)
    process = forked.start("geneb_ci", *words, cwd=tmp_path, env=env)
    process.communicate(60)
    assert (killed.wait(30), process.returncode) == (True, -signal.SIGKILL)
    whole = held(here)
    assert 0 < len(whole) < len(expected)
    assert whole.items() <= expected.items(), "no file is in its place by halves"
    # The client notes a file after it has put it in its place: at the kill, one may be there whose
    # note is not, or is empty. A note has commit, ETag and time.
    notes = {name: here / f".cache/huggingface/download/{name}.metadata" for name in whole}
    noted = {n for n, note in notes.items() if note.is_file() and note.read_text().count("\n") == 3}
    assert noted
    code, _, errors = run("verify", here)
    assert code != 0
    assert "no manifest.json" in errors
    again = Hub()
    again.shelf.repos = hub.shelf.repos
    code, output, _ = run("pull", here, of=again)
    again.close()
    assert code == 0
    assert output == f"{here}: {len(IDS)} tasks, {2 * len(IDS)} files at {repo.head.oid}\n"
    assert sorted(again.served) == sorted(expected.keys() - noted)
    assert held(here) == expected


def test_what_was_pulled_is_verified_and_its_manifest_says_the_same(repo, run, tmp_path):
    here = tmp_path / "here"
    assert run("pull", here)[0] == 0
    code, output, _ = run("verify", here)
    assert (code, output) == (0, f"{here}: {len(IDS)} tasks verified, revision {repo.head.oid}\n")
    code, output, _ = run("manifest", here)
    assert code == 0
    assert json.loads(output) == json.loads((here / "manifest.json").read_bytes())
    file = here / f"tasks/{IDS[0]}/test.csv"
    file.write_bytes(file.read_bytes().replace(b"A", b"C", 1))
    code, output, errors = run("verify", here)
    assert (code, output) == (3, "")
    assert re.search(
        r"test\.csv: sha256 [0-9a-f]{64}, expected [0-9a-f]{64} as in manifest\.json", errors
    )


def test_a_local_layout_is_used_in_place(run, tmp_path):
    """One file a task, as somebody has them: described where they lie, nothing is copied."""
    here = tmp_path / "flat"
    for model_id in IDS:
        write_flat(mini.load(model_id), here)
    before = {path.name for path in here.iterdir()}
    code, output, errors = run("manifest", here)
    assert (code, errors) == (0, "")
    document = json.loads(output)
    assert sorted(document["files"]) == sorted(before)
    assert {name: facts["sha256"] for name, facts in document["tasks"].items()} == {
        model_id: mini.load(model_id).sha256 for model_id in IDS
    }
    assert {path.name for path in here.iterdir()} == before


def test_only_a_commit_pins_a_revision(hub, run, tmp_path):
    code, output, errors = run("pull", tmp_path / "here", "--revision", "main")
    assert (code != 0, output) == (True, "")
    assert "--revision 'main': expected the 40 hex digits of a commit" in errors
    assert hub.calls == []


def test_a_hub_that_fails_is_a_sentence(hub, run, tmp_path):
    hub.faults = [Fault("tree", 404)] * 9
    code, output, errors = run("pull", tmp_path / "here")
    assert (code != 0, output) == (True, "")
    assert f"{hub.endpoint}/datasets/{NAME} at " in errors
    assert "Traceback" not in errors
