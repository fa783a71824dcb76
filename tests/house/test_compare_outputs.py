"""Two versions are compared by every output, and a difference is shown."""

from pathlib import Path

from tools.compare_outputs import differences


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
