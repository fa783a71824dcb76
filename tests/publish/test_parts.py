"""The parts of a publication: which files are the page's, what differs, what is wrong."""

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from geneb_ci.common.config import Layout, LayoutKind
from geneb_ci.common.errors import BadConfiguration
from geneb_ci.publish.difference import ChangeSign, SpaceFileChange, file_changes
from geneb_ci.publish.generation import Generation, _page_files, _require_default_paths
from geneb_ci.publish.manifest import MANIFEST_FILE, manifest_of
from geneb_ci.publish.push import BoardChange, dropped_files
from geneb_ci.publish.space import HubFileDigest, SpaceState

FILES = {"a.json": b"a", "b.json": b"bb", "z/c.js": b"ccc"}


def generation(files: Mapping[str, bytes]) -> Generation:
    return Generation(dict(files), manifest_of(files, "1" * 40))


def facts(content: bytes) -> HubFileDigest:
    """Return what the Hub says of a file: git's name of its bytes."""
    named = b"blob %d\0" % len(content) + content
    return HubFileDigest(hashlib.sha1(named, usedforsecurity=False).hexdigest(), None)


def live(made: Generation, others: Iterable[str] = ()) -> SpaceState:
    """Return a Space that holds a generation, and files of somebody else."""
    files = {name: facts(content) for name, content in made.published.items()}
    files |= {name: facts(b"theirs") for name in others}
    return SpaceState("2" * 40, files, made.manifest)


MADE = generation(FILES)


def test_the_page_is_all_of_its_folder_but_what_decides(tmp_path):
    for name in (
        *("index.html", "src/app.js", "src/policy/x.js", "policy/keys.json"),
        *("audits/model/x.json", "manifest.json", "src/manifest.json"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    assert dict(_page_files(tmp_path)) == {
        name: name.encode()
        for name in ("index.html", "src/app.js", "src/manifest.json", "src/policy/x.js")
    }


@pytest.mark.parametrize("name", ["submissions", "policy", "audits", "benchmark"])
def test_settings_that_the_ledger_does_not_follow_are_refused(tmp_path, name):
    layout = Layout(
        kind=LayoutKind.GENEB_CI,
        root=tmp_path,
        submissions=tmp_path / "submissions",
        policy=tmp_path / "leaderboard/policy",
        audits=tmp_path / "leaderboard/audits",
        benchmark=tmp_path / "schemas/benchmark.json",
    )
    _require_default_paths(layout)
    unset: dict[str, Any] = {name: None}
    elsewhere: dict[str, Any] = {name: tmp_path / "elsewhere"}
    _require_default_paths(dataclasses.replace(layout, **unset))
    with pytest.raises(BadConfiguration) as caught:
        _require_default_paths(dataclasses.replace(layout, **elsewhere))
    assert caught.value.message.startswith(
        f"pyproject.toml: [tool.geneb-ci] sets {name} to another path than "
    )


def test_a_space_that_holds_what_was_sent_has_nothing_wrong():
    after = live(MADE, ["README.md"])
    change = BoardChange(after, MADE.published, ["gone.json"], "", MADE.manifest)
    assert change.files_not_as_published(after) == set()
    assert dropped_files(after, MADE) == []


def test_all_that_is_wrong_is_named():
    after = live(MADE, ["README.md", "gone.json"])
    files = dict(after.files) | {"b.json": facts(b"other")}
    del files["a.json"]
    change = BoardChange(after, MADE.published, ["gone.json", "x.json"], "", MADE.manifest)
    wrong_files = change.files_not_as_published(dataclasses.replace(after, files=files))
    assert wrong_files == {"a.json", "b.json", "gone.json"}
    assert MANIFEST_FILE in change.files_not_as_published(dataclasses.replace(after, manifest=None))


def test_only_what_we_published_and_no_longer_have_is_dropped():
    less = generation({"a.json": b"a"})
    assert dropped_files(live(MADE, ["README.md"]), less) == ["b.json", "z/c.js"]
    assert dropped_files(dataclasses.replace(live(MADE), manifest=None), less) == []
    files = {name: file for name, file in live(MADE).files.items() if name != "b.json"}
    assert dropped_files(dataclasses.replace(live(MADE), files=files), less) == ["z/c.js"]


def test_each_file_has_its_sign():
    made = generation({"a.json": b"a", "b.json": b"new", "d.json": b"dddd"})
    size = len(made.published[MANIFEST_FILE])
    assert file_changes(live(MADE, ["README.md"]), made) == [
        SpaceFileChange(ChangeSign.SAME, "a.json", 1),
        SpaceFileChange(ChangeSign.CHANGED, "b.json", 3),
        SpaceFileChange(ChangeSign.ADDED, "d.json", 4),
        SpaceFileChange(ChangeSign.CHANGED, MANIFEST_FILE, size),
        SpaceFileChange(ChangeSign.REMOVED, "z/c.js", 0),
    ]
    assert [str(sign) for sign in ChangeSign] == ["+", "~", "-", "="]
    assert {file_change.sign for file_change in file_changes(SpaceState("2" * 40), made)} == {
        ChangeSign.ADDED
    }
