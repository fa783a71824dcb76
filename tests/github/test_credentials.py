"""Where a credential may be that the contributor's code could read: each place is refused."""

import json
from pathlib import Path

import pytest

from geneb_ci.audit.rerun.credentials import refuse_credentials
from geneb_ci.common.errors import UsageProblem

VARIABLES = (
    *("GH_TOKEN", "GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"),
    *("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_JOBS_TOKEN", "HF_TOKEN_PATH", "AUDIT_KEY"),
    *("AUDIT_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "WANDB_API_KEY"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_SECRET", "PGPASSWORD", "SSH_AUTH_SOCK"),
)
FILES = (
    *(".netrc", ".git-credentials", ".config/git/credentials", ".config/gh/hosts.yml"),
    *(".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".docker/config.json"),
    *(".ssh/id_ed25519", ".ssh/work", ".aws/credentials", ".kube/config", ".pypirc"),
)
HARMLESS = {
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "GH_TOKEN": "",
    "KEYBOARD": "us",
}


def made(folder: Path, name: str, text: str = "x") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def refused(environment: dict[str, str]) -> str:
    with pytest.raises(UsageProblem) as refusal:
        refuse_credentials(environment)
    return str(refusal.value.message)


def test_each_variable_and_each_file_is_named(tmp_path):
    home = {"HOME": str(tmp_path)}
    for name in VARIABLES:
        assert refused(home | {name: "x"}).endswith(f" credential: {name}")
    for name in FILES:
        path = made(tmp_path, name)
        assert refused(home).endswith(f" credential: ~/{name}")
        path.unlink()
    for name in ("known_hosts", "known_hosts.old", "authorized_keys", "config", "id_rsa.pub"):
        made(tmp_path, f".ssh/{name}")
    refuse_credentials(home | HARMLESS)


def test_a_folder_that_was_moved_is_looked_at(tmp_path):
    home = {"HOME": str(tmp_path / "home")}
    for variable, name in (
        ("HF_HOME", "token"),
        ("XDG_CACHE_HOME", "huggingface/stored_tokens"),
        ("XDG_CONFIG_HOME", "git/credentials"),
    ):
        file = tmp_path / variable
        path = made(file, name)
        assert refused(home | {variable: str(file)}).endswith(f" credential: {path}")


@pytest.mark.parametrize(
    ("settings", "is_refused"),
    [
        ('{"ephemeral": true}', False),
        ('\ufeff{"Ephemeral": "True"}', False),
        ('{"agentId": 1}', True),
        (json.dumps(["ephemeral"]), True),
        ("{", True),
        (None, True),
    ],
)
def test_only_a_runner_for_one_job_may_have_its_own(tmp_path, settings: str | None, is_refused):
    environment = {"HOME": str(tmp_path), "RUNNER_TEMP": str(tmp_path / "runner/_work/_temp")}
    refuse_credentials(environment)  # nothing of a runner is there
    made(tmp_path, "runner/.credentials")
    if settings is not None:
        made(tmp_path, "runner/.runner", settings)
    if is_refused:
        assert f"the runner in {tmp_path}/runner runs more than one job" in refused(environment)
    else:
        refuse_credentials(environment)
