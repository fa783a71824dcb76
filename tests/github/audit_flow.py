"""A repository on loopback whose pull requests are audited, and the jobs of the workflow audit."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from geneb_ci.audit.compare.outcome import AuditOutcome
from geneb_ci.audit.rerun.credentials import credential_variables
from geneb_ci.cli.main import main
from geneb_ci.github import audits, errors, report
from geneb_ci.github.one_line import decode, encode
from tests.audit.examples import ROUNDS
from tests.audit.recorded import FIRST, committed_at, pem_of, repository
from tests.audit.relay import relay, says
from tests.audit.test_commit import ENTRY
from tests.github.conftest import IMPATIENT
from tests.github.server import BOT, REPOSITORY, WRITE
from tests.github.serving import serving
from tests.paths import IMPORTABLE
from tests.publish.hub import WRITER, Hub
from tests.small import DIGEST
from tools.rehearse import row
from tools.rehearse.forge import AUDITOR, GitForge, git
from tools.rehearse.standins import clone

ROUND = json.dumps({"round": FIRST, "signature": ROUNDS[FIRST]})
# In place of the rerun, which takes a model and minutes: an outcome of that plan, made up.
RERUN = (
    "import os, subprocess; from geneb_ci.github import audits, hub_jobs, one_line; "
    "from tests.audit.recorded import *; "
    "order = one_line.decode(os.environ['AUDIT_ORDER'], audits.AuditOrder, '', ''); "
    "git = ['git', '-C', os.environ['HOME'] + '/board']; "
    "address = os.environ['AUDIT_SERVER'] + '/' + order.repository; "
    "subprocess.run([*git, 'fetch', '-q', '--depth=1', address, order.head_sha], check=True); "
    "blob = next(one.blob for one in order.files if one.path.endswith('json')); "
    "document = subprocess.check_output([*git, 'cat-file', 'blob', blob]); "
    "line = one_line.encode(outcome_of(order.plan, document), ''); "
    "print('one line more'); "
    "print(*hub_jobs.outcome_lines(line, order.nonce), sep=chr(10))"
)
JOB, APP_TOKEN = "ghs_job", "ghs_app"  # the loopback server's own
MODEL = row.MODEL
OLD = "rehearsed-old"
"""A row of format 1.0, whose run is described by an entry of the model registry."""
RUN_OF_ENTRY = '[run]\nextractor = "submissions/extractors/rehearsed_old.py:Model"\n'


@dataclass
class Flow:
    """A repository on loopback, its main checked out, and the outputs of jobs."""

    forge: GitForge
    checkout: Path
    capsys: pytest.CaptureFixture[str]
    relay: str
    patch: pytest.MonkeyPatch

    def propose(self, files: row.Files, model: str = MODEL) -> int:
        """Open a pull request from the fork, and label it."""
        number = self.forge.propose(model, f"Add {model}", files)
        self.forge.pulls[number]["labels"] = [{"name": "audit"}, {"name": "by hand"}]
        return number

    def run(self, *words: str, **variables: str) -> tuple[int, str, str]:
        """Run a command in the checkout of main; return its exit code and what it printed."""
        self.capsys.readouterr()
        for name, value in variables.items():
            self.patch.setenv(name, value)
        code = main(words)
        out, err = self.capsys.readouterr()
        return int(code), out, err

    def opened(self) -> audits.AuditOrder:
        code, out, err = self.run("audit", "open", "--relay", self.relay)
        assert code == 0, err
        return decode(out, audits.AuditOrder, "the order", audits.RETRY_FIX)

    def delivered(self, order: audits.AuditOrder, outcome: AuditOutcome | None) -> tuple[int, str]:
        line = encode(outcome, audits.RETRY_FIX) if outcome is not None else ""
        code, _, err = self.run(
            *("audit", "deliver"), AUDIT_ORDER=encode(order, audits.RETRY_FIX), AUDIT_OUTCOME=line
        )
        assert "Traceback" not in err
        return code, err

    def comment(self, number: int) -> str:
        (body,) = [
            comment["body"] for comment in self.forge.comments[number] if comment["user"] == BOT
        ]
        return str(body)

    def raw(self, order: audits.AuditOrder) -> bytes:
        path = f"submissions/{order.model_id}.json"
        return self.forge.blobs[next(file.blob for file in order.files if file.path == path)]


@pytest.fixture(scope="module")
def founded(tmp_path_factory) -> Path:
    """Lay out a board of the small benchmark once."""
    root: Path = repository(tmp_path_factory.mktemp("founded"))
    entry = root / f"leaderboard/policy/models/{OLD}.toml"
    entry.parent.mkdir()
    entry.write_text(ENTRY.format(config=DIGEST, weights=DIGEST) + RUN_OF_ENTRY)
    job = root / "tools/audit-job"
    job.parent.mkdir()
    job.write_text(
        "#!/bin/sh\nif [ \"${2:-}\" = doctor ]; then echo '  2  bubblewrap: yes'; exit; fi\n"
        f'env > "$HOME/seen"\ncd {IMPORTABLE}\nexec {sys.executable} -c "{RERUN}"\n'
    )
    job.chmod(0o755)
    return root


@pytest.fixture(scope="module")
def committed(founded, tmp_path_factory) -> tuple[Path, str]:
    """Return a bare repository of the board, which tests copy, and its one commit."""
    bare = tmp_path_factory.mktemp("committed") / "board.git"
    git(founded, "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    git(bare, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(bare, f"--work-tree={founded}", "add", "--all")
    sha = git(bare, "commit-tree", git(bare, "write-tree"), "-m", "Set up")
    git(bare, "update-ref", "refs/heads/main", sha)
    return bare, sha


@pytest.fixture
def flow(committed, tmp_path, monkeypatch: pytest.MonkeyPatch, capsys) -> Iterator[Flow]:
    template, sha = committed
    bare = shutil.copytree(template, tmp_path / "board.git")
    forge = GitForge(tmp_path)
    forge.learn(sha)
    forge.stamp = committed_at(FIRST)
    forge.known_labels = {"audit", "by hand", *report.AUDIT_STATES}
    forge.grants = {JOB: WRITE, APP_TOKEN: AUDITOR}
    checkout = tmp_path / "checkout"
    clone(bare, checkout, "refs/heads/main", depth=1)
    monkeypatch.setattr(errors, "WAITING_LIMITS", IMPATIENT)
    monkeypatch.chdir(checkout)
    with serving(forge), relay(says(ROUND)) as (address, _):
        for name, value in {
            **dict.fromkeys(credential_variables(os.environ), ""),
            "GH_TOKEN": JOB,
            "AUDIT_TOKEN": APP_TOKEN,
            "AUDIT_KEY": pem_of().decode(),
            "GITHUB_API_URL": forge.address,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_SERVER_URL": forge.clones,
            "GITHUB_OUTPUT": "",
            "GITHUB_STEP_SUMMARY": "",
        }.items():
            monkeypatch.setenv(name, value)
        yield Flow(forge, checkout, capsys, address, monkeypatch)


@pytest.fixture
def hub(flow) -> Iterator[Hub]:
    result = Hub()
    flow.patch.setenv("HF_ENDPOINT", result.endpoint)
    flow.patch.setenv("HF_TOKEN", WRITER)
    flow.patch.setenv("GITHUB_REPOSITORY", REPOSITORY)
    yield result
    result.close()
