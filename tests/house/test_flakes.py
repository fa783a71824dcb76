"""`make flakes` names a property test that some seed breaks, and the seed."""

import pytest

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


def test_a_flake_is_named_with_its_seed(tmp_path, capsys):
    path = tmp_path / "test_x.py"
    path.write_text(FLAKY)
    options = [str(path), "-c", "/dev/null", "--rootdir", str(tmp_path)]
    assert main(2, 7, options) == 1
    seven, early, eight, again, name, first, last = capsys.readouterr().out.splitlines()
    assert [seven, eight] == ["seed 7: 1 failed", "seed 8: 1 failed"]
    assert early == again == f"  {name}"
    assert "test_x.py::test_flaky" in name
    assert first == "  with --hypothesis-seed=7, and 1 more"
    assert last == "2 seeds: 1 flaky tests"
    path.write_text(FLAKY.replace("x < 9", "x < 11"))
    assert main(1, 1, options) == 0


def test_a_run_that_collects_nothing_is_no_success(tmp_path):
    with pytest.raises(RuntimeError, match="seed 1: "):
        failures(1, [str(tmp_path), "-c", "/dev/null"])


def test_the_files_of_property_tests_are_found_by_their_text():
    files = property_files()
    assert "tests/render/test_markdown.py" in files
    assert len(files) > 30
