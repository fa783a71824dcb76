"""What must not matter: the order of keys and files, what is not there, who stands beside whom."""

import json
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb_ci.check.rule import primary_scores
from geneb_ci.common.finding import ROWS_MIN
from geneb_ci.statistics.reference import ScoreTable, ridge_fit_of
from geneb_ci.statistics.view import RowView, finding_score, leave_one_out_of, view_of
from geneb_ci.submission.peers import COMPARED_ROWS_MAX, Peers, peers_of
from reference_harness.formats.benchmark import Benchmark
from tests.examples import examples
from tests.paths import SUBMISSIONS
from tests.statistics.plausibility.conftest import Document, Judge, changed, check, public, rules_of


def shuffled(value: object, drawn: random.Random) -> object:
    if not isinstance(value, dict):
        return value
    keys = list(value)
    drawn.shuffle(keys)
    return {key: shuffled(value[key], drawn) for key in keys}


def test_order_of_keys_and_files_changes_nothing(board: Path, tmp_path: Path) -> None:
    """Of all files; every fourth is checked."""
    drawn = random.Random(11)
    checked = sorted(SUBMISSIONS.glob("*.json"))[::4]
    expected = {(f.rule, f.pointer, f.message, f.score) for f in check(*checked)}
    assert expected
    shutil.copytree(board, tmp_path, dirs_exist_ok=True)
    paths = list((tmp_path / "submissions").glob("*.json"))
    for path in paths:
        path.write_text(json.dumps(shuffled(json.loads(path.read_bytes()), drawn)))
    drawn.shuffle(paths)
    moved = [path for path in paths if path.name in {public.name for public in checked}]
    assert {(f.rule, f.pointer, f.message, f.score) for f in check(*moved)} == expected


def test_adding_nothing_changes_nothing(judge: Judge) -> None:
    before = judge(public("BioFM-265M"))
    assert before
    assert judge(changed(public("BioFM-265M"), lambda _r, _t, x: x + 0.0)) == before


@settings(max_examples=examples(40))
@given(
    number=st.integers(0, 40),
    cell=st.integers(0, 299),
    value=st.floats(-1, 1),
)
def test_a_cell_is_no_witness_in_its_own_case(
    table: ScoreTable, number: int, cell: int, value: float
) -> None:
    """Its prediction is the same whatever it says, as long as it is not clipped."""
    fit = ridge_fit_of(table)
    assert fit is not None
    row = table.vectors[number]
    usual, reach = fit.centre.medians[cell], fit.centre.clip_distances[cell]
    moved = (*row[:cell], min(1, max(-1, usual + value * reach)), *row[cell + 1 :])
    before, after = (leave_one_out_of(r, fit, number) for r in (row, moved))
    assert before is not None
    assert after is not None
    if abs(row[cell] - usual) <= reach:
        assert after.predicted[cell] == pytest.approx(before.predicted[cell], abs=1e-9)


@settings(max_examples=examples(40))
@given(size=st.floats(0, 1e300), limit=st.floats(1e-9, 1e300))
def test_scores_lie_between_one_and_ten(size: float, limit: float) -> None:
    assert 1 <= finding_score(size, limit) <= 10


@pytest.mark.parametrize("others", [0, 1, ROWS_MIN - 1])
def test_too_few_rows_say_nothing(board: Path, tmp_path: Path, others: int) -> None:
    for part in ("schemas", "leaderboard"):
        shutil.copytree(board / part, tmp_path / part)
    (tmp_path / "submissions").mkdir()
    document = changed(
        public("GROVER"), lambda _r, t, x: 0.9912345678912345 if t.endswith("_H3") else x
    )
    path = tmp_path / "submissions" / "GROVER.json"
    path.write_text(json.dumps(document))
    for other in sorted(SUBMISSIONS.glob("[a-n]*.json"))[:others]:
        shutil.copy(other, path.parent)
    assert len(list(path.parent.iterdir())) == others + 1
    assert rules_of(check(path)) == set()


@pytest.mark.parametrize(
    "results",
    [
        {},
        {"full": {}},
        {"full": {"leannmlindsey_GUE_mouse_0": {"MCC": None}}},
        {"full": {"leannmlindsey_GUE_mouse_0": {"MCC": 10**400}}},
        {"full": {"leannmlindsey_GUE_mouse_0": {"MCC": True}}, "10shot": []},
    ],
    ids=["empty", "no-task", "null", "huge", "wrong-types"],
)
def test_broken_results_crash_nothing(judge: Judge, results: Document) -> None:
    document = public("GROVER")
    document["results"] = results
    assert "check-crashed" not in rules_of(judge(document))


def test_broken_peers_crash_nothing(board: Path) -> None:
    folder = board / "submissions"
    broken = {
        "a.json": b"",
        "b.json": b'{"results": {"full": {"leannmlindsey_GUE_mouse_0": {"MCC": 1e999}}}}',
        "c.json": b'{"results": {"full": {"leannmlindsey_GUE_mouse_0": {"MCC": NaN}}}}',
        "d.json": b'{"results": [1]}',
    }
    try:
        for name, raw in broken.items():
            (folder / name).write_bytes(raw)
        assert rules_of(check(folder / "GROVER.json")) == set()
    finally:
        for name in broken:
            (folder / name).unlink()


def test_rows_kept_are_bounded(tmp_path: Path, benchmark: Benchmark) -> None:
    raw = json.dumps({"results": {"full": {"leannmlindsey_GUE_mouse_0": {"MCC": 0.5}}}})
    for number in range(COMPARED_ROWS_MAX + 20):
        (tmp_path / f"m{number}.json").write_text(raw)
    peers = peers_of(tmp_path.glob("*.json"))
    assert len(peers.rows) == COMPARED_ROWS_MAX
    assert [row.path for row in peers.rows] == sorted(row.path for row in peers.rows)
    assert {row.path for row in peers.rows} == {
        row.path for row in peers_of(tmp_path.glob("*.json")).rows
    }
    assert len(peers.paths_by_digest) == 1
    view = view_of(primary_scores({}, benchmark), tmp_path / "m0.json", peers, benchmark)
    assert isinstance(view, RowView)
    assert view.prediction is None
    assert Peers().rows == ()
