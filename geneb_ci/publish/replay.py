"""Runs the rules of another commit on the rows of the working tree.

The rules are code: they run in a separate process, from a copy of the commit's tree, with a clean
environment. The commit must still be trusted.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult, files_of
from geneb_ci.common.config import Layout
from geneb_ci.common.errors import GenebError, NothingChecked, UsageProblem
from geneb_ci.common.finding import Severity
from geneb_ci.publish.git import CODE, lay_out, named_places, repository_of

# Taken from the commit; rows, cards and extractors come from the working tree.
RULES_OF_A_COMMIT = (CODE, "schemas", "leaderboard/policy", "pyproject.toml")
# A thousand rows take 40 s; above this, a rule hangs.
SECONDS_MAX = 900
FORMAT = "1.0"
# Exit codes of `check` with a report: clean, not checked, warnings, errors.
_JUDGED = {0, 3, 10, 11}


class ReplayError(GenebError):
    """The checker of the other commit failed."""


class Effect(NamedTuple):
    """A finding of a rule on a row that only one of the two checkers has."""

    row: str
    """Model id, from the file name."""
    rule: str
    places: int
    message: str
    """Message of the first finding."""


class Replay(NamedTuple):
    """What another commit's rules would change."""

    name: str
    commit: str
    rows: int
    fails: tuple[Effect, ...]
    """Errors that a row has under the other rules only."""
    warns: tuple[Effect, ...]
    """Warnings that a row has under the other rules only."""
    heals: tuple[Effect, ...]
    """Errors that a row has under the present rules only."""


Found = dict[tuple[str, str, str], tuple[int, str]]
"""Severity, row and rule to the number of findings and the first message."""


def replay(layout: Layout, name: str) -> Replay:
    """Return what the rules, benchmark and policy of a commit change for the rows here.

    Raises WrongRepository if the commit is unknown, UsageProblem if it has no checker, ReplayError
    if its checker fails, and NothingChecked if there is no row.
    """
    repository, commit = repository_of(layout, name)
    if not repository.tree(commit, (f"{CODE}/__main__.py",)):
        raise UsageProblem(
            f"{name!r} ({commit[:12]}) has no {CODE}/__main__.py, so no rules to replay",
            "pass a commit of the repository that geneb-ci is developed in",
        )
    files = files_of([layout.root])
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as temporary:
        folder = Path(os.path.realpath(temporary))
        lay_out(repository, commit, folder, RULES_OF_A_COMMIT)
        for place in named_places(layout, layout.submissions, layout.cards, layout.extractors):
            _copy(layout.root / place, folder / place)
        theirs = _judged(folder, name)
    ours = _present(files)
    return Replay(
        name,
        commit,
        len(files),
        fails=_only(theirs, ours, Severity.ERROR),
        warns=_only(theirs, ours, Severity.WARNING),
        heals=_only(ours, theirs, Severity.ERROR),
    )


def _copy(place: Path, to: Path) -> None:
    """Copy regular files and links only; reading a FIFO would block."""

    def special(folder: str, names: list[str]) -> list[str]:
        kinds = {name: os.lstat(os.path.join(folder, name)).st_mode for name in names}  # noqa: PTH118
        usual = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
        return [name for name, mode in kinds.items() if not any(kind(mode) for kind in usual)]

    shutil.copytree(place, to, symlinks=True, ignore=special, dirs_exist_ok=True)


def _judged(folder: Path, name: str) -> Found:
    """Run the checker in a folder on the rows in it, and return its findings."""
    # -P: import from PYTHONPATH, not from the current folder.
    command = [sys.executable, "-P", "-m", CODE, "check", "--format", "json"]
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LC_ALL": "C.UTF-8",
    }
    try:
        done = subprocess.run(  # noqa: S603 (a commit that the caller named, as the help says)
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as error:
        raise ReplayError(
            f"the checker of {name!r} did not finish in {SECONDS_MAX} seconds",
            "find the rule that hangs: run its `geneb-ci check` in a checkout of that commit",
        ) from error
    report = _report(done.stdout) if done.returncode in _JUDGED else None
    if report is None:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ReplayError(
            f"the checker of {name!r} failed with exit code {done.returncode}: {said}",
            "run its `geneb-ci check` in a checkout of that commit",
        )
    return _gathered(
        (one["severity"], one["file"], one["rule"], one["message"]) for one in report["findings"]
    )


def _report(raw: bytes) -> dict[str, Any] | None:
    """Return the JSON report of a checker; None if it has an unknown format."""
    try:
        report = json.loads(raw)
    except ValueError:
        return None
    known = isinstance(report, dict) and report.get("format_version") == FORMAT
    return report if known and not report["unreadable"] and report["files"] else None


def _present(files: list[Path]) -> Found:
    found: list[tuple[str, str, str, str]] = []
    for result in Checker(RULES).run(files):
        if not isinstance(result, FileResult):
            raise NothingChecked(result.message, result.fix)
        found += [(f.severity, f.file, f.rule, f.message) for f in result.findings]
    return _gathered(found)


def _gathered(findings: Iterable[tuple[str, str, str, str]]) -> Found:
    found: Found = {}
    for severity, file, rule, message in findings:
        row = file.rsplit("/", 1)[-1].removesuffix(".json").removesuffix(".md")
        count, first = found.get((severity, row, rule), (0, message))
        found[severity, row, rule] = (count + 1, first)
    return found


def _only(here: Found, there: Found, severity: Severity) -> tuple[Effect, ...]:
    return tuple(
        Effect(row, rule, *here[kind, row, rule])
        for kind, row, rule in sorted(here)
        if kind == severity and (kind, row, rule) not in there
    )
