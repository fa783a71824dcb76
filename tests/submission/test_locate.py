"""A member is found where the scanner finds it."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from geneb_ci.submission.document import locate, quick_value
from geneb_ci.submission.scanner import scan
from geneb_ci.submission.tokens import UNUSABLE
from tests.small import small_v11
from tests.submission.test_scanner import SETTINGS, VALUES

BLANKS = st.sampled_from(["", " ", "\n", "\r\n\t ", "  "])


def alike(text: str) -> None:
    if quick_value(text) is UNUSABLE:
        return
    spans = scan(text).spans
    assert {path: locate(text, path) for path in spans} == spans
    for path in spans:
        for wrong in (0, "0", -1, 10_000, ""):
            assert locate(text, (*path, wrong)) == spans.get((*path, wrong))


@SETTINGS
@given(VALUES, BLANKS, BLANKS, st.sampled_from([None, 0, 2]))
@example({"a": [{"b": [1, [2]]}, {}], "": []}, " ", "\n", None)
@example([], "", "", None)
def test_every_member_of_a_value(value, before, after, indent):
    alike(before + json.dumps(value, ensure_ascii=False, indent=indent) + after)


@SETTINGS
@given(st.lists(BLANKS, min_size=9, max_size=9))
def test_every_member_between_any_blanks(blanks):
    a, b, c, d, e, f, g, h, i = blanks
    alike(f'{a}{{{b}"x"{c}:{d}[{e}1{f},{g}{{}}{h}]{i},"y":[{e}]{f}}}{g}')


def test_every_member_of_a_submission():
    alike(json.dumps(small_v11("model"), indent=1))
