"""Rehearses the audit of a practice row, from its label to a verified row, with both runners.

The repository becomes a board of GENEB-mini, whose data are generated, so that a rerun takes a
minute and needs no model.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from geneb_ci.github.report import AGREES, AUDIT_LABEL
from geneb_ci.init.new_repository import filled_template
from tests.audit.examples import ROUNDS
from tests.audit.recorded import FIRST, committed_at, entry, pem_of
from tests.audit.relay import relay, says
from tests.publish.hub import WRITER
from tools.rehearse.expected import require_equal, require_in
from tools.rehearse.forge import APP_ACCOUNT, AUDITOR, REQUIRED, git
from tools.rehearse.standins import APP, clone
from tools.rehearse.triggers import Event, repository

if TYPE_CHECKING:
    from tools.rehearse.story import Story

MODEL = "practice-2mer"
ENVIRONMENT = "geneb-audit"
DRAWN = 1  # of 13 tasks, as each takes half a minute
_PYTHON = {"AUDIT_PYTHON": sys.executable}
WRITER_TOKEN = "ghs_audits"  # noqa: S105 (the loopback server's own)


class Audits:
    """The chapters of the story that audit a row."""

    def __init__(self, story: "Story") -> None:
        self.story, self.world, self.forge = story, story.world, story.world.forge
        self.board_commit = ""
        """The commit of main that made it a board of GENEB-mini."""
        self.files: dict[str, bytes] = {}

    def chapters(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield the chapters that the chosen jobs need."""
        chosen = [name for name in ("open", "ready", "rerun", "deliver") if self._is_chosen(name)]
        if not chosen:
            return
        yield "main becomes a board of GENEB-mini", self.set_up_board
        if {"open", "rerun", "deliver"} & set(chosen):
            yield "a label and a merge verify a row, by a runner for one job", self.audit_by_runner
        if "ready" in chosen:
            yield "a row of main and a merge verify it, by a Job of the Hub", self.audit_by_hub

    def _is_chosen(self, job: str) -> bool:
        return self.world.chosen(f"audit.{job}")

    def set_up_board(self) -> None:
        """Push a practice board to main, and run the row that will be proposed."""
        work = self.world.folder / "practice"
        clone(self.forge.repository, work, "refs/heads/main", depth=1)
        shutil.rmtree(work / "submissions")
        (work / "submissions").mkdir()
        (work / "submissions/README.md").write_text("Rows of GENEB-mini.\n", encoding="utf-8")
        mini = (work / "schemas/benchmark-mini.json").read_bytes()
        (work / "schemas/benchmark.json").write_bytes(mini)
        policy = work / "leaderboard/policy"
        policy_text = (policy / "policy.toml").read_text(encoding="utf-8")
        policy_text = re.sub(r"(?m)^((?:minimum_)?drawn *= *)\d+", rf"\g<1>{DRAWN}", policy_text)
        (policy / "policy.toml").write_text(policy_text, encoding="utf-8")
        (policy / "keys.json").write_text(json.dumps({"keys": [entry()]}), encoding="utf-8")
        (policy / "official.json").write_text('{"files": {}}\n', encoding="utf-8")
        git(work, "add", "--all")
        git(work, "commit", "--quiet", "-m", "A board of GENEB-mini")
        git(work, "push", "--quiet", "origin", "HEAD:refs/heads/main")
        self.board_commit = git(work, "rev-parse", "HEAD")
        self.forge.learn(self.board_commit)
        self.files = self._run_harness(work)

    def _verdict_ended(self) -> Event:
        """Return the event of an ended verdict, which starts an audit without a schedule."""
        run = {"name": "verdict", "event": "workflow_run", "conclusion": "success"}
        payload = repository() | {"action": "completed", "workflow_run": run}
        return Event("workflow_run", "refs/heads/main", self.forge.main, payload)

    def _run_harness(self, work: Path) -> dict[str, bytes]:
        """Run the harness as a contributor does; return the files of the submission."""
        subprocess.run(
            [
                *(sys.executable, "-m", "reference_harness", "run", "--extractor", "kmer"),
                *("--option", "k=2", "--output", "record.json", "--model-id", MODEL, "--quiet"),
                *("--submission", "row.json", "--submitted-by", "rehearsal"),
                *("--display", "k-mer baseline", "--zero-shot", "--training-data", "none"),
            ],
            cwd=work,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            check=True,
            capture_output=True,
        )
        return {
            f"submissions/{MODEL}.json": (work / "row.json").read_bytes(),
            f"submissions/cards/{MODEL}.md": filled_template("card.md.in", {}),
        }

    def audit_by_runner(self) -> None:
        """Audit on this machine, in the place of a self-hosted runner."""
        self.world.variables |= {"AUDIT_FLAVOR": "", "AUDIT_RUNNER": "gpu-box"} | _PYTHON
        self._audit({"open", "ready", "rerun", "deliver"})

    def audit_by_hub(self) -> None:
        """Audit a row that is already on main, as a Job of the imitated Hub, with an App."""
        git(self.forge.repository, "update-ref", "refs/heads/main", self.board_commit)
        for path, raw in self.files.items():
            self.forge.push(path, raw)
        self.world.variables |= {"AUDIT_FLAVOR": "l4x1", "AUDIT_RUNNER": ""} | _PYTHON
        account = str(APP_ACCOUNT["id"])
        self.world.variables |= dict.fromkeys(("AUDIT_APP", "VERDICT_APP"), APP[0])
        self.world.variables["VERDICT_BOT"] = account
        self.forge.pinned = APP_ACCOUNT
        self._audit({"open", "ready", "deliver"})
        (spec,) = self.world.hub.shelf.jobs.specs.values()
        self._no_secret(json.dumps(spec))

    def _audit(self, jobs: set[str]) -> None:
        """Run the workflow for a label or a row, merge its records, and check the result."""
        is_on_main = "rerun" not in jobs
        if is_on_main:
            main, inputs = self.forge.main, {"row": MODEL}
            event = Event("workflow_dispatch", "refs/heads/main", main, repository(), inputs)
        else:
            number = self.story.propose(MODEL, self.files)
            self.forge.pulls[number]["labels"] = [{"name": AUDIT_LABEL}]
            event = self._verdict_ended()
        before = len(self.forge.requests)
        with self._secrets():
            outcomes = self.story.run(event, "audit", only="audit")
        if is_on_main and "ready" in outcomes["audit"]:
            require_in("the summary", "at most $", outcomes["audit"]["ready"].summary)
        if "deliver" not in outcomes["audit"]:
            return
        ran = {
            name for name, outcome in outcomes["audit"].items() if outcome.conclusion == "success"
        }
        require_equal("jobs that ran", ran, jobs)
        if is_on_main:
            number = max(self.forge.issues)
        require_equal("labels", self.forge.labels(number), [AGREES])
        require_equal(
            "the pull request, or the issue", self.forge.thread(number)["state"], "closed"
        )
        require_in("the comment", "| `signer` | holds |", self.forge.comments[number][-1]["body"])
        record = max(self.forge.pulls)
        written = {path for verb, path in self.forge.requests[before:] if verb == "PUT"}
        require_equal("writes to main", {path for path in written if "/merge" in path}, set())
        if self.world.chosen("verdict.report"):
            sweep = Event("schedule", "refs/heads/main", self.forge.main, repository())
            self.story.run(sweep, "verdict", only="verdict")
        else:
            head = self.forge.pulls[record]["head"]["sha"]
            status = {"context": REQUIRED, "state": "success", "creator": self.forge.pinned}
            self.forge.statuses[head] = [status]
        self.story.merge_of(record)
        require_in("the row on main", f"{MODEL}  audited: audit ", self._explanation())

    @contextlib.contextmanager
    def _secrets(self) -> Iterator[None]:
        """Set the secrets of the environment, and GitHub's clock to the time of a beacon round."""
        self.world.secrets[ENVIRONMENT] = {
            "AUDIT_KEY": pem_of().decode(),
            "AUDIT_TOKEN": "" if self.world.variables["AUDIT_APP"] else WRITER_TOKEN,
            "AUDIT_APP_KEY": APP[1],
            "HF_JOBS_TOKEN": WRITER,
        }
        self.world.secrets["geneb-verdict"] = {"VERDICT_APP_KEY": APP[1]}
        self.forge.grants[WRITER_TOKEN] = AUDITOR
        self.forge.stamp = committed_at(FIRST)
        answer = json.dumps({"round": FIRST, "signature": ROUNDS[FIRST]})
        with relay(says(answer)) as (address, _):
            self.world.machine_variables["GENEB_RELAY"] = address
            yield
        self.forge.stamp = ""

    def _no_secret(self, log: str) -> None:
        stored = self.world.secrets[ENVIRONMENT].items()
        leaked = [name for name, value in stored if value and value in log]
        require_equal("secrets in the Job of the Hub", leaked, [])

    def _explanation(self) -> str:
        checkout = self.world.folder / f"explained-{len(self.forge.pulls)}"
        clone(self.forge.repository, checkout, "refs/heads/main", depth=0)
        process = subprocess.run(
            [sys.executable, "-m", "geneb_ci", "explain", MODEL],
            cwd=checkout,
            capture_output=True,
            text=True,
            check=False,
        )
        return process.stdout + process.stderr
