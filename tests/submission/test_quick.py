"""The quick reader gives what the scanner gives, or leaves the text to it."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from geneb_ci.submission.document import quick_value
from geneb_ci.submission.reading import decode
from geneb_ci.submission.scanner import (
    DEPTH_MAX,
    NUMBERS_IN_LISTS_MAX,
    VALUES_OUTSIDE_LISTS_MAX,
    scan,
)
from geneb_ci.submission.tokens import UNUSABLE
from tests.each import each
from tests.hostile import corpus
from tests.small import small, small_v11
from tests.submission.test_scanner import SETTINGS, VALUES

INPUTS = corpus.inputs()
PIECES = ['{"', '":', ",", "[", "]", "}", '"', "1", "-0", "-0.0", "1e400", "1e-400", "0e-5", "0.00"]
PIECES += ["NaN", "-Infinity", "true", "null", "\\u0041", "\u200b", "\x7f", "\n", "\u00e9", "a"]


def alike(text: str) -> bool:
    """Whether the quick reader read the text; where it did, its value is the scanner's."""
    value = quick_value(text)
    if value is UNUSABLE:
        return False
    findings = scan(text)
    # repr: 1 is not 1.0, and -0.0 is not 0.0.
    assert (repr(value), findings.faults) == (repr(findings.value), [])
    return True


@each("name", sorted(INPUTS))
def test_hostile_inputs_are_read_as_the_scanner_reads_them(name):
    text, readable, _ = decode(INPUTS[name])
    if readable:
        alike(text)


@SETTINGS
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=2), max_size=12).map("".join))
@example('{"a":1,"a":1}')
@example('{"a":-0.0,"b":-0,"c":0.0e9}')
@example('{"a":' + "1" * 33 + "}")
@example('{"' + "a" * 301 + '":1}')
@example("[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1))
@example("[" * 100_000)
@example("[" + "null," * VALUES_OUTSIDE_LISTS_MAX + "1]")
@example("[" + "1," * NUMBERS_IN_LISTS_MAX + "1]")
def test_any_text_is_read_as_the_scanner_reads_it(text):
    alike(text)


@SETTINGS
@given(VALUES)
def test_any_value_is_read_as_the_scanner_reads_it(value):
    alike(json.dumps(value, ensure_ascii=False))


@pytest.mark.parametrize(
    "limit",
    [
        "[" * DEPTH_MAX + "]" * DEPTH_MAX,
        "[" + "null," * (VALUES_OUTSIDE_LISTS_MAX - 2) + "1, null]",
        "[" + "1," * (NUMBERS_IN_LISTS_MAX - 1) + "1]",
    ],
)
def test_what_is_within_the_limits_is_read(limit):
    assert alike(limit)


@pytest.mark.parametrize("document", [small("a"), small_v11("b")])
def test_a_sound_submission_is_read_quickly(document):
    assert alike(json.dumps(document, indent=1))
