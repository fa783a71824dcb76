"""The token: where it comes from, what becomes of it when that fails, and that nothing shows it."""

import os
import shutil
import time

import pytest

from tests.publish.command import environment, within
from tests.publish.conftest import NAME, RESOURCE, made
from tests.publish.hub import WRITER, Fault
from tests.publish.settled import assert_settled

RECORDER = """\
#!/bin/sh
printf '%s\\n' "$0 $*" >> "$RECORD"
exec {git} "$@"
"""


@pytest.fixture
def runner(hub):
    """Return what GitHub Actions tells a job that may ask for an identity."""
    return {
        "GITHUB_ACTIONS": "true",
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"{hub.endpoint}/identity",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner",
        "HF_OIDC_RESOURCE": RESOURCE,
    }


@pytest.fixture
def trusted(hub):
    hub.shelf.trusted = {f"identity for {hub.endpoint}": RESOURCE}


def everything(folder, repo) -> bytes:
    """Gather all that a run may have left: files of a home, and commits with their messages."""
    left = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    for commit in repo.commits:
        left += [*commit.tree.values(), commit.title.encode(), commit.message.encode()]
    return b"\n".join(left)


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("way", ["stored", "exchanged"])
def test_a_token_leaves_no_trace(hub, repo, clone, tmp_path, runner, way):
    """Not in outputs, files, commits, nor in the arguments of any program that is started."""
    home, programs = tmp_path / "home", tmp_path / "programs"
    programs.mkdir()
    git = programs / "git"
    git.write_text(RECORDER.format(git=shutil.which("git")))
    git.chmod(0o755)
    record = home / "record"
    home.mkdir()
    arguments = {"HF_TOKEN": WRITER} if way == "stored" else runner
    env = environment(
        hub, home, PATH=f"{programs}{os.pathsep}{os.environ['PATH']}", RECORD=str(record)
    )
    message = ""
    for words in (["--dry-run"], [], ["--verify"], ["--expect", "0" * 64]):
        name = ["--space", NAME] if way == "stored" else []
        _, output, errors = within("publish", *name, *words, cwd=clone.root, env=env | arguments)
        message += output + errors
    assert_settled(repo, made(clone))
    assert "published generation" in message
    assert "rev-parse" in record.read_text()
    secrets = (WRITER, "runner", f"identity for {hub.endpoint}")
    for secret in secrets:
        assert secret not in message
    assert WRITER.encode() not in everything(home, repo)


@pytest.mark.usefixtures("trusted")
def test_an_exchange_that_fails_for_a_moment_is_tried_again(
    hub, repo, clone, tmp_path, runner, monkeypatch
):
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    hub.faults = [Fault("exchange", 503)]
    env = environment(hub, tmp_path, **runner)
    code, output, errors = within("publish", cwd=clone.root, env=env)
    assert (code, errors) == (0, "try 1 of 6 failed: the Hub failed (503); next try in 2 s\n")
    assert "read back and verified" in output
    assert waits == [2]
    assert hub.calls[:4] == ["identity", "exchange", "identity", "exchange"]
    assert_settled(repo, made(clone))


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("hf_\xfc", "HF_TOKEN contains invalid characters"),
        (" \n", f"no token to publish {RESOURCE} was found"),
    ],
)
def test_what_is_no_token_is_not_sent(hub, repo, clone, tmp_path, token, message):
    env = environment(hub, tmp_path, HF_TOKEN=token)
    code, output, errors = within("publish", "--space", NAME, cwd=clone.root, env=env)
    assert (code, output) == (1, "")
    assert errors.startswith(f"geneb-ci: {message}\n  fix: ")
    assert "xfc" not in errors
    assert hub.calls == []
    assert len(repo.commits) == 1


@pytest.mark.parametrize("words", [["--dry-run"], ["--verify"]])
def test_a_job_that_reads_names_the_space_and_shows_no_identity(hub, repo, clone, tmp_path, words):
    """As the health check does: the Space by HF_OIDC_RESOURCE, and no `id-token: write`."""
    settings = {"GITHUB_ACTIONS": "true", "HF_OIDC_RESOURCE": RESOURCE}
    env = environment(hub, tmp_path, **settings)
    code, output, errors = within("publish", *words, cwd=clone.root, env=env)
    assert (code, errors) == (11 if words == ["--verify"] else 0, "")
    assert output.startswith(RESOURCE)
    assert set(hub.calls) == {"info"}
    assert len(repo.commits) == 1
