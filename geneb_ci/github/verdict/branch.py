"""The verdict on a branch of a clone, which the server would give a pull request with it."""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from geneb_ci.check.registry import CHANGE_RULES, RULES
from geneb_ci.check.report import ProposalFacts, Report, UncommittedFile
from geneb_ci.common.finding import first_and_more
from geneb_ci.github.main_branch import (
    Clone,
    further_places,
    layout_of_main,
    layout_of_settings,
)
from geneb_ci.github.trees import main_at
from geneb_ci.github.verdict.base_branch import BaseBranch
from geneb_ci.github.verdict.checker import PullChecker, places_of
from geneb_ci.github.verdict.decide import Decision, decide
from geneb_ci.github.verdict.model import PullHead, PullOutcome, PullVerdict
from geneb_ci.github.verdict.words import TITLES, next_step
from geneb_ci.publish.git import HEAD, MAIN_NAMES, GitRepository, NoBranch, known_base, top_folder
from reference_harness.formats.packages import LOCK_SUFFIX
from reference_harness.formats.text import Say, silent

GITHUB_ONLY = ("other open pull requests", "comments of maintainers")
"""Facts that a verdict on GitHub depends on beside the files of both sides."""
GITHUB_ONLY_OF_RECORDS = "when the commitment of an audit was shown"
_ADVISED = frozenset({PullOutcome.NEEDS_MAINTAINER, PullOutcome.NOT_CHECKED})
_UNTRACKED, _IGNORED = "untracked", "ignored by git"
_REASONS = {"?": _UNTRACKED, "!": _IGNORED, "D": "deleted", " ": "staged"}
"""How git marks a file of the working tree; another mark is that of a change."""
_SUFFIXES = (".json", ".md", ".py", LOCK_SUFFIX)
"""Ignored files with other names are no part of a submission, such as what Python caches."""


class NoClone(NoBranch):
    """There is no base to compare with: no clone of submissions, or one with only its own main."""


class BranchVerdict(NamedTuple):
    """The verdict on the commit HEAD as a pull request, and what it does not cover."""

    decision: Decision
    base: str
    """The branch that it was compared with."""
    uncommitted: tuple[UncommittedFile, ...]
    """Files of the working tree that the server does not see."""

    @property
    def verdict(self) -> PullVerdict:
        """The verdict, as the server decides it."""
        return self.decision.verdict

    @property
    def report(self) -> Report:
        """Every finding with the verdict, as `geneb-ci check` reports them."""
        has_records = self.decision.judged is not None and bool(self.decision.judged.change.records)
        unseen = (*GITHUB_ONLY, GITHUB_ONLY_OF_RECORDS) if has_records else GITHUB_ONLY
        return report_of(self.decision, self.base, self.uncommitted, unseen)


def judge_branch(
    folder: Path, base: str | None = None, say: Say = silent, *, ranks: bool = False
) -> BranchVerdict:
    """Check the commit HEAD of a clone as a pull request to `base`, by the files of both commits.

    Without `base` it is main of `upstream`, of `origin` or of the clone, whichever there is first.
    Settings are those of the base; nothing that is not committed plays a part. With `ranks` the
    verdict has the rank of the row, too. Raises NoClone where
    this is no clone of submissions and no base was named; NoBranch where HEAD adds nothing to a
    base that was not named, or none is known; UsageProblem where the base has no submissions,
    WrongRepository where it does not exist; ForgeProblem where both sides have no commit in common,
    and BadRepository where git refuses the clone.
    """
    if base is None and not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        raise NoClone(f"{folder} is in no clone", "clone the repository that you propose to")
    root = top_folder(folder)
    repository = GitRepository(root)
    clone = Clone(repository)
    name = base or known_base(repository)
    of_base, head = clone.commit(name), clone.commit(HEAD).sha
    layout = layout_of_settings(clone, clone.tree(of_base.tree).files)
    if base is None and layout.submissions is None:
        raise NoClone(f"{name} has no folder of submissions", "name another branch: --base REF")
    places = places_of(layout)
    folders = sorted({places.submissions, places.cards, places.extractors})
    uncommitted = tuple(_uncommitted(repository, folders))
    if base is None and clone.merge_base(of_base.sha, head).sha == head:
        error = NoClone if name in MAIN_NAMES and not uncommitted else NoBranch
        raise error(
            f"HEAD has no commit that {name} lacks, so there is no branch to check"
            f"{_uncommitted_text(uncommitted)}",
            "commit the files of your model on a branch; in a clone of a fork, pass the main "
            "branch of the board's repository: --base REF",
        )
    main = main_at(clone, of_base, further_places(layout))
    with layout_of_main(clone, root, main, say) as main_layout:
        judge = PullChecker(clone, BaseBranch(main_layout), main)
        decision = decide(judge, PullHead(number=1, head_sha=head), ranks=ranks)
    return BranchVerdict(decision, name, uncommitted)


def report_of(
    decision: Decision,
    base: str,
    uncommitted: tuple[UncommittedFile, ...] = (),
    unseen: tuple[str, ...] = (),
) -> Report:
    """Return a verdict with its findings as a report of `check`."""
    verdict, judged = decision.verdict, decision.judged
    result = judged.result if judged is not None else None
    facts = ProposalFacts(
        verdict=verdict.check_verdict,
        outcome=verdict.outcome.value,
        status=verdict.state,
        description=verdict.description,
        title=TITLES[verdict.outcome],
        advice=next_step(verdict).replace("`", "") if verdict.outcome in _ADVISED else "",
        model=verdict.model,
        base=base,
        base_sha=verdict.base_sha,
        head_sha=verdict.head_sha,
        is_row=result is not None,
        uncommitted=uncommitted,
        unseen=unseen,
    )
    report = Report(rules=len(RULES) + len(CHANGE_RULES), proposal=facts)
    if result is not None:
        report.add(dataclasses.replace(result, findings=decision.findings))
    else:
        report.rules = len(CHANGE_RULES)
        report.findings = list(decision.findings)
        report.files = [file.path for file in judged.change.files] if judged is not None else []
    return report


def _uncommitted(repository: GitRepository, folders: list[str]) -> Iterator[UncommittedFile]:
    """Yield the files of the working tree that are not committed as they are.

    First all files below the folders of submissions, then those elsewhere that git tracks. A file
    that git ignores is among them where its name is like that of a part of a submission.
    """
    pathspecs = [f":(top,literal){folder}" for folder in folders]
    reasons = _reasons(repository, "--untracked-files=all", "--ignored", "--", *pathspecs)
    for path, reason in (reasons | _reasons(repository, "--untracked-files=no")).items():
        if reason != _IGNORED or path.endswith(_SUFFIXES):
            yield UncommittedFile(path, reason)


def _reasons(repository: GitRepository, *arguments: str) -> dict[str, str]:
    """Return the files that `git status` lists, each with how."""
    listing = repository.run("status", "--porcelain=v1", "-z", "--no-renames", *arguments)
    return {
        os.fsdecode(entry[3:]): _REASONS.get(chr(entry[1]), "changed")
        for entry in listing.split(b"\0")[:-1]
    }


def _uncommitted_text(uncommitted: tuple[UncommittedFile, ...]) -> str:
    names = [f"{file.path} ({file.reason})" for file in uncommitted]
    return f"; not committed: {first_and_more(names)}" if names else ""
