"""What the rulesets of a repository let somebody do with main, as GitHub documents rulesets.

A ruleset that somebody bypasses is as if it were not there for him. Nobody approves his own pull
request, nor, with `require_last_push_approval`, what he has pushed last.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

ROLES = {"admin": 5, "maintain": 2, "write": 4}
"""Ids of repository roles in rulesets."""
ACTIONS_APP = 15368
"""The App that tokens of workflows belong to."""


@dataclass(frozen=True)
class Pull:
    """A pull request with a head that was judged."""

    author: str
    pusher: str
    """Who pushed its last commit."""
    approvals: tuple[str, ...] = ()
    owners: frozenset[str] = frozenset()
    """Code owners of what it changes."""
    status: str = "success"
    source: int = ACTIONS_APP
    """The App that set its status."""


def merge_refusals(rulesets: Mapping[int, dict[str, Any]], role: str, pull: Pull) -> Iterator[str]:
    """Yield the rules that keep somebody of a role from merging a pull request into main."""
    for rule in _rules(rulesets, role, {"always", "pull_request"}):
        parameters = rule.get("parameters", {})
        if rule["type"] == "pull_request" and not _is_approved(parameters, pull):
            yield "pull_request"
        if rule["type"] == "required_status_checks":
            for check in parameters["required_status_checks"]:
                is_from = check.get("integration_id") in {None, pull.source}
                if pull.status != "success" or not is_from:
                    yield str(check["context"])


def push_refusals(rulesets: Mapping[int, dict[str, Any]], role: str) -> list[str]:
    """Return the rules that keep somebody of a role from pushing commits of his own to main."""
    kinds = {"pull_request", "required_status_checks"}
    return [rule["type"] for rule in _rules(rulesets, role, {"always"}) if rule["type"] in kinds]


def _rules(
    rulesets: Mapping[int, dict[str, Any]], role: str, modes: set[str]
) -> Iterator[dict[str, Any]]:
    for ruleset in rulesets.values():
        is_bypassed = any(
            actor["actor_type"] == "RepositoryRole"
            and actor["actor_id"] == ROLES[role]
            and actor["bypass_mode"] in modes
            for actor in ruleset["bypass_actors"]
        )
        if ruleset["enforcement"] == "active" and not is_bypassed:
            yield from ruleset["rules"]


def _is_approved(parameters: Mapping[str, Any], pull: Pull) -> bool:
    able = set(pull.approvals) - {pull.author}
    others = able - {pull.pusher} if parameters.get("require_last_push_approval") else able
    needs_owner = parameters.get("require_code_owner_review") and pull.owners
    return (
        len(able) >= parameters["required_approving_review_count"]
        and (bool(others) or not parameters.get("require_last_push_approval"))
        and (not needs_owner or bool(able & pull.owners))
    )
