"""Check files of main; each function returns what is wrong with a setting, or None."""

import re
from collections.abc import Iterable

from geneb_ci.audit.record.keys import KeyFile
from geneb_ci.audit.sampling.design import parse_policy, require_drawable
from geneb_ci.common.benchmark import parse_benchmark
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.shipped import shipped, shipped_files
from geneb_ci.github.api import STATUS_CONTEXT
from geneb_ci.github.settings.check import rules
from geneb_ci.github.settings.client import SettingsClient
from geneb_ci.github.settings.required import Setting
from geneb_ci.render.plain import visible
from reference_harness.formats.files import blob_id

WORKFLOWS, ACTIONS, FORMS = ".github/workflows", ".github/actions", ".github/ISSUE_TEMPLATE"
OWN_WORKFLOWS = frozenset({"ci.yml", "docs.yml"})
"""Workflows for developing geneb-ci, which a board does not need."""
OWNERS = ".github/CODEOWNERS"
OWNER_PLACEHOLDER = "@ORG/"
PLACEHOLDER = re.compile(r"\bOWNER/[\w-]+")
FILES_WITH_PLACEHOLDERS = ("README.md", "SECURITY.md", f"{FORMS}/config.yml")
KEYS = "leaderboard/policy/keys.json"
BENCHMARK, POLICY = "schemas/benchmark.json", "leaderboard/policy/policy.toml"
ESSENTIAL_FILES = (BENCHMARK, POLICY, "leaderboard/policy/official.json", "leaderboard/README.md")
"""Files that a board needs; if one is missing, the shipped one is used or the build fails."""
KEY_SUFFIXES = (".pem", ".key")
SHOWN_MAX = 5  # names of files in one message
_PIN = re.compile(rb"@[0-9a-f]{40} # v[0-9.]+$", re.MULTILINE)
"""Commit of an action, with its version."""


def board_workflows() -> list[str]:
    """Return the paths of the shipped workflows and actions that a board runs."""
    paths = [*shipped_files(WORKFLOWS), *shipped_files(ACTIONS)]
    return [path for path in paths if path.rpartition("/")[2] not in OWN_WORKFLOWS]


def _path_list(paths: list[str]) -> str:
    more_text = f" and {len(paths) - SHOWN_MAX} more" if len(paths) > SHOWN_MAX else ""
    return ", ".join(visible(path) for path in paths[:SHOWN_MAX]) + more_text


def workflows(client: SettingsClient, _setting: Setting) -> str | None:
    """Compare the workflows of main with the shipped ones, except the pinned commits of actions.

    Dependabot updates these commits.
    """
    blobs = client.blobs()
    expected = {path: shipped("repository", path).read_bytes() for path in board_workflows()}
    missing_paths = [path for path in expected if path not in blobs]
    different_paths = [
        path
        for path, raw in expected.items()
        if blobs.get(path, blob_id(raw)) != blob_id(raw)
        and _PIN.sub(b"@", client.content(path) or b"") != _PIN.sub(b"@", raw)
    ]
    faults = [f"missing: {_path_list(missing_paths)}"] if missing_paths else []
    faults += (
        [f"different from this version: {_path_list(different_paths)}"] if different_paths else []
    )
    return "; ".join(faults) or None


def merge_queue(client: SettingsClient, _setting: Setting) -> str | None:
    """Return why a merge queue of main would wait forever for its status, or None."""
    if not rules(client, "merge_queue"):
        return None
    workflows = (client.content(path) or b"" for path in client.files_below(WORKFLOWS))
    if any(re.search(rb"^ +merge_group:", workflow, re.MULTILINE) for workflow in workflows):
        return None
    return f"main has a merge queue, but no workflow sets the status {STATUS_CONTEXT} for the queue"


def _missing_text(client: SettingsClient, paths: Iterable[str]) -> str | None:
    paths_on_main = client.blobs()
    missing_paths = [path for path in paths if path not in paths_on_main]
    return f"missing: {_path_list(missing_paths)}" if missing_paths else None


def files_present(client: SettingsClient, setting: Setting) -> str | None:
    """Check that main has these files."""
    return _missing_text(client, setting.required["files"])


def policy(client: SettingsClient, _setting: Setting) -> str | None:
    """Return which essential file of a board is missing or invalid, or None."""
    if missing_files := _missing_text(client, ESSENTIAL_FILES):
        return missing_files
    try:
        benchmark = parse_benchmark(client.content(BENCHMARK) or b"", BENCHMARK)
        audit_policy = parse_policy(client.content(POLICY) or b"", POLICY)
        require_drawable(audit_policy, benchmark, POLICY)
    except BadConfiguration as error:
        return visible(error.message)
    return None


def forms(client: SettingsClient, _setting: Setting) -> str | None:
    """Check that main has every issue form."""
    return _missing_text(client, shipped_files(FORMS))


def owned_folders() -> list[str]:
    """Return the folders that the shipped list of code owners names."""
    owners_text = shipped("repository", OWNERS).read_text("utf-8")
    return re.findall(r"^/(\S+)/\s", owners_text, re.MULTILINE)


def code_owners(client: SettingsClient, _setting: Setting) -> str | None:
    """Check that every folder of maintainers has a code owner."""
    raw = client.content(OWNERS)
    if raw is None:
        return f"missing: {OWNERS}"
    owners_text = raw.decode("utf-8", "replace")
    if OWNER_PLACEHOLDER in owners_text:
        return f"{OWNERS} has the placeholder {OWNER_PLACEHOLDER}..."
    owned_patterns = re.findall(r"^/?(\S+?)/?\s+@\S+", owners_text, re.MULTILINE)
    unowned_folders = [
        name for name in owned_folders() if name not in owned_patterns and "*" not in owned_patterns
    ]
    return f"no owner of: {', '.join(unowned_folders)}" if unowned_folders else None


def code_owner_errors(client: SettingsClient, setting: Setting) -> str | None:
    """Return the errors that GitHub finds in the list of code owners."""
    errors = (client.get(setting.read_path, setting.needs) or {}).get("errors", ())
    return "; ".join(visible(f"line {error['line']}: {error['kind']}") for error in errors) or None


def placeholders(client: SettingsClient, _setting: Setting) -> str | None:
    """List the files of main in which OWNER was not replaced by an account."""
    problems = []
    for path in FILES_WITH_PLACEHOLDERS:
        raw = client.content(path)
        if raw is None:
            problems.append(f"{path} is missing")
        elif placeholder := PLACEHOLDER.search(raw.decode("utf-8", "replace")):
            problems.append(f"{path} has {placeholder[0]}")
    return "; ".join(problems) or None


def private_keys(client: SettingsClient, _setting: Setting) -> str | None:
    """List files of main with names of private keys."""
    paths = [path for path in client.blobs() if path.endswith(KEY_SUFFIXES)]
    return f"in the repository: {_path_list(paths)}" if paths else None


def audit_key(client: SettingsClient, _setting: Setting) -> str | None:
    """Check that a key may sign audits now."""
    raw = client.content(KEYS)
    if raw is None:
        return f"missing: {KEYS}"
    try:
        key_file = KeyFile.model_validate_json(raw)
    except ValueError:
        return f"{KEYS} cannot be read"
    usable_keys = [
        key for key in key_file.keys if key.valid_until is None and key.revoked_at is None
    ]
    return None if usable_keys else f"{KEYS} has no key that may sign audits now"
