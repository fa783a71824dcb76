"""From a run to the built board, typing only what each command says is next."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from geneb_ci.audit.workflow import NEXT_COMMAND
from tests.git import git
from tests.sandbox.conftest import sandbox_of

CARD = """\
# Words of two letters

- **Architecture:** counts of words
- **Weights:** none
- **Input:** DNA letters
- **Pooling:** mean
- **Layer:** none
- **Training data:** none
- **Zero-shot:** no
- **Known overlap:** none
"""
ROW = "submissions/words.json"
BEGIN = {
    "tasks": f"geneb-ci audit {ROW} --key keys/audit.pem",
    "embeddings": f"geneb-ci audit {ROW} --sample embeddings --receipt ../receipt "
    "--key keys/audit.pem",
}
STEPS_MAX = 12


@pytest.fixture(scope="module")
def new_board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a board that `geneb-ci init` made, which draws one task, and a row beside its own."""
    for _ in sandbox_of(2, tmp_path_factory.mktemp("trial") / "sandbox"):
        pass  # fails or skips where there is none
    root = tmp_path_factory.mktemp("practice") / "board"
    root.mkdir()
    typed(root, "geneb-ci init . --repo org/board --maintainers @org/maintainers")
    policy = root / "leaderboard/policy/policy.toml"
    text = policy.read_text(encoding="utf-8")
    policy.write_text(re.sub(r"(drawn) = 13\b", r"\1 = 1", text), encoding="utf-8")
    git(root, "commit", "--quiet", "--all", "--message", "Draw one task in each audit")
    return root


@pytest.fixture
def board(new_board: Path, tmp_path: Path) -> Path:
    """Return a copy of the board: what another test leaves there would change the next step."""
    return Path(shutil.copytree(new_board, tmp_path / "board", symlinks=True))


def typed(folder: Path, command: str, code: int = 0) -> str:
    """Type a command in a shell; return what it printed, each command on one line."""
    editor = folder.with_name("editor")
    editor.write_text(f"#!/bin/sh\ncat > \"$1\" <<'END'\n{CARD}END\n", encoding="utf-8")
    editor.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env=os.environ
        | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "EDITOR": str(editor),
            "XDG_CACHE_HOME": str(folder.with_name("cache")),
            "TMPDIR": str(folder.parent),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == code, f"{command}\n{done.stdout}"
    return re.sub(r" \\\n\s+", " ", done.stdout)


def path_from(folder: Path, command: str) -> Iterator[str]:
    """Yield a command and each next one, up to the one that serves the page, which is not typed."""
    for _ in range(STEPS_MAX):
        yield command
        if "geneb-ci serve" in command:
            return
        (following,) = re.findall(r"^next: (.*)$", typed(folder, command), re.MULTILINE)
        assert following != command, command
        command = following
    pytest.fail(f"{STEPS_MAX} commands, and no board: the next would be {command}")


@pytest.mark.nightly  # minutes: the harness measures two rows, and three audits rerun them
def test_from_a_run_to_the_page_by_the_next_lines_alone(board: Path) -> None:
    run = (
        f"geneb-ci run --option k=2 --receipt ../receipt --output ../record.json "
        f"--submission {ROW} --model-id words --submitted-by me"
    )
    by_tasks = list(path_from(board, run))
    assert by_tasks[1] == f"geneb-ci check {ROW}"
    assert by_tasks[-1] == "geneb-ci trust && geneb-ci serve"
    audits = [command for command in by_tasks if command.startswith("geneb-ci audit")]
    assert len(audits) == 2, by_tasks
    assert all("--practice" in command for command in audits)
    # Nobody typed --sample embeddings for him: with it, one command leads to the same.
    by_receipt = list(path_from(board, BEGIN["embeddings"]))
    folder = "leaderboard/audits/words"
    assert by_receipt[1:] == [
        f"{BEGIN['embeddings']} --practice",
        f"git add {folder} && git commit -m 'Audit words' {folder} && {NEXT_COMMAND}",
        "geneb-ci trust && geneb-ci serve",
    ]
    levels = typed(board, "geneb-ci trust")
    assert "audited  contributed  words: audit " in levels, levels
    assert "by a practice draw, which anybody could foresee" in " ".join(levels.split())
    assert "built" in typed(board, "geneb-ci build --output ../built")


@pytest.mark.nightly  # minutes, as above
@pytest.mark.parametrize("sample", ["tasks", "embeddings"])
def test_what_stops_an_audit_is_what_it_prints(board: Path, sample: str) -> None:
    """The same command again, killed, without its key, elsewhere, finished, with a fresh set."""
    typed(board, f"geneb-ci run --option k=1 --receipt ../receipt --output ../{sample}.json "
                 f"--submission submissions/{sample}.json --model-id {sample} --quiet")  # fmt: skip
    audit = BEGIN[sample].replace("words", sample)
    assert f"\nnext: {audit} --practice\n" in typed(board, audit)
    again = typed(board, audit)
    assert "nothing was drawn: --committed-at is missing, the time at which" in again
    assert again.endswith(f"next: {NEXT_COMMAND}\n")
    without = typed(board, audit.replace(" --key keys/audit.pem", ""), code=2)
    assert "fix: pass --key keys/audit.pem, or set " in without
    elsewhere = audit.replace(" keys/", " board/keys/").replace(
        " submissions/", " board/submissions/"
    )
    elsewhere = elsewhere.replace("../", "")
    assert "in a checkout of the board: cd board" in typed(board.parent, elsewhere, code=3)

    started = f"ls leaderboard/audits/{sample}/*.started.json >/dev/null 2>&1"
    until_started = f"until {started}; do sleep 0.05; done; kill -KILL $!; wait $!; test $? = 137"
    typed(board, f"{audit} --practice & {until_started}")
    typed(board, "git add leaderboard/audits && git commit -m 'Begin' leaderboard/audits")
    commands = typed(board, NEXT_COMMAND)
    assert commands.endswith(f"\nnext: {audit} --practice\n"), commands
    done = typed(board, f"{audit} --practice")
    assert done.count("\nnext: ") == 1
    assert "signed by an earlier call" not in done
    assert "signed by an earlier call" in typed(board, audit)

    if not board.with_name("fresh.csv").exists():
        typed(board, "geneb-harness fresh --seed 3 --output ../fresh.csv")
        typed(board, "geneb-ci audit fresh commit ../fresh.csv --output ../fresh.json")
    fresh = "--fresh ../fresh.csv --fresh-commitment ../fresh.json"
    refused = typed(board, f"{audit} {fresh}", code=11)
    assert "is finished; its fresh set is not the one that ../fresh.json commits to" in refused
    (rerun,) = re.findall(r"rerun the same draw with --\S+: (.*)$", refused, re.MULTILINE)
    assert "fresh set: " in typed(board, rerun)

    row = board / f"submissions/{sample}.json"
    row.write_bytes(row.read_bytes() + b"\n")
    changed = typed(board, f"{audit} --committed-at 2026-11-20T08:30:00Z", code=11)
    assert "with another submission" in changed
