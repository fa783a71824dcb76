"""Inputs 2 to 6, 9, 10 and 12 to 16: texts that are not JSON, or not what they seem."""

from tests.hostile.case import (
    CELL,
    NOTE,
    Case,
    Says,
    added,
    edited,
    field,
    sound,
    token,
    whole,
)
from tests.hostile.text import MARK, Members, Raw, written
from tests.small import small


def twice(name: str, key: str, value: object, path: str, plain: str) -> Case:
    says = (
        Says("duplicate-key", f"/{path}/{plain}", f'the key "{plain}" occurs twice in one object'),
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
        (Says("duplicate-key", "/model_id", 'the key "model_id" occurs twice in one object'),),
    ),
    Case(
        2,
        "duplicate-key-three-times",
        added("duplicate-key-three-times", CELL, *[(Raw(f'{MARK}"F1"'), 0.5)] * 2),
        (Says("duplicate-key", f"/{CELL}/F1", 'the key "F1" occurs twice in one object'),) * 2,
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
            Says("duplicate-key", "/results/full", 'the key "full" occurs twice in one object'),
            Says("duplicate-key", "/results/full/a", 'the key "a" occurs twice in one object'),
        ),
    ),
]

_NO_NUMBER = "is not a JSON number"
_INFINITE = "is too large for a double: it would become infinity"
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
        (Says("unrepresentable-number", "/meta/params", "the number has 5,000 characters"),),
    ),
    token(
        6,
        "score-of-33-characters",
        "0." + "3" * 31,
        "unrepresentable-number",
        "the number has 33 characters",
    ),
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

_HALF = "half of a surrogate pair"
_HIDDEN = "which hides or reorders text"
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
            ("high", "\\ud800", f"the string contains U+D800, {_HALF}"),
            ("low", "\\udfff", f"the string contains U+DFFF, {_HALF}"),
            ("pair-reversed", "\\ude00\\ud83d", f"the string contains U+DE00, {_HALF}"),
        )
    ),
    Case(
        10,
        "lone-surrogate-in-a-key",
        added("lone-surrogate-in-a-key", "meta", (Raw(f'{MARK * 2}"\\ud800"'), 1)),
        (
            Says("lone-surrogate", "/meta", f"the string contains U+D800, {_HALF}"),
            Says("unknown-field", "/meta/\ufffd", '"\\ufffd" is not a field of this format'),
        ),
    ),
    *(
        field(
            13,
            f"forbidden-{name}",
            "meta/display",
            f"Model {text}",
            ("forbidden-character", f"the string contains {point}, {_HIDDEN}"),
        )
        for name, text, point in _FORBIDDEN
    ),
]


def bare(name: str, character: str, point: str) -> Case:
    value = Raw(f'"Model{MARK}{character}"')
    says = (
        Says("invalid-json", "/meta/display", f"unescaped control character {point} in a string"),
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
    wrong_type("null-as-score", f"{CELL}/Acc", "null", "Acc is null"),
    wrong_type("one-as-zero-shot", "meta/zero_shot", "1", "zero_shot is 1, a number"),
    wrong_type("score-as-text", f"{CELL}/Acc", '"0.9"', 'Acc is "0.9", a string'),
    wrong_type(
        "arabic-digits-as-text",
        f"{CELL}/Acc",
        '"\u0660.\u0669"',
        'Acc is "\\u0660.\\u0669", a string',
    ),
    Case(
        15,
        "decimal-comma",
        edited("decimal-comma", f"{CELL}/MCC", Raw(f"0,{MARK}5")),
        whole("invalid-json", 'expected a key, found "5"'),
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


_FOLLOWS = "unexpected text after the end of the document"
_ONE = "a file must be one JSON object"
GRAMMAR = [
    after_end("trailing-text", "x\n", f"{_FOLLOWS}: {_ONE}"),
    after_end("trailing-bracket", "}\n", f"{_FOLLOWS}: {_ONE}"),
    after_end("two-documents", "{}\n", f"{_FOLLOWS}: {_ONE}"),
    after_end("trailing-comment", "// end\n", f"{_FOLLOWS}: JSON has no comments"),
    grammar(16, "leading-comment", "{", f"{MARK}// my model\n{{", f'"/" {_NO_VALUE}'),
    grammar(
        16,
        "comment-between-members",
        ' "model_id"',
        f' {MARK}/* id */ "model_id"',
        'expected a key, found "/"',
    ),
    grammar(
        16,
        "comma-before-brace",
        "~\n}\n",
        f"{MARK},\n}}\n",
        "trailing comma before the closing '}'",
    ),
    Case(
        16,
        "comma-before-bracket",
        edited("comma-before-bracket", "results", Raw(f"[1{MARK},]")),
        whole("invalid-json", "trailing comma before the closing ']'"),
        (),
    ),
    grammar(16, "comma-twice", ",", f",{MARK},", 'expected a key, found ","'),
    grammar(16, "comma-missing", ",\n ", f"\n {MARK}", 'unexpected "\\"" after a value'),
    grammar(16, "colon-missing", ": ", f" {MARK}", '"\\"" follows the key "schema_version"'),
    grammar(16, "key-without-quotes", '"meta"', f"{MARK}meta", 'expected a key, found "m"'),
    grammar(16, "bracket-for-brace", "~\n}\n", f"\n{MARK}]\n", 'unexpected "]" after a value'),
    grammar(
        16, "brace-missing", "~\n}\n", f"\n{MARK}", "unexpected the end of the file after a value"
    ),
    grammar(
        16,
        "wrong-escape",
        "Model wrong",
        f"Model {MARK}\\wrong",
        '"\\\\wrong" is not a JSON escape',
    ),
    Case(
        16,
        "text-without-end",
        f'{{"model_id": {MARK}"never',
        whole("invalid-json", "the string that begins here is not terminated"),
        (),
    ),
]


CASES = [
    *DUPLICATES,
    *NUMBERS,
    *DEPTHS,
    *CHARACTERS,
    *CONTROLS,
    *TYPES,
    *GRAMMAR,
]
