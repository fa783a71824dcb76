"""Which changes run the suite: all but those of submissions alone, and every doubtful one."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.git import git
from tests.paths import ROOT

FILES = {
    "submissions/a.json": "{}",
    "submissions/cards/a.md": "# a",
    "geneb_ci/x.py": "x = 1",
    "README.md": "# r",
}


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")


def commit(root: Path, message: str = "a change") -> str:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(root, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("begun")
    for name, text in FILES.items():
        write(root, name, text)
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root)
    return root


@pytest.fixture
def repository_folder(begun: Path, tmp_path: Path) -> Path:
    return shutil.copytree(begun, tmp_path / "place")


def says(root: Path, event: str, before: str = "") -> str:
    done = subprocess.run(
        ["sh", str(ROOT / "tools/changed-code")],
        cwd=root,
        env={"PATH": os.environ["PATH"], "EVENT": event, "BEFORE": before},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def moved(old: str, new: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        (root / old).rename(root / new)

    return change


def put(*names: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        for name in names:
            write(root, name, "changed")

    return change


def submodule(root: Path) -> None:
    """Add one that git's own settings in the tree tell it to overlook."""
    write(root, ".gitmodules", '[submodule "s"]\n path = s\n url = ./s\n ignore = all\n')
    oid = git(root, "rev-parse", "HEAD")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{oid},s")


def folder_to_file(root: Path) -> None:
    git(root, "rm", "-rq", "submissions")
    write(root, "submissions", "no folder")


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a-row": (put("submissions/b.json", "submissions/cards/b.md"), "false"),
    "an-extractor": (put("submissions/extractors/b.py"), "false"),
    "a-row-corrected": (put("submissions/a.json"), "false"),
    "a-row-withdrawn": (lambda root: (root / "submissions/a.json").unlink(), "false"),
    "a-name-with-a-newline": (put("submissions/b\n.json"), "false"),
    "code": (put("geneb_ci/x.py"), "true"),
    "a-row-and-code": (put("submissions/b.json", "geneb_ci/x.py"), "true"),
    "a-row-and-a-new-file": (put("submissions/b.json", "conftest.py"), "true"),
    "a-workflow": (put("submissions/b.json", ".github/workflows/ci.yml"), "true"),
    "a-name-that-begins-so": (put("submissions.py"), "true"),
    "a-folder-of-that-name": (put("geneb_ci/submissions/x.py"), "true"),
    "code-moved-among-rows": (moved("geneb_ci/x.py", "submissions/extractors/x.py"), "true"),
    "a-row-moved-out": (moved("submissions/a.json", "a.json"), "true"),
    "a-name-with-an-exclamation-mark": (put(":!x.py"), "true"),
    "a-submodule": (submodule, "true"),
    "a-file-instead-of-the-folder": (folder_to_file, "true"),
    "nothing": (lambda _: None, "true"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_push_or_a_group(repository_folder: Path, name: str):
    change, expected = CHANGES[name]
    before = git(repository_folder, "rev-parse", "HEAD")
    change(repository_folder)
    commit(repository_folder)
    answers_by_event = {
        event: says(repository_folder, event, before) for event in ("push", "merge_group")
    }
    assert answers_by_event == dict.fromkeys(answers_by_event, f"code={expected}")


@pytest.mark.parametrize("name", CHANGES)
def test_a_pull_request_of_two_commits(repository_folder: Path, name: str):
    """Main moves on meanwhile; the last commit of the pull request is a row."""
    change, expected = CHANGES[name]
    git(repository_folder, "checkout", "--quiet", "-b", "theirs")
    change(repository_folder)
    before = commit(repository_folder)
    if name not in {"nothing", "a-file-instead-of-the-folder"}:
        write(repository_folder, "submissions/last.json", "{}")
        commit(repository_folder)
    git(repository_folder, "checkout", "--quiet", "--force", "main")
    write(repository_folder, "tools/new.py", "")
    commit(repository_folder)
    git(repository_folder, "merge", "--quiet", "--no-ff", "--message", "as GitHub merges", "theirs")
    assert says(repository_folder, "pull_request", before) == f"code={expected}"


@pytest.mark.parametrize("before", ["", "0" * 40, "1" * 40, "no-such", "HEAD:submissions"])
def test_a_push_after_nobody_knows_what(repository_folder: Path, before: str):
    write(repository_folder, "submissions/b.json", "{}")
    commit(repository_folder)
    assert says(repository_folder, "push", before) == "code=true"


@pytest.mark.parametrize("event", ["pull_request", "workflow_dispatch", ""])
def test_what_is_no_merge_commit_and_no_push_runs_all(repository_folder: Path, event: str):
    before = git(repository_folder, "rev-parse", "HEAD")
    write(repository_folder, "submissions/b.json", "{}")
    commit(repository_folder)
    assert says(repository_folder, event, before) == "code=true"


CI = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("changes", "code", "tests", "tutorials", "expected"),
    [
        ("success", "true", "success", "success", 0),
        ("success", "false", "skipped", "skipped", 0),
        ("success", "true", "success", "failure", 1),
        ("success", "true", "success", "skipped", 1),
        ("success", "true", "skipped", "success", 1),
        ("success", "true", "failure", "success", 1),
        ("success", "true", "cancelled", "success", 1),
        ("success", "false", "success", "success", 1),
        ("success", "", "skipped", "skipped", 1),
        ("failure", "", "skipped", "skipped", 1),
        ("cancelled", "", "cancelled", "cancelled", 1),
    ],
)
def test_the_job_that_is_required_reports_what_was_run(changes, code, tests, tutorials, expected):
    (step,) = CI["jobs"]["ci"]["steps"]
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        env={
            "PATH": os.environ["PATH"],
            "CHANGES": changes,
            "CODE": code,
            "TEST": tests,
            "TUTORIALS": tutorials,
        },
        capture_output=True,
        check=False,
    )
    assert done.returncode == expected


def test_the_job_that_is_required_runs_on_every_change():
    """A workflow with a filter of paths never reports, and a required check would wait for ever."""
    job = CI["jobs"]["ci"]
    assert (job["if"], set(job["needs"])) == ("always()", set(CI["jobs"]) - {"ci"})
    events = dict(CI[True])  # YAML 1.1 reads `on` as true
    assert events.pop("schedule") == [{"cron": "41 1 * * *"}]  # with the tests of the night
    assert events == {"push": {"branches": ["main"]}, "pull_request": None, "merge_group": None}
    for name in ("test", "tutorials"):
        assert CI["jobs"][name]["if"] == "needs.changes.outputs.code == 'true'"


def test_a_push_is_never_cancelled_by_the_next():
    """The next one may touch submissions alone: then the code of the first would go untested."""
    number = "${{ github.event.pull_request.number || github.sha }}"
    assert CI["concurrency"]["group"] == f"ci-${{{{ github.event_name }}}}-{number}"


def test_the_real_tasks_are_supplied_to_the_gate():
    supply, gate = CI["jobs"]["test"]["steps"][-2:]
    assert (supply["id"], supply["run"]) == ("real-tasks", "make real-tasks")
    assert supply["env"] == {"FORK": "${{ github.event.repository.fork }}"}
    assert gate == {
        "env": {
            "GENEB_REAL_TASKS": "${{ steps.real-tasks.outputs.folder }}",
            "TESTS": "${{ github.event_name == 'schedule' && 'test-all' || 'test' }}",
        },
        "run": ".ci/run",
    }


def test_a_change_of_submissions_alone_is_checked_before_and_after_the_merge():
    before = yaml.safe_load((ROOT / ".github/workflows/pr-validate.yml").read_text("utf-8"))
    after = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text("utf-8"))
    assert {"opened", "synchronize", "reopened"} <= {*before[True]["pull_request"]["types"]}
    assert before[True].keys() == {"pull_request", "merge_group"}
    assert "submissions/**" in after[True]["push"]["paths"]
