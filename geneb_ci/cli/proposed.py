"""`check --base` and `--pr`: the server's verdict on this machine, and the board of `diff --pr`."""

import dataclasses
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from geneb_ci.check.registry import CHANGE_RULES, RULES
from geneb_ci.check.runner import Report
from geneb_ci.cli.main import say
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.github.comment import next_step
from geneb_ci.github.main_branch import Clone, further_places, lay_out_main, layout_of_main
from geneb_ci.github.sides import main_at, read_blob
from geneb_ci.github.verdict.collect import Judge, Judged, places_of
from geneb_ci.github.verdict.decide import BaseBranch, pull_verdict
from geneb_ci.github.verdict.model import PullHead, PullOutcome, PullVerdict
from geneb_ci.publish.comparison import Comparison, compare_layouts
from geneb_ci.publish.git import repository_at
from reference_harness.formats.base import Hex40

if TYPE_CHECKING:
    from geneb_ci.github.api import GitHub

HEAD = "HEAD"
_EXITS = {
    PullOutcome.PASSED: Exit.CLEAN,
    PullOutcome.WARNINGS: Exit.CLEAN,
    PullOutcome.CHANGES_NEEDED: Exit.ERRORS,
    PullOutcome.NEEDS_MAINTAINER: Exit.ERRORS,
    PullOutcome.NOT_CHECKED: Exit.NOT_CHECKED,
}


class Proposal(NamedTuple):
    """The result of merging a branch or a pull request, and how it was computed."""

    verdict: PullVerdict
    judged: Judged


def of_branch(base: str) -> Proposal:
    """Check the commit HEAD as a pull request to `base`.

    Raises UsageProblem outside of a repository of submissions, and WrongRepository.
    """
    layout = find_layout(Path.cwd())
    places_of(layout)
    repository = repository_at(layout)
    clone = Clone(repository)
    of_base = clone.commit(base)
    head = clone.commit(HEAD).sha
    if repository.run("status", "--porcelain", "--untracked-files=no").strip():
        say("note: changes that are not committed are not checked")
    main = main_at(clone, of_base, further_places(layout))
    with layout_of_main(clone, layout, main, _note) as own:
        known = BaseBranch(own)
        judged = Judge(clone, own, known.modules, main).judge(head)
        return Proposal(pull_verdict(_head(1, head), judged, known, main.digest), judged)


def of_pull(number: int, repo: str | None) -> Proposal:
    """Check an open pull request as the next sweep would. Raises UsageProblem and ForgeProblem."""
    from geneb_ci.github.api import connect  # of the extra
    from geneb_ci.github.reconcile import OpenPulls, base_of, open_pull_at, read_board

    layout = find_layout(Path.cwd())
    with connect(repo) as github:
        pull = open_pull_at(github, number, None)
        with base_of(github, layout, _note) as (main, own):
            listed = github.open_pulls()
            others = [other for other in listed.pulls if other.head.sha != pull.head.sha]
            board = OpenPulls(main, others, reserve=0)
            read_board(github, board)
            board.require_read()
            for unread in listed.unread:
                _note(f"pull request {unread.name} cannot be read, so it is not compared with it")
            known = BaseBranch(own)
            judged = Judge(github, own, known.modules, main).judge(pull.head.sha, board.passing)
            head = _head(number, pull.head.sha)
            return Proposal(pull_verdict(head, judged, known, main.digest), judged)


def report_of(judged: Judged) -> Report:
    """Return the findings as a report of `check`."""
    report = Report(rules=len(RULES) + len(CHANGE_RULES), is_proposed=True)
    if judged.result is not None:
        report.add(dataclasses.replace(judged.result, findings=judged.findings))
    else:
        report.findings = list(judged.findings)
        if report.findings:  # otherwise no submission was read
            report.files = [file.path for file in judged.change.files]
    return report


def exit_of(verdict: PullVerdict, *, strict: bool) -> Exit:
    """Print the verdict, and what to do where no finding says it; return the exit code."""
    say(f"verdict on the pull request: {verdict.outcome.value}")
    if verdict.outcome in {PullOutcome.NEEDS_MAINTAINER, PullOutcome.NOT_CHECKED}:
        say(f"  {next_step(verdict).replace('`', '')}")
    if strict and verdict.outcome is PullOutcome.WARNINGS:
        return Exit.WARNINGS
    return _EXITS[verdict.outcome]


def _head(number: int, sha: Hex40) -> PullHead:
    return PullHead(number=number, head_sha=sha)


def _note(text: str) -> None:
    say(f"note: {text}")


def merged_comparison(github: "GitHub", layout: Layout, numbers: Sequence[int]) -> Comparison:
    """Compare the board of main with the one after these pull requests are merged, in this order.

    Of each, only the row, the card and the extractor are taken; nothing of it is checked out or
    run. Raises UsageProblem if one changes no row.
    """
    from geneb_ci.github.reconcile import base_of, open_pull_at  # of the extra

    with base_of(github, layout, note=lambda _text: None) as (main, own):
        judge = Judge(github, own, {}, main)
        raws: dict[str, bytes] = {}
        for number in dict.fromkeys(numbers):
            pull = open_pull_at(github, number, None)
            change = judge.judge(pull.head.sha).change
            if change.row is None or change.row.after is None:
                raise UsageProblem(
                    f"pull request {number} changes no row, so the board stays as it is",
                    "name pull requests with a submission; `geneb-ci triage` lists them",
                )
            for file in change.own:
                if file.after is not None:
                    content = read_blob(github, file.after)
                    raws[file.path] = content if isinstance(content, bytes) else b""
        with tempfile.TemporaryDirectory(prefix="geneb-ci-merged-") as name:
            after = lay_out_main(own, main, Path(os.path.realpath(name)), raws)
            return compare_layouts("main", main.sha, own, after)
