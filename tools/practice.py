"""Practise a maintainer's work on a board with twelve pull requests; GitHub and Hub are imitated.

python -m tools.practice FOLDER

It writes what `geneb-ci init` writes, measures two rows with the harness, opens the pull requests,
checks them as the workflow does, and then answers commands until `quit`.
"""

import datetime as dt
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from geneb_ci.github.settings.required import SETTINGS
from geneb_ci.init.new_repository import filled_template
from tests.github.server import REPOSITORY
from tests.github.serving import serving
from tests.publish.hub import WRITER, Hub
from tools.demo_forge import forge as raised
from tools.rehearse.forge import REQUIRED, Files, GitForge, git

SPACE = "geneb/board"
MAINTAINER = "maintainer"
"""The token that a maintainer's commands send to the imitated GitHub."""
JOB = "job"
"""The token of the workflow, which writes comments as GitHub Actions does."""
PERSON: dict[str, Any] = {"id": 50, "login": "a-maintainer"}
HONEST, FORGED = "three-mers", "two-mers"
SUBMISSIONS = "submissions"
HELP = """\
  list             the open pull requests, with their labels
  show N           the comments and statuses of a pull request
  comment N TEXT   comment as a maintainer: /audit, /dispute, or any text
  sweep            check pull requests without a verdict, as the workflow does
  merge N          squash a pull request into main, if its verdict allows that
  bypass N         merge a pull request that is not a submission, without a verdict
  close N          close it
  quit             stop the servers; the folder stays"""

HIDDEN = re.compile(r"<!--.*?-->", re.DOTALL)
"""The parts of a comment that GitHub does not show."""


class Proposal(NamedTuple):
    """A pull request of the practice board."""

    branch: str
    title: str
    files: Files


class Practice:
    """The board, the imitated GitHub and the imitated Hub."""

    def __init__(self, folder: Path, github: GitForge, hub: Hub) -> None:
        self.folder = folder
        self.board = folder / "board"
        self.github = github
        self.hub = hub

    @property
    def settings(self) -> dict[str, str]:
        """Environment variables for a maintainer's commands."""
        return {
            "GH_TOKEN": MAINTAINER,
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_API_URL": self.github.address,
            "GITHUB_SERVER_URL": self.github.clones,
            "HF_ENDPOINT": self.hub.endpoint,
            "HF_TOKEN": WRITER,
            "HF_HOME": str(self.folder / "hub"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }

    def propose(self, proposal: Proposal) -> int:
        """Open a pull request by a stranger, based on the current main; return its number."""
        number = self.github.propose(proposal.branch, proposal.title, proposal.files)
        opened = dt.datetime.now(dt.UTC) - dt.timedelta(days=13 - number)
        stamp = opened.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.github.pulls[number] |= {"created_at": stamp, "updated_at": stamp}
        return number

    def publish(self) -> None:
        """Publish the board to the Space, in its state before the pull requests."""
        process = geneb_ci(self.board, os.environ | self.settings, "publish", "--space", SPACE)
        if process.returncode:
            raise RuntimeError(f"geneb-ci publish: {process.stderr}")

    def sweep(self) -> str:
        """Check pull requests without a verdict and write the verdicts; return the output."""
        verdict = self.folder / "verdict.json"
        environment = os.environ | self.settings | {"GH_TOKEN": JOB}
        judged = geneb_ci(self.board, environment, "reconcile", "--output", str(verdict))
        if judged.returncode:
            return judged.stderr
        environment["VERDICT"] = verdict.read_text(encoding="utf-8")
        written = geneb_ci(self.board, environment, "report")
        return written.stdout + written.stderr

    def answer(self, line: str) -> str:
        """Carry out a command of the prompt and return its output; explain an invalid one."""
        words = shlex.split(line)
        commands: dict[str, Callable[..., str]] = {
            "list": self._list,
            "show": self._show,
            "comment": self._comment,
            "sweep": self.sweep,
            "merge": self._merge,
            "bypass": self._bypass,
            "close": self._close,
        }
        if not words or words[0] not in commands:
            return HELP
        number = [int(word) for word in words[1:2] if word.isdecimal()]
        if words[0] in {"list", "sweep"}:
            return commands[words[0]]()
        if not number or number[0] not in self.github.pulls:
            return f"{words[0]}: expected the number of a pull request; `list` shows the numbers"
        return commands[words[0]](number[0], *[" ".join(words[2:])][: words[0] == "comment"])

    def _list(self) -> str:
        return "\n".join(
            f"#{number:<3} {', '.join(self.github.labels(number)):<24} {pull['title']}"
            for number, pull in self.github.pulls.items()
            if pull["state"] == "open"
        )

    def _show(self, number: int) -> str:
        pull = self.github.pulls[number]
        statuses = self.github.statuses.get(pull["head"]["sha"], [])
        lines = [f"#{number} {pull['title']} ({pull['state']})"]
        lines += [f"{s['context']}: {s['state']}, {s.get('description', '')}" for s in statuses[:1]]
        for comment in self.github.comments[number]:
            body = HIDDEN.sub("", str(comment["body"])).strip()
            lines += ["", f"{comment['user']['login']}:", body]
        return "\n".join(lines)

    def _comment(self, number: int, text: str) -> str:
        self.github.add_comment(number, PERSON, text)
        return f"#{number}: commented; `sweep` processes the comment"

    def _merge(self, number: int) -> str:
        if not self.github.merge(number):
            is_other = "needs-maintainer" in self.github.labels(number)
            hint = (
                f"; it is not a submission: `bypass {number}` or `close {number}`"
                if is_other
                else ""
            )
            return f'#{number}: refused: Required status check "{REQUIRED}" is expected.{hint}'
        return self._merged(number)

    def _bypass(self, number: int) -> str:
        if "needs-maintainer" not in self.github.labels(number):
            return f"#{number}: refused: a submission needs a verdict: `merge {number}`"
        self.github.squash(number)
        return self._merged(number)

    def _merged(self, number: int) -> str:
        return f"#{number}: merged; to get it: `git pull` in {self.board}"

    def _close(self, number: int) -> str:
        self.github.patch_pull({}, {"state": "closed"}, str(number))
        return f"#{number}: closed"


def geneb_ci(
    folder: Path, environment: Mapping[str, str], *words: str
) -> "subprocess.CompletedProcess[str]":
    """Run a geneb-ci command in a folder."""
    command = [sys.executable, "-m", "geneb_ci", *words]
    return subprocess.run(
        command, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False
    )


@contextmanager
def practice(folder: Path, data: Path | None = None) -> Iterator[Practice]:
    """Create the board in an empty folder and serve it. Raises RuntimeError if a step fails.

    `data` is the data of a benchmark other than GENEB-mini, as `geneb-harness data define` wrote
    it; it must have the tasks `mini_tf` and `mini_splice`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    person = {
        f"GIT_{role}_{part}": setting_value
        for role in ("AUTHOR", "COMMITTER")
        for part, setting_value in (("NAME", PERSON["login"]), ("EMAIL", "maintainer@example.org"))
    }
    words = (
        *("init", "board", "--repo", REPOSITORY, "--space", SPACE),
        *("--maintainers", "@org/maintainers"),
    )
    benchmark_option = () if data is None else ("--benchmark", str(data / "benchmark.json"))
    process = geneb_ci(folder, os.environ | person, *words, *benchmark_option)
    if process.returncode:
        raise RuntimeError(f"geneb-ci init: {process.stderr}")
    board, bare = folder / "board", folder / "board.git"
    git(folder, "clone", "--quiet", "--bare", str(board), str(bare))
    git(bare, "config", "uploadpack.allowAnySHA1InWant", "true")
    github = GitForge(folder)
    origin = f"{github.clones}/{REPOSITORY}"
    remotes = git(board, "remote").split()
    git(board, "remote", "set-url" if "origin" in remotes else "add", "origin", origin)
    for part, setting_value in (("name", PERSON["login"]), ("email", "maintainer@example.org")):
        git(board, "config", f"user.{part}", setting_value)
    git(board, "fetch", "--quiet", "origin")
    git(board, "branch", "--quiet", "--set-upstream-to=origin/main", "main")
    github.learn(github.main)
    github.known_labels = {  # those that `geneb-ci init --apply` creates
        label for setting in SETTINGS for label in setting.required.get("labels", ())
    }
    scopes = frozenset(scope for _, _, scope, _ in github.routes())
    github.grants = {MAINTAINER: scopes, JOB: scopes}
    hub = Hub()
    try:
        hub.create(f"spaces/{SPACE}")
        github.excused = "in practice any request is allowed"
        with serving(github):
            trial = Practice(folder, github, hub)
            for proposal in proposals(measured_submissions(folder, data)):
                trial.propose(proposal)
            if data is None:  # a board of another benchmark has no row to publish yet
                trial.publish()
            yield trial
    finally:
        hub.close()


def measured_submissions(folder: Path, data: Path | None = None) -> dict[str, bytes]:
    """Run the harness for two rows and forge the second; return the submissions by model id."""
    work = folder / "contributor"
    work.mkdir()
    data_options = (
        [] if data is None else ["--data", f"{data}", "--benchmark", f"{data}/benchmark.json"]
    )
    for model_id, length in ((HONEST, 3), (FORGED, 2)):
        words = (
            *("run", "--extractor", "kmer", "--option", f"k={length}", "--model-id", model_id),
            *("--output", f"{model_id}.record.json", "--submission", f"{model_id}.json"),
            *("--display", f"{length}-mers", "--zero-shot", "--training-data", "none"),
            *("--submitted-by", "stranger", "--quiet", *data_options),
        )
        process = geneb_ci(work, os.environ, *words)
        if process.returncode:
            raise RuntimeError(f"geneb-ci {' '.join(words)}: {process.stderr}")
    raised(work / f"{FORGED}.record.json", work / f"{FORGED}.json", FORGED)
    return {model_id: (work / f"{model_id}.json").read_bytes() for model_id in (HONEST, FORGED)}


def proposals(rows: Mapping[str, bytes]) -> Iterator[Proposal]:
    """Yield twelve pull requests: two to audit, seven to send back, three to review by hand."""
    card = filled_template("card.md.in", {})
    honest = rows[HONEST]

    def row(model: str, raw: bytes) -> Files:
        own_card = card.replace(b"# k-mer baseline", f"# {model}".encode())
        return {f"{SUBMISSIONS}/{model}.json": raw, f"{SUBMISSIONS}/cards/{model}.md": own_card}

    def changed(model: str, change: Callable[[dict[str, Any]], object]) -> bytes:
        document = json.loads(honest) | {"model_id": model}
        change(document)
        return json.dumps(document, indent=2).encode() + b"\n"

    def percent(document: dict[str, Any]) -> None:
        for task in document["results"]["full"].values():
            task.update({metric: 100 * value for metric, value in task.items()})

    def not_a_number(document: dict[str, Any]) -> None:
        document["results"]["1shot"]["mini_tf"]["MCC"] = float("nan")

    def impossible(document: dict[str, Any]) -> None:
        document["results"]["full"]["mini_tf"]["Acc"] = 0.99

    yield Proposal("three-mers", "Add 3-mers", row(HONEST, honest))
    yield Proposal("two-mers", "Add 2-mers", row(FORGED, rows[FORGED]))
    yield Proposal("percent", "Add a model in percent", row("percent", changed("percent", percent)))
    yield Proposal("wrong-id", "Add a model", row("renamed", changed("another-name", lambda _: 0)))
    incomplete = changed("lacks-a-task", lambda d: d["results"]["full"].pop("mini_splice"))
    yield Proposal("lacks-a-task", "Add a model on 12 tasks", row("lacks-a-task", incomplete))
    nan = changed("not-a-number", not_a_number)
    yield Proposal("not-a-number", "Add a model that failed once", row("not-a-number", nan))
    too_good = changed("too-good", impossible)
    yield Proposal("too-good", "Add a better model", row("too-good", too_good))
    copy = changed("four-mers", lambda _: 0)
    yield Proposal("four-mers", "Add 4-mers", row("four-mers", copy))
    yield Proposal("in-the-root", "Upload a submission", {"three-mers-2.json": honest})
    policy = "leaderboard/policy/policy.toml"
    yield Proposal("policy", "Draw no task", {policy: b"[sample]\ndrawn = 0\n"})
    yield Proposal("leave", "Remove the baseline", {f"{SUBMISSIONS}/kmer-baseline.json": None})
    yield Proposal(
        "readme", "Correct a word", {"NOTES.md": b"A page about nothing of the board.\n"}
    )


def instructions(trial: Practice) -> str:
    """Return the addresses and the commands for a maintainer to begin with."""
    exports = "\n".join(
        f"  export {name}={shlex.quote(value)}" for name, value in trial.settings.items()
    )
    return (
        f"{len(trial.github.pulls)} pull requests are open on a board of your own. In another "
        f"terminal:\n\n  cd {shlex.quote(str(trial.board))}\n"
        f"  export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH\n{exports}\n"
        "  geneb-ci triage\n\n"
        f"Here you do what you would click on GitHub:\n\n{HELP}\n"
    )


def main(folder: Path, lines: TextIO) -> int:
    """Answer commands until `quit` or the end of the input; return the exit code."""
    if folder.exists() and any(folder.iterdir()):
        print(f"practice: {folder} is not empty: choose another folder", file=sys.stderr)
        return 2
    print("writing a board, measuring two rows, opening twelve pull requests (a minute)")
    with practice(folder) as trial:
        trial.sweep()
        print(instructions(trial), flush=True)
        while True:
            print("practice> ", end="", flush=True)
            line = lines.readline()
            if not line or line.strip() == "quit":
                print(f"the board stays in {trial.board}")
                return 0
            print(trial.answer(line), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 (the program and its folder)
        sys.exit("usage: python -m tools.practice FOLDER")
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.stdin))
