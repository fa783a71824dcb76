"""Names that look alike have one skeleton, and plain names need no table for it."""

import json
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.check.registry import select
from geneb_ci.check.runner import Checker, FileResult
from geneb_ci.submission import names
from geneb_ci.submission.names import has_stacked_marks, scripts_of, skeletons
from geneb_ci.submission.peers import peers_of
from tests.paths import SUBMISSIONS
from tests.small import small

ALIKE = [
    ("DNABERT-2", "DN\u0410BERT\u20102"),  # Cyrillic A, another hyphen
    ("DNABERT-2", "dnabert-2"),
    ("HyenaDNA", "HyenaDNA "),
    ("Evo 1", "Evo\u00a0l"),
    ("Evo 1", "Evo I"),
    ("MutBERT", "rnutbert"),
    ("GROVER", "GR0VER"),
    ("GROVER", "\uff27\uff32\uff2f\uff36\uff25\uff32"),
    ("Caduceus", "\U0001d402aduceus"),
    ("Caf\u00e9", "Cafe\u0301"),
]


@pytest.mark.parametrize(("first_name", "other"), ALIKE)
def test_names_that_look_alike_share_a_skeleton(first_name, other):
    assert skeletons(first_name) & skeletons(other)


def test_the_names_of_the_public_rows_are_unlike():
    for forms in peers_of(SUBMISSIONS.glob("*.json")).names_by_skeleton.values():
        assert len({path for path, _ in forms}) == 1, forms


def test_what_the_table_says_of_ascii_is_what_the_code_says():
    assert {
        k: v for k, v in names._lookalike_by_character().items() if k.isascii()
    } == names._ASCII_LOOKALIKES


@given(st.text(max_size=20))
def test_a_skeleton_is_its_own_skeleton(name):
    form = names.skeleton(name)
    assert names.skeleton(form) == form
    assert unicodedata.is_normalized("NFKD", form)
    assert names.skeleton(f" {name}\t") == form


def test_plain_names_are_compared_without_the_table():
    script = (
        "import sys; from geneb_ci.submission.names import skeletons, scripts_of; "
        "skeletons('DNABERT-2'), scripts_of('Evo 1'); print('confusable_homoglyphs' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"False\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Evo 2", set()),
        ("DN\u0410BERT", {"LATIN", "CYRILLIC"}),
        ("\u0414\u041d\u041a", {"CYRILLIC"}),
        ("DNA \u30e2\u30c7\u30eb", {"LATIN"}),
        ("GENA\u2013LM", {"LATIN"}),
    ],
)
def test_scripts_of_a_name(name, expected):
    assert scripts_of(name) == expected


@pytest.mark.parametrize(
    ("name", "stacked"),
    [
        ("Evo", False),
        ("a\u0323\u0302", False),
        ("a\u0323\u0302\u0301", True),
        ("\u1ec7\u0301", True),
    ],
)
def test_stacked_marks(name, stacked):
    assert has_stacked_marks(name) is stacked


@pytest.mark.parametrize("name", ["two\nlines", "two\u0085lines", "a\ttab", " blank", "blank "])
def test_a_display_name_is_one_line(name, tmp_path):
    document = small("model")
    document["meta"]["display"] = name
    (tmp_path / "model.json").write_text(json.dumps(document))
    (result,) = Checker(select(["identity", "structure"], [])).run([tmp_path / "model.json"])
    assert isinstance(result, FileResult)
    rules = {finding.rule for finding in result.findings if "display" in finding.pointer}
    assert rules & {"display-name-form", "forbidden-character"}
