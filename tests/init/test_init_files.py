"""The files of a new board: what is written, what is kept, what is refused."""

import json
import os
import re
import shlex
import shutil

import pytest

from geneb_ci.audit.record.keys import KeyFile, private_key
from geneb_ci.cli.main import main
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import find_layout
from geneb_ci.common.shipped import shipped
from geneb_ci.init.new_repository import BoardAnswers, repository_files
from reference_harness.cli.main import cli as harness
from tests.git import git
from tests.github.server import REPOSITORY
from tests.init.conftest import FIRST, SPACE, contents, run

# What is written.


def test_it_writes_a_repository_and_commits_it(written):
    assert git(written.root, "status", "--porcelain") == ""
    assert git(written.root, "log", "--format=%s %an") == "Set up the board M. Aintainer"
    names = set(git(written.root, "ls-files").splitlines())
    assert {
        *(".github/CODEOWNERS", ".github/workflows/publish.yml", ".github/geneb-ci.toml"),
        *("leaderboard/policy/keys.json", "leaderboard/policy/policy.toml", "pyproject.toml"),
        *("schemas/benchmark.json", "submissions/kmer-baseline.json", "submissions/README.md"),
        *("submissions/cards/kmer-baseline.md", "geneb_ci/cli/main.py", "tools/install-locked"),
    } <= names
    assert ".github/workflows/ci.yml" not in names
    assert not [name for name in names if name.startswith(("keys/", "tests/", "docs/"))]
    assert os.access(written.root / "tools/install-locked", os.X_OK)
    assert os.access(written.root / ".github/actions/check/check", os.X_OK)


def test_the_plan_comes_first_and_the_next_commands_last(written):
    lines = written.said.splitlines()
    assert f": a board for {REPOSITORY}, Space {SPACE}" in " ".join(written.said.split())
    assert "  write  leaderboard/policy/keys.json; private key in keys/, which git ignores" in (
        lines
    )
    assert lines[-1] == "next: GH_TOKEN=... HF_TOKEN=... geneb-ci init --apply"
    assert f"HF_TOKEN=... geneb-ci publish --space {SPACE}" in " ".join(lines)
    assert [line for line in lines[1:] if len(line) > 88] == []


def test_the_keys_are_private_and_listed(written):
    key_file = KeyFile.model_validate_json(
        (written.root / "leaderboard/policy/keys.json").read_bytes()
    )
    path = written.root / "keys/audit.pem"
    assert path.stat().st_mode & 0o777 == 0o600
    audit = private_key(path).public_key().public_bytes_raw()
    assert [key.raw for key in key_file.keys] == [audit]
    assert key_file.log is None
    assert sorted(file.name for file in path.parent.iterdir()) == [".gitignore", "audit.pem"]


def test_names_are_filled_in(written):
    texts = {
        name: raw.decode("utf-8", "replace") for name, (_, raw) in contents(written.root).items()
    }
    own = {
        name: text
        for name, text in texts.items()
        if not name.startswith(("geneb_ci/", "reference_harness/", "leaderboard/src"))
    }
    assert [name for name, text in own.items() if re.search("OWNER/(?!MODEL)|@ORG/", text)] == []
    assert [name for name, text in own.items() if "{repository}" in text] == []
    assert "/.github/                @org/maintainers" in texts[".github/CODEOWNERS"]
    assert f"https://github.com/{REPOSITORY}/security" in texts[".github/ISSUE_TEMPLATE/config.yml"]


NAMED = re.compile(
    r"docs/[\w/-]+\.md|\b(?!MODEL)[A-Z]{4,}\.md|make (?:test|lint|generate)|human_tf_0|GENEB\b(?!-)"
)


def test_what_contributors_read_names_no_page_or_task_that_a_board_has_not(written):
    pages = ("README.md", "SECURITY.md", "RULES.md", "submissions/README.md", ".github/*.md")
    paths = [p for name in (*pages, ".github/ISSUE_TEMPLATE/*") for p in written.root.glob(name)]
    assert len(paths) > 8
    for path in paths:
        for name in NAMED.findall(path.read_text(encoding="utf-8")):
            assert name.endswith(".md"), (path, name)
            assert (written.root / name).is_file(), (path, name)


def test_its_pages_link_to_the_repository_and_the_space(written):
    layout = find_layout(written.root)
    assert layout.repository == f"https://github.com/{REPOSITORY}"
    assert layout.space == f"https://huggingface.co/spaces/{SPACE}"
    assert layout.site == "https://org-board.static.hf.space"


@pytest.mark.parametrize(
    ("definition", "options", "fetched"),
    [
        ("benchmark-mini.json", "", "no `--data`"),
        ("benchmark.json", "--data DIR --benchmark schemas/benchmark.json", "data pull DIR"),
    ],
)
def test_the_commands_for_contributors_are_whole(definition, options, fetched):
    board_answers = BoardAnswers(REPOSITORY, "org/a.board", "@org/maintainers")
    files = repository_files(board_answers, shipped("schemas", definition).read_bytes())
    text = files["submissions/README.md"].decode()
    (command,) = re.findall(r"^\$ geneb-ci run (.+?)\n\$ ", text, re.DOTALL | re.MULTILINE)
    words = shlex.split(command.replace("\\\n", " "))
    options_of = {param.opts[0] for param in harness.commands["run"].params}
    assert {word for word in words if word.startswith("--")} <= options_of
    assert {"--output", "--submission"} <= {*words}
    assert options in command
    assert fetched in text
    assert files["pyproject.toml"].count(b'# site = "https://org-a-board.static') == 1


def test_a_second_run_changes_nothing(board, identity):
    before, head = contents(board.root), git(board.root, "rev-parse", "HEAD")
    message = run(("init",), board.root, identity)
    assert contents(board.root) == before
    assert git(board.root, "rev-parse", "HEAD") == head
    assert [line for line in message.splitlines() if line.startswith(("  write", "  keep"))] == []
    assert "made the first commit" not in message


def test_a_dry_run_writes_nothing(tmp_path, monkeypatch, capsys, identity):
    monkeypatch.setenv("HOME", str(identity))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(identity))
    monkeypatch.chdir(tmp_path)
    assert main([*FIRST, "--dry-run"]) == 0
    out, _ = capsys.readouterr()
    assert out.endswith("nothing was written: this was a dry run\n")
    assert "  write  .github/" in out
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_differs_is_kept_and_named(board, capsys):
    (board.root / "README.md").write_text("mine\n", encoding="utf-8")
    (board.root / "tools/audit-job").write_text("mine\n", encoding="utf-8")
    (board.root / "geneb_ci/old.py").write_text("old\n", encoding="utf-8")
    (board.root / "SECURITY.md").unlink()
    assert main(["init"]) == 0
    out, err = capsys.readouterr()
    assert "  keep, it differs  tools/audit-job\n" in out
    assert "  keep, it is yours  README.md\n" in out
    assert "  delete yourself, not part of this version  geneb_ci/old.py\n" in out
    assert "  write  SECURITY.md\n" in out
    assert "next: git add --all && git commit\n" in out
    assert (
        "fix: compare your files with the new ones, or overwrite them: geneb-ci init --force" in err
    )
    assert (board.root / "README.md").read_text(encoding="utf-8") == "mine\n"
    keys = (board.root / "leaderboard/policy/keys.json").read_bytes()
    assert main(["init", "--force"]) == 0
    assert "  overwrite  tools/audit-job\n" in capsys.readouterr().out
    changed = git(board.root, "status", "--porcelain").split()
    assert changed == ["M", "README.md", "??", "geneb_ci/old.py"]
    assert (board.root / "leaderboard/policy/keys.json").read_bytes() == keys


@pytest.mark.parametrize("name", [".github", "README.md", "submissions"])
def test_a_link_out_of_the_folder_is_refused(name, tmp_path, monkeypatch, capsys):
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "board"
    root.mkdir()
    (root / name).symlink_to(outside / "README.md" if name == "README.md" else outside)
    monkeypatch.chdir(root)
    assert main([*FIRST]) == 2
    assert "a symbolic link leads to" in capsys.readouterr().err
    assert list(outside.iterdir()) == []
    assert list(root.iterdir()) == [root / name]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("init",), "pass --repo OWNER/NAME"),
        (("init", "--repo", "board"), "write --repo OWNER/NAME"),
        (("init", "--repo", "../x"), "write --repo OWNER/NAME"),
        (("init", "--repo", 'a/b"\nx'), "write --repo OWNER/NAME"),
        ((*FIRST, "--space", "board"), "write --space OWNER/NAME"),
        ((*FIRST, "--space", "a/b--c"), "write --space OWNER/NAME: letters, digits, '-', '_' and"),
        (("init", "--repo", "a/b..c"), "--space 'a/b..c' is not the name of a Space"),
        (("init", "--repo", "a/b", "--maintainers", "me"), "write --maintainers @ORG/TEAM"),
        (
            ("init", "--repo", "a/b"),
            "--maintainers is missing, expected a team or two accounts",
        ),
        (("init", "--repo", "a/b", "--maintainers", "@me"), "only @me is named as maintainer"),
        (("init", "--repo", "a/b", *2 * ("--maintainers", "@me")), "--maintainers @ME --alone"),
        (
            ("init", "--repo", "a/b", "--maintainers", "@a/b", "--alone"),
            "--alone is for one account",
        ),
        ((*FIRST, "--benchmark", "nowhere.json"), "copy schemas/benchmark-mini.json"),
        ((*FIRST, "--apply"), "run geneb-ci init first"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_written(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(list(words)) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_benchmark_of_ones_own_needs_rows_of_its_own(tmp_path, monkeypatch, capsys, identity):
    root = tmp_path / "board"
    own = tmp_path / "own.json"
    document = shipped_benchmark().document() | {"name": "OWN"}
    own.write_text(json.dumps(document), encoding="utf-8")
    monkeypatch.setenv("HOME", str(identity))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(identity))
    assert main([*FIRST[:1], str(root), *FIRST[1:], "--benchmark", str(own)]) == 0
    _, _, command = capsys.readouterr().out.partition("\nnext: geneb-ci run ")
    assert harness.commands["run"].make_context("run", shlex.split(command)).params["data"]
    assert (root / "schemas/benchmark.json").read_bytes() == own.read_bytes()
    assert list((root / "submissions").glob("*.json")) == []
    assert "benchmark OWN" in (root / "README.md").read_text(encoding="utf-8")
    before = contents(root)
    assert main(["init", str(root)]) == 0  # the benchmark is the one that is there
    assert contents(root) == before


def test_a_definition_that_is_wrong_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.json").write_text('{"name": "OWN"}', encoding="utf-8")
    assert main([*FIRST, "--benchmark", "own.json"]) == 1
    assert "own.json" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["own.json"]


def test_without_a_name_for_commits_git_is_what_is_missing(tmp_path, monkeypatch, capsys):
    (tmp_path / ".gitconfig").write_text("[user]\nuseConfigOnly = true\n")
    own = tmp_path / "own.json"
    shutil.copy(shipped("schemas", "benchmark.json"), own)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert main([*FIRST, str(tmp_path / "board"), "--benchmark", str(own)]) == 2
    err = capsys.readouterr().err
    assert "git var failed" in err
    assert not (tmp_path / "board").exists()
    assert "fix: run `git config --global user.name NAME" in err


@pytest.mark.parametrize(
    "case", ["no name", "no author", "damaged", "loop", "no folder", "no harness", "bad name"]
)
def test_what_can_be_refused_is_refused_before_a_file_is_written(
    tmp_path, monkeypatch, capsys, identity, case
):
    path = tmp_path / "board"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(identity))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(identity))
    words = ["init", "board", "--repo", "org/board", "--maintainers", "@org/team"]
    if case == "no name":
        config = tmp_path / "config"
        config.write_text("[user]\nuseConfigOnly = true\n", encoding="utf-8")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
        due = "git config --global user.name NAME"
    elif case == "no author":
        config = tmp_path / "config"
        config.write_text("[user]\nuseConfigOnly = true\n", encoding="utf-8")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
        for name, value in (("NAME", "a"), ("EMAIL", "b@c")):
            monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
        due = "git config --global user.name NAME"
    elif case == "damaged":
        words[1] = "other"
        (tmp_path / "other/.git").mkdir(parents=True)
        (tmp_path / "other/.git/config").write_text("bad", encoding="utf-8")
        due = "git rev-parse failed"
    elif case == "loop":
        words[1] = "loop"
        (tmp_path / "loop").symlink_to("loop")
        due = "loop: the symbolic links of this path form a loop"
    elif case == "no folder":
        monkeypatch.setattr("os.access", lambda *_: False)
        due = "cannot be written to"
    elif case == "no harness":
        monkeypatch.setattr("geneb_ci.init.new_board.find_spec", lambda _: None)
        due = "pip install 'geneb-ci[mini]'"
    else:
        words += ["--maintainers", "nobody here"]
        due = "expected @NAME or @ORG/TEAM"
    assert main(words) == 2
    assert due in capsys.readouterr().err
    assert not path.exists()
    assert not (tmp_path / "other/submissions").exists()
