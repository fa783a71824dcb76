"""Any earlier board, to the byte, from its commit alone."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from geneb_ci.cli.main import cli
from geneb_ci.errors import UsageProblem
from geneb_ci.publish.git import BadRepository, Repository
from geneb_ci.publish.push import Newest, push
from geneb_ci.publish.tree import lay_out
from tests.publish.conftest import SCRIPTS, made


def build(commit: str, out: Path) -> tuple[object, str]:
    result = CliRunner().invoke(
        cli, ["build", "--at", commit, "--out", str(out)], catch_exceptions=False
    )
    return result.return_value if result.exit_code else 0, result.output


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_each_of_the_last_ten_boards_is_what_was_published_then(
    space, repo, clone, tmp_path, monkeypatch
):
    published = {}
    for number in range(10):
        if number % 3 == 2:
            clone.write("leaderboard/assets/page.css", f"p {{margin: {number}px}}".encode())
        else:
            clone.add(f"model-{number}")
        clone.commit(f"Step {number}")
        push(space, Newest(made(clone), Repository(clone.root)))
        theirs = {".gitattributes", "notes.txt"}
        published[clone.commits[-1]] = {
            name: content for name, content in repo.head.tree.items() if name not in theirs
        }
    assert len(published) == 10
    clone.add("a-draft")  # what is not committed has no part in it
    monkeypatch.chdir(clone.root)
    for number, (commit, files) in enumerate(published.items()):
        build(commit, tmp_path / str(number))
        assert files_of(tmp_path / str(number)) == files


def test_a_name_of_a_commit_will_do_and_no_other(clone, tmp_path, monkeypatch):
    monkeypatch.chdir(clone.root)
    _, output = build("main", tmp_path / "out")
    found = made(clone)
    assert output == (
        f"built {5 + len(SCRIPTS)} files in {tmp_path / 'out'}: "
        f"generation {found.manifest.generation} "
        f"of commit {clone.commits[0]}, 1 model\n"
    )
    for name in ("no-such", "--help", "HEAD:submissions", "0" * 40, ""):
        with pytest.raises(BadRepository, match="is no commit of this repository"):
            build(name, tmp_path / "none")
    with pytest.raises(UsageProblem):
        CliRunner().invoke(
            cli, ["build", ".", "--at", "main", "--out", str(tmp_path)], catch_exceptions=False
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
    lay_out(Repository(clone.root), clone.commits[-1], here)
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
    lay_out(Repository(clone.root), clone.commits[-1], here)
    assert (here / "leaderboard/x.txt").read_bytes() == raw


def test_a_replaced_object_is_not_read(clone):
    before = made(clone)
    clone.add("model-b")
    clone.commit("Add model-b")
    clone.git("replace", clone.commits[0], clone.commits[1])
    assert made(clone, clone.commits[0]).published == before.published
