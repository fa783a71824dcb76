"""`make rehearse-proof`: proves that the rehearsal fails where a hosted job would fail.

Each case alters one thing in a copy of the repository and rehearses the jobs concerned. Cases that
take seconds are part of `make test` (tests/rehearse/test_red.py); those here install packages.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tools.rehearse.copy import copied

Alteration = Callable[[str], str]


class Case(NamedTuple):
    """One alteration, the jobs to rehearse, and the message that the rehearsal must print."""

    title: str
    file: str
    alter: Alteration
    arguments: tuple[str, ...]
    expected: str


def without(text: str) -> Alteration:
    """Return the removal of a text, wherever it occurs."""
    return lambda content: content.replace(text, "")


def other_hashes(package: str) -> Alteration:
    """Return the alteration of each hash of a package by one digit."""

    def alter(content: str) -> str:
        return _block(package).sub(
            lambda entry: re.sub(
                r"sha256:(.)", lambda hit: f"sha256:{'0' if hit[1] != '0' else '1'}", entry[0]
            ),
            content,
        )

    return alter


def without_package(package: str) -> Alteration:
    """Return the removal of a package's entry from a lock."""
    return lambda content: _block(package).sub("", content)


def _block(package: str) -> re.Pattern[str]:
    return re.compile(rf"^{re.escape(package)}==.*\n(?:    --hash.*\n)+", re.MULTILINE)


ACTION, CHECK, DEV = (f"requirements/{name}.txt" for name in ("action", "check", "dev"))
FLOWS = ".github/workflows"
VERDICT = ("--job", "verdict")
CASES = (
    Case("an altered hash", ACTION, other_hashes("requests"), VERDICT, "DO NOT MATCH THE HASHES"),
    Case("a removed package", ACTION, without_package("urllib3"), VERDICT, "urllib3"),
    Case(
        "a removed package that nothing else needs",
        ACTION,
        without_package("cryptography"),
        ("--job", "publish"),
        "cryptography",
    ),
    Case(
        "an altered hash in the lock of the action",
        CHECK,
        other_hashes("click"),
        ("--job", "pr-validate"),
        "DO NOT MATCH THE HASHES",
    ),
    Case(
        "a hash altered in the lock of developers",
        DEV,
        other_hashes("iniconfig"),
        ("--job", "ci"),
        "ash mismatch",
    ),
    Case(
        "a tutorial that shows another output",
        "docs/contributor/tutorial.md",
        lambda text: text.replace("22 of 25 properties hold", "21 of 25 properties hold"),
        ("--job", "ci.tutorials"),
        "docs/contributor/tutorial.md: not as the page shows",
    ),
    Case(
        "no identity",
        f"{FLOWS}/publish.yml",
        without("      id-token: write # a token of the Hub for an hour, and the attestation\n"),
        ("--job", "publish", "--borrow"),
        "id-token: write",
    ),
    Case(
        "no attestation",
        f"{FLOWS}/publish.yml",
        without("      attestations: write # who built the board\n"),
        ("--job", "publish", "--borrow"),
        "lacks the permission `attestations: write`",
    ),
    Case(
        "another environment than the Hub trusts",
        f"{FLOWS}/publish.yml",
        lambda text: text.replace("environment: hf-publish", "environment: production"),
        ("--job", "publish", "--borrow"),
        "rejected this job as a publisher",
    ),
    Case(
        "no right to comment",
        f"{FLOWS}/verdict.yml",
        lambda text: text.replace("pull-requests: write", "pull-requests: read"),
        ("--job", "verdict", "--borrow"),
        "pull_requests=write",
    ),
    Case(
        "no right to read issues, without which the job still runs",
        f"{FLOWS}/verdict.yml",
        without("      issues: read # which of them wait after an error\n"),
        ("--job", "verdict", "--borrow"),
        "issues needs issues: read",
    ),
    Case(
        "no right to list what waits",
        f"{FLOWS}/verdict.yml",
        lambda text: text.replace("issues: write", "issues: read"),
        ("--job", "verdict", "--borrow"),
        "issues needs issues: write",
    ),
    Case(
        "no right to open an issue",
        f"{FLOWS}/publish.yml",
        lambda text: text.replace("issues: write", "issues: read"),
        ("--job", "publish", "--borrow"),
        "issues needs issues: write",
    ),
)


def prove(case: Case) -> str:
    """Run one case; return what is wrong, or "" if the rehearsal failed as expected."""
    with tempfile.TemporaryDirectory(prefix="geneb-ci-proof-") as folder:
        root = copied(Path(folder) / "copy")
        file = root / case.file
        original = file.read_text(encoding="utf-8")
        altered = case.alter(original)
        if altered == original:
            return f"the alteration does not change {case.file}"
        file.write_text(altered, encoding="utf-8")
        command = [sys.executable, "-m", "tools.rehearse", "--root", str(root), *case.arguments]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode != 1:
        return f"the rehearsal ended with {process.returncode}:\n{process.stdout}{process.stderr}"
    if case.expected not in process.stdout:
        return f"the rehearsal does not print {case.expected!r}:\n{process.stdout}"
    return ""


def main() -> int:
    """Prove each case; return 1 if a rehearsal passes or prints something else."""
    missed_count = 0
    for case in CASES:
        started = time.monotonic()
        missed = prove(case)
        missed_count += bool(missed)
        seconds = time.monotonic() - started
        print(f"{seconds:6.1f} s  {'MISSED' if missed else 'red'}  {case.title}", flush=True)
        if missed:
            print(missed)
    return int(missed_count > 0)


if __name__ == "__main__":
    sys.exit(main())
