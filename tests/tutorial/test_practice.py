"""The board on which maintainers practise: what they see, and what they may do."""

import os
import re
from pathlib import Path

import pytest

from tools.practice import FORGED, HONEST, SPACE, geneb_ci, practice
from tools.rehearse.forge import git

TRIAGE = {
    "merge": {1, 2},
    "ask back": {3, 4, 5, 6, 7, 8, 9},
    "audit": set(),
    "look at": {10, 11, 12},
}


def sorted_out(text: str) -> dict[str, set[int]]:
    """Return the numbers that the first lines of `triage` put under each heading."""
    head = " ".join(text.partition("\n\n")[0].split())
    parts = re.split(r"(merge|ask back|audit|look at): ", head)[1:]
    return {
        name: {int(number) for number in re.findall(r"#(\d+)", numbers)}
        for name, numbers in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.mark.nightly  # a minute: the harness measures two rows
def test_a_maintainer_sorts_merges_and_publishes(tmp_path: Path) -> None:
    with practice(tmp_path / "practice") as made:
        made.sweep()
        environment = os.environ | made.settings

        def command_output(*words: str) -> str:
            done = geneb_ci(made.board, environment, *words)
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert sorted_out(command_output("triage")) == TRIAGE
        assert "open-collision" in made.answer("show 8")
        assert "<!--" not in made.answer("show 8")
        assert "refused: a submission needs a verdict" in made.answer("bypass 3")
        assert "refused: Required status check" in made.answer("merge 3")
        assert "`bypass 12` or `close 12`" in made.answer("merge 12")
        assert "expected the number of a pull request" in made.answer("merge 13")
        assert made.answer("merge 1").startswith("#1: merged; ")
        made.sweep()  # main has moved on
        assert made.answer("merge 2").startswith("#2: merged; ")
        assert made.answer("bypass 12").startswith("#12: merged; ")
        assert made.answer("close 9") == "#9: closed"
        assert "#9" not in made.answer("list")
        git(made.board, "pull", "--quiet")
        levels = command_output("trust")
        assert all(f"{model_id}: no audit counts" in levels for model_id in (HONEST, FORGED))
        assert "--practice" in command_output("next", "--as", "maintainer")
        assert "read back and verified" in command_output("publish", "--space", SPACE)

        policy = made.board / "leaderboard/policy/policy.toml"
        policy.write_text(policy.read_text("utf-8").replace("drawn = 13", "drawn = 1"), "utf-8")
        git(made.board, "commit", "--quiet", "--all", "--message", "Draw one task in each audit")
        command_output(
            "audit", f"submissions/{HONEST}.json", "--practice", "--key", "keys/audit.pem"
        )
        git(made.board, "add", "leaderboard/audits")
        git(made.board, "commit", "--quiet", "--message", "Audit a row")
        assert f"{HONEST}: audit" in command_output("trust")
        assert "read back and verified" in command_output("publish", "--space", SPACE)
