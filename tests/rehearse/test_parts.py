"""Parts of the rehearsal: triggers, outputs of steps, rights of tokens, interpreters, links."""

import sys
from pathlib import Path

import pytest

from tests.each import each
from tests.house.workflow_file import Workflow
from tools.rehearse import shell
from tools.rehearse.environments import CURRENT_INTERPRETER, Environments
from tools.rehearse.interpreters import NoInterpreter, find
from tools.rehearse.triggers import Event, chosen, starts
from tools.rehearse.workflow import Unsound, granted, in_order, matrix, workflows


def event(name: str, **facts) -> Event:
    return Event(name, "refs/heads/main", "0" * 40, **facts)


@each(
    ("on", "happened", "expected"),
    [
        ("push", event("push"), True),
        ("[push, pull_request]", event("schedule"), False),
        ("{push: {branches: [main]}}", event("push"), True),
        ("{push: {branches: [main]}}", event("push", branch="fork"), False),
        ("{push: {paths: [a/**]}}", event("push", paths=("a/b/c",)), True),
        ("{push: {paths: [a/**]}}", event("push", paths=("b/a",)), False),
        ("{pull_request: }", event("pull_request", payload={"action": "opened"}), True),
        ("{pull_request: }", event("pull_request", payload={"action": "labeled"}), False),
        (
            "{workflow_run: {workflows: [check], types: [completed]}}",
            event(
                "workflow_run", payload={"action": "completed", "workflow_run": {"name": "check"}}
            ),
            True,
        ),
        (
            "{workflow_run: {workflows: [check], types: [completed]}}",
            event(
                "workflow_run", payload={"action": "requested", "workflow_run": {"name": "check"}}
            ),
            False,
        ),
    ],
)
def test_what_an_event_starts(on, happened, expected):
    assert starts(Workflow("w.yml", f"on: {on}\n"), happened) is expected


@pytest.mark.parametrize(
    ("patterns", "name", "expected"),
    [
        (["submissions/**"], "submissions/cards/a.md", True),
        (["*.md"], "docs/a.md", False),
        (["**/*.md"], "a.md", True),
        (["**", "!docs/**"], "docs/a.md", False),
        (["**", "!docs/**", "docs/a.md"], "docs/a.md", True),
        (["pyproject.toml"], "pyprojectxtoml", False),
    ],
)
def test_patterns(patterns, name, expected):
    assert chosen(patterns, name) is expected


def test_an_unknown_filter_is_refused():
    with pytest.raises(Unsound):
        starts(Workflow("w.yml", "on: {push: {tags: [v1]}}\n"), event("push"))
    with pytest.raises(Unsound):
        chosen(["a?"], "a")


def test_outputs_of_a_step(tmp_path):
    file = tmp_path / "output"
    file.write_text("a=1=2\n\nlong<<END\none\ntwo\nEND\n")
    assert shell.values(file) == {"a": "1=2", "long": "one\ntwo"}
    for wrong in ("no value\n", "long<<END\none\n"):
        file.write_text(wrong)
        with pytest.raises(Unsound):
            shell.values(file)


@pytest.mark.parametrize(
    ("kind", "code"), [("", 0), ("bash", 1), ("sh", 0)], ids=["unnamed", "bash", "sh"]
)
def test_a_pipe_that_breaks_is_seen_where_the_runner_sees_it(tmp_path, kind, code):
    env = {"PATH": "/usr/bin:/bin"}
    ended = shell.run("false | cat\necho on", kind, tmp_path / "s.sh", env, tmp_path, 30)
    assert (ended.code, ended.output) == (code, "" if code else "on\n")


def test_a_step_that_hangs_is_ended(tmp_path):
    env = {"PATH": "/usr/bin:/bin"}
    ended = shell.run("echo begun; sleep 60", "", tmp_path / "s.sh", env, tmp_path, 0.5)
    assert (ended.code, ended.output) == (124, "begun\n\nstopped: it took longer than its limit")


def test_an_unknown_shell_is_refused(tmp_path):
    with pytest.raises(Unsound):
        shell.run("x", "pwsh", tmp_path / "s.sh", {}, tmp_path, 1)


def test_rights():
    workflow = Workflow("w.yml", "on: push\npermissions: {}\n")
    job = {"permissions": {"contents": "read", "pull-requests": "write", "issues": "none"}}
    reads = {"metadata:read", "contents:read", "pull_requests:read"}
    assert granted(workflow, job, fork=False) == reads | {"pull_requests:write"}
    assert granted(workflow, job, fork=True) == reads
    assert granted(workflow, {}, fork=False) == {"metadata:read"}
    with pytest.raises(Unsound):
        granted(workflow, {"permissions": "write-all"}, fork=False)


def test_jobs_in_the_order_of_their_needs():
    text = "jobs: {c: {needs: [a, b]}, b: {needs: a}, a: {}}"
    assert [name for name, _ in in_order(Workflow("w.yml", text))] == ["a", "b", "c"]
    with pytest.raises(Unsound):
        list(in_order(Workflow("w.yml", "jobs: {a: {needs: b}, b: {needs: a}}")))


def test_matrix():
    assert matrix({}) == [{}]
    axes = {"python": ["3.11", "3.12"], "os": ["a"]}
    assert matrix({"strategy": {"matrix": axes}}) == [
        {"python": "3.11", "os": "a"},
        {"python": "3.12", "os": "a"},
    ]
    with pytest.raises(Unsound):
        matrix({"strategy": {"matrix": {"include": []}}})


def test_a_repository_without_workflows_is_no_rehearsal(tmp_path):
    (tmp_path / ".github/workflows").mkdir(parents=True)
    with pytest.raises(Unsound):
        workflows(tmp_path)


def test_interpreters(tmp_path, monkeypatch):
    """Of pyenv; each that there is on this machine would be started."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    (tmp_path / "versions/own").mkdir(parents=True)
    (tmp_path / "versions/own/bin").symlink_to(Path(sys.base_prefix, "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    assert find(own).name.startswith("python")
    with pytest.raises(NoInterpreter) as caught:
        find("3.99")
    assert "`pyenv install 3.99`" in str(caught.value)
    with pytest.raises(NoInterpreter):
        find("3")


def test_an_environment_that_was_written_into_is_not_used_again(tmp_path):
    environments, path = Environments(tmp_path / "kept"), tmp_path / "tools"
    for _ in range(2):
        environments.create(CURRENT_INTERPRETER, path, pip=False)
        assert (path / "bin/python").is_symlink()
    assert environments.restore("another key", [path]) is None
    environments.keep("key", "a.job", [path])
    assert environments.restore("key", [path]) == "a.job"
    (path / "pyvenv.cfg").write_text("home = elsewhere\n")
    with pytest.raises(RuntimeError, match=r"a job wrote into its environment: 0/pyvenv\.cfg"):
        environments.restore("key", [path])
    with pytest.raises(RuntimeError, match=r"a job wrote into its environment"):
        environments.create(CURRENT_INTERPRETER, path, pip=False)


def test_an_install_is_known_by_all_that_it_depends_on(tmp_path):
    root = tmp_path
    (root / "tools").mkdir()
    (root / "requirements").mkdir()
    lock = root / "requirements/action.txt"
    (root / "tools/install-locked").write_text("#!/bin/sh\n")
    lock.write_text("a==1\n")
    script = "tools/install-locked python3 requirements/action.txt"
    key = Environments.key
    first = key(script, root, [])
    assert key("python3 -m geneb_ci", root, []) is None
    assert first == key(script, root, []) != key(script, root, ["after another"])
    lock.write_text("a==2\n")
    assert key(script, Path(root), []) != first
