"""The task data to the Hub and back: the revision that push prints is one that pull can pin."""

import gzip
import re
import shutil

import pytest

from reference_harness import mini
from reference_harness.data import benchmark
from reference_harness.data.task_folder import Folder
from tests.harness.support import write_flat, write_remote
from tests.paths import ROOT
from tests.publish.command import environment, geneb_ci
from tests.publish.hub import READER, WRITER, Fault

NAME = "geneb/task-data"
RESOURCE = f"datasets/{NAME}"
DEFINITION = ("--benchmark", str(ROOT / "schemas/benchmark-mini.json"))
MINI = benchmark.mini()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write all tasks of mini, in both layouts and gzipped in parts."""
    data_folder = tmp_path_factory.mktemp("written") / "data"
    for number, task in enumerate(mini.TASKS):
        if number % 2:
            write_remote(mini.load(task.id), data_folder)
        else:
            path = write_flat(mini.load(task.id), data_folder)
            path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    return data_folder


@pytest.fixture
def folder(written, tmp_path):
    """Lend a copy of the tasks."""
    return shutil.copytree(written, tmp_path / "data")


@pytest.fixture
def run(hub, tmp_path):
    def run(*arguments, token=WRITER, **more):
        env = environment(hub, tmp_path, HF_TOKEN=token, **more)
        return geneb_ci("data", *arguments, cwd=tmp_path, env=env)

    return run


@pytest.mark.parametrize(
    ("way", "steps"),
    [
        ({}, {"xet-write-token", "cas-xorb", "cas-shard", "cas-reconstruction", "cas-fetch"}),
        pytest.param(
            {"HF_HUB_DISABLE_XET": "1"},
            {"lfs-batch", "lfs-put", "cas-bridge"},
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_push_then_pull_gives_the_same_tasks(hub, run, folder, tmp_path, way, steps):
    repo = hub.create(RESOURCE, {"LICENSE": b"theirs", "tasks/old/train.csv": b"text,label\n"})
    repo.lfs_over = 20_000
    code, output, errors = run("push", str(folder), "--repo", NAME, *DEFINITION, **way)
    assert (code, errors) == (0, "")
    assert output.splitlines()[1:] == [
        f"{RESOURCE}: pushed",
        f"revision to pin in schemas/benchmark.json: {repo.head.oid}",
    ]
    assert repo.large
    ids = [task.id for task in mini.TASKS]
    assert sorted(repo.head.tree) == sorted(
        [
            *("LICENSE", "README.md"),
            *(f"flat/{model_id}.csv" for model_id in ids),
            *(f"tasks/{model_id}/{split}.csv" for model_id in ids for split in ("train", "test")),
        ]
    )
    assert len(repo.commits) == 2
    definition = tmp_path / "pinned.json"
    text = (ROOT / "schemas/benchmark-mini.json").read_text()
    text = re.sub(r'("repo_id": )"[^"]*"', rf'\1"{NAME}"', text)
    definition.write_text(re.sub(r'("revision": )"[0-9a-f]{40}"', rf'\1"{repo.head.oid}"', text))
    pinned = benchmark.load(definition)
    pulled = ("pull", str(tmp_path / "back"), "--benchmark", str(definition))
    code, output, _ = run(*pulled, **way)
    calls = {step for step in hub.calls if step.startswith(("xet", "cas", "lfs"))}
    assert calls >= steps
    assert (code, output) == (
        0,
        f"{tmp_path / 'back'}: {len(ids)} tasks, {2 * len(ids)} files at {repo.head.oid}\n",
    )
    source = Folder(tmp_path / "back", pinned)
    assert source.verified
    for task in pinned.tasks:
        assert source.load(task).sha256 == mini.load(task.id).sha256
    code, output, _ = run("push", str(tmp_path / "back"), "--repo", NAME, *DEFINITION)
    assert (code, output.splitlines()[1]) == (0, f"{RESOURCE}: nothing changed")
    assert len(repo.commits) == 2


@pytest.mark.nightly  # the board's commits are made alike: test_faults.py
def test_a_lost_answer_makes_one_revision(hub, run, folder):
    repo = hub.create(RESOURCE)
    hub.faults = [Fault("commit", 500, after=True)]
    code, output, errors = run("push", str(folder), "--repo", NAME, *DEFINITION)
    assert (code, len(repo.commits)) == (0, 2)
    assert errors == "try 1 of 6 failed: the Hub failed (500); next try in 2 s\n"
    assert repo.head.oid in output


def test_what_is_not_whole_is_not_pushed(hub, run, folder):
    repo = hub.create(RESOURCE)
    gone = mini.TASKS[0].id
    (folder / f"{gone}.csv.gz").unlink()
    code, _, errors = run("push", str(folder), "--repo", NAME, *DEFINITION)
    assert code == 3
    assert errors == (
        f"geneb-ci: {folder} lacks 1 task of GENEB-mini: {gone}\n"
        f"  fix: name a folder with every task; to fetch them: geneb-ci data pull {folder}\n"
    )
    assert len(repo.commits) == 1


def test_bad_content_is_refused_before_a_token_is_read_or_anything_is_sent(hub, run, folder):
    hub.create(RESOURCE)
    broken = folder / f"{mini.TASKS[0].id}.csv.gz"
    lines = gzip.decompress(broken.read_bytes()).splitlines(keepends=True)
    broken.write_bytes(gzip.compress(b"".join(lines[:-9])))
    before = len(hub.calls)
    code, _, errors = run("push", str(folder), "--repo", NAME, *DEFINITION, token="")
    assert code == 3
    assert mini.TASKS[0].id in errors
    assert "token" not in errors
    assert len(hub.calls) == before


@pytest.mark.parametrize(
    ("name", "token", "message"),
    [
        pytest.param(
            *(NAME, READER, f"the token may not write to {RESOURCE} (403)"),
            marks=pytest.mark.nightly,
        ),
        ("geneb/none", WRITER, "datasets/geneb/none does not exist"),
    ],
)
def test_errors_say_what_to_do(hub, run, folder, name, token, message):
    hub.create(RESOURCE)
    code, _, errors = run("push", str(folder), "--repo", name, *DEFINITION, token=token)
    assert (code, message in errors) == (1, True)
    assert "fix: " in errors


def test_help_names_every_verb(run):
    code, output, _ = run("--help")
    assert code == 0
    for verb in ("pull", "verify", "manifest", "push"):
        assert f"\n  {verb} " in output
    code, output, _ = run("push", "--help")
    assert (code, output.startswith("Usage: geneb-ci data push")) == (0, True)
