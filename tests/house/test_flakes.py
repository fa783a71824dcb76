"""`make flakes` names a property test that some seed breaks, and the seed."""

import pytest

from tests import flakes
from tests.flakes import failures, main, property_files

FLAKY = """
from hypothesis import given, settings, strategies as st

@settings(database=None)
@given(st.integers(0, 10))
def test_flaky(x):
    assert x < 9

@given(st.integers())
def test_sound(x):
    assert x == x
"""


@pytest.mark.nightly  # a test of a tool: `make flakes` runs the same
def test_a_flake_is_found(tmp_path):
    path = tmp_path / "test_x.py"
    path.write_text(FLAKY)
    (name,) = failures(7, [str(path), "-c", "/dev/null", "--rootdir", str(tmp_path)])
    assert "test_x.py::test_flaky" in name


def test_a_flake_is_named_with_its_seed(monkeypatch, capsys):
    flaky: dict[int, list[str]] = {7: ["x"], 8: ["x"], 9: []}
    monkeypatch.setattr(flakes, "failures", lambda seed, _: flaky[seed])
    assert main(2, 7, []) == 1
    assert capsys.readouterr().out.splitlines() == [
        *("seed 7: 1 failed", "  x", "seed 8: 1 failed", "  x"),
        *("x", "  with --hypothesis-seed=7, and 1 more", "2 seeds: 1 flaky tests"),
    ]
    assert main(1, 9, []) == 0


@pytest.mark.nightly  # a test of a tool: `make flakes` runs the same
def test_a_run_that_collects_nothing_is_no_success(tmp_path):
    with pytest.raises(RuntimeError, match="seed 1: "):
        failures(1, [str(tmp_path), "-c", "/dev/null"])


def test_the_files_of_property_tests_are_found_by_their_text():
    files = property_files()
    assert "tests/render/test_markdown.py" in files
    assert len(files) > 30
