"""The command line, which knows the Hub by HF_ENDPOINT alone."""

import contextlib
import importlib
import io
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from geneb_ci.cli.main import main
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
    """Run a command in a process of its own; return its exit code, output and errors."""
    done = forked.run("geneb_ci", *arguments, cwd=cwd, env=env)
    return done.returncode, done.stdout, done.stderr


def within(*arguments: str, cwd: Path, env: dict[str, str]) -> tuple[int, str, str]:
    """Do the same in this process, a third of the time.

    Not for what goes to the Hub's storage, whose client reads its settings once.
    """
    before, out, err = dict(os.environ), io.StringIO(), io.StringIO()
    try:
        enter(env)
        with contextlib.chdir(cwd), redirect_stdout(out), redirect_stderr(err):
            code = main(arguments)
    finally:
        enter(before)
    return int(code), out.getvalue(), err.getvalue()


def enter(environment: dict[str, str]) -> None:
    """Replace the environment, which the Hub's client reads when it is imported."""
    os.environ.clear()
    os.environ.update(environment)
    importlib.reload(importlib.import_module("huggingface_hub.constants"))
    # It keeps a token that it exchanged for as long as the process lives.
    vars(importlib.import_module("huggingface_hub.utils._auth"))["_OIDC_TOKEN_CACHE"] = None
