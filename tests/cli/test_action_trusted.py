"""The composite action on a pull request: no byte of it changes what it is held against."""

import hashlib
import json
import os
import re
import shutil
import socket
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.cli.main import main
from tests.cli.test_action import interpreter, run, script
from tests.git import git
from tests.paths import ROOT, SUBMISSIONS

__all__ = ["interpreter"]

ROW = "submissions/splicebert-1024nt.json"
TABLE = "[tool.geneb-ci]\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the repository that a pull request is for: three rows, a benchmark, a policy.

    Tests that alter it take `base`, a copy.
    """
    root = tmp_path_factory.mktemp("server") / "owner/name"
    (root / "submissions/cards").mkdir(parents=True)
    for name in ("splicebert-1024nt", "space", "GROVER"):
        shutil.copy(SUBMISSIONS / f"{name}.json", root / "submissions")
    shutil.copy(SUBMISSIONS / "cards/splicebert-1024nt.md", root / "submissions/cards")
    (root / "schemas").mkdir()
    shutil.copy(ROOT / "schemas/benchmark.json", root / "schemas")
    shutil.copytree(ROOT / "leaderboard/policy", root / "leaderboard/policy")
    write(root / "pyproject.toml", f'{TABLE}ignore = ["no-run-details"]\n')
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "the base")
    return root


@pytest.fixture
def base(board: Path, tmp_path: Path) -> Path:
    return shutil.copytree(board, tmp_path / "server/owner/name")


def impossible(board: Path, root: Path) -> Path:
    """Check out a pull request whose row has an impossible score."""
    shutil.copytree(board, root)
    text = (root / ROW).read_text(encoding="utf-8").replace('"Acc":0.', '"Acc":7.', 1)
    write(root / ROW, text)
    return root


@pytest.fixture
def pull(board: Path, tmp_path: Path) -> Path:
    return impossible(board, tmp_path / "workspace")


def action_result(root: Path, interpreter: Path, board: Path) -> tuple[Any, ...]:
    """Run the action; return exit code, log, summary and outputs without the folder's name."""
    code, log, summary, outputs = run(root, interpreter, board)
    here = str(root.parent)
    return code, log.replace(here, "HERE"), summary.replace(here, "HERE"), outputs


@pytest.fixture(scope="module")
def expected(board, interpreter, tmp_path_factory):
    """Return what the action says of that row where nothing else is changed."""
    return action_result(
        impossible(board, tmp_path_factory.mktemp("pull") / "workspace"), interpreter, board
    )


def settings(text: str) -> Callable[[Path], None]:
    return lambda root: write(root / "pyproject.toml", text)


def link(name: str, target: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    return make


def changed_benchmark(root: Path) -> None:
    path = root / "schemas/benchmark.json"
    value: dict[str, Any] = json.loads(path.read_bytes())
    for task in value["tasks"]:
        task.pop("n_test", None)
        task.pop("test_class_counts", None)
    write(path, json.dumps(value))


def upstreams_layout(root: Path) -> None:
    shutil.rmtree(root / "schemas")
    write(root / "benchmark/benchmark_spec.json", "{}")


def policy_of_its_own(root: Path) -> None:
    digest = hashlib.sha256((root / ROW).read_bytes()).hexdigest()
    files = {"files": {"splicebert-1024nt": digest}}
    write(root / "leaderboard/policy/official.json", json.dumps(files))


def no_policy(root: Path) -> None:
    shutil.rmtree(root / "leaderboard")


def pipe(name: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        (root / name).unlink(missing_ok=True)
        os.mkfifo(root / name)

    return make


def listening(root: Path) -> None:
    (root / "pyproject.toml").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        # The path of a socket has 108 bytes at most.
        here = Path.cwd()
        os.chdir(root)
        try:
            server.bind("pyproject.toml")
        finally:
            os.chdir(here)


def code(root: Path) -> None:
    for name in ("geneb_ci", "click", "json"):
        write(root / name / "__init__.py", "open('ran', 'w')\n")
    write(root / "sitecustomize.py", "open('ran', 'w')\n")
    write(root / "setup.cfg", "[tool.geneb-ci]\n")
    write(root / ".env", "GENEB_CI_DEBUG=1\n")


def git_folder(root: Path) -> None:
    """What a pull request can carry of it: attributes, modules, and a folder of that shape."""
    write(root / ".gitattributes", "* filter=x export-ignore\n")
    write(root / ".gitmodules", '[submodule "x"]\n path = schemas\n url = /dev/zero\n')
    write(root / "name/.git/config", "[core]\n fsmonitor = touch ran\n")


def not_utf8(root: Path) -> None:
    (root / "pyproject.toml").write_bytes(b"\xff\xfe[tool.geneb-ci]\n")


SETTINGS: dict[str, Callable[[Path], None]] = {
    "rules left out": settings(f'{TABLE}ignore = ["ranges", "arithmetic", "structure"]\n'),
    "one rule chosen": settings(f'{TABLE}select = ["no-run-details"]\n'),
    "an unknown rule": settings(f'{TABLE}select = ["nothing"]\n'),
    "no settings": lambda root: (root / "pyproject.toml").unlink(),
    "another benchmark": settings(f'{TABLE}benchmark = "mine.json"\n'),
    "a device as benchmark": settings(f'{TABLE}benchmark = "/dev/zero"\n'),
    "another folder of rows": settings(f'{TABLE}submissions = "elsewhere"\n'),
    "another policy": settings(f'{TABLE}policy = "submissions"\n'),
    "other cards": settings(f'{TABLE}cards = "/proc/self/root"\n'),
    "broken TOML": settings(f"{TABLE}[[["),
    "deep TOML": settings(f"{TABLE}ignore = {'[' * 50_000}"),
    "a key of many parts": settings(f"{TABLE}{'a.' * 40_000}b = 1"),
    "bytes that are no UTF-8": not_utf8,
    "a pipe as settings": pipe("pyproject.toml"),
    "a socket as settings": listening,
    "a device as settings": link("pyproject.toml", "/dev/zero"),
    "settings that link to themselves": link("pyproject.toml", "pyproject.toml"),
}
ELSEWHERE: dict[str, Callable[[Path], None]] = {
    "settings among the rows": lambda root: write(
        root / "submissions/pyproject.toml", f'{TABLE}submissions = "."\nignore = ["ranges"]\n'
    ),
    "settings beside the cards": lambda root: write(
        root / "submissions/cards/pyproject.toml", f'{TABLE}ignore = ["card"]\n'
    ),
    "a repository among the rows": lambda root: write(
        root / "submissions/schemas/benchmark.json", "{}"
    ),
    "a benchmark without sizes": changed_benchmark,
    "no benchmark": lambda root: shutil.rmtree(root / "schemas"),
    "a pipe as benchmark": pipe("schemas/benchmark.json"),
    "a link as benchmark": link("schemas/benchmark.json", "/dev/zero"),
    "a link as schemas": link("schemas", "submissions"),
    "the layout of upstream": upstreams_layout,
    "a policy of its own": policy_of_its_own,
    "no policy": no_policy,
    "a link as policy": link("leaderboard/policy", "../submissions"),
    "a pipe in the policy": pipe("leaderboard/policy/official.json"),
    "code": code,
    "a folder of git": git_folder,
}


RECORDER = """\
#!/bin/sh
# A Python that only writes down how the step starts it.
printf '%s\\0' "$@" > {arguments}
"""


@pytest.fixture(scope="module")
def arguments(board: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return those of the command that the step starts, whatever the pull request has."""
    runner = tmp_path_factory.mktemp("recorded")
    (runner / "geneb-ci/bin").mkdir(parents=True)
    script(runner / "geneb-ci/bin/python", RECORDER, arguments=runner / "arguments")
    (runner / "workspace").mkdir()
    assert run(runner / "workspace", runner, board)[0] == 0
    isolated, module, name, *words = (runner / "arguments").read_text().split("\0")[:-1]
    assert (isolated, module, name) == ("-I", "-m", "geneb_ci")
    return words


def command_result(root: Path, arguments: list[str], capsys: Any) -> tuple[Any, ...]:
    """Return what `action_result` does, of the step's command in this process."""
    summary = Path(arguments[arguments.index("--output") + 1])
    summary.write_text("", encoding="utf-8")
    capsys.readouterr()
    code = int(main(arguments))
    texts = ["".join(capsys.readouterr()), summary.read_text(encoding="utf-8")]
    for here in (str(root.parent), str(summary.parent)):
        texts = [text.replace(here, "HERE") for text in texts]
    return code, *texts, {}


PAIRS = [*zip_longest(SETTINGS, ELSEWHERE)]
OF_THE_PROCESS = {"code", "a folder of git"}


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_no_byte_of_a_pull_request_changes_the_rules_or_the_findings(
    board, pull, interpreter, arguments, expected, tmp_path, monkeypatch, capsys, first, second
):
    """Two changes at a time, of different files: what either one changed would be seen.

    The whole step where a change may alter how Python or git starts, else its command alone.
    """
    assert expected[0] == 11
    for name in filter(None, (first, second)):
        (SETTINGS | ELSEWHERE)[name](pull)
    if (first, second) == PAIRS[0] or second in OF_THE_PROCESS:
        assert action_result(pull, interpreter, board) == expected
    else:
        monkeypatch.chdir(pull)
        assert command_result(pull, arguments, capsys) == expected
    assert not list(tmp_path.rglob("ran"))


@pytest.mark.parametrize("name", ["submissions", "submissions/cards"])
def test_a_link_in_the_place_of_a_folder_of_rows_is_refused(base, pull, interpreter, name):
    shutil.copytree(pull / name, pull / "other")
    link(name, "other" if name == "submissions" else "../other")(pull)
    result, log, summary, _ = run(pull, interpreter, base)
    assert (result, summary) == (3, "")
    assert log == (
        f"geneb-ci: {pull}/{name}: the folder of "
        f"{name.rpartition('/')[2]} is reached by a symbolic link; it leads to {pull}/other\n"
        "  fix: replace each symbolic link on this path by the folder itself\n"
    )


def test_settings_of_the_base_count(base, pull, interpreter):
    assert "no-run-details" not in run(pull, interpreter, base)[1]
    write(base / "pyproject.toml", f'{TABLE}ignore = ["score-out-of-range", "arithmetic"]\n')
    git(base, "commit", "--all", "--quiet", "--message", "other settings")
    log = run(pull, interpreter, base)[1]
    assert "no-run-details" in log
    assert "score-out-of-range" not in log


def test_a_folder_that_the_caller_names_counts(base, pull, interpreter, tmp_path):
    beside = tmp_path / "beside"
    shutil.copytree(base, beside)
    settings(f'{TABLE}ignore = ["ranges"]\n')(pull)
    code_, log, _, _ = run(pull, interpreter, config_from=str(beside))
    assert (code_, "score-out-of-range" in log) == (11, True)


def test_without_its_base_nothing_is_checked(base, pull, interpreter):
    shutil.rmtree(base)
    result, log, summary, _ = run(pull, interpreter, base)
    assert (result, summary) == (1, "")
    assert log.endswith(
        "the base branch cannot be fetched, so the settings to go by are not known\n"
        "  fix: check it out beside the pull request, and name the folder as config-from\n"
    )


def test_a_base_without_any_settings_is_held_to_the_shipped_ones(base, pull, interpreter):
    for name in ("schemas", "leaderboard"):
        shutil.rmtree(base / name)
    (base / "pyproject.toml").unlink()
    git(base, "add", "--all")
    git(base, "commit", "--quiet", "--message", "nothing but rows")
    result, log, _, _ = run(pull, interpreter, base)
    assert result == 11
    assert re.search(r"^3 submissions, \d+ rules: ", log, re.MULTILINE)
