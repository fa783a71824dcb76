"""Check files of main; each function returns what is wrong with a setting, or None."""

import re
from collections.abc import Iterable

from geneb_ci.audit.record.keys import KeyFile
from geneb_ci.audit.sampling.design import parse_policy, require_drawable
from geneb_ci.common.benchmark import parse_benchmark
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.common.finding import first_and_more
from geneb_ci.common.shipped import shipped, shipped_files
from geneb_ci.github.api import VERDICT_STATUS
from geneb_ci.github.settings.check import rules_of_type
from geneb_ci.github.settings.client import SettingsClient
from geneb_ci.github.settings.required import Setting
from geneb_ci.render.plain import visible
from reference_harness.formats.files import blob_id

WORKFLOWS, ACTIONS, ISSUE_FORMS = ".github/workflows", ".github/actions", ".github/ISSUE_TEMPLATE"
TOOLKIT_WORKFLOWS = frozenset({"ci.yml", "docs.yml"})
"""Workflows for developing geneb-ci, which a board does not need."""
CODE_OWNERS_FILE = ".github/CODEOWNERS"
OWNER_PLACEHOLDER = "@ORG/"
"""Text in the shipped list of code owners that a board must replace."""
REPOSITORY_PLACEHOLDER = re.compile(r"\bOWNER/[\w-]+")
"""Text in shipped files that a board must replace by the name of its repository."""
FILES_WITH_PLACEHOLDERS = ("README.md", "SECURITY.md", f"{ISSUE_FORMS}/config.yml")
"""Files in which a board must replace the placeholder of its repository."""
KEYS_PATH = "leaderboard/policy/keys.json"
"""Path of the list of trusted keys in a board's repository."""
BENCHMARK_PATH, POLICY_PATH = "schemas/benchmark.json", "leaderboard/policy/policy.toml"
ESSENTIAL_FILES = (
    BENCHMARK_PATH,
    POLICY_PATH,
    "leaderboard/policy/official.json",
    "leaderboard/README.md",
)
"""Files that a board needs; if one is missing, the shipped one is used or the build fails."""
PRIVATE_KEY_SUFFIXES = (".pem", ".key")
NAMED_FILES_MAX = 5  # files that one message names
_PINNED_COMMIT = re.compile(rb"@[0-9a-f]{40} # v[0-9.]+$", re.MULTILINE)
"""Commit and version to which a workflow pins an action, at the end of a line."""


def board_workflows() -> list[str]:
    """Return the paths of the shipped workflows and actions that a board runs."""
    paths = [*shipped_files(WORKFLOWS), *shipped_files(ACTIONS)]
    return [path for path in paths if path.rpartition("/")[2] not in TOOLKIT_WORKFLOWS]


def _path_list(paths: list[str]) -> str:
    """Return paths as a list in a message, at most `NAMED_FILES_MAX` of them."""
    return first_and_more([visible(path) for path in paths], NAMED_FILES_MAX)


def workflow_files_problem(client: SettingsClient, _setting: Setting) -> str | None:
    """Return which workflows of main are missing or differ from the shipped ones, or None.

    Pinned commits of actions may differ, because Dependabot updates them.
    """
    ids_on_main = client.file_ids()
    expected = {path: shipped("repository", path).read_bytes() for path in board_workflows()}
    missing_paths = [path for path in expected if path not in ids_on_main]
    different_paths = [
        path
        for path, raw in expected.items()
        if ids_on_main.get(path, blob_id(raw)) != blob_id(raw)
        and _PINNED_COMMIT.sub(b"@", client.file_bytes(path) or b"")
        != _PINNED_COMMIT.sub(b"@", raw)
    ]
    faults = [f"missing: {_path_list(missing_paths)}"] if missing_paths else []
    faults += (
        [f"different from this version: {_path_list(different_paths)}"] if different_paths else []
    )
    return "; ".join(faults) or None


def merge_queue_problem(client: SettingsClient, _setting: Setting) -> str | None:
    """Return why a merge queue of main would wait forever for its status, or None."""
    if not rules_of_type(client, "merge_queue"):
        return None
    workflows = (client.file_bytes(path) or b"" for path in client.files_below(WORKFLOWS))
    if any(re.search(rb"^ +merge_group:", workflow, re.MULTILINE) for workflow in workflows):
        return None
    return f"main has a merge queue, but no workflow sets the status {VERDICT_STATUS} for the queue"


def _missing_files_text(client: SettingsClient, paths: Iterable[str]) -> str | None:
    """Return which of some files main lacks, or None."""
    paths_on_main = client.file_ids()
    missing_paths = [path for path in paths if path not in paths_on_main]
    return f"missing: {_path_list(missing_paths)}" if missing_paths else None


def missing_files_problem(client: SettingsClient, setting: Setting) -> str | None:
    """Return which of the required files main lacks, or None."""
    return _missing_files_text(client, setting.required["files"])


def policy_problem(client: SettingsClient, _setting: Setting) -> str | None:
    """Return which essential file of a board is missing or invalid, or None."""
    if missing_files := _missing_files_text(client, ESSENTIAL_FILES):
        return missing_files
    try:
        benchmark = parse_benchmark(client.file_bytes(BENCHMARK_PATH) or b"", BENCHMARK_PATH)
        audit_policy = parse_policy(client.file_bytes(POLICY_PATH) or b"", POLICY_PATH)
        require_drawable(audit_policy, benchmark, POLICY_PATH)
    except BadConfiguration as error:
        return visible(error.message)
    return None


def issue_forms_problem(client: SettingsClient, _setting: Setting) -> str | None:
    """Return which issue forms main lacks, or None."""
    return _missing_files_text(client, shipped_files(ISSUE_FORMS))


def owned_folders() -> list[str]:
    """Return the folders that the shipped list of code owners names."""
    owners_text = shipped("repository", CODE_OWNERS_FILE).read_text("utf-8")
    return re.findall(r"^/(\S+)/\s", owners_text, re.MULTILINE)


def code_owners_problem(client: SettingsClient, _setting: Setting) -> str | None:
    """Return which folders of maintainers have no code owner, or None."""
    raw = client.file_bytes(CODE_OWNERS_FILE)
    if raw is None:
        return f"missing: {CODE_OWNERS_FILE}"
    owners_text = raw.decode("utf-8", "replace")
    if OWNER_PLACEHOLDER in owners_text:
        return f"{CODE_OWNERS_FILE} has the placeholder {OWNER_PLACEHOLDER}..."
    owned_patterns = re.findall(r"^/?(\S+?)/?\s+@\S+", owners_text, re.MULTILINE)
    unowned_folders = [
        name for name in owned_folders() if name not in owned_patterns and "*" not in owned_patterns
    ]
    return f"no owner of: {', '.join(unowned_folders)}" if unowned_folders else None


def code_owner_errors_problem(client: SettingsClient, setting: Setting) -> str | None:
    """Return the errors that GitHub finds in the list of code owners, or None."""
    errors = (client.get(setting.read_path, setting.needs) or {}).get("errors", ())
    return "; ".join(visible(f"line {error['line']}: {error['kind']}") for error in errors) or None


def placeholders_problem(client: SettingsClient, _setting: Setting) -> str | None:
    """Return the files of main in which OWNER was not replaced by an account, or None."""
    problems = []
    for path in FILES_WITH_PLACEHOLDERS:
        raw = client.file_bytes(path)
        if raw is None:
            problems.append(f"{path} is missing")
        elif placeholder := REPOSITORY_PLACEHOLDER.search(raw.decode("utf-8", "replace")):
            problems.append(f"{path} has {placeholder[0]}")
    return "; ".join(problems) or None


def private_keys_problem(client: SettingsClient, _setting: Setting) -> str | None:
    """Return the files of main that are private keys by their names, or None."""
    paths = [path for path in client.file_ids() if path.endswith(PRIVATE_KEY_SUFFIXES)]
    return f"in the repository: {_path_list(paths)}" if paths else None


def audit_key_problem(client: SettingsClient, _setting: Setting) -> str | None:
    """Return why no key may sign audits now, or None."""
    raw = client.file_bytes(KEYS_PATH)
    if raw is None:
        return f"missing: {KEYS_PATH}"
    try:
        key_file = KeyFile.model_validate_json(raw)
    except ValueError:
        return f"{KEYS_PATH} cannot be read"
    usable_keys = [
        key for key in key_file.keys if key.valid_until is None and key.revoked_at is None
    ]
    return None if usable_keys else f"{KEYS_PATH} has no key that may sign audits now"
