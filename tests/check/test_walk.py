"""The mistakes of new contributors: what each of them reads, kept in golden/walk.txt.

docs/contributor/mistakes.md names them all and shows one. `--update-golden` writes both again;
whoever changes a message looks at it there.
"""

import contextlib
import hashlib
import json
import math
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from geneb_ci.cli.main import main
from reference_harness.cli.extractors import extractors
from tests.cli.repository import commit
from tests.git import git
from tests.paths import ROOT, SUBMISSIONS
from tests.rows import recorded_row
from tests.small import CARD

PAGE = ROOT / "docs/contributor/mistakes.md"
GOLDEN = Path(__file__).parent / "golden/walk.txt"
SHOWN = "99 tasks"
"""The mistake whose report is on the page."""
LINES_MAX = 25
ROW, CARD_PATH = "submissions/mine-1.json", "submissions/cards/mine-1.md"
MODULE = "submissions/extractors/mine.py"
CODE = """\
import numpy as np

from .base import BaseEmbeddingExtractor


class Mine(BaseEmbeddingExtractor):
    def extract_embeddings(self, sequences, batch_size=1):
        return np.zeros((len(sequences), 4), dtype=np.float32)
"""
BASE, SEED = "nucleotide-transformer-v2-100m-multi-species", 35
"""A public row, and a seed with which rows made after it look like no other and like no mistake."""
Document = dict[str, Any]
Change = Callable[[Document], None]


def sound_row() -> Document:
    """Return a sound row of format 1.1 with the scores of every seed."""
    document = recorded_row("mine-1", json.loads((SUBMISSIONS / f"{BASE}.json").read_bytes()), SEED)
    document["meta"] |= {
        "display": "Mine 1",
        "params": 86_000_000,
        "url": "https://huggingface.co/lab/mine-1",
        "zero_shot": True,
    }
    run = document["run"]
    run["model"]["location"] = "lab/mine-1"
    run["harness"] |= {"version": document["harness_version"], "commit": "1" * 40}
    digest = hashlib.sha256(CODE.encode()).hexdigest()
    run["extractor"] = {"path": MODULE, "class_name": "Mine", "sha256": digest}
    return document


@pytest.fixture(scope="module")
def board(tmp_path_factory) -> Path:
    """Make a repository of the public rows, with a branch on which there is a sound row more."""
    root: Path = tmp_path_factory.mktemp("walk") / "board"
    shutil.copytree(SUBMISSIONS, root / "submissions")
    (root / "submissions/extractors").mkdir()
    (root / "schemas").mkdir()
    shutil.copy(ROOT / "schemas/benchmark.json", root / "schemas")
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root, "rows")
    git(root, "switch", "--quiet", "--create", "mine")
    write(root, sound_row())
    (root / CARD_PATH).write_text(CARD.replace("org/model", "lab/mine-1"), encoding="utf-8")
    (root / MODULE).write_text(CODE, encoding="utf-8")
    commit(root, "mine")
    return root


def write(root: Path, document: Document) -> None:
    (root / ROW).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def tables(document: Document) -> list[dict[str, Any]]:
    """Return every cell of the results, and the scores of the seeds of each."""
    results, evidence = document["results"], document["evidence"]
    cells = [cell for tasks in results.values() for cell in tasks.values()]
    return cells + [part["per_seed"] for tasks in evidence.values() for part in tasks.values()]


def each_score(new: Callable[[float], float], *metrics: str) -> Change:
    """Return a change of every score, and of those of the seeds."""

    def change(document: Document) -> None:
        for table in tables(document):
            for metric in metrics or [*table]:
                old = table[metric]
                table[metric] = [*map(new, old)] if isinstance(old, list) else new(old)

    return change


def renamed(names: dict[str, str]) -> Change:
    def change(document: Document) -> None:
        for table in tables(document):
            for old, new in names.items():
                table[new] = table.pop(old)

    return change


def nan_in_results(document: Document) -> None:
    for tasks in document["results"].values():
        for cell in tasks.values():
            cell["MCC"] = math.nan


def without_a_score(document: Document) -> None:
    del document["results"]["full"][TASK]


def without_a_task(document: Document) -> None:
    for table in (document["results"], document["evidence"]):
        for tasks in table.values():
            del tasks[TASK]


def set_id(document: Document) -> None:
    document["model_id"] = "lab/Mine 1"


def set_branch(document: Document) -> None:
    document["run"]["model"]["revision"] = "main"


TASK = "leannmlindsey_GUE_mouse_0"
CHECK = f"geneb-ci check {ROW}"


def changed(change: Change) -> Callable[[Path], None]:
    """Return what makes a change to the row."""

    def make(root: Path) -> None:
        document = json.loads((root / ROW).read_bytes())
        change(document)
        write(root, document)

    return make


def card_of_a_line(root: Path) -> None:
    (root / CARD_PATH).write_text("# Mine 1\n", encoding="utf-8")


def other_signature(root: Path) -> None:
    text = CODE.replace("sequences, batch_size=1", "dna").replace("sequences", "dna")
    (root / MODULE).write_text(text, encoding="utf-8")


def other_folders(root: Path) -> None:
    for old, new in ((ROW, "results/mine-1.json"), (CARD_PATH, "model_cards/mine-1.md")):
        (root / new).parent.mkdir()
        (root / old).rename(root / new)
    commit(root, "moved")


def logs(root: Path) -> None:
    (root / "logs").mkdir()
    log = {name: {"mean": 0.5, "std": 0.1} for name in ("mcc", "accuracy", "f1_score")}
    for number in range(300):
        (root / f"logs/results_{number:03}.json").write_text(json.dumps(log), encoding="utf-8")


class Mistake(NamedTuple):
    """What a contributor did, the command that is typed, its exit code, and what it reports."""

    title: str
    done: str
    make: Callable[[Path], None]
    reported: dict[str, int]
    """Rules, each with its number of findings."""
    code: int = 11
    command: str = CHECK


WALK = (
    Mistake("A wrong id", '`model_id` is "lab/Mine 1".', changed(set_id), {"bad-model-id": 1}),
    Mistake(
        "Percent",
        "Every score, also of each seed, is multiplied by 100.",
        changed(each_score(lambda score: 100 * score)),
        {"percent-scores": 1},
    ),
    Mistake(
        "A missing score",
        f"The scores of `{TASK}` are missing in one regime.",
        changed(without_a_score),
        {"missing-task": 1},
    ),
    Mistake(
        "99 tasks",
        f"The run left `{TASK}` out, in all regimes.",
        changed(without_a_task),
        {"missing-task": 1},
    ),
    Mistake(
        "NaN",
        "Each MCC of the results is NaN.",
        changed(nan_in_results),
        {"non-finite-number": 300},
    ),
    Mistake(
        "Two decimals",
        "Every score, also of each seed, is rounded to two decimals.",
        changed(each_score(lambda score: round(score, 2))),
        {"round-numbers": 1},
        0,
    ),
    Mistake(
        "A branch as revision",
        '`run.model.revision` is "main".',
        changed(set_branch),
        {"malformed-value": 1},
    ),
    Mistake(
        "A card without data",
        "The card has a title and nothing else.",
        card_of_a_line,
        {"incomplete-card": 1},
        0,
    ),
    Mistake(
        "An extractor with another signature",
        "The method is `extract_embeddings(self, dna)`.",
        other_signature,
        {"FAIL": 1},
        11,
        f"geneb-harness extractors check {MODULE}:Mine",
    ),
    Mistake(
        "Wrong folders",
        "The row is committed to `results/`, the card to `model_cards/`.",
        other_folders,
        {"misplaced-file": 2},
        11,
        "geneb-ci check --base main",
    ),
    Mistake(
        "Long names of metrics",
        "The metrics are `mcc`, `accuracy` and `f1_score`.",
        changed(renamed({"MCC": "mcc", "Acc": "accuracy", "F1": "f1_score"})),
        {"unknown-metric": 1},
    ),
    Mistake(
        "Logs of upstream",
        "The folder has 300 logs of upstream's pipeline, one for each task and regime.",
        logs,
        {"foreign-format": 300},
        11,
        "geneb-ci check logs",
    ),
)


class Read(NamedTuple):
    """The exit code of a command, what it printed, and the number of findings of each rule."""

    code: int
    text: str
    reported: dict[str, int]


def typed(command: str, capsys: Any) -> Read:
    """Run a command of the walk, as text of 80 columns and as JSON."""
    program, *words = command.split()
    if program == "geneb-harness":
        result = CliRunner().invoke(extractors, words[1:])
        failures = sum(line.startswith("FAIL") for line in result.output.splitlines())
        return Read(result.exit_code, result.output, {"FAIL": failures})
    with contextlib.redirect_stderr(sys.stdout):
        code = main([*words, "--format", "text", "--format", "json", "--output", "../report.json"])
    report = json.loads(Path("../report.json").read_bytes())
    text = capsys.readouterr().out.replace("wrote ../report.json\n", "")
    return Read(code, text, dict(Counter(f["rule"] for f in report["findings"])))


@pytest.fixture
def walk(board, monkeypatch, capsys) -> list[Read]:
    """Make each mistake on a clean branch, and return what its command says."""
    monkeypatch.chdir(board)
    monkeypatch.setenv("COLUMNS", "80")
    clean = git(board, "rev-parse", "HEAD")
    reads = []
    for mistake in WALK:
        mistake.make(board)
        reads.append(typed(mistake.command, capsys))
        git(board, "reset", "--quiet", "--hard", clean)
        git(board, "clean", "--quiet", "--force", "-d", ".")
    return reads


def page(reads: list[Read]) -> str:
    """Return the page: a table of all mistakes, then one with what is read."""
    table = [
        f"| {m.title} | {m.done} | {rules(read)} |" for m, read in zip(WALK, reads, strict=True)
    ]
    sections = [
        f"## {m.title}\n\n{NOTE}\n```console\n$ {m.command}\n{tidy(read.text)}```\n"
        for m, read in zip(WALK, reads, strict=True)
        if m.title == SHOWN
    ]
    return "\n".join((HEAD, *table, "", *sections))


def transcript(reads: list[Read]) -> str:
    """Return every mistake with what is read."""
    return "\n".join(
        f"{m.title}: {m.done}\n$ {m.command}\n{tidy(read.text)}"
        for m, read in zip(WALK, reads, strict=True)
    )


def rules(read: Read) -> str:
    if "FAIL" in read.reported:
        return "the property `loads`"
    return "; ".join(
        f"[`{name}`](../../RULES.md#{name})" + (f", {n} times" if n > 1 else "")
        for name, n in read.reported.items()
    )


def lines(read: Read) -> int:
    return len(read.text.splitlines())


def tidy(text: str) -> str:
    """Return a text without blanks at the ends of lines, names of commits and numbers of rules."""
    shown = re.sub(r"(?<=commit )[0-9a-f]{12}|\b\d+(?= rules\b)", "...", text)
    return "".join(f"{line.rstrip()}\n" for line in shown.splitlines())


HEAD = f"""\
# What common mistakes look like

What `geneb-ci check` finds in a sound row with one mistake. The likely cause comes first, with its
fix, and what follows from it is part of it: no report has more than {LINES_MAX} lines.

| mistake | what was done | findings |
|---|---|---|"""


NOTE = "<!-- not run: tests/check/test_walk.py runs it, on a board of its own -->"


def test_each_mistake_is_short_and_named_and_nothing_else_is(walk, update_golden):
    actual = [(read.reported, read.code) for read in walk]
    assert actual == [(mistake.reported, mistake.code) for mistake in WALK]
    assert max(map(lines, walk)) <= LINES_MAX
    for path, text in ((PAGE, page(walk)), (GOLDEN, transcript(walk))):
        if update_golden:
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")


def test_the_row_of_the_walk_is_sound(board, monkeypatch, capsys):
    monkeypatch.chdir(board)
    for command in (CHECK, "geneb-ci check --base main"):
        assert main(command.split()[1:]) == 0
        assert "nothing to fix" in capsys.readouterr().out
