"""A repository on a GitHub in this process: pull requests, sweeps, merges, and a clock.

The code that sweeps, judges and writes is the one that runs in the jobs; only HTTP is left out.
"""

import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from github.Requester import Requester

from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker, FileResult
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.finding import Severity
from geneb_ci.github import report
from geneb_ci.github.api import ACTIONS_BOT_ID, GitHub
from geneb_ci.github.comment import own_comment, read_verdict
from geneb_ci.github.connection import Connection, Refusal
from geneb_ci.github.errors import WaitingLimits
from geneb_ci.github.main_branch import configured_folders
from geneb_ci.github.reconcile import SweepResult, group_verdict, sweep
from geneb_ci.github.replies import Comment
from geneb_ci.github.trees import main_at
from geneb_ci.github.verdict.model import PullVerdict
from geneb_ci.github.verdict.verdict_line import decode, encode
from tests.github.conftest import IMPATIENT, PEERS, REGULAR, sound
from tests.github.history import Files
from tests.github.refusals import Fault
from tests.github.server import REPOSITORY, TOKEN, GitHubServer
from tests.small import BENCHMARK_FILE

EPOCH = dt.datetime(2026, 11, 23, 8, 0, tzinfo=dt.UTC)
SWEEP = dt.timedelta(minutes=15)


class DirectConnection(Connection):
    """The connection to a server in this process."""

    def __init__(self, server: GitHubServer, waiting_limits: WaitingLimits = IMPATIENT) -> None:
        super().__init__(TOKEN, REPOSITORY, "http://127.0.0.1", waiting_limits)
        self.server = server
        self.clock = EPOCH

    @property
    def now(self) -> dt.datetime:
        return self.clock

    def _request(
        self,
        verb: str,
        url: str,
        parameters: dict[str, Any],
        body: Any,
    ) -> tuple[Mapping[str, str], Any]:
        whole = Requester.add_parameters_to_url(url.removeprefix("http://127.0.0.1"), parameters)
        raw = b"" if body is None else json.dumps(body).encode()
        answer = self.server.answer(verb, whole, TOKEN, raw)
        values_by_header = {name.lower(): value for name, value in answer.headers.items()}
        if answer.status >= 400:
            self._raise_refusal(Refusal(answer.status, values_by_header, answer.body))
        return values_by_header, json.loads(json.dumps(answer.body))


class World:
    """One board in a folder of the given name, and its GitHub."""

    def __init__(self, folder: Path, rows: Files | None = None) -> None:
        """`rows` are the files of main beside the policy; by default four rows of a small board."""
        files = dict(rows or {})
        for peer in () if rows else PEERS:
            files |= sound(peer)
        files.setdefault("schemas/benchmark.json", (REGULAR, BENCHMARK_FILE.read_bytes()))
        files["leaderboard/policy/official.json"] = (REGULAR, b'{"files": {}}\n')
        for path, (_, raw) in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(raw)
        self.server = GitHubServer()
        self.server.default_head = self.server.commit(files)
        self.layout: Layout = find_layout(folder)
        self.folder = folder
        self.clock = EPOCH
        self.unreadable: set[int] = set()
        self.builds = 0
        self.digests: dict[str, str] = {}

    def github(self) -> GitHub:
        connection = DirectConnection(self.server)
        connection.clock = self.clock
        return GitHub(connection)

    def files(self, sha: str) -> Files:
        tree = self.server.trees[self.server.commits[sha][0]]
        return {path: (mode, self.server.blobs[blob]) for path, (mode, blob) in tree.items()}

    def open(self, changes: Files, **options: Any) -> int:
        """Open a pull request from the present main."""
        main = self.server.main_sha()
        head = self.server.commit(self.files(main) | changes, main)
        number = self.server.open_pull(head, main, **options)
        stamp = f"{self.clock:%Y-%m-%dT%H:%M:%SZ}"
        self.server.pulls[number] |= {"created_at": stamp, "updated_at": stamp}
        return number

    def push(self, number: int, changes: Files) -> None:
        """Force-push a pull request: its branch is made again from the present main."""
        main = self.server.main_sha()
        pull = self.server.pulls[number]
        pull["head"]["sha"] = self.server.commit(self.files(main) | changes, main)
        pull["updated_at"] = f"{self.clock:%Y-%m-%dT%H:%M:%SZ}"

    def change_main(self, changes: Files) -> None:
        """Change files of main, as maintainers do."""
        main = self.server.main_sha()
        self.server.default_head = self.server.commit(self.files(main) | changes, main)

    def say(self, number: int, login: str, body: str) -> None:
        """Comment on a pull request."""
        self.server.add_comment(number, {"id": 50, "login": login}, body)

    def restore(self, then: Files) -> None:
        """Make these the files of main, as a revert or a deletion does."""
        self.server.default_head = self.server.commit(then, self.server.main_sha())

    def hide(self, number: int) -> None:
        """Let GitHub fail on a head: it has no commit in common with main."""
        self.unreadable.add(number)
        sha = self.server.pulls[number]["head"]["sha"]
        self.server.faults.append(Fault("GET", f"/compare/.*{sha}", 404, times=10**9))

    def sweep(self, *, events: bool = False) -> SweepResult:
        """Run the two jobs; `events` leaves the clock where it is."""
        sweep_result = sweep(self.github(), self.layout)
        self.write(sweep_result)
        self.clock += dt.timedelta(0) if events else SWEEP
        return sweep_result

    def write(self, sweep_result: SweepResult) -> None:
        verdict = decode(encode(sweep_result.verdicts), REPOSITORY)
        for _ in report.write_verdicts(
            self.github(), verdict, tuple(configured_folders(self.layout))
        ):
            pass

    def status(self, sha: str) -> str:
        statuses = self.server.statuses.get(sha, [])
        return str(statuses[0]["state"]) if statuses else ""

    def state(self, number: int) -> str:
        """Return the state of the verdict on the head of a pull request."""
        return self.status(self.server.pulls[number]["head"]["sha"])

    def commented_verdict(self, number: int) -> PullVerdict | None:
        comments = [Comment.model_validate(comment) for comment in self.server.comments[number]]
        ours = own_comment(comments, ACTIONS_BOT_ID)
        return read_verdict(ours.body) if ours is not None else None

    def digest(self) -> str:
        """Return the digest of main as a verdict has it."""
        sha = self.server.main_sha()
        if sha not in self.digests:
            github = self.github()
            self.digests[sha] = main_at(github, github.main()).digest
        return self.digests[sha]

    def is_stale(self, number: int) -> bool:
        """Whether no verdict is about its head and the present main.

        Pull requests with one head have one verdict, since a status is of a commit.
        """
        head = self.server.pulls[number]["head"]["sha"]
        same = (n for n, pull in self.server.pulls.items() if pull["head"]["sha"] == head)
        verdicts = [verdict for verdict in map(self.commented_verdict, same) if verdict is not None]
        now = (head, self.digest())
        return all((verdict.head_sha, verdict.main_digest) != now for verdict in verdicts)

    def open_numbers(self) -> list[int]:
        return [n for n, pull in self.server.pulls.items() if pull["state"] == "open"]

    def judged_numbers(self) -> list[int]:
        """Return those that get a verdict: open to main, the first of their head."""
        number_by_head: dict[str, int] = {}
        for number in self.open_numbers():
            pull = self.server.pulls[number]
            if pull["base"]["ref"] == "main":
                number_by_head.setdefault(pull["head"]["sha"], number)
        return list(number_by_head.values())

    def is_mergeable(self, number: int) -> bool:
        """Whether GitHub offers to merge it: open to main, no draft, passing, no conflict."""
        pull = self.server.pulls[number]
        head = pull["head"]["sha"]
        return (
            pull["state"] == "open"
            and pull["base"]["ref"] == "main"
            and not pull["draft"]
            and self.status(head) == "success"
            and self.server.merged(self.server.main_sha(), head) is not None
        )

    def merge(self, number: int) -> bool:
        """Merge as GitHub does where the verdict is required; tell whether it was possible."""
        if not self.is_mergeable(number):
            return False
        self.server.squash(number)
        return True

    def queue(self, number: int, onto: str = "") -> str:
        """Put a pull request into the merge queue, on main or behind a group; return its group."""
        head, base = self.server.pulls[number]["head"]["sha"], onto or self.server.main_sha()
        files = self.server.merged(base, head)
        assert files is not None
        group = self.server.commit_tree(files, base)
        self.server.queued[f"refs/heads/gh-readonly-queue/main/pr-{number}-{base}"] = group
        return group

    def merge_group(self, group: str, number: int) -> bool:
        """Take a group from the queue, and make it main if its status passes."""
        queued = self.server.queued
        self.server.queued = {ref: sha for ref, sha in queued.items() if sha != group}
        if self.status(group) != "success":
            return False
        self.server.default_head = group
        pull = self.server.pulls[number]
        pull |= {"state": "closed", "merged_at": pull["updated_at"]}
        return True

    def merge_by_queue(self, number: int) -> bool:
        """Merge as a merge queue does: the group is checked, and only then becomes main."""
        if not self.is_mergeable(number):
            return False
        group = self.queue(number)
        self.write(group_verdict(self.github(), self.layout, group))
        return self.merge_group(group, number)

    def merge_two_by_queue(self, first_number: int, two: int) -> list[bool]:
        """Merge two as a merge queue does: the second group has both, and is checked at once.

        Where the first does not pass, the group of the second goes with it.
        """
        if not (self.is_mergeable(first_number) and self.is_mergeable(two)):
            return [False, False]
        first = self.queue(first_number)
        if self.server.merged(first, self.server.pulls[two]["head"]["sha"]) is None:
            return [self.merge_group(first, first_number), False]
        second = self.queue(two, first)
        for group in (first, second):
            self.write(group_verdict(self.github(), self.layout, group))
        done = self.merge_group(first, first_number)
        return [done, self.merge_group(second, two) if done else False]

    def errors_of_main(self) -> list[str]:
        """Return what would freeze the publication: the errors of the rows of main."""
        self.builds += 1
        folder = self.folder.parent / f"{self.folder.name}-build-{self.builds}"
        for path, (_, raw) in self.files(self.server.main_sha()).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(raw)
        rows = sorted((folder / "submissions").glob("*.json"))
        results = []
        for result in Checker(RULES).run(rows):
            assert isinstance(result, FileResult)
            results += [f.rule for f in result.findings if f.severity is Severity.ERROR]
        return results
