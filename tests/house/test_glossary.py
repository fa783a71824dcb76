"""The glossary agrees with the code, the pages with the glossary; broken texts are found."""

import pytest

from tests.house import glossary
from tests.house.glossary import GLOSSARY
from tests.house.pages import pages
from tests.paths import ROOT

pytestmark = pytest.mark.nightly  # and in `make lint`

TEXT = (ROOT / GLOSSARY).read_text(encoding="utf-8")
PAGES = [name for name in pages() if name != GLOSSARY.as_posix()]


def test_each_entry_names_one_place_that_exists():
    assert glossary.wrong_references(TEXT) == []


def test_entries_are_sorted_and_unique():
    assert glossary.wrong_order(TEXT) == []


def test_each_value_of_the_code_has_an_entry():
    assert glossary.wrong_values(TEXT) == []


@pytest.mark.parametrize("page", PAGES)
def test_no_page_uses_a_discouraged_word(page):
    assert glossary.wrong_words(page, (ROOT / page).read_text(encoding="utf-8")) == []


AUDIT = "`geneb_ci/audit/trust/level.py:Audit`"
WRONG = "geneb_ci/audit/sampling/design.py:Audit"


TYPES = "geneb_ci/common/types.py"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            AUDIT,
            "`geneb_ci/audit/trust/level.py:Auditt`",
            ["geneb_ci/audit/trust/level.py:Auditt: geneb_ci/audit/trust/level.py has no Auditt"],
        ),
        (
            AUDIT,
            "`geneb_ci/audits/trust.py:Audit`",
            ["geneb_ci/audits/trust.py:Audit: there is no such file"],
        ),
        (
            "types.py:TrustLevel.DISPUTED`",
            "types.py:TrustLevel.DOUBTED`",
            [f"{TYPES}:TrustLevel.DOUBTED: {TYPES} has no TrustLevel.DOUBTED"],
        ),
        (
            AUDIT,
            f"`{WRONG}`",
            [
                (
                    f"{WRONG}: geneb_ci/audit/sampling/design.py has no Audit; "
                    "it is in geneb_ci/audit/trust/level.py"
                )
            ],
        ),
        (AUDIT, "nowhere", ["audit: 0 places in the code, expected one"]),
        (AUDIT, f"{AUDIT} {AUDIT}", ["audit: 2 places in the code, expected one"]),
    ],
    ids=["name", "file", "member", "moved", "none", "two"],
)
def test_a_wrong_reference_is_found(old, new, expected):
    assert old in TEXT
    assert glossary.wrong_references(TEXT.replace(old, new, 1)) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("\n| audit |", "\n| zebra |", ["audit record belongs before zebra"]),
        ("\n| audit record |", "\n| audit |", ["audit stands twice"]),
    ],
    ids=["unsorted", "doubled"],
)
def test_a_wrong_order_is_found(old, new, expected):
    assert old in TEXT
    assert glossary.wrong_order(TEXT.replace(old, new, 1)) == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("regime", "10shot"),
        ("metric", "MCC"),
        ("severity", "note"),
        ("verdict on a pull request", "changes-needed"),
        ("state of the Space", "rolled back"),
    ],
)
def test_a_value_without_an_entry_is_found(kind, value):
    before, entry, values = TEXT.rpartition(f"\n| {kind} | ")
    assert f"`{value}`" in values
    values = values.replace(f"`{value}`", "`bogus`", 1)
    assert glossary.wrong_values(before + entry + values) == [
        f"{kind} {value}: no entry",
        f"{kind} bogus: not in the code",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Mend what it names.", ["mend"]),
        ("Two models that cannot be\ntold  apart.", ["told apart"]),
        ("Every claim is held, cell by cell, against the rerun.", ["held ... against"]),
        ("It is held. Nothing speaks against it.", []),
        ("A regime with gaps is not ranked.", ["gaps"]),
        ("The member `gaps` says why.", []),
        ("```console\n$ geneb-ci build\nmend it\n```\nFine.", []),
        ("[fine](mend.md)", []),
        ("Amended, commended, or the rule declared-gap.", []),
    ],
)
def test_a_discouraged_word_is_found_in_prose_alone(text, words):
    lines = glossary.wrong_words("x.md", text)
    assert [line.split("'")[1] for line in lines] == words


def test_a_new_discouraged_word_counts_at_once():
    words = (ROOT / glossary.WORDS).read_text(encoding="utf-8")
    wider = words.replace('"at hand" = "available"', '"at hand" = "available"\nyonder = "there"')
    before, after = (
        {
            discouraged_word.word
            for discouraged_word in glossary.discouraged(text, glossary.EVERYWHERE)
        }
        for text in (words, wider)
    )
    assert after - before == {"yonder"}
