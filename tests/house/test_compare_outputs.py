"""Two versions are compared by every output, and a difference is shown."""

from pathlib import Path

from tools.compare_outputs import copy_own_files, differences, drop_digests


def test_changed_lost_and_new_outputs_are_listed(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for side, files in (
        (before, {"same": "a", "check": "one\ntwo\nexit 0\n", "lost": "x"}),
        (after, {"same": "a", "check": "one\n2\nexit 0\n", "board/new": "x"}),
    ):
        for name, text in files.items():
            (side / name).parent.mkdir(parents=True, exist_ok=True)
            (side / name).write_text(text, encoding="utf-8")
    listed = list(differences(before, after))
    assert [line.split("\n")[0] for line in listed] == [
        "board/new: only after",
        "check: 5 lines of difference",
        "lost: only before",
    ]
    assert "-two\n    +2" in listed[1]
    assert list(differences(after, after)) == []


def test_digests_of_a_board_do_not_hide_what_differs_in_its_files(tmp_path: Path) -> None:
    digest = "0123456789abcdef"
    texts = {
        "index.html": f'<script src="board-data.{digest}.js"></script>',
        f"board-data.{digest}.js": f"the data of {digest}",
        "badges/model.svg": "fedcba9876543210",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    drop_digests(tmp_path)
    written = {str(p.relative_to(tmp_path)): p.read_text() for p in tmp_path.rglob("*.*")}
    assert written == {
        "index.html": '<script src="board-data.DIGEST.js"></script>',
        "board-data.DIGEST.js": "the data of DIGEST",
        "badges/model.svg": "fedcba9876543210",
    }


def test_each_version_reads_its_own_policy(tmp_path: Path) -> None:
    for version in ("old", "new"):
        policy = tmp_path / version / "leaderboard/policy"
        policy.mkdir(parents=True)
        (policy / f"{version}.toml").write_text(version)
        (tmp_path / version / "schemas").mkdir()
        (tmp_path / version / "schemas/benchmark.json").write_text(version)
        copy_own_files(tmp_path / version, tmp_path / "inputs")
    inputs = tmp_path / "inputs"
    assert [p.name for p in (inputs / "public/leaderboard/policy").iterdir()] == ["new.toml"]
    assert {p.read_text() for p in inputs.glob("*/schemas/benchmark.json")} == {"new"}
