"""`geneb-ci diff` as a maintainer runs it: public rows, small ones, and trees made to do harm."""

import json
import shutil
from pathlib import Path

import pytest

from geneb_ci.cli.main import main
from geneb_ci.common.config import find_layout
from geneb_ci.publish.comparison import compare_boards
from geneb_ci.render.comparison import COMPARISON_WRITERS
from tests.cli.repository import commit, put, real_repository, small_repository
from tests.git import git
from tests.small import small


def run(root: Path, monkeypatch, capsys, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.chdir(root)
    code = main(["diff", *arguments])
    captured_output = capsys.readouterr()
    return code, captured_output.out, captured_output.err


GOLDEN = Path(__file__).with_name("golden")


def test_public_rows_added_changed_removed_and_moved(tmp_path, update_golden):
    root = real_repository(tmp_path)
    space = json.loads((root / "submissions/space.json").read_bytes())
    changed = json.loads((root / "submissions/deepgene.json").read_bytes())
    for task in list(changed["results"]["full"])[:80]:
        changed["results"]["full"][task] = space["results"]["full"][task]
    changed["meta"]["provenance"] = "self-reported"
    changed["meta"]["display"] = "deep|gene `x` @all"
    (root / "submissions/deepgene.json").write_text(json.dumps(changed), encoding="utf-8")
    named = changed["meta"] | {"display": "new|one `x` @all"}
    added = space | {"model_id": "new-one", "meta": named}
    (root / "submissions/new-one.json").write_text(json.dumps(added), encoding="utf-8")
    (root / "submissions/gpt2_gene_v1.json").unlink()
    official = root / "leaderboard/policy/official.json"
    policy = json.loads(official.read_bytes())
    del policy["files"]["deepgene"]
    official.write_text(json.dumps(policy), encoding="utf-8")
    comparison = compare_boards(find_layout(root), "main")
    for name, writer in COMPARISON_WRITERS.items():
        out = (
            writer(comparison)
            .replace(comparison.commit, "COMMIT")
            .replace(comparison.commit[:12], "COMMIT")
        )
        path = GOLDEN / f"diff.{name}"
        if update_golden:
            path.write_text(out, encoding="utf-8")
        assert out == path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return small_repository(tmp_path_factory.mktemp("template"), "a", "b", "c", "d")


@pytest.fixture
def rows(template, tmp_path):
    return shutil.copytree(template, tmp_path, dirs_exist_ok=True)


def test_nothing_differs(rows, monkeypatch, capsys):
    head = git(rows, "rev-parse", "HEAD")
    assert run(rows, monkeypatch, capsys, "--base", "HEAD") == (
        0,
        f"against HEAD ({head[:12]}): no row differs\n",
        "",
    )


def test_json_has_all_of_it(rows, monkeypatch, capsys):
    put(rows, "e")
    (rows / "submissions/b.json").unlink()
    code, out, _ = run(rows, monkeypatch, capsys, "--base", "HEAD", "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert list(document) == [
        *("format_version", "base", "commit", "added", "removed", "changed", "moved", "pushed"),
        *("refused", "refused_before"),
    ]
    assert [row["model"] for row in document["added"]] == ["e"]
    assert [row["model"] for row in document["removed"]] == ["b"]
    assert [rank_change["regime"] for rank_change in document["added"][0]["places"]] == [
        "full",
        "10shot",
        "1shot",
    ]
    assert document["moved"] == document["changed"] == document["refused"] == []


def test_a_name_that_would_do_harm_stays_in_its_code_span(rows, monkeypatch, capsys):
    document = small("a")
    document["meta"]["display"] = "x`|@org/team <b> ::error::"
    put(rows, "a", document)
    _, out, _ = run(rows, monkeypatch, capsys, "--base", "HEAD", "--format", "markdown")
    row = next(line for line in out.splitlines() if "disp" in line)
    assert row == (
        '| `a` | disp | `"Model a"` | ``"x`\\x7c@\u200borg/team <\u200bb> ::error::"`` |'
    )
    _, out, _ = run(rows, monkeypatch, capsys, "--base", "HEAD")
    assert r'"x`|@org/team <b> :\x3aerror:\x3a"' in out


def test_a_row_with_errors_is_not_on_the_new_board(rows, monkeypatch, capsys):
    put(rows, "c", small("c") | {"harness_version": ""})
    code, out, _ = run(rows, monkeypatch, capsys, "--base", "HEAD")
    assert code == 11
    assert "1 removed" in out
    assert "significance was not computed: the benchmark has no n_test for" in out
    assert (
        'not on the new board because `geneb-ci check` finds errors: "c.json" (wrong-length)' in out
    )
    put(rows, "d", small("d") | {"model_id": "another"})
    _, out, _ = run(rows, monkeypatch, capsys, "--base", "HEAD", "--format", "json")
    assert json.loads(out)["refused"] == [
        {"file": "c.json", "errors": 1, "rules": ["wrong-length"]},
        {"file": "d.json", "errors": 1, "rules": ["file-name-mismatch"]},
    ]


def test_a_row_that_was_broken_is_not_on_the_old_board(rows, monkeypatch, capsys):
    (rows / "submissions/c.json").write_text("{", encoding="utf-8")
    base = commit(rows)
    put(rows, "c")
    code, out, _ = run(rows, monkeypatch, capsys, "--base", base)
    assert (code, "1 added" in out) == (0, True)
    assert out.endswith('not on the old board, because it could not be read: "c.json"\n')


def test_a_tree_that_would_lead_us_out_of_it(rows, monkeypatch, capsys, tmp_path):
    """A link, a submodule, an attribute that runs a filter: bytes are read, nothing is run."""
    witness = tmp_path / "ran"
    git(rows, "config", "filter.x.smudge", f"touch {witness}; cat")
    (rows / ".gitattributes").write_text("* filter=x export-ignore\n", encoding="utf-8")
    (rows / "submissions/link.json").symlink_to("/etc/passwd")
    head = git(rows, "rev-parse", "HEAD")
    git(rows, "update-index", "--add", "--cacheinfo", f"160000,{head},submissions/module.json")
    git(rows, "add", ".gitattributes", "submissions/link.json")
    git(rows, "commit", "--quiet", "--message", "harm")
    for path in (".gitattributes", "submissions/link.json"):
        (rows / path).unlink()
    git(rows, "rm", "--quiet", "--cached", "submissions/module.json")
    code, out, err = run(rows, monkeypatch, capsys, "--base", "HEAD")
    assert (code, err) == (0, "")
    assert "no row differs" in out
    assert '"link.json"' in out
    assert not witness.exists()


def test_the_working_tree_and_the_index_are_left_as_they_are(rows, monkeypatch, capsys):
    before = git(rows, "status", "--porcelain"), sorted(rows.iterdir())
    put(rows, "e")
    git(rows, "add", "submissions/e.json")
    (rows / "submissions/e.json").unlink()
    status = git(rows, "status", "--porcelain")
    run(rows, monkeypatch, capsys, "--base", "HEAD")
    assert git(rows, "status", "--porcelain") == status
    assert before[1] == sorted(rows.iterdir())


FIX = "  fix: pass a commit, branch or tag that `git log` shows; `git fetch` gets newer ones\n"


@pytest.mark.parametrize(
    "name", ["nope", "--help", "-x", "HEAD:submissions", "$(id)", "HEAD^{tree}", "", "main\n::x"]
)
def test_a_name_that_is_no_commit(rows, monkeypatch, capsys, name):
    code, out, err = run(rows, monkeypatch, capsys, "--base", name)
    assert (code, out) == (2, "")
    assert err.startswith(f"geneb-ci: {rows}: ")
    assert err.endswith(f"is not a commit of this repository\n{FIX}")
    assert len(err.splitlines()) == 2


def test_a_commit_without_submissions(rows, monkeypatch, capsys):
    tree = git(rows, "mktree")
    empty = git(rows, "commit-tree", tree, "-m", "nothing")
    code, out, err = run(rows, monkeypatch, capsys, "--base", empty)
    assert (code, out) == (2, "")
    assert "has no submissions" in err


def test_a_commit_with_a_broken_benchmark_names_no_folder_of_ours(rows, monkeypatch, capsys):
    path = rows / "schemas/benchmark.json"
    sound = path.read_bytes()
    path.write_text("{}", encoding="utf-8")
    base = commit(rows)
    path.write_bytes(sound)
    code, out, err = run(rows, monkeypatch, capsys, "--base", base)
    assert (code, out) == (2, "")
    assert f"{base[:12]}:schemas/benchmark.json" in err


def test_outside_of_a_repository(tmp_path, monkeypatch, capsys):
    code, _, err = run(tmp_path, monkeypatch, capsys, "--base", "HEAD")
    assert (code, "the current folder is not in a repository of submissions" in err) == (2, True)


def test_below_the_top_of_a_repository(tmp_path, monkeypatch, capsys):
    root = small_repository(tmp_path / "inner", "a", "b")
    (root / ".git").rename(tmp_path / ".git")
    code, _, err = run(root, monkeypatch, capsys, "--base", "HEAD")
    assert (code, "are not at the root of the git repository" in err) == (2, True)
