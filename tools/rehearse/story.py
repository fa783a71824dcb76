"""The story: a fork, a row, a pull request, its verdict, the merge, the publication, an audit.

A chapter does itself what people do; the workflows that its events start do everything else. Then
it checks the resulting state.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.github.server import BOT
from tools.rehearse import row
from tools.rehearse.audits import Audits
from tools.rehearse.expected import Mismatch, require_equal, require_in
from tools.rehearse.forge import REQUIRED, git
from tools.rehearse.job import Outcome
from tools.rehearse.space import Space
from tools.rehearse.triggers import Event, repository
from tools.rehearse.world import World

BAD = "rehearsed-fault"
LOCKED = "rehearsed-lock"
DOCS = ("docs.build", "docs.deploy")
OutcomesByWorkflow = dict[str, dict[str, Outcome]]


@dataclass
class Story:
    """The events of the rehearsal so far."""

    world: World
    merged: str = ""
    """The commit of main that the merge created."""
    before: str = ""
    """The newest commit of main before the merge."""

    def chapters(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield the chapters that the chosen jobs need, in order."""
        chosen = self.world.chosen
        reports = chosen("verdict.parse") or chosen("verdict.report")
        space = list(Space(self).chapters())
        if any(map(chosen, ("ci.changes", "ci.test", "ci.ci"))):
            yield "a push to main is tested", self.push_code
        if any(map(chosen, DOCS)):
            yield "the pages are published as a site", self.publish_pages
        if chosen("pr-validate.check") or reports:
            yield (
                "a pull request with an impossible score is rejected",
                self.reject_impossible_score,
            )
            yield "a fork adds a row, which gets a verdict", self.propose_row
        if reports:
            yield (
                "a pull request with a locked conversation is listed in an issue",
                self.lock_conversation,
            )
            yield "the scheduled sweep finds every verdict written", self.sweep
            yield "a merge queue checks the row on the future main", self.queue_merge
        if space:
            yield "the row is merged", self.merge
        yield from space
        yield from Audits(self).chapters()

    def run(
        self, event: Event, *started_workflows: str, only: str = "", expects_success: bool = True
    ) -> OutcomesByWorkflow:
        """Dispatch an event; check that `started_workflows` start, and that no job fails.

        With `only`, no other workflow is run; without `expects_success`, jobs may fail.
        """
        outcomes = self.world.dispatch(event, only=only)
        for workflow in started_workflows:
            if workflow not in outcomes:
                raise Mismatch(f"the event {event.name} does not start {workflow}: see its `on:`")
        for workflow in outcomes:
            for job, outcome in outcomes[workflow].items():
                if outcome.conclusion == "failure" and expects_success:
                    raise Mismatch(f"{workflow}.{job} failed")
        return outcomes

    def push_code(self) -> None:
        """Push code to main, which runs the project's own tests on each Python."""
        forge = self.world.forge
        before = forge.main
        # Not README.md: pages link to its headings, and another chapter builds the site.
        pushed = forge.push("NEWS.md", b"A push that touches no submission.\n")
        event = Event(
            "push",
            "refs/heads/main",
            pushed,
            repository() | {"before": before},
            paths=("NEWS.md",),
        )
        self.run(event, "ci", only="ci")

    def publish_pages(self) -> None:
        """Change a page on main, which builds the site, checks every link, and publishes it."""
        pushed = self.world.forge.push("docs/news.md", b"# News\n\n[Rules](../RULES.md)\n")
        event = Event("push", "refs/heads/main", pushed, repository(), paths=("docs/news.md",))
        outcomes = self.run(event, "docs", only="docs")
        if "deploy" in outcomes["docs"]:
            require_in("the site", "news/index.html", "\n".join(self.world.site))
            rules = self.world.site["RULES/index.html"].decode()
            require_in("the page of rules", "missing-task", rules)

    def propose_row(self) -> None:
        """Fork, add a row and open a pull request, as a contributor does; check its verdict."""
        files = row.sound(self.world.root)
        number = self.propose(row.MODEL, files)
        self._judge(number, expects_success=True)
        if self.world.chosen("verdict.report"):
            self._require_verdict(number, "geneb: passed", "success")

    def reject_impossible_score(self) -> None:
        """Propose a score above 1: check and verdict must fail, and the merge must be refused."""
        number = self.propose(BAD, row.impossible(self.world.root, BAD))
        self._judge(number, expects_success=False)
        if self.world.chosen("verdict.report"):
            self._require_verdict(number, "geneb: changes needed", "failure")
        require_equal("a merge without a good verdict", self.world.forge.merge(number), "")
        self.world.forge.pulls[number]["state"] = "closed"

    def propose(self, model: str, files: row.Files) -> int:
        """Propose a row as a contributor does; return the number of the pull request."""
        return self.world.forge.propose(model, f"Add {model}", files)

    def _judge(self, number: int, *, expects_success: bool) -> None:
        """Run what a stranger's pull request starts: its verdict and, once approved, the check.

        The check waits for an approval, as for every outside contributor; GitHub reports it as
        requested. Later it is reported as completed, which must start no second verdict.
        """
        forge = self.world.forge
        pull = forge.pulls[number]
        changed_paths = git(
            forge.repository,
            "diff",
            "--name-only",
            f"{pull['base']['sha']}...{pull['head']['sha']}",
        )
        payload = repository() | {
            "action": "opened",
            "number": number,
            "pull_request": {
                "number": number,
                "head": pull["head"] | {"repo": {"full_name": "stranger/board", "fork": True}},
                "base": pull["base"],
            },
        }
        event = Event(
            "pull_request",
            f"refs/pull/{number}/merge",
            pull["merge_commit_sha"],
            payload,
            paths=tuple(changed_paths.splitlines()),
            fork=True,
            head=pull["head"]["ref"],
        )
        self._report_check(pull["head"]["sha"], "pull_request", "requested")
        outcomes = self.run(event, "pr-validate", expects_success=expects_success)
        if "test" in outcomes.get("ci", {}):
            require_equal(
                "the suite, on submissions alone", outcomes["ci"]["test"].conclusion, "skipped"
            )
        for outcome in outcomes["pr-validate"].values():
            if not expects_success:
                require_equal("pr-validate on an impossible score", outcome.conclusion, "failure")
                require_in("the annotations", f"submissions/{BAD}.json", outcome.log)
                require_in("the summary", "score-out-of-range", outcome.summary)
                outcome.intended = True
        before = len(forge.requests)
        self._report_check(pull["head"]["sha"], "pull_request", "completed")
        if self.world.chosen("verdict.report"):
            require_equal("requests after the check ended", len(forge.requests[before:]), 1)

    def _report_check(self, head: str, event: str, action: str) -> None:
        """Start the workflows that follow a run of pr-validate on a commit."""
        run = {"name": "pr-validate", "event": event, "head_sha": head}
        payload = repository() | {"action": action, "workflow_run": run}
        ring = Event("workflow_run", "refs/heads/main", self.world.forge.main, payload)
        self.run(ring, "verdict", only="verdict")

    def _require_verdict(self, number: int, label: str, state: str) -> None:
        """Check that there are exactly one comment of ours, this label and this status."""
        forge = self.world.forge
        our_comments = [
            comment["body"] for comment in forge.comments[number] if comment["user"] == BOT
        ]
        require_equal("comments of ours", len(our_comments), 1)
        require_equal("labels", forge.labels(number), [label])
        statuses = forge.statuses.get(forge.pulls[number]["head"]["sha"], [])
        require_equal(
            "statuses", [(s["context"], s["state"]) for s in statuses], [(REQUIRED, state)]
        )

    def lock_conversation(self) -> None:
        """Lock a conversation, so that it takes no comment: the sweep must list it in an issue."""
        forge = self.world.forge
        number = self.propose(LOCKED, row.impossible(self.world.root, LOCKED))
        forge.pulls[number]["locked"] = True
        event = Event("schedule", "refs/heads/main", forge.main, repository())
        self.run(event, "verdict", only="verdict")
        if self.world.chosen("verdict.report"):
            require_equal("lists of what waits", len(forge.issues), 1)
            require_in("the list", f"#{number}", next(iter(forge.issues.values()))["body"])

    def sweep(self) -> None:
        """Run the scheduled sweep; as everything has a verdict, it must write nothing."""
        before = len(self.world.forge.writes())
        event = Event("schedule", "refs/heads/main", self.world.forge.main, repository())
        outcomes = self.run(event, "verdict", only="verdict")
        conclusions = {job: outcome.conclusion for job, outcome in outcomes["verdict"].items()}
        require_equal("parse", conclusions["parse"], "success")
        require_equal(
            "report, with no verdict to report", conclusions.get("report", "skipped"), "skipped"
        )
        require_equal(
            "writes of a sweep with nothing to do", len(self.world.forge.writes()), before
        )

    def queue_merge(self) -> None:
        """Put the row's pull request into a merge queue; check that the group gets a status."""
        forge = self.world.forge
        number = next(n for n, p in forge.pulls.items() if p["title"] == f"Add {row.MODEL}")
        group = forge.make_group(number)
        ref = f"refs/heads/gh-readonly-queue/main/pr-{number}"
        group_payload = {"head_sha": group, "head_ref": ref, "base_ref": "refs/heads/main"}
        group_payload["base_sha"] = forge.main
        payload = repository() | {"action": "checks_requested", "merge_group": group_payload}
        outcomes = self.run(Event("merge_group", ref, group, payload), "pr-validate", "ci")
        if "test" in outcomes["ci"]:
            require_equal(
                "the suite, on a group of submissions", outcomes["ci"]["test"].conclusion, "skipped"
            )
        self._report_check(group, "merge_group", "completed")
        if self.world.chosen("verdict.report"):
            statuses = [(s["context"], s["state"]) for s in forge.statuses.get(group, [])]
            require_equal("statuses of the group", statuses, [(REQUIRED, "success")])

    def merge(self) -> None:
        """Merge the pull request as a maintainer does, at the commit that got the verdict."""
        forge = self.world.forge
        if not any(pull["title"] == f"Add {row.MODEL}" for pull in forge.pulls.values()):
            self.propose(row.MODEL, row.sound(self.world.root))
        number = next(n for n, p in forge.pulls.items() if p["title"] == f"Add {row.MODEL}")
        if not self.world.chosen("verdict.report"):
            # If the verdict is not rehearsed, it is assumed to be positive.
            head = forge.pulls[number]["head"]["sha"]
            forge.statuses[head] = [{"context": REQUIRED, "state": "success"}]
        self.before = forge.main
        self.merged = self.merge_of(number)

    def merge_of(self, number: int) -> str:
        """Merge a pull request; return the commit. Raises Mismatch if GitHub would refuse it."""
        if commit := self.world.forge.merge(number):
            return commit
        raise Mismatch(f"the verdict on #{number} does not allow a merge")


def timed(chapter: Callable[[], None]) -> tuple[float, str]:
    """Run a chapter; return its seconds, and what went wrong, or ""."""
    started = time.monotonic()
    try:
        chapter()
    except Exception as error:  # noqa: BLE001 (whatever it is, the rehearsal is red)
        message = str(error) if isinstance(error, Mismatch) else f"{type(error).__name__}: {error}"
        return time.monotonic() - started, message
    return time.monotonic() - started, ""
