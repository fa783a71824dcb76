"""Inputs 1 to 20: bytes that are no JSON text, and texts that are not what they seem."""

import io
import struct
import zipfile
import zlib

from tests.hostile.case import CELL, NOTE, Case, Says, added, edited, field, token
from tests.hostile.text import MARK, Members, Place, Raw, written
from tests.small import small


def whole(rule: str, message: str) -> tuple[Says, ...]:
    return (Says(rule, "", message),)


def sound(name: str) -> str:
    return written(small(name)) + "\n"


def at_top(name: str, value: str, kind: str) -> Case:
    says = whole("not-an-object", f"the document is {kind}")
    return Case(1, f"top-{name}", MARK + value + "\n", says, ())


EMPTY = [
    Case(1, "empty", b"", whole("empty-file", "the file is empty"), ()),
    Case(1, "blank", b" \t\r\n\n", whole("empty-file", "the file is empty"), ()),
    at_top("null", "null", "null"),
    at_top("array", "[]", "an array"),
    at_top("text", '"x"', "a text"),
    at_top("number", "1", "a number"),
    at_top("true", "true", "true or false"),
]


def twice(name: str, key: str, value: object, path: str, plain: str) -> Case:
    says = (
        Says("duplicate-key", f"/{path}/{plain}", f'the key "{plain}" stands twice in one object'),
    )
    return Case(
        2, f"duplicate-key-{name}", added(f"duplicate-key-{name}", path, (Raw(key), value)), says
    )


DUPLICATES = [
    twice("same-value", f'{MARK}"params"', 86000000, "meta", "params"),
    twice("other-value", f'{MARK}"MCC"', 0.99, CELL, "MCC"),
    twice("escaped", f'{MARK}"\\u004dCC"', 0.99, CELL, "MCC"),
    twice("of-a-task", f'{MARK}"promoter_tata"', {"MCC": 2}, "results/full", "promoter_tata"),
    twice("of-a-regime", f'{MARK}"full"', {}, "results", "full"),
    Case(
        2,
        "duplicate-key-at-top",
        Members([*small("duplicate-key-at-top").items(), (Raw(f'{MARK}"model_id"'), "other")]),
        (Says("duplicate-key", "/model_id", 'the key "model_id" stands twice in one object'),),
    ),
    Case(
        2,
        "duplicate-key-three-times",
        added("duplicate-key-three-times", CELL, *[(Raw(f'{MARK}"F1"'), 0.5)] * 2),
        (Says("duplicate-key", f"/{CELL}/F1", 'the key "F1" stands twice in one object'),) * 2,
    ),
    Case(
        2,
        "duplicate-key-inside-a-duplicate",
        added(
            "duplicate-key-inside-a-duplicate",
            "results",
            (Raw(f'{MARK}"full"'), Members([("a", 1), (Raw(f'{MARK}"a"'), 2)])),
        ),
        (
            Says("duplicate-key", "/results/full", 'the key "full" stands twice in one object'),
            Says("duplicate-key", "/results/full/a", 'the key "a" stands twice in one object'),
        ),
    ),
]

_NO_NUMBER = "is not a number of JSON"
_INFINITE = "is too large: it would be read as infinity"
NUMBERS = [
    *(
        token(3, name, word, "non-finite-number", f"{word} {_NO_NUMBER}")
        for name, word in (
            ("nan-score", "NaN"),
            ("infinity-score", "Infinity"),
            ("minus-infinity-score", "-Infinity"),
            ("lower-case-nan-score", "nan"),
        )
    ),
    token(4, "overflow-score", "1e400", "non-finite-number", f"1e400 {_INFINITE}"),
    token(4, "negative-overflow-score", "-1e400", "non-finite-number", f"-1e400 {_INFINITE}"),
    Case(
        5,
        "integer-of-5000-digits",
        edited("integer-of-5000-digits", "meta/params", Raw(MARK + "7" * 5000)),
        (Says("unrepresentable-number", "/meta/params", "a number of 5,000 characters"),),
    ),
    token(
        6,
        "score-of-33-characters",
        "0." + "3" * 31,
        "unrepresentable-number",
        "a number of 33 characters",
    ),
]


def encoded(name: str, encoding: str, bom: bytes, what: str) -> Case:
    data = bom + sound(f"encoding-{name}").encode(encoding)
    return Case(7, f"encoding-{name}", data, whole("wrong-encoding", f"the file is {what}"), ())


_WIDE = "UTF-16 or UTF-32 text"
ENCODINGS = [
    encoded("utf-16-le-marked", "utf-16-le", b"\xff\xfe", _WIDE),
    encoded("utf-16-be-marked", "utf-16-be", b"\xfe\xff", "UTF-16 text"),
    encoded("utf-16-le", "utf-16-le", b"", _WIDE),
    encoded("utf-16-be", "utf-16-be", b"", _WIDE),
    encoded("utf-32-le-marked", "utf-32-le", b"\xff\xfe\x00\x00", _WIDE),
    encoded("utf-32-be-marked", "utf-32-be", b"\x00\x00\xfe\xff", "UTF-32 text"),
    encoded("utf-32-le", "utf-32-le", b"", _WIDE),
    encoded("utf-32-be", "utf-32-be", b"", _WIDE),
    Case(
        8,
        "byte-order-mark",
        b"\xef\xbb\xbf" + sound("byte-order-mark").encode(),
        whole("wrong-encoding", "the file begins with a byte order mark"),
    ),
]


def broken_byte(name: str, data: bytes, byte: str) -> Case:
    name = f"encoding-{name}"
    raw = sound(name).encode().replace(b"A. Contributor", b"A. " + data)
    at = raw.index(b"A. " + data) + 3
    lines = raw[:at].split(b"\n")
    says = whole("wrong-encoding", f"byte 0x{byte} at offset {at} is not UTF-8")
    return Case(11, name, raw, says, (), Place(len(lines), len(lines[-1]) + 1))


BYTES = [
    broken_byte("latin-1", "\xc9lodie".encode("latin-1"), "C9"),
    broken_byte("bare-continuation", b"\x80", "80"),
    broken_byte("overlong-slash", b"\xc0\xaf", "C0"),
    broken_byte("surrogate-as-utf-8", b"\xed\xa0\x80", "ED"),
    broken_byte("beyond-unicode", b"\xf4\x90\x80\x80", "F4"),
    broken_byte("cut-character", b"\xe2\x82", "E2"),
]


def nested(name: str, opening: str, closing: str, levels: int) -> Case:
    """Nest in results: the document is the first level, and 15 more may stand in it."""
    depth = 15
    inner = opening * depth + MARK + opening * (levels - depth) + "1" + closing * levels
    text = written(edited(name, "results", Raw(inner)))
    pointer = "/results" + ("/0" if opening == "[" else "/a") * depth
    says = (Says("too-deep", pointer, "values are nested deeper than 16 levels"),)
    return Case(9, name, text, says, ())


DEPTHS = [
    nested("seventeen-levels", "[", "]", 16),
    nested("thousand-arrays", "[", "]", 1000),
    nested("thousand-objects", '{"a":', "}", 1000),
]

_HALF = "half of a pair: it is no character"
_HIDDEN = "which hides or reorders what people see"
_FORBIDDEN = [
    ("escaped-nul", "\\u0000", "U+0000"),
    ("escaped-ansi", "\\u001b[2J", "U+001B"),
    ("next-line", "\u0085", "U+0085"),
    ("line-separator", "\u2028", "U+2028"),
    ("line-separator-escaped", "\\u2028", "U+2028"),
    ("right-to-left-override", "\u202e", "U+202E"),
    ("isolate", "\u2066", "U+2066"),
    ("zero-width-space", "\u200b", "U+200B"),
    ("soft-hyphen", "\u00ad", "U+00AD"),
    ("delete", "\x7f", "U+007F"),
    ("hangul-filler", "\u3164", "U+3164"),
    ("tag", "\U000e0041", "U+E0041"),
]
CHARACTERS = [
    *(
        field(
            10, f"lone-surrogate-{name}", "meta/display", f"a{text}b", ("lone-surrogate", message)
        )
        for name, text, message in (
            ("high", "\\ud800", f"the text holds U+D800, {_HALF}"),
            ("low", "\\udfff", f"the text holds U+DFFF, {_HALF}"),
            ("pair-reversed", "\\ude00\\ud83d", f"the text holds U+DE00, {_HALF}"),
        )
    ),
    Case(
        10,
        "lone-surrogate-in-a-key",
        added("lone-surrogate-in-a-key", "meta", (Raw(f'{MARK * 2}"\\ud800"'), 1)),
        (
            Says("lone-surrogate", "/meta", f"the text holds U+D800, {_HALF}"),
            Says("unknown-field", "/meta/\ufffd", '"\\ufffd" is not a field of this format'),
        ),
    ),
    *(
        field(
            13,
            f"forbidden-{name}",
            "meta/display",
            f"Model {text}",
            ("forbidden-character", f"the text holds {point}, {_HIDDEN}"),
        )
        for name, text, point in _FORBIDDEN
    ),
]


def bare(name: str, character: str, point: str) -> Case:
    value = Raw(f'"Model{MARK}{character}"')
    says = (
        Says(
            "invalid-json", "/meta/display", f"the control character {point} stands bare in a text"
        ),
    )
    return Case(12, name, edited(name, "meta/display", value), says)


CONTROLS = [
    bare("bare-bell", "\a", "U+0007"),
    bare("bare-escape", "\x1b[2J", "U+001B"),
    bare("bare-tab", "\t", "U+0009"),
    bare("bare-newline", "\n", "U+000A"),
]

_NO_VALUE = "is not a JSON value"


def wrong_type(name: str, path: str, value: str, message: str) -> Case:
    says = (Says("wrong-type", f"/{path}", message),)
    return Case(15 if '"' in value else 14, name, edited(name, path, Raw(MARK + value)), says)


TYPES = [
    wrong_type("true-as-score", f"{CELL}/Acc", "true", "Acc is true, true or false"),
    wrong_type("false-as-score", f"{CELL}/Acc", "false", "Acc is false, true or false"),
    wrong_type("true-as-params", "meta/params", "true", "params is true, true or false"),
    wrong_type("null-as-score", f"{CELL}/Acc", "null", "Acc is null, null"),
    wrong_type("one-as-zero-shot", "meta/zero_shot", "1", "zero_shot is 1, a number"),
    wrong_type("score-as-text", f"{CELL}/Acc", '"0.9"', 'Acc is "0.9", a text'),
    wrong_type(
        "arabic-digits-as-text",
        f"{CELL}/Acc",
        '"\u0660.\u0669"',
        'Acc is "\\u0660.\\u0669", a text',
    ),
    Case(
        15,
        "decimal-comma",
        edited("decimal-comma", f"{CELL}/MCC", Raw(f"0,{MARK}5")),
        whole("invalid-json", '"5" stands where a key should'),
        (),
    ),
    *(
        token(15, name, value, "invalid-json", f"{shown} {_NO_VALUE}")
        for name, value, shown in (
            ("arabic-digits", "\u0660.\u0669", '"\\u0660"'),
            ("underscore-in-number", "1_0", '"1_0"'),
            ("plus-sign", "+1", '"+1"'),
            ("leading-zero", "01", '"01"'),
            ("leading-point", ".5", '".5"'),
            ("trailing-point", "1.", '"1."'),
            ("hexadecimal", "0x1F", '"0x1F"'),
            ("bare-exponent", "1e", '"1e"'),
            ("python-true", "True", '"True"'),
            ("python-none", "None", '"None"'),
            ("bare-word", "missing", '"missing"'),
            ("single-quotes", "'x'", '"\'"'),
        )
    ),
]


def grammar(number: int, name: str, old: str, new: str, message: str) -> Case:
    """Replace the first or, with a leading tilde, the last occurrence of a text."""
    text = sound(name)
    if old.startswith("~"):
        head, _, tail = text.rpartition(old[1:])
        text = head + new + tail
    else:
        text = text.replace(old, new, 1)
    return Case(number, name, text, whole("invalid-json", message), ())


def after_end(name: str, tail: str, message: str) -> Case:
    text = sound(name) + MARK + tail
    return Case(16, name, text, whole("invalid-json", message), (NOTE,))


_FOLLOWS = "text follows the end of the document"
_ONE = "one file holds one JSON object"
GRAMMAR = [
    after_end("trailing-text", "x\n", f"{_FOLLOWS}: {_ONE}"),
    after_end("trailing-bracket", "}\n", f"{_FOLLOWS}: {_ONE}"),
    after_end("two-documents", "{}\n", f"{_FOLLOWS}: {_ONE}"),
    after_end("trailing-comment", "// end\n", f"{_FOLLOWS}: comments are not JSON"),
    grammar(16, "leading-comment", "{", f"{MARK}// my model\n{{", f'"/" {_NO_VALUE}'),
    grammar(
        16,
        "comment-between-members",
        ' "model_id"',
        f' {MARK}/* id */ "model_id"',
        '"/" stands where a key should',
    ),
    grammar(
        16,
        "comma-before-brace",
        "~\n}\n",
        f"{MARK},\n}}\n",
        "a comma stands before the closing '}'",
    ),
    Case(
        16,
        "comma-before-bracket",
        edited("comma-before-bracket", "results", Raw(f"[1{MARK},]")),
        whole("invalid-json", "a comma stands before the closing ']'"),
        (),
    ),
    grammar(16, "comma-twice", ",", f",{MARK},", '"," stands where a key should'),
    grammar(16, "comma-missing", ",\n ", f"\n {MARK}", '"\\"" stands where a member ends'),
    grammar(16, "colon-missing", ": ", f" {MARK}", '"\\"" follows the key "schema_version"'),
    grammar(16, "key-without-quotes", '"meta"', f"{MARK}meta", '"m" stands where a key should'),
    grammar(16, "bracket-for-brace", "~\n}\n", f"\n{MARK}]\n", '"]" stands where a member ends'),
    grammar(
        16, "brace-missing", "~\n}\n", f"\n{MARK}", "the end of the file stands where a member ends"
    ),
    grammar(
        16,
        "wrong-escape",
        "Model wrong",
        f"Model {MARK}\\wrong",
        '"\\\\wrong" is not an escape of JSON',
    ),
    Case(
        16,
        "text-without-end",
        f'{{"model_id": {MARK}"never',
        whole("invalid-json", "the text that begins here never ends"),
        (),
    ),
]


def gzipped(data: bytes) -> bytes:
    """Store data as gzip does, uncompressed, so that no version of zlib changes a byte."""
    size = struct.pack("<HH", len(data), len(data) ^ 0xFFFF)
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01" + size
    return head + data + struct.pack("<II", zlib.crc32(data), len(data))


def zipped(data: bytes) -> bytes:
    """Store data as zip does, uncompressed, at a fixed date."""
    entry = zipfile.ZipInfo("model.json", (2026, 11, 20, 8, 30, 0))
    entry.create_system = 3
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(entry, data)
    return stream.getvalue()


POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    b"size 12345\n"
)
OTHER_FORMATS = [
    Case(
        19,
        "gzip-bytes",
        gzipped(sound("gzip-bytes").encode()),
        whole("wrong-encoding", "the file is gzip data"),
        (),
    ),
    Case(
        19,
        "zip-bytes",
        zipped(sound("zip-bytes").encode()),
        whole("wrong-encoding", "the file is a zip archive"),
        (),
    ),
    Case(
        20,
        "lfs-pointer",
        POINTER,
        whole("lfs-pointer", "this is a Git LFS pointer, not the submission"),
        (),
    ),
]

CASES = [
    *EMPTY,
    *DUPLICATES,
    *NUMBERS,
    *ENCODINGS,
    *DEPTHS,
    *CHARACTERS,
    *BYTES,
    *CONTROLS,
    *TYPES,
    *GRAMMAR,
    *OTHER_FORMATS,
]
