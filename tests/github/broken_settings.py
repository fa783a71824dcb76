"""Every setting of a repository, each broken in one way."""

import json
from collections.abc import Callable
from typing import Any

from geneb_ci.audit.record.keys import key_entry_of
from tests.github.history import Files
from tests.github.settings_server import PERMISSIONS, SettingsServer

NOW = "2026-11-20T00:00:00Z"
KEYS = "leaderboard/policy/keys.json"


def key_file() -> dict[str, Any]:
    return {"keys": [key_entry_of(bytes(32), "org", NOW).model_dump(exclude_none=True)]}


def rule(server: SettingsServer, kind: str) -> dict[str, Any]:
    """Return a rule of one of the rulesets."""
    return next(
        rule_of_set
        for ruleset in server.rulesets.values()
        for rule_of_set in ruleset["rules"]
        if rule_of_set["type"] == kind
    )


def without_rule(kind: str) -> Callable[[SettingsServer, Files], None]:
    def broken(server: SettingsServer, _files: Files) -> None:
        for ruleset in server.rulesets.values():
            ruleset["rules"] = [
                rule_of_set for rule_of_set in ruleset["rules"] if rule_of_set["type"] != kind
            ]

    return broken


def review(key: str, value: object) -> Callable[[SettingsServer, Files], None]:
    def broken(server: SettingsServer, _files: Files) -> None:
        rule(server, "pull_request")["parameters"][key] = value

    return broken


def changed(path: str, raw: bytes | None) -> Callable[[SettingsServer, Files], None]:
    """Push other bytes for a file, or delete it."""

    def broken(server: SettingsServer, files: Files) -> None:
        others = {name: entry for name, entry in files.items() if name != path}
        server.push(others if raw is None else others | {path: ("100644", raw)})

    return broken


def put(name: str, key: str, value: object) -> Callable[[SettingsServer, Files], None]:
    def broken(server: SettingsServer, _files: Files) -> None:
        getattr(server, name)[key] = value

    return broken


def of_actions(path: str, key: str, value: object) -> Callable[[SettingsServer, Files], None]:
    def broken(server: SettingsServer, _files: Files) -> None:
        server.objects[PERMISSIONS + path][key] = value

    return broken


def bypass(which: int, mode: str) -> Callable[[SettingsServer, Files], None]:
    def broken(server: SettingsServer, _files: Files) -> None:
        actor = {"actor_id": 5, "actor_type": "RepositoryRole", "bypass_mode": mode}
        list(server.rulesets.values())[which]["bypass_actors"] = [actor]

    return broken


def set_(name: str, value: Any) -> Callable[[SettingsServer, Files], None]:
    return lambda server, _files: setattr(server, name, value)


def old_queue(server: SettingsServer, files: Files) -> None:
    """Add a merge queue to a main whose workflows know of none."""
    next(iter(server.rulesets.values()))["rules"].append(QUEUE)
    changed(VALIDATE, files[VALIDATE][1].replace(b"merge_group:", b"workflow_call:"))(server, files)


VALIDATE = ".github/workflows/pr-validate.yml"
QUEUE = {"type": "merge_queue", "parameters": {}}
OWNERS = ".github/CODEOWNERS"
VARIABLE = "HF_OIDC_RESOURCE"
RELEASES = {"id": 7, "name": "release/*"}
BREAKS: dict[str, Callable[[SettingsServer, Files], None]] = {
    "default-branch": put("repository", "default_branch", "master"),
    "issues": put("repository", "has_issues", value=False),
    "squash-merge": put("repository", "allow_squash_merge", value=False),
    "private-reports": set_("reports", False),  # noqa: FBT003
    "actions-enabled": of_actions("", "enabled", value=False),
    "actions-allowed": of_actions("/selected-actions", "patterns_allowed", ["evil/*"]),
    "actions-pinned": of_actions("", "sha_pinning_required", value=False),
    "fork-approval": of_actions(
        "/fork-pr-contributor-approval", "approval_policy", "first_time_contributors"
    ),
    "token-reads": of_actions("/workflow", "default_workflow_permissions", "write"),
    "token-approves-nothing": of_actions(
        "/workflow", "can_approve_pull_request_reviews", value=True
    ),
    "hosted-runners": set_("runners", 2),
    "workflows-active": put(
        "workflow_states", ".github/workflows/audit.yml", "disabled_inactivity"
    ),
    "no-stored-token": put("secrets", "", {"HF_TOKEN"}),
    "labels-of-verdicts": lambda server, _: server.label_names.remove("geneb: passed"),
    "labels-of-forms": lambda server, _: server.label_names.remove("audit"),
    "main-pull-request": review("required_approving_review_count", 0),
    "main-stale-approvals": review("dismiss_stale_reviews_on_push", value=False),
    "main-last-push": review("require_last_push_approval", value=False),
    "main-code-owners": review("require_code_owner_review", value=False),
    "main-linear": without_rule("required_linear_history"),
    "main-no-force-push": without_rule("non_fast_forward"),
    "main-no-deletion": without_rule("deletion"),
    "main-no-bypass": bypass(0, "pull_request"),
    "main-verdict": without_rule("required_status_checks"),
    "main-verdict-bypass": bypass(1, "always"),
    "merge-queue": old_queue,
    "environment": put("environments", "hf-publish", None),
    "environment-main": lambda server, _: server.policies["hf-publish"].append(RELEASES),
    "environment-variable": put("variables", "hf-publish", {VARIABLE: "spaces/other/board"}),
    "environment-no-token": put("secrets", "hf-publish", {"HF_TOKEN"}),
    "repository-variable": put("variables", "", {}),
    "verdict-environment": put("environments", "geneb-verdict", None),
    "verdict-environment-main": lambda server, _: server.policies["geneb-verdict"].append(RELEASES),
    "audit-environment": put("environments", "geneb-audit", None),
    "audit-environment-main": lambda server, _: server.policies["geneb-audit"].append(RELEASES),
    "workflows": changed(".github/workflows/publish.yml", b"on: push\n"),
    "code-owners": changed(OWNERS, b"/.github/ @org/maintainers\n"),
    "code-owners-valid": set_("owner_errors", [{"line": 2, "kind": "Unknown owner"}]),
    "issue-forms": changed(".github/ISSUE_TEMPLATE/dispute.yml", None),
    "pull-request-template": changed(".github/PULL_REQUEST_TEMPLATE.md", None),
    "dependabot": changed(".github/dependabot.yml", None),
    "own-names": changed("SECURITY.md", b"https://github.com/OWNER/geneb-ci/issues\n"),
    "policy": changed("leaderboard/policy/policy.toml", None),
    "audit-key": changed(KEYS, json.dumps(key_file() | {"keys": []}).encode()),
    "no-private-key": changed("maintainer.pem", b"-----BEGIN PRIVATE KEY-----\n"),
    "space": lambda server, _: server.variables.update(
        {name: {VARIABLE: "spaces/geneb/elsewhere"} for name in ("", "hf-publish")}
    ),
    "trusted-publisher": set_("published_runs", 0),
}
