"""JSON is read as the stricter parser reads it, whichever of the two did."""

import json
import re
import sys

import pydantic_core
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference_harness.formats.files import DEPTH_MAX, read_json
from tests.each import each
from tests.hostile import corpus
from tests.submission.test_quick import PIECES
from tests.submission.test_scanner import SETTINGS, VALUES

INPUTS = corpus.inputs()


def alike(raw: bytes) -> None:
    try:
        expected = repr(pydantic_core.from_json(raw))
    except ValueError as error:
        with pytest.raises(ValueError, match=re.escape(str(error))):
            read_json(raw)
    else:
        assert repr(read_json(raw)) == expected


@each("name", sorted(INPUTS))
def test_hostile_inputs_are_read_alike(name):
    alike(INPUTS[name])


@SETTINGS
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=2), max_size=12).map("".join))
@example('{"a":1,"a":2}')
@example('"\\ud800"')
@example("\ufeff{}")
@example("1" * 5000)
@example("-Infinity")
@example("[" * DEPTH_MAX + "]" * DEPTH_MAX)
@example("[" * 300 + "]" * 300)
@example("[" * 100_000)
def test_any_text_is_read_alike(text):
    alike(text.encode("utf-8", "surrogatepass"))


@SETTINGS
@given(VALUES)
def test_any_value_is_read_alike(value):
    alike(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("own", [False, True])
def test_depth_is_limited_where_a_library_has_raised_the_interpreters_limit(own):
    """Python 3.11 itself reads any depth then, and ends the process with a segmentation fault."""
    sys.setrecursionlimit(10**6)  # a fixture restores it
    assert read_json(b'{"a": [1, "\\n"]}', is_own=own) == {"a": [1, "\n"]}
    with pytest.raises(ValueError, match="recursion limit"):
        read_json(b"[" * 10**5, is_own=own)


def test_values_are_counted_before_a_text_is_parsed(monkeypatch):
    """A list of empty lists takes fifty times its bytes in memory."""
    raw = b'{"a": [1, 2, {"b": null}]}'
    assert read_json(raw, values_max=6) == {"a": [1, 2, {"b": None}]}
    for name in ("json.loads", "pydantic_core.from_json"):
        monkeypatch.setattr(name, lambda _: pytest.fail("a text was parsed"))
    for text in (raw, b"[" + b"[]," * 10**6):
        with pytest.raises(ValueError, match="it may have more than 5 values"):
            read_json(text, values_max=5)
