"""Write settings by GitHub's REST API; each function sets the settings of one group."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from geneb_ci.common.errors import UsageProblem
from geneb_ci.github.errors import UnexpectedReply, UnreadableSetting
from geneb_ci.github.settings.check import (
    missing_labels,
    verdict_app_id,
    workflows_disabled_by_github,
)
from geneb_ci.github.settings.client import MAIN_BRANCH, SettingsClient
from geneb_ci.github.settings.diagnosis import Diagnosis, SettingState
from geneb_ci.github.settings.required import SETTINGS, Setting

SettingsWriter = Callable[[SettingsClient, Sequence[Setting]], None]
"""A function that sets a group of settings to their required values.

Raises MissingScope if the token may not set them.
"""

ROLE_ACTOR_TYPE = "RepositoryRole"
"""GitHub's name for a role as the type of those who may bypass a ruleset."""
ADMIN_ROLE, MAINTAIN_ROLE = 5, 2
"""Ids of repository roles in rulesets, as GitHub's documentation lists them."""
GUARD_RULESET, VERDICT_RULESET = "geneb-ci: main", "geneb-ci: verdict"
"""Names of our rulesets."""
_REPOSITORY_SOURCE = "Repository"
"""Source type of a ruleset of the repository itself, not of its organisation."""
LABEL_COLOUR = "ededed"
"""Colour of new labels, as a hexadecimal number: a light grey."""


def _required_values(settings: Iterable[Setting]) -> dict[str, dict[str, Any]]:
    """Return the required values of a group, by address or type of rule."""
    members_by_path: dict[str, dict[str, Any]] = {}
    for setting in settings:
        for path, members in setting.required.items():
            members_by_path.setdefault(path, {}).update(copy.deepcopy(members))
    return members_by_path


def write_json_objects(client: SettingsClient, settings: Sequence[Setting]) -> None:
    """Write settings that are JSON objects, each at its own address."""
    for path, members in _required_values(settings).items():
        client.send("PUT", path, members)


def switch_on(client: SettingsClient, settings: Sequence[Setting]) -> None:
    """Switch on a setting by a request without a body."""
    client.send("PUT", settings[0].written_path)


def change_repository(client: SettingsClient, settings: Sequence[Setting]) -> None:
    """Change members of the repository itself."""
    for setting in settings:
        client.send("PATCH", "", dict(setting.required))


def enable_workflows(client: SettingsClient, settings: Sequence[Setting]) -> None:
    """Enable the workflows that GitHub disabled, but not those that a maintainer disabled."""
    for workflow in workflows_disabled_by_github(client, settings[0]):
        client.send("PUT", f"/actions/workflows/{workflow['id']}/enable")


def create_labels(client: SettingsClient, settings: Sequence[Setting]) -> None:
    """Create the labels that are missing."""
    for label in missing_labels(client, settings[0]):
        client.send("POST", "/labels", {"name": label, "color": LABEL_COLOUR})


def set_guard_ruleset(client: SettingsClient, settings: Sequence[Setting]) -> None:
    """Write the ruleset that protects main: only a sole maintainer may bypass it."""
    sole_maintainer = {
        "actor_id": ADMIN_ROLE,
        "actor_type": ROLE_ACTOR_TYPE,
        "bypass_mode": "pull_request",
    }
    _write_ruleset(
        client,
        GUARD_RULESET,
        [sole_maintainer] if client.has_sole_maintainer else [],
        _required_values(settings),
    )


def set_verdict_ruleset(client: SettingsClient, settings: Sequence[Setting]) -> None:
    """Write the ruleset that requires a passing verdict; maintainers may bypass it.

    If the board has an App, only the App's status counts.
    """
    has_roles = client.repository.get("owner", {}).get("type") == "Organization"
    actors = [
        {"actor_id": role, "actor_type": ROLE_ACTOR_TYPE, "bypass_mode": "pull_request"}
        for role in ([ADMIN_ROLE, MAINTAIN_ROLE] if has_roles else [ADMIN_ROLE])
    ]
    rules = _required_values(settings)
    app = verdict_app_id(client)
    if app is not None:
        for check in rules["required_status_checks"]["required_status_checks"]:
            check["integration_id"] = app
    _write_ruleset(client, VERDICT_RULESET, actors, rules)


def _write_ruleset(
    client: SettingsClient, name: str, actors: list[Any], rules: Mapping[str, dict[str, Any]]
) -> None:
    """Create our ruleset, or replace it; keep rulesets with other names."""
    body = {
        "name": name,
        "target": "branch",
        "enforcement": "active",
        "conditions": {"ref_name": {"include": [f"refs/heads/{MAIN_BRANCH}"], "exclude": []}},
        "bypass_actors": actors,
        "rules": [
            {"type": rule_type, "parameters": parameters} if parameters else {"type": rule_type}
            for rule_type, parameters in rules.items()
        ],
    }
    our_rulesets = [
        ruleset["id"]
        for ruleset in client.entries("/rulesets")
        if ruleset["name"] == name
        and ruleset.get("source_type", _REPOSITORY_SOURCE) == _REPOSITORY_SOURCE
    ]
    if our_rulesets:
        client.send("PUT", f"/rulesets/{our_rulesets[0]}", body)
    else:
        client.send("POST", "/rulesets", body)


def set_environment(client: SettingsClient, settings: Sequence[Setting]) -> None:
    """Create an environment or restrict it to main; keep its reviewers."""
    environment, branches = settings
    address, policies_address = environment.read_path, branches.read_path
    reply = client.get(address, environment.needs) or {}
    if not (reply.get("deployment_branch_policy") or {}).get("custom_branch_policies"):
        limits = {"protected_branches": False, "custom_branch_policies": True}
        client.send(
            "PUT", address, {"deployment_branch_policy": limits} | _present_protection(reply)
        )
    policies = (client.get(policies_address, branches.needs) or {}).get("branch_policies", ())
    for policy in policies:
        if policy["name"] != MAIN_BRANCH:
            client.send("DELETE", f"{policies_address}/{policy['id']}")
    if all(policy["name"] != MAIN_BRANCH for policy in policies):
        client.send("POST", policies_address, {"name": MAIN_BRANCH, "type": "branch"})


def _present_protection(environment: dict[str, Any]) -> dict[str, Any]:
    """Return the waiting time and reviewers of an environment, which a write would remove."""
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


def set_variable(client: SettingsClient, settings: Sequence[Setting]) -> None:
    """Set the variable that names the Space. Raises UsageProblem if no Space is given."""
    if not client.space:
        raise UsageProblem("no Space is named", "pass --space OWNER/NAME")
    client.set_variable(settings[0].read_path, f"spaces/{client.space}")


_WRITER_BY_NAME: dict[str, SettingsWriter] = {
    writer.__name__: writer
    for writer in (
        write_json_objects,
        switch_on,
        change_repository,
        enable_workflows,
        create_labels,
        set_guard_ruleset,
        set_verdict_ruleset,
        set_environment,
        set_variable,
    )
}
"""The function that makes a group of settings, by its name in required.toml."""


class AppliedSettings(NamedTuple):
    """The outcome of applying the settings of one group."""

    ids: tuple[str, ...]
    """Ids of the wrong settings of the group."""
    requests: tuple[str, ...]
    """The requests that were sent, or would be."""
    error: str = ""
    """Why the settings could not be set; "" if they could."""


def set_wrong_settings(
    client: SettingsClient, diagnoses: Iterable[Diagnosis]
) -> list[AppliedSettings]:
    """Set the wrong settings that the token can set, each group once; return what was done.

    A write without the right is noted and does not stop the others.
    """
    wrong_by_group: dict[str, list[Setting]] = {}
    for diagnosis in diagnoses:
        if diagnosis.state is SettingState.WRONG and diagnosis.setting.apply:
            wrong_by_group.setdefault(diagnosis.setting.group, []).append(diagnosis.setting)
    return [_apply_group(client, settings) for settings in wrong_by_group.values()]


def _apply_group(client: SettingsClient, wrong_settings: Sequence[Setting]) -> AppliedSettings:
    """Set the group that wrong settings belong to; return the requests or the refusal."""
    sent_before, refusal = len(client.sent), ""
    group = [setting for setting in SETTINGS if setting.group == wrong_settings[0].group]
    try:
        _WRITER_BY_NAME[wrong_settings[0].apply](client, group)
    except (UsageProblem, UnreadableSetting, UnexpectedReply) as refused:
        refusal = f"{refused.message}; {refused.fix}"
    ids = tuple(setting.id for setting in wrong_settings)
    return AppliedSettings(ids, tuple(client.sent[sent_before:]), refusal)
