"""Refuses a rerun on a machine with credentials that a contributor's code could read."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from geneb_ci.common.errors import UsageProblem

KEY_TEXT_ENV = "AUDIT_KEY"
"""Environment variable with the text of the key that signs audits."""
_CREDENTIAL_VARIABLES = re.compile(
    "(?<!IMPLICIT_)(TOKENS?|SECRETS?|PASSWORD|PASSWD|CREDENTIALS?)(_|$)|SSH_AUTH_SOCK"
    f"|(PRIVATE|ACCESS|API)_?KEY(_|$)|{KEY_TEXT_ENV}$",
    re.IGNORECASE,
)
"""Names of environment variables that contain a credential, or the path of a file with one. Names
that end with IMPLICIT_TOKEN are switches of the Hugging Face Hub."""
_CREDENTIAL_FILES_BY_VARIABLE = {
    "HOME": (
        *(".netrc", ".git-credentials", ".docker/config.json", ".kube/config", ".pypirc"),
        *(".aws/credentials", ".aws/sso/cache", ".azure/msal_token_cache.json"),
    ),
    "XDG_CONFIG_HOME": (
        *("git/credentials", "gh/hosts.yml", "gcloud/credentials.db"),
        "gcloud/application_default_credentials.json",
    ),
    "HF_HOME": ("token", "stored_tokens"),
}
"""Paths of files with credentials, relative to the folder that an environment variable names."""
_PUBLIC_SSH_FILES = re.compile(
    r"known_hosts.*|authorized_keys.*|config(\.d)?|rc|environment|.*\.pub"
)
"""Names of files in ~/.ssh that contain no private key."""


def refuse_credentials(environment: Mapping[str, str] = os.environ) -> None:
    """Raise UsageProblem if the environment, or a file below its folders, has a credential.

    The credentials of a GitHub Actions runner are accepted if it runs a single job, since they are
    worthless afterwards.
    """
    credentials = [*credential_variables(environment), *_credential_files(environment)]
    if credentials:
        raise UsageProblem(
            f"the contributor's code could read a credential: {', '.join(credentials)}",
            "run the audit as a user without tokens, on a machine that is used for nothing else",
        )
    if runner := _runner_with_lasting_credentials(environment):
        raise UsageProblem(
            f"the runner in {runner} runs more than one job, so that the contributor's code could "
            "read the credentials of the runner",
            "register the runner again: config.sh --ephemeral --labels geneb-audit",
        )


def credential_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the names of set environment variables that look like credentials."""
    return sorted(
        name for name, value in environment.items() if value and _CREDENTIAL_VARIABLES.search(name)
    )


def _credential_files(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths of files with credentials that this user can read."""
    home = Path(environment.get("HOME") or "/")
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    default_folders = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / ".config",
        "HF_HOME": cache / "huggingface",
    }
    folders = {
        name: Path(environment.get(name) or default_folders[name]) for name in default_folders
    }
    paths = [
        folders[name] / file
        for name, files in _CREDENTIAL_FILES_BY_VARIABLE.items()
        for file in files
    ]
    paths += sorted((home / ".ssh").glob("*"))
    for path in paths:
        is_public = path.parent.name == ".ssh" and _PUBLIC_SSH_FILES.fullmatch(path.name)
        if os.access(path, os.R_OK) and not is_public:
            yield f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _runner_with_lasting_credentials(environment: Mapping[str, str]) -> Path | None:
    """Return the folder of the GitHub Actions runner if its credentials outlive this job."""
    temporary_folder = environment.get("RUNNER_TEMP")
    for folder in Path(temporary_folder).parents if temporary_folder else ():
        if os.access(folder / ".credentials", os.R_OK):
            try:  # JSON, with names in either letter case
                settings = json.loads((folder / ".runner").read_text(encoding="utf-8-sig"))
                value_by_name = {
                    name.casefold(): str(value).casefold() for name, value in settings.items()
                }
            except (OSError, ValueError, AttributeError):
                return folder
            return None if value_by_name.get("ephemeral") == "true" else folder
    return None
