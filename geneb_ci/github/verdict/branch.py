"""The verdict on a branch of a clone, equal to the server's verdict on a pull request with it."""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from geneb_ci.check.change import MODEL_FILE_SUFFIXES
from geneb_ci.check.registry import CHANGE_RULES, RULES
from geneb_ci.check.report import ProposalFacts, Report, UncommittedFile
from geneb_ci.common.finding import first_and_more
from geneb_ci.github.main_branch import (
    Clone,
    configured_folders,
    layout_of_main,
    layout_of_settings,
)
from geneb_ci.github.trees import main_at
from geneb_ci.github.verdict.base_branch import BaseBranch
from geneb_ci.github.verdict.checker import PullChecker, repository_folders
from geneb_ci.github.verdict.decide import PullDecision, decide
from geneb_ci.github.verdict.model import PullHead, PullOutcome, PullVerdict
from geneb_ci.github.verdict.words import TITLES, next_step
from geneb_ci.publish.git import (
    HEAD,
    MAIN_BRANCH_NAMES,
    GitRepository,
    NoBranch,
    NoClone,
    main_branch_of,
    top_folder,
)
from reference_harness.formats.text import Say, silent

GITHUB_ONLY_FACTS = ("other open pull requests", "comments of maintainers")
"""Facts that a verdict on GitHub uses in addition to the files of both sides."""
GITHUB_ONLY_FACT_OF_RECORDS = "the time at which the commitment of an audit became public"
"""Further fact that a verdict on audit records uses on GitHub alone."""
_OUTCOMES_WITH_ADVICE = frozenset({PullOutcome.NEEDS_MAINTAINER, PullOutcome.NOT_CHECKED})
"""Outcomes after which the terminal shows the next step of the verdict."""
_UNTRACKED, _IGNORED = "untracked", "ignored by git"
_REASON_BY_MARK = {"?": _UNTRACKED, "!": _IGNORED, "D": "deleted", " ": "staged"}
"""Meaning of the marks that `git status` prints; any other mark means changed."""


class BranchVerdict(NamedTuple):
    """The verdict on the commit HEAD as a pull request, and what the verdict does not cover."""

    decision: PullDecision
    """The verdict, with all findings."""
    base: str
    """The branch that HEAD was compared with."""
    uncommitted: tuple[UncommittedFile, ...]
    """Files of the working tree that the server does not see."""

    @property
    def verdict(self) -> PullVerdict:
        """The verdict, as the server decides it."""
        return self.decision.verdict

    @property
    def report(self) -> Report:
        """The report of `geneb-ci check` with the verdict and every finding."""
        has_records = self.decision.checked_pull is not None and bool(
            self.decision.checked_pull.change.records
        )
        unseen = (
            (*GITHUB_ONLY_FACTS, GITHUB_ONLY_FACT_OF_RECORDS) if has_records else GITHUB_ONLY_FACTS
        )
        return report_of(self.decision, self.base, self.uncommitted, unseen)


def judge_branch(
    folder: Path,
    base: str | None = None,
    say: Say = silent,
    *,
    ranks: bool = False,
    clone: Clone | None = None,
) -> BranchVerdict:
    """Check the commit HEAD of a clone as a pull request to `base`, by the files of both commits.

    Without `base`, HEAD is compared with the main branch of the remote `upstream`, else of
    `origin`, else of the clone. The settings of the base apply; uncommitted files do not count.
    With `ranks` the verdict also contains the rank of the row. `clone` is a reader of the
    clone, whose root is `folder`: what it has read is not read again.

    Raises UsageProblem if the base has no submissions, WrongRepository if the base does not exist,
    GitHubProblem if both sides have no commit in common, and BadRepository if git refuses the
    clone.
    Without `base`, raises NoClone if the clone has no submissions, and NoBranch if no base is known
    or HEAD adds nothing to it.
    """
    if clone is None:
        clone = Clone(GitRepository(top_folder(folder)))
    repository, root = clone.repository, clone.repository.root
    branch = base or main_branch_of(repository)
    base_commit, head = clone.commit(branch), clone.commit(HEAD).sha
    layout = layout_of_settings(clone, clone.tree(base_commit.tree).files)
    if base is None and layout.submissions is None:
        raise NoClone(f"{branch} has no folder of submissions", "name another branch: --base REF")
    folders = repository_folders(layout)
    own_folders = sorted({folders.submissions, folders.cards, folders.extractors})
    uncommitted = tuple(_uncommitted(repository, own_folders))
    if base is None and clone.merge_base(base_commit.sha, head).sha == head:
        error_class = NoClone if branch in MAIN_BRANCH_NAMES and not uncommitted else NoBranch
        raise error_class(
            f"HEAD has no commit that {branch} lacks, so there is no branch to check"
            f"{_uncommitted_text(uncommitted)}",
            "commit the files of your model on a branch; in a clone of a fork, pass the main "
            "branch of the board's repository: --base REF",
        )
    main = main_at(clone, base_commit, configured_folders(layout))
    with layout_of_main(clone, root, main, say) as main_layout:
        pull_checker = PullChecker(clone, BaseBranch(main_layout), main)
        decision = decide(pull_checker, PullHead(number=1, head_sha=head), ranks=ranks)
    return BranchVerdict(decision, branch, uncommitted)


def report_of(
    decision: PullDecision,
    base: str,
    uncommitted: tuple[UncommittedFile, ...] = (),
    unseen: tuple[str, ...] = (),
) -> Report:
    """Return the report of `check` for a verdict; `unseen` are facts that only GitHub knows."""
    verdict, checked_pull = decision.verdict, decision.checked_pull
    file_result = checked_pull.result if checked_pull is not None else None
    facts = ProposalFacts(
        verdict=verdict.check_verdict,
        outcome=verdict.outcome.value,
        status=verdict.state,
        description=verdict.description,
        title=TITLES[verdict.outcome],
        advice=next_step(verdict).replace("`", "")
        if verdict.outcome in _OUTCOMES_WITH_ADVICE
        else "",
        model=verdict.model,
        base=base,
        base_sha=verdict.base_sha,
        head_sha=verdict.head_sha,
        is_row=file_result is not None,
        uncommitted=uncommitted,
        unseen=unseen,
    )
    report = Report(rules=len(RULES) + len(CHANGE_RULES), proposal=facts)
    if file_result is not None:
        report.add(dataclasses.replace(file_result, findings=decision.findings))
    else:
        report.rules = len(CHANGE_RULES)
        report.findings = list(decision.findings)
        report.files = (
            [file.path for file in checked_pull.change.files] if checked_pull is not None else []
        )
    return report


def _uncommitted(repository: GitRepository, folders: list[str]) -> Iterator[UncommittedFile]:
    """Yield the files of the working tree that differ from HEAD.

    First all files below the folders of submissions, then tracked files elsewhere. A file that git
    ignores counts only if its name ends like a file of a submission.
    """
    pathspecs = [f":(top,literal){folder}" for folder in folders]
    reasons = _reason_by_path(repository, "--untracked-files=all", "--ignored", "--", *pathspecs)
    for path, reason in (reasons | _reason_by_path(repository, "--untracked-files=no")).items():
        if reason != _IGNORED or path.endswith(MODEL_FILE_SUFFIXES):
            yield UncommittedFile(path, reason)


def _reason_by_path(repository: GitRepository, *arguments: str) -> dict[str, str]:
    """Return, by path, how each file that `git status` lists differs from HEAD."""
    listing = repository.run("status", "--porcelain=v1", "-z", "--no-renames", *arguments)
    return {
        os.fsdecode(status_line[3:]): _REASON_BY_MARK.get(chr(status_line[1]), "changed")
        for status_line in listing.split(b"\0")[:-1]
    }


def _uncommitted_text(uncommitted: tuple[UncommittedFile, ...]) -> str:
    """Return the end of a message that lists uncommitted files; "" if there are none."""
    files = [f"{file.path} ({file.reason})" for file in uncommitted]
    return f"; not committed: {first_and_more(files)}" if files else ""
