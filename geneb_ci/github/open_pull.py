"""Check an open pull request over the API, and compare the board before and after its merge."""

from collections.abc import Sequence
from pathlib import Path

from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.github.api import GitHub, connect
from geneb_ci.github.main_branch import changed_main
from geneb_ci.github.reconcile import (
    OpenPulls,
    commands_on,
    main_on_github,
    open_pull_at,
    read_facts,
)
from geneb_ci.github.trees import read_blob
from geneb_ci.github.verdict.base_branch import BaseBranch
from geneb_ci.github.verdict.checker import PullChecker
from geneb_ci.github.verdict.decide import PullDecision, decide
from geneb_ci.github.verdict.model import PullHead
from geneb_ci.publish.comparison import BoardComparison, compare_boards_of_folders
from reference_harness.formats.text import Say, silent


def judge_pull(number: int, repo: str | None, say: Say = silent) -> PullDecision:
    """Check an open pull request as the next sweep would, with the commands in its comments.

    Raises UsageProblem if no such pull request is open, and GitHubProblem if GitHub fails.
    """
    layout = find_layout(Path.cwd())
    with connect(repo) as github:
        pull = open_pull_at(github, number, None)
        with main_on_github(github, layout, say) as (main, main_layout):
            open_list = github.open_pulls()
            other_pulls = [other for other in open_list.pulls if other.head.sha != pull.head.sha]
            open_pulls = OpenPulls(main, other_pulls, reserved_requests=0)
            read_facts(github, open_pulls)
            open_pulls.require_read()
            for unreadable in open_list.unreadable:
                say(f"pull request #{unreadable.number} cannot be read, and is not compared")
            pull_checker = PullChecker(github, BaseBranch(main_layout), main)
            head = PullHead(number=number, head_sha=pull.head.sha)
            decision = decide(pull_checker, head, open_pulls.passing)
            _, commands = commands_on(github, pull)
            verdict = decision.verdict.model_copy(update=commands._asdict())
            return decision._replace(verdict=verdict)


def merged_comparison(github: GitHub, layout: Layout, numbers: Sequence[int]) -> BoardComparison:
    """Compare the board of main with the board after merging these pull requests in this order.

    Only the row, the card and the extractor of each are read; no code of a pull request is run.
    Raises UsageProblem if a pull request changes no row.
    """
    with main_on_github(github, layout, warn=lambda _text: None) as (main, main_layout):
        pull_checker = PullChecker(github, BaseBranch(main_layout), main)
        bytes_by_path: dict[str, bytes] = {}
        for number in dict.fromkeys(numbers):
            pull = open_pull_at(github, number, None)
            change = pull_checker.judge(pull.head.sha).change
            if change.row is None or change.row.after is None:
                raise UsageProblem(
                    f"pull request {number} changes no row, so the board stays as it is",
                    "name pull requests with a submission; `geneb-ci triage` lists them",
                )
            for file in change.model_files:
                if file.after is not None:
                    content = read_blob(github, file.after)
                    bytes_by_path[file.path] = content if isinstance(content, bytes) else b""
        with changed_main(main_layout, main, bytes_by_path) as after:
            return compare_boards_of_folders("main", main.sha, main_layout, after)
