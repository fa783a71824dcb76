"""Find the groups of a merge queue without a verdict, and check one group.

A group is a commit that would become main. Its files must belong to passing open pull requests.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from geneb_ci.check.change import Change
from geneb_ci.common.errors import GenebError
from geneb_ci.github.api import GitHub, PullListing
from geneb_ci.github.comment import verdict_on
from geneb_ci.github.errors import result_or_error
from geneb_ci.github.fingerprints import rivals
from geneb_ci.github.prefetch import prefetch_conversations
from geneb_ci.github.replies import Pull
from geneb_ci.github.trees import Proposal
from geneb_ci.github.verdict.checker import (
    RIVAL_RULES,
    UNREADABLE_CHANGE_RULES,
    CheckedPull,
    PullChecker,
    change_findings,
)
from geneb_ci.github.verdict.model import GROUPS_MAX, GroupVerdict, PullVerdict


def waiting_groups(github: GitHub, branch: str) -> tuple[list[str], list[GenebError]]:
    """Return the commits of at most `GROUPS_MAX` groups without a verdict, and reading errors.

    These include groups whose verdict was not written because main had changed. One request, and
    one for each group. Raises RateLimited.
    """
    heads_by_branch = result_or_error(github.branches, f"gh-readonly-queue/{branch}/")
    if isinstance(heads_by_branch, GenebError):
        return [], [heads_by_branch]
    waiting: list[str] = []
    problems: list[GenebError] = []
    for sha in heads_by_branch.values():
        has_verdict = result_or_error(any, github.verdict_statuses(sha))
        if isinstance(has_verdict, GenebError):
            problems.append(has_verdict)
        elif not has_verdict:
            waiting.append(sha)
    return waiting[:GROUPS_MAX], problems


def judge_group(github: GitHub, pull_checker: PullChecker, head: str) -> GroupVerdict:
    """Check every row and record that a group changes, alone and together with the others.

    Every file must belong to an open pull request with a verdict that passes. Raises GitHubProblem
    if GitHub fails.
    """
    proposal = pull_checker.proposal(head)
    pull_by_model: dict[str, CheckedPull] = {}
    rule_counts: Counter[str] = Counter()
    foreign_paths = {file.path for file in proposal.change.files}
    unread_rules = [
        f.rule for f in change_findings(proposal.change) if f.rule in UNREADABLE_CHANGE_RULES
    ]
    open_list = PullListing([], []) if unread_rules else github.open_pulls()
    for model, paths in _paths_by_model(github, proposal.change, open_list.pulls).items():
        pull_by_model[model] = pull_checker.judge_alone(_proposal_of_files(proposal, paths))
        change = pull_by_model[model].change
        foreign_paths -= {file.path for file in (*change.model_files, *change.records)}
    for model, checked_pull in pull_by_model.items():
        rule_counts.update(finding.rule for finding in checked_pull.findings)
        rule_counts.update(_joint_rules(model, pull_by_model))
    rule_counts.update(unread_rules)
    if foreign_paths and not unread_rules:
        open_list.require_all(
            f"whether all files of the group {head} belong to a pull request is not known"
        )
        rule_counts["foreign-file"] += len(foreign_paths)
    return GroupVerdict(
        head_sha=head, places=dict(sorted(rule_counts.items())), models=sorted(pull_by_model)
    )


def _paths_by_model(github: GitHub, change: Change, pulls: Sequence[Pull]) -> dict[str, set[str]]:
    """Return, by model, the files of the group that a passing open pull request has.

    These include audit records of the model, which are verified again.
    """
    prefetch_conversations(github, [pull.number for pull in pulls])
    changed_paths = {file.path for file in change.files}
    paths_by_model: dict[str, set[str]] = {}
    for pull in pulls:
        verdict = result_or_error(verdict_on, github, pull)
        if not isinstance(verdict, PullVerdict) or not verdict.passes:
            continue  # of an error, its files belong to no pull request that is known to pass
        if verdict.head_sha != pull.head.sha:
            continue
        fingerprint, model = verdict.fingerprint, verdict.model
        paths = set(fingerprint.paths) & changed_paths if fingerprint is not None else set()
        if model is not None:
            paths |= {file.path for file in change.records_of(model)}
        if model is not None and paths:
            paths_by_model.setdefault(model, set()).update(paths)
    return dict(sorted(paths_by_model.items()))


def _proposal_of_files(proposal: Proposal, paths: set[str]) -> Proposal:
    """Return the part of a group's change that concerns the given paths."""
    files = tuple(file for file in proposal.change.files if file.path in paths)
    return replace(proposal, change=Change(files, folders=proposal.change.folders))


def _joint_rules(model: str, pull_by_model: dict[str, CheckedPull]) -> list[str]:
    """Return the rules that a row breaks only together with the others of the group."""
    fingerprints = {name: checked_pull.fingerprint for name, checked_pull in pull_by_model.items()}
    row_fingerprint = fingerprints[model]
    if row_fingerprint is None:
        return []
    fingerprint_by_number = {
        n: fingerprint
        for n, (name, fingerprint) in enumerate(fingerprints.items())
        if fingerprint and name != model
    }
    change = replace(
        pull_by_model[model].change, rivals=rivals(row_fingerprint, fingerprint_by_number)
    )
    return [f.rule for f in change_findings(change) if f.rule in RIVAL_RULES]
