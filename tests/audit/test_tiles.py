"""Files of a log: the layout of the specification, and entries that read back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb_ci.audit.log.tiles import BadBundle, read_entries, tile_files, tile_path
from reference_harness.formats.merkle import leaf_hash, root_of


def test_paths_are_those_of_the_specification():
    assert tile_path("tile/0", 1_234_067, 256) == "tile/0/x001/x234/067"
    assert tile_path("tile/1", 0, 17) == "tile/1/000.p/17"
    assert tile_path("tile/entries", 999, 256) == "tile/entries/999"


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, []),
        (1, ["tile/0/000.p/1", "tile/entries/000.p/1"]),
        (256, ["tile/0/000", "tile/1/000.p/1", "tile/entries/000"]),
        (
            257,
            [
                *("tile/0/000", "tile/0/001.p/1", "tile/1/000.p/1"),
                *("tile/entries/000", "tile/entries/001.p/1"),
            ],
        ),
    ],
)
def test_the_files_of_a_tree(size, expected):
    assert sorted(tile_files([b"%d" % one for one in range(size)])) == expected


def test_the_tiles_of_seventy_thousand_entries():
    files = tile_files([b""] * 70_000)
    names = [path for path in files if path.startswith("tile/0/")]
    assert (len(names), names[-1]) == (274, "tile/0/273.p/112")
    assert [path for path in files if path.startswith(("tile/1", "tile/2"))] == [
        *("tile/1/000", "tile/1/001.p/17", "tile/2/000.p/1")
    ]
    # The hash of a level is the root of the full tile below it.
    assert files["tile/2/000.p/1"] == root_of([leaf_hash(b"")] * 256 * 256)


@settings(max_examples=20)
@given(st.lists(st.binary(max_size=40), max_size=600))
def test_entries_read_back(entries):
    assert read_entries(tile_files(entries), len(entries)) == entries


def test_a_bundle_that_is_missing_or_cut_is_named():
    files = tile_files([b"one", b"two"])
    with pytest.raises(BadBundle, match=r"tile/entries/000\.p/3 is missing"):
        read_entries(files, 3)
    for cut in (b"", files["tile/entries/000.p/2"][:-1], b"\x00"):
        with pytest.raises(BadBundle, match=r"tile/entries/000\.p/2 is not 2 entries"):
            read_entries(files | {"tile/entries/000.p/2": cut}, 2)
