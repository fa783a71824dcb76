"""The settings of a repository on the loopback GitHub: what a new one has, and how each is set.

Bodies are checked as GitHub checks them: a member that the documentation requires and that is not
sent is a 422.
"""

import copy
import re
from collections.abc import Callable
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.github.history import Files
from tests.github.refusals import Answer
from tests.github.server import REPOSITORY, ROUTES, WRITE, GitHubServer

ADMIN = WRITE | {
    f"{scope}:{access}"
    for scope in (
        *("administration", "actions", "environments", "issues", "metadata", "secrets"),
        *("variables", "contents"),
    )
    for access in ("read", "write")
}
"""What the token of an administrator may do."""
PUBLIC = frozenset(
    {"metadata:read", "contents:read", "actions:read", "pull_requests:read", "issues:read"}
)
"""What any token may do with a public repository."""
NOTHING = Answer(204)
PERMISSIONS = "/actions/permissions"
SEALED_BY = bytes(range(32))
"""The private key of secrets, which GitHub shows nobody."""
SEALED = "j0DFrbaPJWJK5bIU6nZ6bslNgp09e14a0bpvPiE4KF8="
"""Its public key, by X25519, as GitHub shows it."""


def missing() -> Answer:
    return Answer(404, {"message": "Not Found"})


def invalid(message: str) -> Answer:
    return Answer(422, {"message": f"Invalid request.\n\n{message}"})


class SettingsServer(GitHubServer):
    """A repository as GitHub creates one: public, empty, in an organisation."""

    def __init__(self) -> None:
        super().__init__()
        self.permissions = ADMIN
        self.pushed = ""
        self.main_of: Callable[[], str] = lambda: self.pushed
        """Returns the head of main; empty before a first push."""
        self.repository: dict[str, Any] = {
            "full_name": REPOSITORY,
            "default_branch": "main",
            "has_issues": True,
            "allow_squash_merge": True,
            "owner": {"login": "org", "type": "Organization"},
        }
        self.objects: dict[str, dict[str, Any]] = {
            PERMISSIONS: {"enabled": True, "allowed_actions": "all", "sha_pinning_required": False},
            f"{PERMISSIONS}/selected-actions": {
                "github_owned_allowed": True,
                "verified_allowed": True,
                "patterns_allowed": [],
            },
            f"{PERMISSIONS}/workflow": {
                "default_workflow_permissions": "write",
                "can_approve_pull_request_reviews": True,
            },
            f"{PERMISSIONS}/fork-pr-contributor-approval": {
                "approval_policy": "first_time_contributors"
            },
        }
        self.reports = False
        self.label_names = ["bug", "question"]
        self.rulesets: dict[int, dict[str, Any]] = {}
        self.environments: dict[str, dict[str, Any]] = {}
        self.policies: dict[str, list[dict[str, Any]]] = {}
        """By environment."""
        self.variables: dict[str, dict[str, str]] = {"": {}}
        """By environment; those of the repository under an empty name."""
        self.secrets: dict[str, set[str]] = {"": set()}
        self.workflow_states: dict[str, str] = {}
        self.runners = 0
        self.writers = ["maintainer", "another"]
        self.owner_errors: list[dict[str, Any]] = []
        self.published_runs = 0
        self.count = 100
        self.apps: dict[str, dict[str, Any]] = {}
        """Apps whose key was not given out yet, by the code that buys it."""
        self.sold: dict[str, Any] | None = None
        """The App whose key was given out."""
        self.is_installed = True
        """Whether the App of the board is installed on it."""
        self.sealed: dict[str, str] = {}
        """Secrets as they were sent, by name."""

    def push(self, files: Files) -> None:
        """Make these files the tree of main."""
        self.pushed = self.commit(files, self.pushed or None)
        for path in files:
            if path.startswith(".github/workflows/"):
                self.workflow_states.setdefault(path, "active")

    def snapshot(self) -> Any:
        """Return a copy of all settings."""
        member_names = (
            "repository",
            "objects",
            "reports",
            "label_names",
            "rulesets",
            "environments",
        )
        more = ("policies", "variables", "secrets", "workflow_states")
        return copy.deepcopy({name: getattr(self, name) for name in (*member_names, *more)})

    def _route(self, verb: str, path: str, query: dict[str, str], body: Any) -> Answer:
        """Answer for the whole of GitHub, too: an App is sold once for a code."""
        if match := re.fullmatch(r"/app-manifests/(\w+)/conversions", path):
            self.sold = self.apps.pop(match[1], None)
            return Answer(201, self.sold) if self.sold else missing()
        if match := re.fullmatch(r"/users/([\w-]+)(?:\[|%5B)bot(?:\]|%5D)", path):
            return Answer(200, {"id": 9, "login": f"{match[1]}[bot]", "type": "Bot"})
        return super()._route(verb, path, query, body)

    def rights_of(self, token: str) -> frozenset[str] | None:
        """Know an App by what its key signs."""
        if token.count(".") == 2 and self.sold is not None:
            key = load_pem_private_key(self.sold["pem"].encode(), None)
            assert isinstance(key, RSAPrivateKey)
            claims = jwt.decode(token, key.public_key(), algorithms=["RS256"])
            return frozenset({"app:jwt"}) if claims["iss"] == str(self.sold["id"]) else None
        return super().rights_of(token)

    def routes(self) -> Any:
        return [*SETTINGS_ROUTES, *ROUTES]

    # The repository.

    def get_repository(self, _query: Any, _body: Any) -> Answer:
        return Answer(200, self.repository) if self.repository else missing()

    def patch_repository(self, _query: Any, body: Any) -> Answer:
        self.repository |= body
        return Answer(200, self.repository)

    def get_branch(self, _query: Any, _body: Any) -> Answer:
        sha = self.main_of()
        return Answer(200, {"name": "main", "commit": {"sha": sha}}) if sha else missing()

    def get_reports(self, _query: Any, _body: Any) -> Answer:
        return Answer(200, {"enabled": self.reports})

    def put_reports(self, _query: Any, _body: Any) -> Answer:
        self.reports = True
        return NOTHING

    def list_owner_errors(self, _query: Any, _body: Any) -> Answer:
        return Answer(200, {"errors": self.owner_errors})

    # Actions.

    def get_object(self, _query: Any, _body: Any, path: str) -> Answer:
        selected = self.objects[PERMISSIONS]["allowed_actions"] == "selected"
        if path.endswith("/selected-actions") and not selected:
            return Answer(409, {"message": "Conflict"})
        return Answer(200, self.objects[path])

    def put_object(self, _query: Any, body: Any, path: str) -> Answer:
        if not set(body) <= set(self.objects[path]):
            return invalid(f"unknown: {set(body) - set(self.objects[path])}")
        if path == PERMISSIONS and "enabled" not in body:
            return invalid("enabled is required")
        if path.endswith("/selected-actions") and (
            self.objects[PERMISSIONS]["allowed_actions"] != "selected"
        ):
            return Answer(409, {"message": "Conflict"})
        self.objects[path] |= body
        return NOTHING

    def list_runners(self, _query: Any, _body: Any) -> Answer:
        """One runner takes one audit; others stay."""
        audits = {"id": 1, "ephemeral": True, "labels": [{"name": "geneb-audit"}]}
        return Answer(200, {"total_count": 1 + self.runners, "runners": [audits]})

    def list_workflows(self, _query: Any, _body: Any) -> Answer:
        workflows = [
            {"id": number, "path": path, "state": state}
            for number, (path, state) in enumerate(self.workflow_states.items(), 1)
        ]
        return Answer(200, {"total_count": len(workflows), "workflows": workflows})

    def enable_workflow(self, _query: Any, _body: Any, number: str) -> Answer:
        path = list(self.workflow_states)[int(number) - 1]
        self.workflow_states[path] = "active"
        return NOTHING

    def list_runs(self, query: Any, _body: Any) -> Answer:
        assert query == {"branch": "main", "status": "success", "per_page": "1"}
        return Answer(200, {"total_count": self.published_runs, "workflow_runs": []})

    # Labels and rules.

    def list_collaborators(self, query: Any, _body: Any) -> Answer:
        people = [{"login": name, "permissions": {"push": True}} for name in self.writers]
        return self._page(people, f"/repos/{REPOSITORY}/collaborators", query)

    def list_labels(self, query: Any, _body: Any) -> Answer:
        labels = [{"name": name, "color": "ededed"} for name in self.label_names]
        return self._page(labels, f"/repos/{REPOSITORY}/labels", query)

    def create_label(self, _query: Any, body: Any) -> Answer:
        if body["name"].casefold() in {name.casefold() for name in self.label_names}:
            return invalid("already_exists")
        self.label_names.append(body["name"])
        return Answer(201, body)

    def list_rulesets(self, query: Any, _body: Any) -> Answer:
        rulesets = [
            {"id": number, "name": ruleset["name"]} for number, ruleset in self.rulesets.items()
        ]
        return self._page(rulesets, f"/repos/{REPOSITORY}/rulesets", query)

    def get_ruleset(self, _query: Any, _body: Any, number: str) -> Answer:
        rulesets = self.rulesets.get(int(number))
        if rulesets is None:
            return missing()
        hidden = () if "administration:write" in self.granted else ("bypass_actors",)
        return Answer(200, {key: value for key, value in rulesets.items() if key not in hidden})

    def put_ruleset(self, _query: Any, body: Any, number: str = "") -> Answer:
        if not {"name", "enforcement", "target", "rules", "conditions"} <= set(body):
            return invalid("a member is missing")
        self.count += 1
        key = int(number) if number else self.count
        self.rulesets[key] = {"bypass_actors": []} | body | {"id": key}
        return Answer(200 if number else 201, self.rulesets[key])

    def list_rules(self, query: Any, _body: Any) -> Answer:
        rules = [
            rule | {"ruleset_id": number}
            for number, ruleset in self.rulesets.items()
            if ruleset["enforcement"] == "active"
            and {"refs/heads/main", "~DEFAULT_BRANCH"}
            & set(ruleset["conditions"]["ref_name"]["include"])
            for rule in ruleset["rules"]
        ]
        return self._page(rules, f"/repos/{REPOSITORY}/rules/branches/main", query)

    # Environments, variables, secrets.

    def get_environment(self, _query: Any, _body: Any, name: str) -> Answer:
        environments = self.environments.get(name)
        return Answer(200, environments) if environments else missing()

    def put_environment(self, _query: Any, body: Any, name: str) -> Answer:
        rules: list[dict[str, Any]] = []
        if body.get("wait_timer"):
            rules.append({"type": "wait_timer", "wait_timer": body["wait_timer"]})
        if body.get("reviewers"):
            reviewers = [
                {"type": reviewer["type"], "reviewer": {"id": reviewer["id"]}}
                for reviewer in body["reviewers"]
            ]
            rules.append({"type": "required_reviewers", "reviewers": reviewers})
        policy = body.get("deployment_branch_policy")
        if policy:
            if policy["protected_branches"] == policy["custom_branch_policies"]:
                return invalid("the two cannot have the same value")
            rules.append({"type": "branch_policy"})
        self.environments[name] = {
            "name": name,
            "protection_rules": rules,
            "deployment_branch_policy": policy,
        }
        self.variables.setdefault(name, {})
        self.secrets.setdefault(name, set())
        return Answer(200, self.environments[name])

    def list_policies(self, _query: Any, _body: Any, name: str) -> Answer:
        if name not in self.environments:
            return missing()
        policies = self.policies.get(name, [])
        return Answer(200, {"total_count": len(policies), "branch_policies": policies})

    def create_policy(self, _query: Any, body: Any, name: str) -> Answer:
        if name not in self.environments:
            return missing()
        self.count += 1
        made = {"id": self.count, "name": body["name"], "type": "branch"}
        self.policies.setdefault(name, []).append(made)
        return Answer(200, made)

    def delete_policy(self, _query: Any, _body: Any, name: str, number: str) -> Answer:
        self.policies[name] = [
            policy for policy in self.policies[name] if policy["id"] != int(number)
        ]
        return NOTHING

    def _held(self, path: str) -> str:
        return "" if path == "/actions" else path.removeprefix("/environments/")

    def get_variable(self, _query: Any, _body: Any, path: str, name: str) -> Answer:
        value = self.variables.get(self._held(path), {}).get(name)
        return missing() if value is None else Answer(200, {"name": name, "value": value})

    def create_variable(self, _query: Any, body: Any, path: str) -> Answer:
        held = self.variables.get(self._held(path))
        if held is None:
            return missing()
        if body["name"] in held:
            return Answer(409, {"message": "Already exists"})
        held[body["name"]] = body["value"]
        return Answer(201, {})

    def patch_variable(self, _query: Any, body: Any, path: str, name: str) -> Answer:
        self.variables[self._held(path)][name] = body["value"]
        return NOTHING

    def get_public_key(self, _query: Any, _body: Any, _place: str) -> Answer:
        return Answer(200, {"key_id": "1", "key": SEALED})

    def put_secret(self, _query: Any, body: Any, path: str, name: str) -> Answer:
        if self._held(path) not in self.secrets:
            return missing()
        if set(body) != {"encrypted_value", "key_id"} or len(body["encrypted_value"]) < 100:
            return invalid("a member is missing")
        self.secrets[self._held(path)].add(name)
        self.sealed[name] = body["encrypted_value"]
        return Answer(201, {})

    def get_installation(self, _query: Any, _body: Any) -> Answer:
        return Answer(200, {"id": 3, "app_id": 7}) if self.is_installed else missing()

    def get_secret(self, _query: Any, _body: Any, path: str, name: str) -> Answer:
        known = name in self.secrets.get(self._held(path), set())
        return Answer(200, {"name": name}) if known else missing()


OBJECT = rf"({PERMISSIONS}(?:/selected-actions|/workflow|/fork-pr-contributor-approval)?)"
ENVIRONMENT = r"/environments/([\w-]+)"
POLICY = f"{ENVIRONMENT}/deployment-branch-policies"
ADMIN_READ, ADMIN_WRITE = "administration:read", "administration:write"
_S = SettingsServer
SETTINGS_ROUTES: list[tuple[str, str, str, Callable[..., Answer]]] = [
    ("", "GET", "metadata:read", _S.get_repository),
    ("", "PATCH", ADMIN_WRITE, _S.patch_repository),
    ("/installation", "GET", "app:jwt", _S.get_installation),
    ("/branches/main", "GET", "contents:read", _S.get_branch),
    ("/private-vulnerability-reporting", "GET", ADMIN_READ, _S.get_reports),
    ("/private-vulnerability-reporting", "PUT", ADMIN_WRITE, _S.put_reports),
    ("/codeowners/errors", "GET", "contents:read", _S.list_owner_errors),
    (OBJECT, "GET", ADMIN_READ, _S.get_object),
    (OBJECT, "PUT", ADMIN_WRITE, _S.put_object),
    ("/actions/runners", "GET", ADMIN_READ, _S.list_runners),
    ("/actions/workflows", "GET", "actions:read", _S.list_workflows),
    (r"/actions/workflows/(\d+)/enable", "PUT", "actions:write", _S.enable_workflow),
    ("/actions/workflows/publish.yml/runs", "GET", "actions:read", _S.list_runs),
    ("/collaborators", "GET", "metadata:read", _S.list_collaborators),
    ("/labels", "GET", "issues:read", _S.list_labels),
    ("/labels", "POST", "issues:write", _S.create_label),
    ("/rulesets", "GET", "metadata:read", _S.list_rulesets),
    ("/rulesets", "POST", ADMIN_WRITE, _S.put_ruleset),
    (r"/rulesets/(\d+)", "GET", "metadata:read", _S.get_ruleset),
    (r"/rulesets/(\d+)", "PUT", ADMIN_WRITE, _S.put_ruleset),
    ("/rules/branches/main", "GET", "metadata:read", _S.list_rules),
    (ENVIRONMENT, "GET", "actions:read", _S.get_environment),
    (ENVIRONMENT, "PUT", ADMIN_WRITE, _S.put_environment),
    (POLICY, "GET", "actions:read", _S.list_policies),
    (POLICY, "POST", ADMIN_WRITE, _S.create_policy),
    (rf"{POLICY}/(\d+)", "DELETE", ADMIN_WRITE, _S.delete_policy),
    (r"(/actions)/variables/(\w+)", "GET", "variables:read", _S.get_variable),
    (r"(/actions)/variables", "POST", "variables:write", _S.create_variable),
    (r"(/actions)/variables/(\w+)", "PATCH", "variables:write", _S.patch_variable),
    (r"(/actions)/secrets/(\w+)", "GET", "secrets:read", _S.get_secret),
    (r"(/environments/[\w-]+)/variables/(\w+)", "GET", "environments:read", _S.get_variable),
    (r"(/environments/[\w-]+)/variables", "POST", "environments:write", _S.create_variable),
    (r"(/environments/[\w-]+)/variables/(\w+)", "PATCH", "environments:write", _S.patch_variable),
    (r"(/environments/[\w-]+)/secrets/public-key", "GET", "environments:read", _S.get_public_key),
    (r"(/environments/[\w-]+)/secrets/(\w+)", "GET", "environments:read", _S.get_secret),
    (r"(/environments/[\w-]+)/secrets/(\w+)", "PUT", "environments:write", _S.put_secret),
]
