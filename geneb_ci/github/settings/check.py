"""Check settings of GitHub; a `SettingCheck` returns what is wrong with a setting, or None."""

from collections.abc import Callable
from typing import Any

from geneb_ci.github.api import VERDICT_APP, VERDICT_STATUS
from geneb_ci.github.errors import UnreadableSetting
from geneb_ci.github.settings.client import MAIN_BRANCH, SettingsClient, variable_path
from geneb_ci.github.settings.required import SETTINGS, Setting
from geneb_ci.publish.session import space_name_in

SettingCheck = Callable[[SettingsClient, Setting], str | None]
"""A function that returns what is wrong with a setting; None if it is as required.

Raises UnreadableSetting if the token cannot read the setting.
"""

DISABLED_BY_MAINTAINER = "disabled_manually"
"""GitHub's word for the state of a workflow that a person disabled."""
AUDIT_RUNNER_LABEL = "geneb-audit"
"""Label of the self-hosted machines that run audits."""
RULES_PATH = f"/rules/branches/{MAIN_BRANCH}"
"""Address of the rules that apply to main, below the repository's address."""
GUARD_RULE_TYPES = tuple(
    dict.fromkeys(
        kind
        for setting in SETTINGS
        if setting.apply == "set_guard_ruleset"
        for kind in setting.required
    )
)
"""Types of the rules of main that nobody may bypass."""


def json_objects_problem(client: SettingsClient, setting: Setting) -> str | None:
    """Return how a setting that is a JSON object differs from the required members, or None."""
    for path, members in setting.required.items():
        actual = client.settings(path)
        differences = [
            text for key in members if (text := _difference(key, actual.get(key), members[key]))
        ]
        if differences:
            return "; ".join(differences)
    return None


def _difference(member: str, actual: Any, expected: object) -> str:  # of JSON
    """Return how a member differs; "" if it does not. If [] is expected, no entry is allowed."""
    if expected == []:
        return f"also allowed: {', '.join(map(str, actual))}" if actual else ""
    return "" if actual == expected else f"{member} is {_value_text(actual)}"


def _value_text(value: object) -> str:
    """Return a JSON value as text of a message."""
    if value is None:
        return "missing"
    return str(value).lower() if isinstance(value, bool) else str(value)


def repository_problem(client: SettingsClient, setting: Setting) -> str | None:
    """Return how a member of the repository itself differs, or None."""
    ((member, required),) = setting.required.items()
    if member not in client.repository:
        raise UnreadableSetting(f"GitHub does not show {member}", "use a token that may push")
    actual = client.repository[member]
    return None if actual == required else f"{member} is {_value_text(actual)}"


def runners_problem(client: SettingsClient, setting: Setting) -> str | None:
    """Return the number of self-hosted runners, except ephemeral ones of audits; None for 0."""
    runners = client.settings(setting.read_path)
    audit_runners = [
        runner
        for runner in runners.get("runners", ())
        if runner.get("ephemeral")
        and AUDIT_RUNNER_LABEL in {label["name"] for label in runner["labels"]}
    ]
    count = runners.get("total_count", 0) - len(audit_runners)
    return f"{count} self-hosted runners" if count else None


def workflows_disabled_by_github(client: SettingsClient, setting: Setting) -> list[dict[str, Any]]:
    """Return the workflows that GitHub disabled, not those that a maintainer disabled."""
    reply = client.get(setting.read_path, setting.needs, per_page=100) or {}
    running = {"active", DISABLED_BY_MAINTAINER}
    return [workflow for workflow in reply.get("workflows", ()) if workflow["state"] not in running]


def disabled_workflows_problem(client: SettingsClient, setting: Setting) -> str | None:
    """Return which workflows GitHub disabled, or None."""
    idle = workflows_disabled_by_github(client, setting)
    return ", ".join(f"{workflow['path']} is {workflow['state']}" for workflow in idle) or None


def label_names(client: SettingsClient) -> set[str]:
    """Return the names of the labels in lower case: GitHub ignores case in them."""
    return {str(label["name"]).casefold() for label in client.entries("/labels", "Issues: read")}


def missing_labels(client: SettingsClient, setting: Setting) -> list[str]:
    """Return the labels that do not exist."""
    present_labels = label_names(client)
    return [name for name in setting.required["labels"] if name.casefold() not in present_labels]


def labels_problem(client: SettingsClient, setting: Setting) -> str | None:
    """Return which labels do not exist, or None."""
    missing_names = missing_labels(client, setting)
    return f"missing: {', '.join(missing_names)}" if missing_names else None


# Rules of main.


def rules_of_type(client: SettingsClient, rule_type: str) -> list[dict[str, Any]]:
    """Return the active rules of one type that apply to main."""
    return [rule for rule in client.entries(RULES_PATH) if rule["type"] == rule_type]


def main_rules_problem(client: SettingsClient, setting: Setting) -> str | None:
    """Return which parameter of main's rules of one type is below its required value, or None."""
    ((rule_type, parameters),) = setting.required.items()
    active_rules = rules_of_type(client, rule_type)
    if not active_rules:
        return f"no rule {rule_type} applies to main"
    for parameter, required in parameters.items():
        actual = max(rule.get("parameters", {}).get(parameter, 0) for rule in active_rules)
        if actual < required:
            return f"{parameter} is {_value_text(actual)}"
    return None


def bypass_actors(client: SettingsClient, ruleset: int) -> list[dict[str, Any]]:
    """Return who may bypass a ruleset. Raises UnreadableSetting if the token may not see that."""
    reply = client.get(f"/rulesets/{ruleset}") or {}
    if "bypass_actors" not in reply:
        raise UnreadableSetting(
            "GitHub shows who may bypass a ruleset only to those who may change it",
            "use a token of an administrator with Administration: write",
        )
    return list(reply["bypass_actors"] or ())


def _can_be_bypassed(client: SettingsClient, ruleset: int) -> bool:
    """Whether anybody but a sole maintainer on pull requests may bypass a ruleset."""
    actors = bypass_actors(client, ruleset)
    if client.has_sole_maintainer:
        return any(actor["bypass_mode"] != "pull_request" for actor in actors)
    return bool(actors)


def bypass_problem(client: SettingsClient, _setting: Setting) -> str | None:
    """Return which of the rules that apply to main can be bypassed, or None."""
    rules_by_kind = {
        kind: active_rules
        for kind in GUARD_RULE_TYPES
        if (active_rules := rules_of_type(client, kind))
    }
    if not rules_by_kind:
        return f"none of the rules {', '.join(GUARD_RULE_TYPES)} applies to main"
    bypassable = [
        kind
        for kind, active_rules in rules_by_kind.items()
        if all(_can_be_bypassed(client, rule["ruleset_id"]) for rule in active_rules)
    ]
    return f"can be bypassed: {', '.join(bypassable)}" if bypassable else None


def _verdict_rules(client: SettingsClient) -> list[dict[str, Any]]:
    """Return the rules of main that require the status of the verdict."""
    return [
        rule
        for rule in rules_of_type(client, "required_status_checks")
        if any(
            check["context"] == VERDICT_STATUS
            for check in rule.get("parameters", {}).get("required_status_checks", ())
        )
    ]


def verdict_app_id(client: SettingsClient) -> int | None:
    """Return the id of the App that sets the status of verdicts; None if there is none.

    Raises UnreadableSetting if the token may not read variables.
    """
    app = client.variable_value(variable_path(VERDICT_APP))
    return int(app) if app.isascii() and app.isdigit() else None


def verdict_status_problem(client: SettingsClient, _setting: Setting) -> str | None:
    """Return why main does not require the verdict's status of the right account, or None."""
    apps = {
        check.get("integration_id")
        for rule in _verdict_rules(client)
        for check in rule["parameters"]["required_status_checks"]
        if check["context"] == VERDICT_STATUS
    }
    if not apps:
        return f"no rule of main requires the status {VERDICT_STATUS}"
    try:
        app = verdict_app_id(client)
    except UnreadableSetting:
        return None
    if app is not None and app not in apps:
        return f"the status {VERDICT_STATUS} counts from any account, not only from the App {app}"
    if other_apps := sorted(apps - {None, app}):
        return (
            f"the status {VERDICT_STATUS} counts only from the App {other_apps[0]}, which does not "
            "set this status"
        )
    return None


def verdict_bypass_problem(client: SettingsClient, _setting: Setting) -> str | None:
    """Return what is wrong with who may merge without a verdict, or None."""
    for rule in _verdict_rules(client):
        actors = bypass_actors(client, rule["ruleset_id"])
        if not actors:
            return "nobody may merge without a verdict, so only submissions can ever be merged"
        if any(actor["bypass_mode"] != "pull_request" for actor in actors):
            return "the rule can be bypassed by a push, not only on a pull request"
    return None


# Environments, variables and secrets.


def environment_problem(client: SettingsClient, setting: Setting) -> str | None:
    """Return that an environment is missing, or None."""
    reply = client.get(setting.read_path, setting.needs)
    return None if reply else f"there is no environment {setting.read_path.rpartition('/')[2]}"


def environment_branches_problem(client: SettingsClient, setting: Setting) -> str | None:
    """Return which branches other than main may use an environment, or None."""
    address = setting.read_path.rpartition("/")[0]
    reply = client.get(address, setting.needs)
    if not reply:
        return f"there is no environment {address.rpartition('/')[2]}"
    if not (reply.get("deployment_branch_policy") or {}).get("custom_branch_policies"):
        return "jobs on any branch may use the environment"
    policies = (client.get(setting.read_path, setting.needs) or {}).get("branch_policies", ())
    branches = sorted(policy["name"] for policy in policies)
    return (
        None
        if branches == [MAIN_BRANCH]
        else f"deployments from: {', '.join(branches) or 'nowhere'}"
    )


def secret_problem(client: SettingsClient, setting: Setting) -> str | None:
    """Return that a token of the Hub is stored as a secret, though none is needed, or None."""
    reply = client.get(setting.read_path, setting.needs)
    return f"the secret {setting.read_path.rpartition('/')[2]} is stored" if reply else None


def named_space(client: SettingsClient) -> str | None:
    """Return the Space that the caller gave, else that of a variable; None if there is none.

    Raises UnreadableSetting if the token may not read them.
    """
    if client.space:
        return client.space
    settings = [setting for setting in SETTINGS if setting.check == "space_variable_problem"]
    spaces = (
        space_name_in(client.variable_value(setting.read_path)) for setting in reversed(settings)
    )
    return next((space for space in spaces if space), None)


def space_variable_problem(client: SettingsClient, setting: Setting) -> str | None:
    """Return how the variable that names the Space differs from the expected Space, or None."""
    name, value = setting.read_path.rpartition("/")[2], client.variable_value(setting.read_path)
    if not value:
        return f"there is no variable {name}"
    expected = named_space(client)
    if space_name_in(value) is None or space_name_in(value) != expected:
        return f"{name} is {value!r}, expected spaces/{expected or 'OWNER/NAME'}"
    return None


def has_published(client: SettingsClient, setting: Setting) -> bool:
    """Return whether a run of the publishing workflow has succeeded."""
    path, needs = setting.read_path, setting.needs
    reply = client.get(path, needs, branch=MAIN_BRANCH, status="success", per_page=1) or {}
    return bool(reply.get("total_count"))


def trusted_publisher_problem(client: SettingsClient, setting: Setting) -> str | None:
    """Return None if a run of the publishing workflow has succeeded.

    Raises UnreadableSetting if none has, because the Hub does not show its trusted publishers.
    """
    if not has_published(client, setting):
        raise UnreadableSetting(
            "cannot tell whether the trusted publisher is set: the Hub shows it to no program, and "
            "no run of publish.yml has succeeded; without it every run fails, including the one "
            "that the first push starts",
            f"{setting.by_hand}; then: gh workflow run publish.yml",
        )
    return None
