"""One setting of a repository: how it is read, and set by GitHub's REST API."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from geneb_ci.audit.record.keys import KEY_BYTES_MAX
from geneb_ci.common.errors import UsageProblem
from geneb_ci.github import probes
from geneb_ci.github.api import STATUS_CONTEXT
from geneb_ci.github.observed import MAIN, Observed
from geneb_ci.github.probes import (
    APPROVAL,
    ENVIRONMENT_VARIABLES,
    ISSUES,
    LOG_ENVIRONMENT,
    LOG_SECRET,
    PERMISSIONS,
    REPORTS,
    REPOSITORY_VARIABLES,
    SELECTED,
    VARIABLE,
    WORKFLOW_RIGHTS,
    Probe,
    environment_branches,
    policies_of,
)
from reference_harness.formats.files import read_regular

Writer = Callable[[Observed], None]
"""Writes what is expected. Raises MissingScope without the right."""

ADMIN_ROLE, MAINTAIN_ROLE = 5, 2
"""Ids of repository roles in rulesets, as GitHub's documentation lists them."""
GUARD, VERDICT = "geneb-ci: main", "geneb-ci: verdict"
"""Names of our rulesets."""
_OF_REPOSITORY = "Repository"
"""Source of a ruleset that is not its organisation's."""
COLOUR = "ededed"


def allow_actions(seen: Observed) -> None:
    """Allow actions of GitHub only, pinned to full commits."""
    body = {"enabled": True, "allowed_actions": "selected", "sha_pinning_required": True}
    seen.send("PUT", PERMISSIONS, body)
    selected = {"github_owned_allowed": True, "verified_allowed": False, "patterns_allowed": []}
    seen.send("PUT", SELECTED, selected)


def approve_forks(seen: Observed) -> None:
    """Let workflows of every outside contributor wait for approval."""
    seen.send("PUT", APPROVAL, {"approval_policy": "all_external_contributors"})


def restrict_token(seen: Observed) -> None:
    """Let the token of Actions only read, and approve nothing."""
    body = {"default_workflow_permissions": "read", "can_approve_pull_request_reviews": False}
    seen.send("PUT", WORKFLOW_RIGHTS, body)


def enable_workflows(seen: Observed) -> None:
    """Start the workflows again that GitHub or somebody stopped."""
    reply = seen.get("/actions/workflows", "Actions: read", per_page=100) or {}
    for workflow in reply.get("workflows", ()):
        if workflow["state"] != "active":
            seen.send("PUT", f"/actions/workflows/{workflow['id']}/enable")


def create_labels(names: Iterable[str]) -> Writer:
    """Return a writer that creates the labels that are missing."""

    def write(seen: Observed) -> None:
        present = {str(label["name"]).casefold() for label in seen.page("/labels", ISSUES)}
        for name in names:
            if name.casefold() not in present:
                seen.send("POST", "/labels", {"name": name, "color": COLOUR})

    return write


def change_repository(**members: object) -> Writer:
    """Return a writer for members of the repository itself."""

    def write(seen: Observed) -> None:
        seen.send("PATCH", "", members)

    return write


def enable_reports(seen: Observed) -> None:
    """Let anybody report a vulnerability in private."""
    seen.send("PUT", REPORTS)


def _ruleset(seen: Observed, name: str, actors: list[Any], rules: list[Any]) -> None:
    """Create our ruleset, or replace it; rulesets of other names are left alone."""
    body = {
        "name": name,
        "target": "branch",
        "enforcement": "active",
        "conditions": {"ref_name": {"include": [f"refs/heads/{MAIN}"], "exclude": []}},
        "bypass_actors": actors,
        "rules": rules,
    }
    own = [
        ruleset["id"]
        for ruleset in seen.page("/rulesets")
        if ruleset["name"] == name and ruleset.get("source_type", _OF_REPOSITORY) == _OF_REPOSITORY
    ]
    if own:
        seen.send("PUT", f"/rulesets/{own[0]}", body)
    else:
        seen.send("POST", "/rulesets", body)


def guard_main(seen: Observed) -> None:
    """Set the ruleset that nobody bypasses."""
    review = {
        "required_approving_review_count": 1,
        "dismiss_stale_reviews_on_push": True,
        "require_code_owner_review": True,
        "require_last_push_approval": True,
        "required_review_thread_resolution": False,
    }
    plain = [{"type": kind} for kind in ("deletion", "non_fast_forward", "required_linear_history")]
    _ruleset(seen, GUARD, [], [{"type": "pull_request", "parameters": review}, *plain])


def require_verdict(seen: Observed) -> None:
    """Set the ruleset with the required status, which maintainers bypass on pull requests."""
    has_roles = seen.repository.get("owner", {}).get("type") == "Organization"
    actors = [
        {"actor_id": role, "actor_type": "RepositoryRole", "bypass_mode": "pull_request"}
        for role in ([ADMIN_ROLE, MAINTAIN_ROLE] if has_roles else [ADMIN_ROLE])
    ]
    checks = {
        "strict_required_status_checks_policy": False,
        "required_status_checks": [{"context": STATUS_CONTEXT}],
    }
    rule = {"type": "required_status_checks", "parameters": checks}
    _ruleset(seen, VERDICT, actors, [rule])


def protect_environment(name: str) -> Writer:
    """Return a writer that creates an environment for main alone; its reviewers are kept."""

    def write(seen: Observed) -> None:
        if environment_branches(name)(seen) is None:
            return
        reply = seen.get(f"/environments/{name}", "Actions: read") or {}
        if not (reply.get("deployment_branch_policy") or {}).get("custom_branch_policies"):
            branches = {"protected_branches": False, "custom_branch_policies": True}
            body = {"deployment_branch_policy": branches} | _protection(reply)
            seen.send("PUT", f"/environments/{name}", body)
        address = policies_of(name)
        policies = (seen.get(address, "Actions: read") or {}).get("branch_policies", ())
        for policy in policies:
            if policy["name"] != MAIN:
                seen.send("DELETE", f"{address}/{policy['id']}")
        if all(policy["name"] != MAIN for policy in policies):
            seen.send("POST", address, {"name": MAIN, "type": "branch"})

    return write


def _protection(environment: dict[str, Any]) -> dict[str, Any]:
    """Return waiting time and reviewers, which GitHub would otherwise remove."""
    protection: dict[str, Any] = {}
    for rule in environment.get("protection_rules", ()):
        if rule["type"] == "wait_timer":
            protection["wait_timer"] = rule["wait_timer"]
        if rule["type"] == "required_reviewers":
            protection["prevent_self_review"] = bool(rule.get("prevent_self_review"))
            protection["reviewers"] = [
                {"type": reviewer["type"], "id": reviewer["reviewer"]["id"]}
                for reviewer in rule["reviewers"]
            ]
    return protection


def store_log_key(seen: Observed) -> None:
    """Store the private key of the log as the secret of its environment, encrypted for GitHub.

    Raises UsageProblem where the key is not here.
    """
    address = f"/environments/{LOG_ENVIRONMENT}/secrets"
    if seen.log_key is None or not seen.log_key.is_file():
        raise UsageProblem("the private key of the log is not here", "store it where it is")
    text = read_regular(seen.log_key, KEY_BYTES_MAX).decode()
    body = {}
    if not seen.dry:
        from github.PublicKey import encrypt  # slow to import, and only needed here

        public = seen.get(f"{address}/public-key", "Environments: read") or {}
        body = {"encrypted_value": encrypt(public["key"], text), "key_id": public["key_id"]}
    seen.send("PUT", f"{address}/{LOG_SECRET}", body)


def set_variable(path: str) -> Writer:
    """Return a writer for the variable that names the Space. It raises UsageProblem without one."""

    def write(seen: Observed) -> None:
        if not seen.space:
            raise UsageProblem("no Space is named", "pass --space OWNER/NAME")
        body = {"name": VARIABLE, "value": f"spaces/{seen.space}"}
        if seen.get(f"{path}/{VARIABLE}") is None:
            seen.send("POST", path, body)
        else:
            seen.send("PATCH", f"{path}/{VARIABLE}", body)

    return write


environment_variable = set_variable(ENVIRONMENT_VARIABLES)
repository_variable = set_variable(REPOSITORY_VARIABLES)


class Setting(NamedTuple):
    """One setting of a repository, of an environment or of the Space."""

    id: str
    expected: str
    against: str
    """What it protects against."""
    read: str
    """Requests that show it."""
    needs: str
    """Permission of a fine-grained token that reading takes."""
    probe: Probe
    written: str
    """Requests that set it; empty where that takes a person."""
    writer: Writer | None
    hand: str
    """How a person sets it."""


ADMIN, META, CONTENTS = "Administration: read", "Metadata: read", "Contents: read"
ACTIONS = "Actions: read"
TREE = "GET /git/trees/{sha of main}"
MENU = "Settings > Actions > General"
RULES = "Settings > Rules > Rulesets"
GUARD_READ = "GET /rules/branches/main"
GUARD_WRITE = "POST /rulesets"
NO_API = ""


def of_actions(
    name: str,
    expected: str,
    against: str,
    path: str,
    probe: Probe,
    writer: Writer,
    hand: str,
) -> Setting:
    """Return a setting of Actions, which an administrator reads and sets at one address."""
    menu = f"{MENU}: {hand}"
    return Setting(
        *(name, expected, against, f"GET {path}", ADMIN, probe, f"PUT {path}", writer, menu)
    )


def of_main(name: str, expected: str, against: str, probe: Probe) -> Setting:
    """Return a rule of main that nobody bypasses."""
    hand = f"{RULES}: in a ruleset for main that nobody bypasses, {expected}"
    return Setting(
        *(name, expected, against, GUARD_READ, META, probe, GUARD_WRITE, guard_main),
        hand,
    )


def of_environment(name: str, environment: str, against: str) -> tuple[Setting, Setting]:
    """Return the settings that an environment exists, and that main alone deploys to it."""
    address, writer = f"/environments/{environment}", protect_environment(environment)
    branches = probes.policies_of(environment)
    menu = "Settings > Environments"
    return (
        Setting(
            *(name, f"the environment {environment} exists", against, f"GET {address}", ACTIONS),
            *(probes.environment(environment), f"PUT {address}", writer),
            f"{menu} > New environment: {environment}",
        ),
        Setting(
            *(f"{name}-main", "only main deploys to it", "a branch that does what main does"),
            *(f"GET {branches}", ACTIONS, probes.environment_branches(environment)),
            *(f"POST {branches}", writer),
            f"{menu} > {environment}: deployments from selected branches, main only",
        ),
    )


def of_files(name: str, expected: str, against: str, probe: Probe, hand: str) -> Setting:
    """Return a setting that is a file of main."""
    return Setting(name, expected, against, TREE, CONTENTS, probe, NO_API, None, hand)


WRITE_FILES = "geneb-ci init writes it; commit it by pull request"


def of_labels(name: str, expected: str, against: str, labels: tuple[str, ...]) -> Setting:
    """Return a setting that these labels exist."""
    probe, writer = probes.has_labels(labels), create_labels(labels)
    hand = f"Issues > Labels: {', '.join(labels)}"
    return Setting(
        *(
            name,
            expected,
            against,
            "GET /labels",
            probes.ISSUES,
            probe,
            "POST /labels",
            writer,
            hand,
        )
    )


def of_secrets(name: str, expected: str, against: str, path: str, needs: str, at: str) -> Setting:
    """Return a setting that no token of the Hub is stored; `at` is the menu."""
    hand = f"{at}: delete HF_TOKEN, and revoke it on the Hub"
    probe = probes.no_secret(path, needs)
    return Setting(
        *(name, expected, against, f"GET {path}/HF_TOKEN", needs, probe, NO_API, None, hand)
    )
