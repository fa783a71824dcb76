"""The second half of the demonstration: audits of an honest and a forged row of GENEB-mini."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from geneb_ci.sandbox.levels import DEFAULT_LEVEL, level_failure
from tools.demo_forge import RAISED, forge

ROOT = Path(__file__).resolve().parent.parent
# Round 123 of drand quicknet, and a time of commitment for which it is the beacon. A real audit
# fetches the round of its own time; this one lets the demonstration run offline, always the same.
ROUND = {
    "round": 123,
    "signature": "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482"
    "e26cd02df835d3546d23c4b13e0dfc92",
}
COMMITTED_AT = "2023-08-23T15:14:33Z"
HONEST, FORGED = "honest-2mer", "forged-3mer"
# With 4-mers an audit can prove nothing about 4 of the 13 tasks, and a draw may contain too many of
# these to verify the row; with 2-mers every task counts.
HONEST_K = 2
DRAWN = 5


def print_and_run(
    *arguments: str, folder: Path, environment: Mapping[str, str] = os.environ, expected: int = 0
) -> None:
    """Print a command and run it. Exits if its exit code is not the expected one."""
    print(f"\n$ geneb-ci {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "geneb_ci", *arguments]
    code = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
    if code != expected:
        sys.exit(f"demo: exit code {code}, expected {expected}")
    print(f"(exit code {code})", flush=True)


def copy_toolkit(folder: Path) -> Path:
    """Copy the toolkit into a folder, and return the folder for PYTHONPATH."""
    for folder_name in ("geneb_ci", "reference_harness", "schemas", "leaderboard"):
        shutil.copytree(ROOT / folder_name, folder / folder_name)
    return folder


class MiniRepository:
    """A repository of submissions to GENEB-mini, with an installed copy of the toolkit."""

    def __init__(self, folder: Path, drawn: int = DRAWN, site: Path | None = None) -> None:
        """Create the repository and the copy, as an audit rejects a checkout with changes.

        `drawn` is the number of tasks that an audit draws; `site` is a folder that has a copy.
        """
        self.root = folder / "repository"
        site = site or copy_toolkit(folder / "site")
        self.environment = os.environ | {"PYTHONPATH": str(site)}
        (self.root / "submissions").mkdir(parents=True)
        (self.root / "schemas").mkdir()
        shutil.copy(ROOT / "schemas/benchmark-mini.json", self.root / "schemas/benchmark.json")
        policy = self.root / "leaderboard/policy"
        policy.mkdir(parents=True)
        policy_text = (ROOT / "leaderboard/policy/policy.toml").read_text(encoding="utf-8")
        policy_text = re.sub(r"(?m)^((?:minimum_)?drawn *= *)\d+", rf"\g<1>{drawn}", policy_text)
        (policy / "policy.toml").write_text(policy_text, encoding="utf-8")
        self._write("leaderboard/policy/official.json", {"files": {}})
        self._write("round.json", ROUND)
        self._make_key()
        self._git("init", "--quiet", "--initial-branch", "main")

    def _write(self, file_name: str, content: object) -> None:
        (self.root / file_name).write_text(json.dumps(content) + "\n", encoding="utf-8")

    def _make_key(self) -> None:
        key_words = ("--output", "key.pem", "--owner", "demo")
        output = self.run("geneb_ci", "audit", "keygen", *key_words).stdout
        trusted_key = json.loads(output) | {"valid_from": COMMITTED_AT}
        self._write("leaderboard/policy/keys.json", {"keys": [trusted_key]})

    def _git(self, *arguments: str) -> None:
        author = ("-c", "user.name=demo", "-c", "user.email=demo@localhost")
        no_user_settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        environment = self.environment | no_user_settings
        subprocess.run(["git", *author, *arguments], cwd=self.root, env=environment, check=True)

    def merge(self, subject: str) -> None:
        """Commit the rows and records in the working tree, as a merge on main would."""
        self._git("add", "submissions", "leaderboard")
        self._git("commit", "--quiet", "--message", subject)

    def run(
        self, module: str, *arguments: str, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of the installed copy in the repository, and capture its output."""
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=self.root,
            env=self.environment,
            check=check,
            capture_output=True,
            text=True,
        )

    def harness(self, model_id: str, k: int) -> None:
        """Run the k-mer extractor on all tasks, which writes a run record and a submission."""
        self.run(
            *("reference_harness", "run", "--extractor", "kmer", "--option", f"k={k}"),
            *("--output", f"{model_id}.record.json", "--model-id", model_id, "--quiet"),
            *("--submission", f"submissions/{model_id}.json", "--submitted-by", "demo"),
        )

    def geneb_ci(self, *arguments: str, expected: int = 0) -> None:
        """Print a command and run it. Exits if its exit code is not the expected one."""
        print_and_run(*arguments, folder=self.root, environment=self.environment, expected=expected)

    def audit(self, model_id: str, *sample: str, expected: int = 0) -> None:
        """Audit a row: commit, draw, rerun and sign; `sample` are options of `audit plan`."""
        commitment_file, plan_file = f"{model_id}.commitment.json", f"{model_id}.plan.json"
        self.geneb_ci(
            "audit", "commit", f"submissions/{model_id}.json", "--output", commitment_file
        )
        self.geneb_ci(
            *("audit", "plan", commitment_file, "--committed-at", COMMITTED_AT),
            *("--beacon-file", "round.json", *sample, "--output", plan_file),
        )
        self.geneb_ci("audit", "run", plan_file, "--key", "key.pem", expected=expected)


def audits(folder: Path) -> bool:
    """Audit an honest and a forged row, and show the board that results.

    Returns False if no audit was run because no sandbox works here, as in most containers.
    """
    if cause := level_failure(DEFAULT_LEVEL, folder):
        print(
            f"\n4. The audits are skipped: no sandbox of level {DEFAULT_LEVEL} works here, because"
        )
        print(textwrap.fill(cause, initial_indent="   ", subsequent_indent="   ", width=80))
        print(
            "   `geneb-ci doctor` shows what this machine supports; docs/contributor/install.md "
            "says"
        )
        print("   how to allow a sandbox in a container.")
        return False
    board = MiniRepository(folder)
    print(
        "\n4. An honest row is audited: five tasks, drawn by a public beacon, rerun in a sandbox."
    )
    board.harness(HONEST, HONEST_K)
    board.audit(HONEST)
    board.merge(f"Add {HONEST} and its audit")
    print(f"\n5. A forged row passes the checks: {' and '.join(RAISED)} were raised consistently.")
    board.harness(FORGED, 3)
    submission = board.root / "submissions" / f"{FORGED}.json"
    forge(board.root / f"{FORGED}.record.json", submission, FORGED)
    board.geneb_ci("check", "--select", "arithmetic", f"submissions/{FORGED}.json")
    print("\n   The audit draws enough tasks to find two raised ones with 99 % probability.")
    board.audit(FORGED, "--detect", "2", "--confidence", "0.99", expected=11)
    board.merge(f"Add {FORGED} and its audit")
    print("\n6. Anybody can verify both records; the board shows the evidence of each row.")
    board.geneb_ci("audit", "verify")
    board.geneb_ci("explain", FORGED)
    board.geneb_ci("build", "--output", "board")
    show(board.root / "board" / "leaderboard.json")
    return True


def show(path: Path) -> None:
    """Print the evidence and the audit of each row of a board."""
    table = Table(title="the board of GENEB-mini, full regime", title_justify="left")
    for heading in ("model", "macro MCC", "evidence", "audit"):
        table.add_column(heading, justify="right" if heading == "macro MCC" else "left")
    for row in json.loads(path.read_bytes())["data"]["full"]:
        audit = row.get("audit")
        summary = (
            f"{audit['tasks']} of {audit['of']} tasks, sandbox level {audit['sandbox']}, "
            f"{audit['date']}: {audit['verdict']}"
            if audit
            else "none"
        )
        table.add_row(row["model"], f"{row['macro_MCC']:.3f}", row["evidence"], summary)
    Console().print(table)
