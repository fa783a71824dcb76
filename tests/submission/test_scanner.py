"""Laws of the scanner: it reads what json reads, refuses what json lets by, and never raises."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geneb_ci.check.registry import RULES
from geneb_ci.check.runner import Checker
from geneb_ci.common.finding import HIDING_CHARACTERS, KeyPath, Position
from geneb_ci.submission.document import Document, parse_document
from geneb_ci.submission.scanner import DEPTH_MAX, Scan, scan
from geneb_ci.submission.structure import check_structure
from geneb_ci.submission.tokens import UNUSABLE
from tests.examples import examples
from tests.small import small, small_v11

SETTINGS = settings(max_examples=examples(300), derandomize=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(
    lambda text: HIDING_CHARACTERS.search(text) is None
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
INTEGERS = st.integers(-(10**30), 10**30)
SCALARS = st.none() | st.booleans() | INTEGERS | FLOATS | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)
)


def depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0)


VALUES = VALUES.filter(lambda value: depth(value) <= DEPTH_MAX)


def members(value: Any, key_path: KeyPath = ()) -> dict[KeyPath, Any]:
    values_by_path = {key_path: value}
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            values_by_path.update(members(inner, (*key_path, key)))
    return values_by_path


def spans_hold(text: str, result: Scan, value: Any) -> None:
    """Hold that every member has a span, and that the text there says the member."""
    expected = members(value)
    assert set(result.spans) == set(expected)
    for name, member in expected.items():
        span = result.spans[name]
        assert json.loads(text[span.start : span.end]) == member
        if name and isinstance(name[-1], str):
            assert (
                json.loads(text[span.key : text.index(":", _key_end(text, span.key))]) == name[-1]
            )
        else:
            assert span.key == -1


def _key_end(text: str, at: int) -> int:
    """Return the offset after the key that begins at a quotation mark."""
    return at + json.JSONDecoder().raw_decode(text[at:])[1]


@SETTINGS
@given(value=VALUES, indent=st.sampled_from([None, 0, 1, 4]), ascii_only=st.booleans())
def test_what_json_writes_is_read_as_it_was(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    result = scan(text)
    assert result.faults == []
    assert result.value == value
    assert [type(v) for v in members(result.value).values()] == [
        type(v) for v in members(value).values()
    ]
    spans_hold(text, result, value)


# Pieces of JSON, right and wrong, so that arbitrary texts reach every branch.
PIECES = st.lists(
    st.sampled_from(
        [
            *(
                '{"',
                '":',
                '"',
                "{",
                "}",
                "[",
                "]",
                ",",
                ":",
                " ",
                "\n",
                "\r\n",
                "\t",
                '"a"',
                '"b":',
            ),
            *("0", "-0.0", "1", "-", "1e5", "1e999", "1e-999", "0.5", ".5", "01", "+1", "1_0"),
            *("true", "false", "null", "NaN", "-Infinity", "None", "nul", "\\", "\\u00", "\\ud83d"),
            *(
                "\\ude00",
                "\\n",
                "\\x",
                "\x00",
                "\x1b",
                "\u2028",
                "\ufeff",
                "\u0660",
                "//",
                "/*",
                "#",
            ),
            *("9" * 40, "[" * 20, '{"a":' * 20, "\ud800", "\u00e9", "\U0001f9ec"),
        ]
    ),
    max_size=30,
).map("".join)


@SETTINGS
@given(text=PIECES | st.text(max_size=50))
@example("")
@example('{"a":1,"a":NaN}')
@example('["\ud83d\\ude00"]')
def test_no_text_raises_and_what_is_accepted_json_accepts(text):
    result = scan(text)
    for fault in result.faults:
        assert fault.at is not None
        assert 0 <= fault.at <= len(text)
    if not result.faults:
        assert result.value == json.loads(text, parse_constant=pytest.fail)
        spans_hold(text, result, result.value)
    else:
        document = Document("x", Path("x"), "", text, result.value, result.spans, ())
        for fault in result.faults:
            line, column = document.position(document.offset(fault))
            assert 1 <= line <= text.count("\n") + 1
            assert column >= 1


@SETTINGS
@given(raw=st.binary(max_size=200) | PIECES.map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(b"\xef\xbb\xbf")
@example(b"\xef\xbb\xbf\xff")
@example(b"\xc0\xaf")
def test_no_bytes_raise(raw):
    document = parse_document(raw, Path("x.json"), "x.json")
    check_structure(document.value)
    if not document.faults:
        assert document.value == json.loads(raw.decode("utf-8"), parse_constant=pytest.fail)


SOUND = json.dumps(small("model")).encode(), json.dumps(small_v11("model"), indent=1).encode()
BYTES = st.sampled_from(
    [b"", *(bytes([n]) for n in range(256)), b"NaN", b"\\u0000", b'"x":', b"1e999"]
)
EDITS = st.lists(
    st.tuples(st.sampled_from(["flip", "insert", "delete", "swap"]), st.floats(0, 1), BYTES),
    min_size=1,
    max_size=6,
)


def edited(raw: bytes, edits: list[tuple[str, float, bytes]]) -> bytes:
    for action, share, piece in edits:
        at = int(share * (len(raw) - 1))
        if action == "flip":
            raw = raw[:at] + bytes([raw[at] ^ (1 << len(piece))]) + raw[at + 1 :]
        elif action == "insert":
            raw = raw[:at] + piece + raw[at:]
        elif action == "delete":
            raw = raw[:at] + raw[at + 1 + len(piece) :]
        else:
            raw = raw[at:] + raw[:at]
        raw = raw or b"{"
    return raw


@SETTINGS
@given(sound=st.sampled_from(SOUND), edits=EDITS)
def test_an_edited_submission_never_crashes_a_rule(tmp_path_factory, sound, edits):
    path = tmp_path_factory.getbasetemp() / "edited.json"
    path.write_bytes(edited(sound, edits))
    result = Checker(RULES).check(path)
    assert [f for f in result.findings if f.rule == "check-crashed"] == []
    text = result.document.text
    for finding in result.findings:
        assert 1 <= finding.line <= text.count("\n") + 1
        assert 1 <= finding.column <= len(text) + 1


@SETTINGS
@given(text=st.text("a\u00e9\U0001f9ec\r\n", max_size=60), share=st.floats(0, 1))
def test_line_and_column_lead_back_to_the_place(text, share):
    """A line ends with LF alone; a column counts code points, the CR of a CRLF included."""
    offset = int(share * len(text))
    document = Document("x", Path("x"), "", text, None, {}, ())
    line, column = document.position(offset)
    lines = text.split("\n")
    assert sum(len(before) + 1 for before in lines[: line - 1]) + column - 1 == offset
    assert column <= len(lines[line - 1]) + 1
    cut, at = document.excerpt(line, column)
    assert cut[at:].startswith(lines[line - 1][column - 1 :][: len(cut) - at])
    assert "\n" not in cut


@pytest.mark.parametrize(
    ("text", "text_position", "expected"),
    [
        ('{"a":\r\n "\u00e9\U0001f9ec", "b": 1}', ("b",), Position(2, 13)),
        ('{"\U0001f9ec": {"b": 1}}', ("\U0001f9ec", "b"), Position(1, 13)),
        ("[\n\n 1]", (0,), Position(3, 2)),
        ("[\r 1]", (0,), Position(1, 4)),
    ],
)
def test_positions_by_hand(text, text_position, expected):
    document = parse_document(text.encode(), Path("x"), "x")
    span = document.span(text_position)
    assert span is not None
    assert document.position(span.start) == expected


@pytest.mark.parametrize(
    ("token", "value"),
    [
        ("-0", 0),
        ("-0.0", 0.0),
        ("1E5", 1e5),
        ("5e-324", 5e-324),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("0e-9999", 0.0),
        ("0.30000000000000004", 0.30000000000000004),
    ],
)
def test_numbers_at_their_limits(token, value):
    result = scan(token)
    assert (result.faults, result.value) == ([], value)
    assert math.copysign(1, result.value) == 1


@pytest.mark.parametrize("token", ["2e-324", "1e309", "-1e309", "0." + "0" * 31, "1" * 33])
def test_numbers_beyond_their_limits(token):
    result = scan(token)
    assert result.value is UNUSABLE
    assert len(result.faults) == 1
