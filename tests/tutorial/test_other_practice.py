"""A practice board of another benchmark: nothing that anybody sees of it names GENEB."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from geneb_ci.render.text import REPORT_LINES_MAX
from reference_harness import mini
from reference_harness.data.define import define
from tests.harness.support import write_flat
from tools.demo_audit import COMMITTED_AT, ROUND
from tools.practice import HONEST, SPACE, Practice, geneb_ci, practice
from tools.rehearse.forge import git

NAME, CATEGORIES = "Fungi", ("Spores", "Yeasts", "Moulds")
OF_GENEB = re.compile(rb".{0,40}(?:GENEB|2606[.]04525|darlednik|\bDNA|[Gg]enom).{0,40}")
"""What the program and its commands are called is no such text: in small letters."""
PROGRAM = re.compile(
    r"(geneb_ci|reference_harness|\.git|keys)/|schemas/(.*mini|known|quick|shipped)"
)
"""What `init` lays beside a board: the program, its practice benchmark, the public rows, and the
tasks that stand for those of its own benchmark."""


def twelve_tasks(folder: Path) -> None:
    """Write tasks of another benchmark, in categories of its own."""
    for task in mini.TASKS[:12]:
        write_flat(mini.load(task.id), folder)
    path, _ = define(folder, NAME)
    document = json.loads(path.read_bytes())
    for number, task in enumerate(document["tasks"]):
        task |= {"category": CATEGORIES[number % 3], "label": f"Task {number + 1}"}
    path.write_text(json.dumps(document | {"category_order": CATEGORIES}), encoding="utf-8")


PUBLISH = ("publish", "--space", SPACE)
READ = (
    PUBLISH,
    ("triage",),
    ("check",),
    ("build", "--output", "../site"),
    ("trust",),
    ("figures",),
    ("recommend",),
    ("recommend", "../site", "--category", "Spores"),
    ("compare", "submissions/three-mers.json", "submissions/two-mers.json"),
    ("diff", "--base", "HEAD~1"),
    ("ledger",),
    ("matrices", f"submissions/{HONEST}.json"),
    ("next", "--as", "maintainer"),
    *(
        ("export", "--format", kind, "--output", f"../{kind}")
        for kind in ("csv", "croissant", "every-eval-ever")
    ),
)
DRAWN = ("--committed-at", COMMITTED_AT, "--beacon-file", "../round.json")
AUDIT = (
    ("audit", "commit", f"submissions/{HONEST}.json", "--output", "../c.json"),
    ("audit", "plan", "../c.json", *DRAWN, "--output", "../p.json"),
    ("audit", "run", "../p.json", "--key", "keys/audit.pem", "--data", "../../own"),
    ("audit", "verify"),
    ("explain", HONEST),
)


def seen(made: Practice) -> Iterator[tuple[str, bytes]]:
    """Merge, publish and audit rows; yield what commands and servers show, by a name for it."""
    environment = os.environ | made.settings

    def command_output(*words: str) -> tuple[str, bytes]:
        done = geneb_ci(made.board, environment, *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        assert done.stdout.count("\n") <= REPORT_LINES_MAX, words
        return " ".join(words), (done.stdout + done.stderr).encode()

    yield "verdicts", made.sweep().encode()
    for number in made.github.pulls:
        yield f"pull request {number}", made.answer(f"show {number}").encode()
    for number in (1, 2):
        assert f"#{number}: merged" in made.answer(f"merge {number}")
        made.sweep()
    git(made.board, "pull", "--quiet")
    for words in READ:
        yield command_output(*words)
    keys = made.board / "leaderboard/policy/keys.json"
    past = f'"valid_from": "{COMMITTED_AT}"'
    keys.write_text(re.sub(r'"valid_from": "[^"]+"', past, keys.read_text()))
    (made.folder / "round.json").write_text(json.dumps(ROUND), encoding="utf-8")
    for words in AUDIT:
        yield command_output(*words)
    git(made.board, "add", "--all", "leaderboard")
    git(made.board, "commit", "--quiet", "--message", "Audit a row")
    yield command_output(*PUBLISH)
    yield command_output("build", "--output", "../site")


def files_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a folder that are text of the board, by their path in it."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not PROGRAM.match(name):
            yield name, path.read_bytes()


@pytest.mark.nightly  # a minute: a board is made, two rows are measured, one is audited
def test_a_board_of_another_name_is_run_without_a_word_of_geneb(tmp_path: Path) -> None:
    twelve_tasks(tmp_path / "own")
    with practice(tmp_path / "practice", tmp_path / "own") as made:
        texts = dict(seen(made))
        space = made.hub.shelf.repos[f"spaces/{SPACE}"].head.tree
        texts |= {f"Space: {name}": raw for name, raw in space.items()}
    for folder in ("site", "csv", "croissant", "every-eval-ever", "board"):
        written = files_of(tmp_path / "practice" / folder)
        texts |= {f"{folder}: {name}": raw for name, raw in written}
    assert b"12 of 12 tasks will be drawn" in texts[" ".join(AUDIT[0])]
    assert b"audited" in texts[f"explain {HONEST}"]
    assert b"<title>Fungi leaderboard</title>" in texts["Space: index.html"]
    assert len(texts) > 200
    matches_by_name = {name: OF_GENEB.findall(raw) for name, raw in texts.items()}
    assert {name: words[:2] for name, words in matches_by_name.items() if words} == {}
    assert [name for name in texts if name.endswith(".png")] == []
