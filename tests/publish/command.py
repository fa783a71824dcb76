"""The command line in a process of its own, which knows the Hub by HF_ENDPOINT alone."""

import os
from pathlib import Path

from tests import forked
from tests.paths import ROOT
from tests.publish.hub import Hub

SECRETS = ("HF_", "HUGGING_FACE_", "GITHUB_", "ACTIONS_")


def environment(hub: Hub, home: Path, **more: str) -> dict[str, str]:
    """Return an environment without anybody's token."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(SECRETS)}
    paths = {"PYTHONPATH": str(ROOT), "HF_HOME": str(home), "HF_ENDPOINT": hub.endpoint}
    return clean | paths | more


def start(*arguments: str, cwd: Path, env: dict[str, str]) -> forked.Started:
    return forked.start("geneb_ci", *arguments, cwd=cwd, env=env)


def geneb_ci(*arguments: str, cwd: Path, env: dict[str, str]) -> tuple[int, str, str]:
    """Run a command and return its exit code, output and errors."""
    done = forked.run("geneb_ci", *arguments, cwd=cwd, env=env)
    return done.returncode, done.stdout, done.stderr
