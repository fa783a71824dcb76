"""How far devices lie apart, as an audit's record says: measured, or taken to be far."""

import itertools
import json
from typing import Any

import pytest

from geneb_ci.audit.compare import tasks as compare
from geneb_ci.common.errors import BrokenInstallation
from tests.paths import ROOT

ENTRIES = [
    {"claimed": "cpu", "rerun": "cpu", "dtype": "float32", "row_max": 1e-6, "record_mcc": 0.01},
    {"claimed": "cpu", "rerun": "cpu", "dtype": "float32", "row_max": 3e-6, "record_mcc": 0.002},
    {"claimed": "cpu", "rerun": "cpu", "dtype": "bfloat16", "row_max": 1e-2, "record_mcc": 0.5},
    {"claimed": "cpu", "rerun": "cuda", "dtype": "float32", "row_max": 2e-5, "record_mcc": 0.02},
    {"claimed": "cpu", "rerun": "cuda", "dtype": "bfloat16", "row_max": None, "record_mcc": None},
]


@pytest.fixture
def atlas_of(tmp_path, monkeypatch):
    """Return what writes a table that stands for the shipped one."""

    def write(text: str) -> None:
        (tmp_path / "atlas.json").write_text(text, encoding="utf-8")
        compare.device_table.cache_clear()

    monkeypatch.setattr(compare, "shipped", lambda _, name: tmp_path / name)
    yield write
    compare.device_table.cache_clear()


def apart(claimed: str | None, rerun: str, dtype: str) -> Any:
    """Return what the table says, to be compared with approximate numbers."""
    return compare.device_difference(claimed, rerun, dtype)


def test_devices_are_as_far_apart_as_the_farthest_of_their_entries(atlas_of):
    atlas_of(json.dumps({"entries": ENTRIES}))
    assert apart("cpu", "cpu", "float32") == (3e-6, 0.01, True)
    assert apart("cpu", "cuda", "float32") == (2e-5, 0.02, True)
    assert apart("cuda", "cpu", "float32") == (2e-5, 0.02, True)
    assert compare.device_note("cpu", "cuda", "float32") == (
        "devices: between cpu and cuda in float32, other kernels and batches were measured to move "
        "embeddings by up to 2.0e-05 of their length and a task's MCC by 0.0200"
    )


@pytest.mark.parametrize("claimed", ["cuda", "mps", None])
def test_what_was_not_measured_is_taken_to_be_far_apart(atlas_of, claimed):
    """By eight times the farthest of the dtype, and no MCC lies more than 2 from another."""
    atlas_of(json.dumps({"entries": ENTRIES}))
    distance = apart(claimed, "cuda", "float32")
    assert distance == (pytest.approx(8 * 2e-5), pytest.approx(8 * 0.02), False)
    assert apart(claimed, "cuda", "bfloat16") == (pytest.approx(0.08), 2.0, False)
    assert apart(claimed, "cpu", "float16") == (pytest.approx(0.08), 2.0, False)
    assert compare.device_note(claimed, "cuda", "float32") == (
        f"devices: {claimed or 'an unknown device'} and cuda in float32 were never compared; 8 "
        "times the largest measured difference would move embeddings by up to 1.6e-04 of their "
        "length and a task's MCC by 0.1600, so confirm a claim that differs on the claim's device"
    )


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"entries": [{}]}', '{"entries": 1}'])
def test_a_table_that_cannot_be_read_is_a_broken_installation(atlas_of, text):
    atlas_of(text)
    with pytest.raises(BrokenInstallation, match=r"atlas\.json cannot be read"):
        compare.device_difference("cpu", "cpu", "float32")


def test_the_shipped_table_has_this_kind_of_machine_and_marks_what_it_lacks():
    value = json.loads((ROOT / "schemas/atlas.json").read_bytes())
    known = {(entry["claimed"], entry["rerun"], entry["dtype"]) for entry in value["entries"]}
    pairs = itertools.combinations_with_replacement(("cpu", "cuda", "mps"), 2)
    assert known >= {(*pair, dtype) for pair in pairs for dtype in ("float32", "bfloat16")}
    for dtype in ("float32", "bfloat16"):
        device_difference = compare.device_difference("cpu", "cpu", dtype)
        assert device_difference.is_measured
        assert 0 < device_difference.embedding_distance < 0.1
