"""Any earlier board, to the byte, from its commit alone."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from geneb_ci.cli.main import cli
from geneb_ci.common.errors import UsageProblem
from geneb_ci.publish.git import BadRepository, GitRepository, write_commit_files
from geneb_ci.publish.push import MainIntent, push
from tests.audit.place import POLICY
from tests.audit.recorded import (
    outcome_of,
    plan_for,
    put,
    repository,
    submission_bytes,
    withdraw,
)
from tests.publish.clone import SPACE_CARD, Folder
from tests.publish.conftest import made
from tests.small import CARD, small


def build(commit: str, out: Path) -> tuple[object, str]:
    result = CliRunner().invoke(
        cli, ["build", "--at", commit, "--output", str(out)], catch_exceptions=False
    )
    return result.return_value if result.exit_code else 0, result.output


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


RAW, TASK = submission_bytes(), "splice_sites"


def grow(folder: Folder) -> Iterator[None]:
    """Change one kind of thing after another; after each, a commit is made."""
    record = put(folder.root, outcome_of(plan_for(RAW), RAW))
    yield
    folder.add("model-b")
    yield
    folder.write("submissions/cards/model-b.md", CARD.encode() + b"\nMore of it.\n")
    yield
    folder.add("model-b", display="Another name")
    yield
    row = small("model-b")
    row["results"]["full"][TASK] = small("model-x")["results"]["full"][TASK]
    folder.write("submissions/model-b.json", row)
    yield
    folder.write(
        "leaderboard/policy/policy.toml", POLICY.replace("drawn = 2", "drawn = 3").encode()
    )
    yield
    digest = hashlib.sha256((folder.root / "submissions/model-b.json").read_bytes()).hexdigest()
    folder.write("leaderboard/policy/official.json", {"files": {"model-b": digest}})
    yield
    folder.write("pyproject.toml", b'[tool.geneb-ci]\nignore = ["size-against-width"]\n')
    yield
    folder.write("leaderboard/index.html", b"<p>a page</p>")
    folder.write("leaderboard/vendor/lib.js", b"'use strict';\n")
    yield
    folder.git("checkout", "--quiet", "-b", "theirs")
    folder.add("model-c")
    folder.git("add", "--all")
    folder.git("commit", "--quiet", "--message", "wip")
    folder.git("checkout", "--quiet", "main")
    folder.git("merge", "--quiet", "--no-ff", "--no-commit", "theirs")
    yield
    withdraw(record)
    yield
    for name in ("submissions/model-b.json", "submissions/cards/model-b.md"):
        (folder.root / name).unlink()
    folder.write("leaderboard/vendor/lib.js", b"'use strict'; // once more\n")
    yield


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.nightly)])
def test_each_of_the_last_ten_boards_is_what_was_published_then(
    space, repo, tmp_path, monkeypatch, step
):
    folder = Folder(repository(tmp_path / "growing"))
    folder.write("leaderboard/README.md", SPACE_CARD)
    folder.commit("Lay the ground")
    theirs = repo.head.tree.keys()
    published = {}
    for number, _ in enumerate(grow(folder)):
        commit = folder.commit(f"Step {number}")
        assert (
            push(space, MainIntent(made(folder), GitRepository(folder.root)), is_new=True).outcome
            == "published"
        )
        tree = repo.head.tree
        manifest = json.loads(tree["manifest.json"])
        own = tuple(f"v/{manifest[key]}/" for key in ("generation", "source_commit"))
        # What earlier generations left is not of this one.
        left = {n for n in tree if n.startswith("v/") and not n.startswith((*own, "v/index."))}
        assert len(left) == 2 * number
        published[commit] = {n: raw for n, raw in tree.items() if n not in theirs | left}
    assert len(published) == 12
    folder.write("submissions/draft.json", b"not committed, so it has no part in it")
    monkeypatch.chdir(folder.root)
    for number, (commit, files) in enumerate([*published.items()][-10::step]):
        out = tmp_path / str(number)
        build(commit, out)
        assert files_of(out) == files
        assert json.loads(files["manifest.json"])["source_commit"] == commit
    levels = [
        {
            row["model"]: row["submitted"]
            for row in json.loads(f["leaderboard.json"])["data"]["full"]
        }
        for f in published.values()
    ]
    assert [level["model"] for level in levels] == ["verified"] * 5 + ["self-reported"] * 7
    assert [level.get("model-b") for level in levels] == [
        *(None, *["self-reported"] * 5, *["official"] * 5, None),
    ]


def test_a_name_of_a_commit_will_do_and_no_other(clone, tmp_path, monkeypatch):
    monkeypatch.chdir(clone.root)
    _, output = build("main", tmp_path / "out")
    installation = made(clone)
    assert output == (
        f"built {len(installation.published)} files in {tmp_path / 'out'}: "
        f"generation {installation.manifest.generation} "
        f"of commit {clone.commits[0]}, 1 model\n"
    )
    for name in ("no-such", "--help", "HEAD:submissions", "0" * 40, ""):
        with pytest.raises(BadRepository, match="is not a commit of this repository"):
            build(name, tmp_path / "none")
    with pytest.raises(UsageProblem):
        CliRunner().invoke(
            cli, ["build", ".", "--at", "main", "--output", str(tmp_path)], catch_exceptions=False
        )
    assert not (tmp_path / "none").exists()


def test_a_link_leads_nowhere(clone, tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text("secret")
    (clone.root / "submissions/link.json").symlink_to(secret)
    (clone.root / "submissions/extractors").symlink_to(tmp_path, target_is_directory=True)
    clone.commit("Links")
    here = tmp_path / "here"
    here.mkdir()
    write_commit_files(GitRepository(clone.root), clone.commits[-1], here)
    assert (here / "submissions/link.json").readlink() == Path("link.json")
    assert not (here / "submissions/extractors").exists()


def test_attributes_of_the_tree_change_no_byte(clone, tmp_path):
    raw = b"$Id$ $Format:%H$\r\n"
    (clone.root / ".gitattributes").write_bytes(b"leaderboard/* export-subst ident -text\n")
    (clone.root / "leaderboard/.gitattributes").write_bytes(b"x.txt export-ignore\n")
    clone.write("leaderboard/x.txt", raw)
    clone.commit("Attributes")
    here = tmp_path / "here"
    here.mkdir()
    write_commit_files(GitRepository(clone.root), clone.commits[-1], here)
    assert (here / "leaderboard/x.txt").read_bytes() == raw


def test_a_replaced_object_is_not_read(clone):
    before = made(clone)
    clone.add("model-b")
    clone.commit("Add model-b")
    clone.git("replace", clone.commits[0], clone.commits[1])
    assert made(clone, clone.commits[0]).published == before.published
