"""Situations of contributors, each in a repository, with the line that `geneb-ci next` ends with.

Where the line can be carried out here, it is, and leads to another situation.
"""

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from geneb_ci.common.errors import UsageProblem
from geneb_ci.situation.contributor import CONTRIBUTOR_SITUATIONS, BranchState, DeclaredReceipt
from geneb_ci.situation.table import Role, step_of
from tests.cli.repository import commit, put, small_repository
from tests.git import git
from tests.github.conftest import IMPATIENT
from tests.github.server import GitHubServer
from tests.github.world import DirectConnection
from tests.paths import SUBMISSIONS
from tests.rules.fixtures.provenance import receipt as receipt_row
from tests.situation.steps import carry_out, step
from tests.small import BENCHMARK, CARD, small, small_v11, small_v12

ROW, CARD_PATH = "submissions/gamma.json", "submissions/cards/gamma.md"
MODULE = "submissions/extractors/gamma.py"
SOUND = """class Gamma:
    def extract_embeddings(self, sequences, batch_size=1):
        raise SystemExit("this must never run")


open("it-was-run", "w").close()
"""
ONE_ARGUMENT = SOUND.replace(", batch_size=1", "")
ADD = f"git add --all -- {CARD_PATH} {MODULE} {ROW} && git commit -m 'Add gamma'"
ALPHA = "submissions/alpha.json"
MOUSE = {"training_data": "the genomes of man and mouse"}
ADDRESS = "https://github.com/org/board.git"
TEMPLATE = CARD.replace("org/model", "OWNER/MODEL")


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a clone of a board of two rows, and the board itself beside it."""
    folder = tmp_path_factory.mktemp("boards")
    board = small_repository(folder / "board", "alpha", "beta")
    git(folder, "clone", "--quiet", "--bare", str(board), "org/board.git")
    git(folder, "clone", "--quiet", "org/board.git", "clone")
    clone = folder / "clone"
    git(clone, "remote", "set-url", "origin", ADDRESS)
    git(clone, "config", "url.../org/board.git.insteadOf", ADDRESS)  # from the root of each copy
    return folder


@pytest.fixture
def clone(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the clone, as the current folder."""
    shutil.copytree(template, tmp_path / "at", symlinks=True)
    root = tmp_path / "at/clone"
    monkeypatch.chdir(root)
    for name in ("GENEB_AUDIT_KEY_FILE", "GH_TOKEN", "GITHUB_TOKEN", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    return root


def document(code: str = SOUND, version: str = "1.1") -> dict[str, Any]:
    """Return a row whose run names the module."""
    row_document = {"1.0": small, "1.1": small_v11, "1.2": small_v12}[version]("gamma")
    if version != "1.0":
        digest = hashlib.sha256(code.encode()).hexdigest()
        row_document["run"]["extractor"] = {"path": MODULE, "class_name": "Gamma", "sha256": digest}
    return row_document


def submission(
    root: Path, row: dict[str, Any] | None = None, *, code: str = SOUND, card: str = CARD
) -> None:
    """Write row, card and extractor."""
    put(root, "gamma", row or document(code))
    (root / CARD_PATH).write_text(card, encoding="utf-8")
    (root / "submissions/extractors").mkdir(exist_ok=True)
    (root / MODULE).write_text(code, encoding="utf-8")


def branch(root: Path, name: str = "add-gamma") -> None:
    git(root, "switch", "--quiet", "--create", name)


def pending(root: Path, **changes: Any) -> None:
    """Write a submission on a branch of its own."""
    branch(root)
    submission(root, **changes)


def committed(root: Path, **changes: Any) -> None:
    pending(root, **changes)
    commit(root, "Add gamma")


def pushed(root: Path) -> None:
    committed(root)
    git(root, "push", "--quiet", "--set-upstream", "origin", "add-gamma")


def percent(root: Path) -> None:
    row = document()
    row["results"]["full"][BENCHMARK.task_ids[0]]["Acc"] = 87.5
    pending(root, row=row)


def rounded(root: Path) -> None:
    """Round a mean of seeds that are not rounded: it can be repaired in one way only."""
    row = document(version="1.2")
    cell = row["results"]["10shot"][BENCHMARK.task_ids[0]]
    cell["MCC"] = round(cell["MCC"], 4)
    pending(root, row=row)


def no_card(root: Path) -> None:
    pending(root)
    (root / CARD_PATH).unlink()


def no_module(root: Path) -> None:
    pending(root)
    (root / MODULE).unlink()


def wrong_signature(root: Path) -> None:
    """Write another module than the one that ran, which the harness cannot call."""
    pending(root)
    (root / MODULE).write_text(ONE_ARGUMENT, encoding="utf-8")


def of_another_name(root: Path) -> None:
    row = document()
    row["run"]["extractor"]["class_name"] = "Delta"
    pending(root, row=row)


def no_row(root: Path) -> None:
    """Leave what `geneb-ci new --module` writes, and the card a template."""
    pending(root, card=TEMPLATE.replace("86M", "86,000,000"))
    (root / ROW).unlink()


def results(root: Path) -> None:
    """Leave results of MTEB, of one task."""
    branch(root)
    folder = root / "results/org__gamma/0123"
    folder.mkdir(parents=True)
    meta = {"name": "org/gamma", "n_parameters": 5, "reference": "https://example.org/gamma"}
    (folder / "model_meta.json").write_text(json.dumps(meta), encoding="utf-8")
    task = BENCHMARK.task_ids[0]
    cell = small("x")["results"]["full"][task]
    scores = {"mcc": cell["MCC"], "accuracy": cell["Acc"], "f1": cell["F1"]}
    runs = [dict(scores) for _ in BENCHMARK.protocol.seeds]
    split = {"scores_per_experiment": runs, **scores, "hf_subset": "default", "languages": []}
    result = {
        "dataset_revision": BENCHMARK.dataset.revision,
        "task_name": task,
        "mteb_version": "2.10.0",
        "scores": {"test": [split]},
    }
    (folder / f"{task}.json").write_text(json.dumps(result), encoding="utf-8")


def moved(root: Path) -> None:
    pending(root)
    (root / ROW).rename(root / "gamma.json")


def moved_and_committed(root: Path) -> None:
    pending(root)
    (root / "model_cards").mkdir()
    (root / CARD_PATH).rename(root / "model_cards/gamma.md")
    commit(root, "Add gamma")


def two(root: Path) -> None:
    pending(root)
    put(root, "delta")


def two_committed(root: Path) -> None:
    two(root)
    commit(root, "Add two")


def on_main(root: Path) -> None:
    submission(root)


def receipt(root: Path, *, is_published: bool) -> None:
    """Declare a receipt; its benchmark knows the size of each task."""
    files = receipt_row()
    (root / "schemas/benchmark.json").write_bytes(files["schemas/benchmark.json"])
    commit(root, "Say how large each task is")
    git(root, "push", "--quiet", "origin", "main")
    row = json.loads(files["submissions/model.json"])
    row |= {"model_id": "gamma", "meta": small("gamma")["meta"]}
    row["run"]["extractor"] = document()["run"]["extractor"]
    where = {"kind": "huggingface-dataset", "address": "me/rows", "revision": "3" * 40}
    row["receipt"]["location"] = where if is_published else None
    pending(root, row=row)
    (root / "rows").mkdir()
    (root / f"rows/{BENCHMARK.task_ids[0]}.f16").write_bytes(b"0")


def warned(root: Path) -> None:
    """Declare a gap, which is a warning."""
    row = document("", "1.0")
    row["meta"]["submitted_by"] = ""
    pending(root, row=row)


def overtaken(root: Path) -> None:
    """Change a row and its card; meanwhile the board changes the same row."""
    branch(root)
    row = small("alpha")
    row["meta"]["training_data"] = "the human genome, and that of the mouse"
    put(root, "alpha", row)
    (root / "submissions/cards/alpha.md").write_text(f"{CARD}\n## Correction\n\nMouse.\n")
    commit(root, "Correct alpha")
    git(root, "switch", "--quiet", "--detach", "origin/main")
    row["meta"]["training_data"] = "nine genomes"
    put(root, "alpha", row)
    commit(root, "Correct alpha first")
    git(root, "push", "--quiet", "origin", "HEAD:main")
    git(root, "switch", "--quiet", "add-gamma")


def conflicting(root: Path) -> None:
    overtaken(root)
    with pytest.raises(Exception, match="merge"):
        git(root, "merge", "origin/main")


def without_extractor(root: Path) -> None:
    committed(root, row=small("gamma"))
    (root / MODULE).unlink()
    commit(root, "Take the extractor out")


def no_remote(root: Path) -> None:
    git(root, "branch", "--quiet", "--unset-upstream", "main")
    committed(root)
    git(root, "remote", "remove", "origin")


def no_remote_on_main(root: Path) -> None:
    git(root, "remote", "remove", "origin")


def no_remote_of_a_named_board(root: Path) -> None:
    no_remote(root)
    (root / ".github").mkdir()
    (root / ".github/geneb-ci.toml").write_text('repository = "org/fungi"\n', encoding="utf-8")


def again(root: Path) -> None:
    pushed(root)
    (root / CARD_PATH).write_text(f"{CARD}\nMore.\n", encoding="utf-8")
    commit(root, "Say more")


def stray(root: Path) -> None:
    pushed(root)
    (root / "submissions/notes.txt").write_text("mine", encoding="utf-8")


def outside(root: Path) -> None:
    shutil.rmtree(root / "schemas")
    shutil.rmtree(root / "submissions")


def outside_with_a_row(root: Path) -> None:
    outside(root)
    (root / "row.json").write_text(json.dumps(small("gamma")), encoding="utf-8")


def no_git(root: Path) -> None:
    shutil.rmtree(root / ".git")


def untouched(_: Path) -> None:
    """Leave the clone as it is."""


def ignored(root: Path) -> None:
    pending(root)
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/exclude").write_text("gamma.json\n", encoding="utf-8")


def detached(root: Path) -> None:
    git(root, "switch", "--quiet", "--detach")
    submission(root)


def no_main(root: Path) -> None:
    git(root, "branch", "--quiet", "--move", "main", "work")
    git(root, "remote", "remove", "origin")


def no_main_fetched(root: Path) -> None:
    git(root, "branch", "--quiet", "--move", "main", "work")
    for ref in git(root, "for-each-ref", "--format=%(refname)", "refs/remotes").split():
        git(root, "update-ref", "-d", ref)


class Case(NamedTuple):
    """A situation: how it comes about, the line that is expected, and what carrying it out does."""

    make: Callable[[Path], None]
    situation: str
    line: str
    leads_to: str = ""
    """The situation after the command was run; "" where it cannot be run here."""
    says: str = ""
    edit: str = ""
    """What the editor writes."""


CASES = {
    "outside of a clone": Case(outside, "no-clone", "git clone https://github.com/OWNER/NAME"),
    "a file outside of a clone": Case(
        outside_with_a_row, "no-clone", "geneb-ci check row.json", "no-clone"
    ),
    "an archive of a board": Case(no_git, "git-refuses", "git status", says="not in a git"),
    "a fresh clone": Case(untouched, "nothing-changed", "geneb-ci new OWNER/MODEL"),
    "results of MTEB": Case(
        results,
        "results-not-packed",
        "geneb-ci pack results/org__gamma/0123 --output submissions/gamma.json",
        "row-with-errors",
        says="results/org__gamma/0123 has 2 files of results",
    ),
    "a template": Case(
        no_row,
        "no-row-yet",
        f"geneb-harness run --extractor {MODULE}:Gamma --model OWNER/MODEL --data DIR --model-id "
        "gamma --display gamma --params 86000000 --url https://huggingface.co/OWNER/MODEL "
        "--zero-shot --training-data 'The human genome.' --submitted-by YOU --output record.json "
        f"--submission {ROW}",
        says='line 5: "Weights" still has the placeholder "OWNER/MODEL"',
    ),
    "a percentage": Case(
        percent, "row-with-errors", f"geneb-ci check {ROW}", says="(score-out-of-range)"
    ),
    "a rounded mean": Case(
        rounded,
        "row-with-errors",
        f"geneb-ci check --fix {ROW}",
        "not-committed",
        says="only one possible correction",
    ),
    "a row without a card": Case(
        no_card,
        "row-without-card",
        f"mkdir -p submissions/cards && ${{EDITOR:-vi}} {CARD_PATH} && geneb-ci check {ROW}",
        "not-committed",
        edit=CARD,
    ),
    "a card with placeholders": Case(
        lambda root: pending(root, card=TEMPLATE),
        "card-with-errors",
        f"${{EDITOR:-vi}} {CARD_PATH} && geneb-ci check {ROW}",
        "not-committed",
        says="placeholder-in-card",
        edit=CARD,
    ),
    "a missing extractor": Case(
        no_module,
        "extractor-unusable",
        f"cp -n FILE.py {MODULE} && geneb-harness extractors check {MODULE}:Gamma",
        says="which does not exist",
    ),
    "a wrong signature": Case(
        wrong_signature,
        "extractor-unusable",
        f"${{EDITOR:-vi}} {MODULE} && geneb-harness extractors check {MODULE}:Gamma",
        "not-committed",
        edit=SOUND,
        says=f"{MODULE}:2: extract_embeddings(self, sequences) cannot be called as "
        "extract_embeddings(sequences, batch_size=...); expected "
        "def extract_embeddings(self, sequences, batch_size=1):",
    ),
    "a class of another name": Case(
        of_another_name,
        "extractor-unusable",
        f"${{EDITOR:-vi}} {MODULE} && geneb-harness extractors check {MODULE}:Delta",
        says=f"{MODULE}:1: the module has no class Delta",
    ),
    "an extractor that is not Python": Case(
        lambda root: pending(root, code="class Gamma:\n  def f(:\n"),
        "extractor-unusable",
        f"${{EDITOR:-vi}} {MODULE} && geneb-harness extractors check {MODULE}:Gamma",
        says=f"{MODULE}:2: the file is not valid Python",
    ),
    "a receipt on this machine": Case(
        lambda root: receipt(root, is_published=False),
        "receipt-not-published",
        f"geneb-ci receipt push {ROW} --receipt rows --repo OWNER/NAME",
    ),
    "a published receipt": Case(
        lambda root: receipt(root, is_published=True),
        "receipt-not-verified",
        f"geneb-ci receipt verify {ROW} --data DIR && {ADD}",
        says="has not been verified on this machine",
    ),
    "a row in the root": Case(
        moved,
        "misplaced-file",
        f"mkdir -p submissions && mv -n gamma.json {ROW}",
        "not-committed",
        says=f'"gamma.json" is in the wrong folder; its path must be "{ROW}"',
    ),
    "a card of another layout": Case(
        moved_and_committed,
        "misplaced-file",
        f"mkdir -p submissions/cards && git mv model_cards/gamma.md {CARD_PATH}",
        "not-committed",
    ),
    "two models": Case(
        two,
        "several-models",
        f"git stash push --include-untracked -- {CARD_PATH} {ROW}",
        "not-committed",
        says="2 models: delta, gamma",
    ),
    "two models that are committed": Case(
        two_committed, "several-models", "geneb-ci check", says="2 models: delta, gamma"
    ),
    "a submission on main": Case(
        on_main, "on-the-base-branch", "git switch --create add-gamma", "not-committed"
    ),
    "a submission on no branch": Case(
        detached, "on-the-base-branch", "git switch --create add-gamma", "not-committed"
    ),
    "a clone without a main branch": Case(
        no_main,
        "no-base-branch",
        "git remote add upstream https://github.com/OWNER/NAME && git fetch upstream",
    ),
    "a clone that was never fetched": Case(
        no_main_fetched, "no-base-branch", "git fetch --all", "nothing-changed"
    ),
    "files that are not committed": Case(
        pending,
        "not-committed",
        ADD,
        "not-pushed",
        says="not committed, so the server would not see",
    ),
    "files that git ignores": Case(
        ignored,
        "not-committed",
        ADD.replace("git add", "git add --force"),
        "not-pushed",
        says=f"git ignores {ROW}; the command adds them all the same",
    ),
    "a row with warnings": Case(
        warned,
        "not-committed",
        ADD,
        "not-pushed",
        says="warnings, to explain in the card: 1 (missing-submitter)",
    ),
    "a conflict": Case(
        conflicting,
        "merge-conflict",
        f"${{EDITOR:-vi}} {ALPHA} && git add -- {ALPHA} && git commit --no-edit",
        "not-pushed",
        says="two versions of 1 file",
        edit=json.dumps(small("alpha") | {"meta": small("alpha")["meta"] | MOUSE}),
    ),
    "a row that changed on main": Case(
        overtaken,
        "outdated-branch",
        "git fetch origin main && git merge origin/main",
        "merge-conflict",
        says="has meanwhile changed the same files: submissions/alpha.json",
    ),
    "a pull request without its extractor": Case(
        without_extractor,
        "verdict-with-errors",
        "geneb-ci check",
        "verdict-with-errors",
        says="errors: 1 (row-without-extractor)",
    ),
    "a branch on this machine": Case(
        committed,
        "not-pushed",
        "git push --set-upstream origin add-gamma",
        "no-pull-request",
        says="the branch is ready: 3 files committed, no error",
    ),
    "a commit that is not pushed": Case(
        again, "not-pushed", "git push", "no-pull-request", says="1 commit not pushed"
    ),
    "a clone without a remote": Case(
        no_remote, "not-pushed", "git remote add origin https://github.com/OWNER/NAME"
    ),
    "a board of rows without a remote": Case(
        no_remote_on_main,
        "setup-incomplete",
        "geneb-ci init . --repo OWNER/NAME",
        says="maintainer: 2 rows",
    ),
    "a clone without a remote of a board that init made": Case(
        no_remote_of_a_named_board,
        "not-pushed",
        "git remote add origin https://github.com/org/fungi",
    ),
    "a branch that is pushed": Case(
        pushed,
        "no-pull-request",
        "gh pr create --title 'Add gamma' --base main --fill-first --repo org/board --head "
        "org:add-gamma",
        says="to check, set GH_TOKEN and pass --repo OWNER/NAME",
    ),
    "a file beside a submission": Case(
        stray,
        "no-pull-request",
        "gh pr create --title 'Add gamma' --base main --fill-first --repo org/board --head "
        "org:add-gamma",
        says="not committed, so the server would not see: submissions/notes.txt",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_next(name: str, clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES[name]
    case.make(clone)
    next_step = step()
    assert (next_step.situation, next_step.command) == (case.situation, case.line), next_step.text()
    assert case.says in " ".join(next_step.text().split()), next_step.text()
    if not case.leads_to:
        return
    carry_out(case.line, case.edit)
    capsys.readouterr()
    assert step().situation == case.leads_to, step().text()


AGAIN = f"geneb-ci check {ROW}"
EXTRACTOR = f"${{EDITOR:-vi}} {MODULE} && {AGAIN}"
# Name of a case: what is checked, the exit code, and the last line; None: that of `next`.
CHECKED: dict[tuple[str, str], tuple[int, str | None]] = {
    ("an archive of a board", ALPHA): (0, ""),
    ("a fresh clone", ALPHA): (0, ""),
    ("a percentage", ROW): (11, f"${{EDITOR:-vi}} {ROW} && {AGAIN}"),
    ("a percentage", "submissions"): (11, f"${{EDITOR:-vi}} {ROW} && geneb-ci check submissions"),
    ("a percentage", "--select arithmetic submissions"): (0, ""),
    ("a rounded mean", ROW): (11, None),
    ("a row without a card", ROW): (0, None),
    ("a missing extractor", ROW): (0, None),
    ("a wrong signature", ROW): (11, EXTRACTOR),
    ("a class of another name", ROW): (0, None),
    ("a receipt on this machine", ROW): (0, None),
    ("a row in the root", "gamma.json"): (0, None),
    ("a submission on main", ROW): (0, None),
    ("files that are not committed", ROW): (0, None),
    ("files that git ignores", ROW): (0, None),
    ("two models", ROW): (
        0,
        "git stash push --include-untracked -- submissions/cards/delta.md submissions/delta.json",
    ),
    ("a pull request without its extractor", ""): (11, "geneb-ci explain row-without-extractor"),
    ("a branch on this machine", ROW): (0, "geneb-ci check"),
    ("a branch on this machine", ""): (0, None),
    ("a branch on this machine", "--format json"): (0, ""),
    ("a branch that is pushed", ""): (0, None),
    ("a branch that is pushed", "submissions"): (0, ""),
}


@pytest.mark.parametrize(("name", "words"), CHECKED)
def test_a_check_ends_with_what_is_next(
    name: str, words: str, clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = CHECKED[name, words]
    CASES[name].make(clone)
    find_layout.cache_clear()
    assert main(["check", *words.split()]) == code
    out = capsys.readouterr().out
    _, is_there, command = out.partition("\nnext: ")
    expected = CASES[name].line if line is None else line
    assert command.removesuffix("\n") == expected, out
    assert bool(is_there) == bool(expected)


@pytest.mark.parametrize("is_board", [True, False])
def test_a_check_of_a_row_elsewhere_ends_with_its_way_to_a_board(
    is_board, clone, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "row.json"
    shutil.copy(SUBMISSIONS / "space.json", path)
    monkeypatch.chdir(clone if is_board else tmp_path)
    find_layout.cache_clear()
    assert main(["check", str(path)]) == 0
    row = "submissions/space.json"
    copy = f"cp -n {path} {row} && geneb-ci check {row}"
    line = copy if is_board else "git clone https://github.com/OWNER/NAME"
    assert capsys.readouterr().out.splitlines()[-1] == f"next: {line}"
    if is_board:
        shutil.copy(path, row)
        assert main(["check", str(path)]) == 0
        line = f"next: {copy.replace('-n', '-i')}"
        assert capsys.readouterr().out.splitlines()[-1] == line, "it asks before it replaces a row"


def test_a_clone_without_a_remote_is_of_the_repository_in_the_environment(clone, monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "org/moss")
    no_remote(clone)
    assert step().command == "git remote add origin https://github.com/org/moss"
    git(clone, "switch", "--quiet", "main")
    assert step().command == "geneb-ci init . --repo org/moss"
    outside(clone)
    assert step().command == "git clone https://github.com/org/moss"


def test_without_the_extra_that_reads_records_the_command_that_names_it_is_next(clone, monkeypatch):
    def needs_extra(*_arguments: object) -> None:
        raise ModuleNotFoundError(name="cryptography")

    no_remote(clone)
    git(clone, "switch", "--quiet", "main")
    monkeypatch.setattr("geneb_ci.situation.step._maintainer_step", needs_extra)
    next_step = step()
    assert next_step.command == "geneb-ci next --as maintainer"
    assert "the clone has no remote to send a pull request to" in next_step.text()


def test_the_open_pull_request_and_whose_turn_it_is(clone, monkeypatch):
    pushed(clone)
    server = GitHubServer()
    connection = DirectConnection(server, IMPATIENT)
    head = git(clone, "rev-parse", "HEAD")
    server.default_head = server.commit({})
    from geneb_ci.github.api import GitHub
    from geneb_ci.situation import servers

    monkeypatch.setattr(servers, "connect", lambda _: GitHub(connection))
    assert "has no open pull request" in step(repository="org/board").text()
    number = server.open_pull(server.commit({}, server.default_head), server.default_head)
    server.pulls[number]["head"]["sha"] = head
    next_step = step(repository="org/board")
    assert next_step.situation == "pull-request-open"
    assert next_step.command == f"gh pr view {number} --repo org/board --comments"
    assert next_step.lines[1].startswith(f"pull request {number}: ")


def test_a_command_is_for_the_folder_that_it_was_asked_in(clone, monkeypatch):
    pending(clone)
    monkeypatch.chdir(clone / "submissions/cards")
    next_step = step()
    assert next_step.command == f"cd ../.. && {ADD}"


def test_a_name_that_is_no_text_is_shown_escaped(clone):
    pending(clone, row=small("gamma"))
    (clone / MODULE).unlink()
    (clone / "submissions/a\x1b[2Jb.txt").write_text("x", encoding="utf-8")
    (clone / "submissions/##[error]").write_text("x", encoding="utf-8")
    text = step().text()
    assert "\\u001b" in text
    assert "##[" not in text
    assert text.replace("\n", "").isprintable()


def test_who_has_a_key_is_a_maintainer_until_files_of_a_model_are_there(clone, monkeypatch, capsys):
    assert step().role == "contributor"
    key = clone.parent / "key.pem"
    assert main(["audit", "keygen", "--output", str(key)]) == 0
    capsys.readouterr()
    monkeypatch.setenv("GENEB_AUDIT_KEY_FILE", str(key))
    assert step().role == "maintainer"
    assert step(role="contributor").situation == "nothing-changed"
    pending(clone)
    next_step = step()
    assert (next_step.role, next_step.situation) == ("contributor", "not-committed")
    assert next_step.lines[-1].startswith("you have a key as well: geneb-ci next --as maintainer")
    audits = clone / "leaderboard/audits/alpha"
    audits.mkdir(parents=True)
    (audits / "0123456789abcdef.committed.json").write_text("{}", encoding="utf-8")
    next_step = step()
    assert (next_step.role, next_step.situation) == ("maintainer", "setup-incomplete")


def test_the_command_prints_what_the_function_returns(clone, capsys):
    pending(clone)
    assert main(["next"]) == 0
    assert capsys.readouterr().out == step().text()
    assert main(["next", "--format", "json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value == {
        "role": "contributor",
        "situation": "not-committed",
        "lines": list(step().lines),
        "next": ADD,
    }
    with pytest.raises(UsageProblem, match='"somebody" is not a role'):
        step(role="somebody")


def test_a_row_of_a_practice_board_is_committed_where_it_would_be_merged():
    """No server has the board: nothing is pushed or proposed, and the receipt stays here."""
    state = BranchState(
        row=ROW,
        uncommitted=(ROW,),
        models=("gamma",),
        receipt=DeclaredReceipt(is_published=False, file_count=13),
        is_practice_board=True,
    )
    step = step_of(Role.CONTRIBUTOR, state, CONTRIBUTOR_SITUATIONS)
    assert step.situation == "practice-row"
    assert step.command == (
        f"git add --all -- {ROW} && git commit -m 'Add gamma' && geneb-ci next --as maintainer"
    )
    step = step_of(
        Role.CONTRIBUTOR,
        dataclasses.replace(state, is_practice_board=False),
        CONTRIBUTOR_SITUATIONS,
    )
    assert step.situation == "receipt-not-published"


def test_every_situation_of_the_table_has_a_case_and_half_of_them_are_left():
    others = {"pull-request-open", "practice-row"}
    cases = {case.situation for case in CASES.values()} | others
    names = [entry.name for entry in CONTRIBUTOR_SITUATIONS]
    assert [name for name in names if name not in cases] == []
    left = {case.situation for case in CASES.values() if case.leads_to not in {"", case.situation}}
    assert len(names) >= 12
    assert 2 * len(left) >= len(names), left
