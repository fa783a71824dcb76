"""`make rehearse-proof`: the rehearsal is red where a hosted job would fail.

Each case alters one thing in a copy of the repository and rehearses the jobs concerned.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.house.tracked import tracked
from tests.paths import ROOT
from tools.rehearse.__main__ import main

ACTION, CHECK, DEV = (f"requirements/{name}.txt" for name in ("action", "check", "dev"))
CI, PUBLISH, VERDICT = (f".github/workflows/{name}.yml" for name in ("ci", "publish", "verdict"))
READ_STATUSES = "      statuses: read # which statuses no longer hold\n"
Alteration = Callable[[str], str]


class Case(NamedTuple):
    """One alteration, the workflow to rehearse, and what the rehearsal must print."""

    title: str
    file: str
    alter: Alteration
    job: str
    printed: str
    runs: bool = True
    """Whether any job runs."""


def replaced(old: str, new: str = "") -> Alteration:
    """Return the replacement of a text, wherever it occurs."""
    return lambda content: content.replace(old, new)


def block_of(package: str) -> re.Pattern[str]:
    """Return a pattern of a package's entry in a lock."""
    return re.compile(rf"^{re.escape(package)}==.*\n(?:    --hash.*\n)+", re.MULTILINE)


def other_hashes(package: str) -> Alteration:
    """Return the alteration of each hash of a package by one digit."""

    def other(match: re.Match[str]) -> str:
        return f"sha256:{'0' if match[1] != '0' else '1'}"

    return lambda content: block_of(package).sub(
        lambda entry: re.sub(r"sha256:(.)", other, entry[0]), content
    )


def without_package(package: str) -> Alteration:
    """Return the removal of a package's entry from a lock."""
    return lambda content: block_of(package).sub("", content)


MISMATCH = "DO NOT MATCH THE HASHES"
CASES = (
    Case("an altered hash", ACTION, other_hashes("requests"), "verdict", MISMATCH),
    Case("a removed package", ACTION, without_package("urllib3"), "verdict", "urllib3"),
    Case(
        "a removed package that nothing else needs",
        *(ACTION, without_package("jinja2"), "publish", "jinja2"),
    ),
    Case(
        "an altered hash in the lock of the action",
        *(CHECK, other_hashes("click"), "pr-validate", MISMATCH),
    ),
    Case(
        "a hash altered in the lock of developers",
        *(DEV, other_hashes("iniconfig"), "ci", "ash mismatch"),
    ),
    Case(
        "no identity",
        PUBLISH,
        replaced("      id-token: write # a token of the Hub for an hour, and the attestation\n"),
        *("publish", "id-token: write"),
    ),
    Case(
        "no attestation",
        PUBLISH,
        replaced("      attestations: write # who built the board\n"),
        *("publish", "lacks the permission `attestations: write`"),
    ),
    Case(
        "another environment than the Hub trusts",
        PUBLISH,
        replaced("environment: hf-publish", "environment: production"),
        *("publish", "rejected this job as a publisher"),
    ),
    Case(
        "no right to comment",
        VERDICT,
        replaced("pull-requests: write", "pull-requests: read"),
        *("verdict", "pull_requests=write"),
    ),
    Case(
        "no right to read issues, without which the job still runs",
        VERDICT,
        replaced("      issues: read # which of them wait after an error\n"),
        *("verdict", "issues needs issues: read"),
    ),
    Case(
        "no right to list what waits",
        VERDICT,
        replaced("issues: write", "issues: read"),
        *("verdict", "issues needs issues: write"),
    ),
    Case(
        "no right to open an issue",
        PUBLISH,
        replaced("issues: write", "issues: read"),
        *("publish", "issues needs issues: write"),
    ),
    Case(
        "a removed permission",
        VERDICT,
        replaced("      statuses: write # geneb/verdict\n"),
        *("verdict", "needs statuses: write"),
    ),
    Case(
        "a permission that nothing uses",
        VERDICT,
        replaced(READ_STATUSES, f"{READ_STATUSES}      pages: write\n"),
        *("verdict", "verdict.parse has the permission `pages: write` but never used it"),
    ),
    Case(
        "a checkout without its permission",
        VERDICT,
        replaced("      contents: read # our own code; trees and blobs of pull requests\n"),
        *("verdict", "actions/checkout: 403 Resource not accessible by integration"),
    ),
    Case(
        "a label that GitHub does not have",
        "geneb_ci/github/report.py",
        replaced("geneb: changes needed", "geneb: needs changes"),
        *("verdict", "the repository has no label 'geneb: needs changes'"),
    ),
    Case(
        "a lost doorbell",
        VERDICT,
        replaced("[pr-validate]", "[validate]"),
        *("verdict", "the event workflow_run does not start verdict: see its `on:`"),
    ),
    Case(
        "jobs with different versions of Python",
        PUBLISH,
        replaced('"3.13"', '"3.12"'),
        "publish",
        "hosted jobs use different versions of Python: 3.12 in publish.yml; 3.13 in",
        runs=False,
    ),
    Case(
        "a version of Python that the package does not list",
        PUBLISH,
        replaced('"3.13"', '"3.14"'),
        "publish",
        "publish.yml: Python 3.14 is not one that pyproject.toml lists (3.11, 3.12, 3.13)",
        runs=False,
    ),
    Case(
        "a version of Python without quotes",
        PUBLISH,
        replaced('"3.13"', "3.13"),
        "publish",
        "publish.yml: python-version 3.13 has no quotes",
        runs=False,
    ),
    Case(
        "a version of Python that no job tests",
        CI,
        replaced(', "3.13"]', "]"),
        "publish",
        "no matrix tests Python 3.13",
        runs=False,
    ),
    Case(
        "an unknown key",
        PUBLISH,
        replaced("    timeout-minutes: 15\n", "    container: python\n"),
        "publish",
        "publish.yml, job build: the rehearsal does not know the key 'container'",
        runs=False,
    ),
)


@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_rehearsal_is_red(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    root = tmp_path / "copy"
    for name in tracked():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, root / name)
    text = (root / case.file).read_text(encoding="utf-8")
    assert case.alter(text) != text
    (root / case.file).write_text(case.alter(text), encoding="utf-8")
    borrow = [] if case.file.startswith("requirements/") else ["--borrow"]
    code = main(["--root", str(root), *borrow, "--job", case.job])
    out = capsys.readouterr().out
    assert code == 1
    assert case.printed in out
    assert case.runs or ": success, " not in out
