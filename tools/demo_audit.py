"""The demonstration's second half: an honest and a forged row of GENEB-mini, audited."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from rich.console import Console
from rich.table import Table

from geneb_ci.sandbox.levels import DEFAULT, unavailable_because
from tools.demo_forge import RAISED, forge

ROOT = Path(__file__).resolve().parent.parent
# Drand quicknet's published round 123, and the moment whose commitments it decides. An audit takes
# the round of its own time; this one makes the demonstration the same without a network.
ROUND = {
    "round": 123,
    "signature": "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482"
    "e26cd02df835d3546d23c4b13e0dfc92",
}
COMMITTED_AT = "2023-08-23T15:14:33Z"
HONEST, FORGED = "honest-2mer", "forged-3mer"
# With 4-mers an audit has no force on 4 of the 13 tasks, and a draw may hold too many of those to
# verify anything; with 2-mers it has force on all.
HONEST_K = 2
DRAWN = 5


class MiniRepository:
    """A repository of submissions for GENEB-mini, and an installation of the toolkit beside it."""

    def __init__(self, folder: Path, drawn: int = DRAWN) -> None:
        """Lay both out: a checkout with changes of its own could not be audited."""
        self.root = folder / "repository"
        self.environment = os.environ | {"PYTHONPATH": str(self._site(folder / "site"))}
        (self.root / "submissions").mkdir(parents=True)
        (self.root / "schemas").mkdir()
        shutil.copy(ROOT / "schemas/benchmark-mini.json", self.root / "schemas/benchmark.json")
        policy = self.root / "leaderboard/policy"
        policy.mkdir(parents=True)
        text = (ROOT / "leaderboard/policy/policy.toml").read_text(encoding="utf-8")
        text = re.sub(r"(?m)^((?:minimum_)?drawn *= *)\d+", rf"\g<1>{drawn}", text)
        (policy / "policy.toml").write_text(text, encoding="utf-8")
        self._write("leaderboard/policy/official.json", {"files": {}})
        self._write("round.json", ROUND)
        self._key()
        self._git("init", "--quiet", "--initial-branch", "main")

    def _site(self, folder: Path) -> Path:
        """Install the toolkit in a folder; return the one that has it."""
        for name in ("geneb_ci", "reference_harness", "schemas", "leaderboard"):
            shutil.copytree(ROOT / name, folder / name)
        return folder

    def _write(self, name: str, value: object) -> None:
        (self.root / name).write_text(json.dumps(value) + "\n", encoding="utf-8")

    def _key(self) -> None:
        key = ("--output", "key.pem", "--owner", "demo")
        output = self.run("geneb_ci", "audit", "keygen", *key).stdout
        entry = json.loads(output) | {"valid_from": COMMITTED_AT}
        self._write("leaderboard/policy/keys.json", {"keys": [entry]})

    def _git(self, *arguments: str) -> None:
        author = ("-c", "user.name=demo", "-c", "user.email=demo@localhost")
        nobodys = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        environment = self.environment | nobodys
        subprocess.run(["git", *author, *arguments], cwd=self.root, env=environment, check=True)

    def merge(self, subject: str) -> None:
        """Commit the row and the records that lie there, as a merge on main would."""
        self._git("add", "submissions", "leaderboard")
        self._git("commit", "--quiet", "--message", subject)

    def run(
        self, module: str, *arguments: str, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of the installation in the repository, and keep what it says."""
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=self.root,
            env=self.environment,
            check=check,
            capture_output=True,
            text=True,
        )

    def harness(self, model_id: str, k: int) -> None:
        """Run the k-mer extractor on all tasks: a run record and a submission."""
        self.run(
            *("reference_harness", "run", "--extractor", "kmer", "--option", f"k={k}"),
            *("--output", f"{model_id}.record.json", "--model-id", model_id, "--quiet"),
            *("--submission", f"submissions/{model_id}.json", "--submitted-by", "demo"),
        )

    def geneb_ci(self, *arguments: str, expected: int = 0) -> None:
        """Show a command and run it. Exits when its code is not the expected one."""
        print(f"\n$ geneb-ci {' '.join(arguments)}", flush=True)
        command = [sys.executable, "-m", "geneb_ci", *arguments]
        code = subprocess.run(command, cwd=self.root, env=self.environment, check=False).returncode
        if code != expected:
            sys.exit(f"demo: exit code {code}, expected {expected}")
        print(f"(exit code {code})", flush=True)

    def audit(self, model_id: str, *sample: str, expected: int = 0) -> None:
        """Commit, draw, rerun and sign."""
        c, p = f"{model_id}.commitment.json", f"{model_id}.plan.json"
        self.geneb_ci("audit", "commit", f"submissions/{model_id}.json", "--output", c)
        self.geneb_ci(
            *("audit", "plan", c, "--committed-at", COMMITTED_AT),
            *("--beacon-file", "round.json", *sample, "--output", p),
        )
        self.geneb_ci("audit", "run", p, "--key", "key.pem", expected=expected)


def audits(folder: Path) -> bool:
    """Audit an honest row and a forged one, and show what the board makes of them.

    Return whether it did: without a sandbox, which most containers refuse, no audit runs.
    """
    if cause := unavailable_because(DEFAULT, folder):
        print(f"\n4. The audits are left out: no sandbox of level {DEFAULT} works here, since")
        print(textwrap.fill(cause, initial_indent="   ", subsequent_indent="   ", width=80))
        print(
            "   `geneb-ci doctor` says what this machine supports, docs/contributor/install.md how"
        )
        print("   a container gets it.")
        return False
    board = MiniRepository(folder)
    print(
        "\n4. An honest row is audited: five tasks, drawn by a public beacon, rerun in a sandbox."
    )
    board.harness(HONEST, HONEST_K)
    board.audit(HONEST)
    board.merge(f"Add {HONEST} and its audit")
    print(f"\n5. A forged one passes every check: {' and '.join(RAISED)} are raised consistently.")
    board.harness(FORGED, 3)
    submission = board.root / "submissions" / f"{FORGED}.json"
    forge(board.root / f"{FORGED}.record.json", submission, FORGED)
    board.geneb_ci("check", "--select", "arithmetic", f"submissions/{FORGED}.json")
    print("\n   A sample that cannot miss two raised tasks is drawn, and finds them.")
    board.audit(FORGED, "--detect", "2", "--confidence", "0.99", expected=11)
    board.merge(f"Add {FORGED} and its audit")
    print("\n6. Anybody can verify both records; the board shows what they are worth.")
    board.geneb_ci("audit", "verify")
    board.geneb_ci("explain", FORGED)
    board.geneb_ci("build", "--output", "board")
    show(board.root / "board" / "leaderboard.json")
    return True


def show(path: Path) -> None:
    """Print the evidence of each row, and its audit."""
    table = Table(title="the board of GENEB-mini, full regime", title_justify="left")
    for name in ("model", "macro MCC", "evidence", "audit"):
        table.add_column(name, justify="right" if name == "macro MCC" else "left")
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
