"""Rehearses the board on the Space: its publication, a manual change, and the daily check."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from geneb_ci.github.report import HEALTH_TITLE
from tools.rehearse import row
from tools.rehearse.expected import require_equal, require_in
from tools.rehearse.forge import git
from tools.rehearse.triggers import Event, repository
from tools.rehearse.world import RESOURCE

if TYPE_CHECKING:
    from tools.rehearse.story import Story


class Space:
    """The chapters of the story about the Space."""

    def __init__(self, story: "Story") -> None:
        self.story, self.world = story, story.world

    def chapters(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield the chapters, if any of the chosen jobs needs them."""
        jobs = ("publish.build", "publish.push", "publish.verify", "publish.tell")
        chosen = [name for name in jobs if self.world.chosen(name)]
        if chosen:
            yield "the board is published", self.publish_board
        if {"publish.verify", "publish.tell"} & set(chosen):
            yield (
                "a Space that was changed by hand is reported in an issue",
                self.report_changed_space,
            )
            yield "the Space agrees with main again", self.close_report

    def publish_board(self) -> None:
        """Publish after the push to main: one generation with all rows, including the new one."""
        paths = git(self.world.forge.repository, "diff", "--name-only", f"{self.story.merged}^!")
        event = Event(
            "push",
            "refs/heads/main",
            self.story.merged,
            repository() | {"before": self.story.before},
            paths=tuple(paths.splitlines()),
        )
        outcomes = self.story.run(event, "publish")
        if "push" not in outcomes["publish"]:
            return
        commits = self.world.hub.shelf.repos[RESOURCE].commits
        require_equal("commits of the Space, its first included", len(commits), 2)
        tree = commits[-1].tree
        manifest = json.loads(tree["manifest.json"])
        require_equal(
            "the commit that the Space names", manifest["source_commit"], self.story.merged
        )
        require_equal(
            "the generation that was built and published",
            manifest["generation"],
            outcomes["publish"]["build"].outputs["generation"],
        )
        require_equal("rows on the Space", len(_rows(tree)), len(self._submissions()))
        require_in("the rows on the Space", f"Model {row.MODEL}", _rows(tree))
        require_equal("what was attested", set(self.world.attested), {"manifest.json"})

    def _submissions(self) -> list[str]:
        """Return the submissions on main: those of this repository and the merged one."""
        listed = git(
            self.world.forge.repository, "ls-tree", "--name-only", self.story.merged, "submissions/"
        )
        return [name for name in listed.splitlines() if Path(name).suffix == ".json"]

    def report_changed_space(self) -> None:
        """Change a file of the Space; the daily check must fail and open an issue."""
        tree = self.world.hub.shelf.repos[RESOURCE].commits[-1].tree
        require_in(
            "files of the Space (rehearse `--job publish` too)", "leaderboard.json", list(tree)
        )
        before = tree["leaderboard.json"]
        tree["leaderboard.json"] = before + b" "
        self.story.run(self._daily(), "publish", only="publish", expects_success=False)
        tree["leaderboard.json"] = before
        *_, outcome = (
            outcome for outcome in self.world.outcomes if outcome.job == "publish.verify"
        )
        require_equal("the check of a changed Space", outcome.conclusion, "failure")
        outcome.intended = True
        if self.world.chosen("publish.tell"):
            require_equal("issues about the Space", self._issues(HEALTH_TITLE), ["open"])

    def close_report(self) -> None:
        """Check that the daily run finds the Space in order and closes that issue."""
        self.story.run(self._daily(), "publish", only="publish")
        if self.world.chosen("publish.tell"):
            require_equal("issues about the Space", self._issues(HEALTH_TITLE), ["closed"])

    def _daily(self) -> Event:
        return Event("schedule", "refs/heads/main", self.story.merged, repository())

    def _issues(self, title: str) -> list[str]:
        return [
            issue["state"] for issue in self.world.forge.issues.values() if issue["title"] == title
        ]


def _rows(tree: dict[str, bytes]) -> list[str]:
    """Return the names of the rows of a published board."""
    rows_by_regime = json.loads(tree["leaderboard.json"])["data"]
    return [str(row_of_page["disp"]) for row_of_page in rows_by_regime["full"]]
