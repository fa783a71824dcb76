"""Canonical JSON: RFC 8785, and for every value that is hashed the bytes of earlier versions."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.audit.canonical import canonical_json, digest

SAFE = 2**53 - 1
"""The largest whole number that every reader of JSON keeps (RFC 8785, 3.2.2.3)."""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-SAFE, SAFE) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(max_codepoint=127)), inner)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_the_bytes_are_those_of_pythons_encoder_with_sorted_keys(value):
    """Commitments of earlier versions were written by it: their digests stay."""
    before = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert canonical_json(value) == before.encode()


def test_an_example_worked_out_by_hand():
    value = {"b": [1, True, None], "a": 'é\n"', "A": {}}
    assert canonical_json(value) == '{"A":{},"a":"é\\n\\"","b":[1,true,null]}'.encode()
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (0.5, TypeError, "has no floats, found 0.5"),
        ({"a": [1.0]}, TypeError, "has no floats, found 1.0"),
        ({"é": 1}, TypeError, "has ASCII keys, found 'é'"),
        ({1: 1}, TypeError, "has ASCII keys, found 1"),
        (SAFE + 1, ValueError, "this value has no canonical JSON: 9007199254740992 exceeds"),
        ("\ud800", ValueError, "this value has no canonical JSON: input contains non-UTF-8"),
        (b"raw", ValueError, "this value has no canonical JSON: unsupported type"),
    ],
)
def test_what_has_no_canonical_form_is_refused(value, error, message):
    with pytest.raises(error, match=message):
        canonical_json(value)
