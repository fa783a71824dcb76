"""Reads one setting of a repository each: what is wrong with it, or None."""

from collections.abc import Callable, Iterable
from typing import Any

from geneb_ci.github.api import STATUS_CONTEXT
from geneb_ci.github.errors import Unseen
from geneb_ci.github.observed import MAIN, Observed
from geneb_ci.github.report import AUDIT_STATES, LABELS

Probe = Callable[[Observed], str | None]
"""Returns what was found where it is not what is expected. Raises Unseen."""

ENVIRONMENT = "hf-publish"
"""The environment of the job that may publish."""
LOG_ENVIRONMENT, LOG_SECRET = "audit-log", "GENEB_LOG_KEY"
"""The environment of the job that extends the log of audits, and the secret with the log's key."""
VARIABLE = "HF_OIDC_RESOURCE"
AUDIT_RUNNER = "geneb-audit"
"""Label of the runners of audits, and the environment of the jobs that have the key."""
SECRET = "HF_TOKEN"  # noqa: S105 (the name of a secret)
VERDICT_LABELS = tuple(LABELS.values())
AUDIT_LABELS = AUDIT_STATES
FORM_LABELS = ("audit", "dispute", "withdrawal", "rule")
"""Labels that the issue forms set."""
PERMISSIONS = "/actions/permissions"
ISSUES = "Issues: read"
SELECTED = f"{PERMISSIONS}/selected-actions"
WORKFLOW_RIGHTS = f"{PERMISSIONS}/workflow"
APPROVAL = f"{PERMISSIONS}/fork-pr-contributor-approval"
REPORTS = "/private-vulnerability-reporting"
RULES = f"/rules/branches/{MAIN}"


def member(path: str, key: str, expected: object) -> Probe:
    """Return a probe that compares one member of an object of settings."""

    def probe(seen: Observed) -> str | None:
        actual = seen.settings(path).get(key)
        return None if actual == expected else f"{key} is {_shown(actual)}"

    return probe


def _shown(value: object) -> str:
    if value is None:
        return "missing"
    return str(value).lower() if isinstance(value, bool) else str(value)


def of_repository(key: str, expected: object) -> Probe:
    """Return a probe of one member of the repository itself."""

    def probe(seen: Observed) -> str | None:
        if key not in seen.repository:
            raise Unseen(f"GitHub does not show {key}", "use a token that may push")
        actual = seen.repository[key]
        return None if actual == expected else f"{key} is {_shown(actual)}"

    return probe


def allowed_actions(seen: Observed) -> str | None:
    """Compare which actions may run: those of GitHub and of the repository itself."""
    actual = seen.settings(PERMISSIONS).get("allowed_actions")
    if actual != "selected":
        return f"allowed_actions is {_shown(actual)}"
    selected = seen.settings(SELECTED)
    wrong = [
        f"{key} is {_shown(selected.get(key))}"
        for key, expected in (("github_owned_allowed", True), ("verified_allowed", False))
        if selected.get(key) != expected
    ]
    if patterns := selected.get("patterns_allowed"):
        wrong.append(f"also allowed: {', '.join(map(str, patterns))}")
    return "; ".join(wrong) or None


def no_runners(seen: Observed) -> str | None:
    """Count the self-hosted runners, except the ephemeral ones that audits use."""
    runners = seen.settings("/actions/runners")
    audit_runners = [
        runner
        for runner in runners.get("runners", ())
        if runner.get("ephemeral") and AUDIT_RUNNER in {label["name"] for label in runner["labels"]}
    ]
    count = runners.get("total_count", 0) - len(audit_runners)
    return f"{count} self-hosted runners" if count else None


def active_workflows(seen: Observed) -> str | None:
    """List the workflows that do not run."""
    reply = seen.get("/actions/workflows", "Actions: read", per_page=100) or {}
    idle = [workflow for workflow in reply.get("workflows", ()) if workflow["state"] != "active"]
    return ", ".join(f"{workflow['path']} is {workflow['state']}" for workflow in idle) or None


def has_labels(names: Iterable[str]) -> Probe:
    """Return a probe for labels; GitHub ignores case in their names."""

    def probe(seen: Observed) -> str | None:
        present = {str(label["name"]).casefold() for label in seen.page("/labels", ISSUES)}
        lacking = [name for name in names if name.casefold() not in present]
        return f"missing: {', '.join(lacking)}" if lacking else None

    return probe


# Rules of main.


def rules(seen: Observed, kind: str) -> list[dict[str, Any]]:
    """Return the active rules of one type that apply to main."""
    return [rule for rule in seen.page(RULES) if rule["type"] == kind]


def has_rule(kind: str) -> Probe:
    """Return a probe for a rule of this type."""

    def probe(seen: Observed) -> str | None:
        return None if rules(seen, kind) else f"no rule {kind} applies to main"

    return probe


def pull_request(key: str) -> Probe:
    """Return a probe for a parameter of the rule that requires pull requests."""

    def probe(seen: Observed) -> str | None:
        values = [rule.get("parameters", {}).get(key, 0) for rule in rules(seen, "pull_request")]
        if not values:
            return "no rule pull_request applies to main"
        return None if max(values) else f"{key} is {_shown(max(values))}"

    return probe


GUARDS = ("pull_request", "required_linear_history", "non_fast_forward", "deletion")


def bypassers(seen: Observed, ruleset: int) -> list[dict[str, Any]]:
    """Return who may bypass a ruleset. Raises Unseen without the right to change it."""
    reply = seen.get(f"/rulesets/{ruleset}") or {}
    if "bypass_actors" not in reply:
        raise Unseen(
            "GitHub shows who may bypass a ruleset only to those who may change it",
            "use a token of an administrator with Administration: write",
        )
    return list(reply["bypass_actors"] or ())


def no_bypass(seen: Observed) -> str | None:
    """List the rules that apply to main and that somebody may bypass."""
    applied = {kind: active for kind in GUARDS if (active := rules(seen, kind))}
    if not applied:
        return "none of these rules applies to main"
    loose = [
        kind
        for kind, active in applied.items()
        if all(bypassers(seen, rule["ruleset_id"]) for rule in active)
    ]
    return f"can be bypassed: {', '.join(loose)}" if loose else None


def required_verdict(seen: Observed) -> list[dict[str, Any]]:
    """Return the rules of main that require the status of the verdict."""
    return [
        rule
        for rule in rules(seen, "required_status_checks")
        if any(
            check["context"] == STATUS_CONTEXT
            for check in rule.get("parameters", {}).get("required_status_checks", ())
        )
    ]


def verdict(seen: Observed) -> str | None:
    """Compare whether the status of the verdict is required."""
    if required_verdict(seen):
        return None
    return f"no rule of main requires the status {STATUS_CONTEXT}"


def verdict_bypass(seen: Observed) -> str | None:
    """Compare who may merge without a verdict: maintainers, and for pull requests only."""
    for rule in required_verdict(seen):
        actors = bypassers(seen, rule["ruleset_id"])
        if not actors:
            return "nobody may merge a change that is not a submission, which has no verdict"
        if any(actor["bypass_mode"] != "pull_request" for actor in actors):
            return "it can be bypassed by a push, not only on a pull request"
    return None


# The environment and its variables.


def policies_of(name: str) -> str:
    """Return the address of the branches that may use an environment."""
    return f"/environments/{name}/deployment-branch-policies"


def environment(name: str) -> Probe:
    """Return a probe that an environment exists."""

    def probe(seen: Observed) -> str | None:
        reply = seen.get(f"/environments/{name}", "Actions: read")
        return None if reply else f"there is no environment {name}"

    return probe


def environment_branches(name: str) -> Probe:
    """Return a probe that main alone may use an environment."""

    def probe(seen: Observed) -> str | None:
        reply = seen.get(f"/environments/{name}", "Actions: read")
        if not reply:
            return f"there is no environment {name}"
        if not (reply.get("deployment_branch_policy") or {}).get("custom_branch_policies"):
            return "jobs on any branch may use it"
        policies = (seen.get(policies_of(name), "Actions: read") or {}).get("branch_policies", ())
        names = sorted(policy["name"] for policy in policies)
        return None if names == [MAIN] else f"deployments from: {', '.join(names) or 'nowhere'}"

    return probe


def has_secret(name: str, secret: str) -> Probe:
    """Return a probe that an environment has a secret, of which GitHub shows the name alone."""

    def probe(seen: Observed) -> str | None:
        reply = seen.get(f"/environments/{name}/secrets/{secret}", "Environments: read")
        return None if reply else f"{name} has no secret {secret}"

    return probe


REPOSITORY_VARIABLES = "/actions/variables"
ENVIRONMENT_VARIABLES = f"/environments/{ENVIRONMENT}/variables"
_NEEDED = {REPOSITORY_VARIABLES: "Variables: read", ENVIRONMENT_VARIABLES: "Environments: read"}


def _value(seen: Observed, path: str) -> str | None:
    reply = seen.get(f"{path}/{VARIABLE}", _NEEDED[path])
    return None if reply is None else str(reply.get("value", ""))


def _space_in(value: str | None) -> str | None:
    kind, _, name = (value or "").partition("/")
    return name if kind == "spaces" and name.count("/") == 1 else None


def named_space(seen: Observed) -> str | None:
    """Return the Space that the caller names, or else the variables, that of the repository first.

    Raises Unseen where the token may not read them.
    """
    return (
        seen.space
        or _space_in(_value(seen, REPOSITORY_VARIABLES))
        or _space_in(_value(seen, ENVIRONMENT_VARIABLES))
    )


def variable(path: str) -> Probe:
    """Return a probe for the variable that names the Space."""

    def probe(seen: Observed) -> str | None:
        value = _value(seen, path)
        if value is None:
            return f"there is no variable {VARIABLE}"
        expected = named_space(seen)
        if _space_in(value) is None or _space_in(value) != expected:
            return f"{VARIABLE} is {value!r}, expected spaces/{expected or 'OWNER/NAME'}"
        return None

    return probe


def no_secret(path: str, needs: str) -> Probe:
    """Return a probe for a stored token of the Hub."""

    def probe(seen: Observed) -> str | None:
        reply = seen.get(f"{path}/{SECRET}", needs)
        return f"the secret {SECRET} is stored" if reply else None

    return probe
