"""A template's placeholders do not pass as facts, and what only looks like one does."""

import pytest

from geneb_ci.submission.placeholders import placeholder_in, placeholder_name
from tests.each import each
from tests.rules.deltas import card_with, put, v10, v11
from tests.rules.place import rows_found

ZEROS = "0" * 40
MODEL = {
    "kind": "huggingface",
    "location": "org/m",
    "revision": "1" * 40,
    "weights": {"a": "2" * 64},
}
FIELDS = {
    "location": ("run/model", MODEL | {"location": "OWNER/MODEL"}, "OWNER/MODEL"),
    "a user's": ("run/model", MODEL | {"location": "your-username/my-model"}, "your-username/my-m"),
    "revision": ("run/model", MODEL | {"revision": ZEROS}, ZEROS),
    "weights": ("run/model", MODEL | {"weights": {"a.bin": "0" * 64}}, "0" * 64),
    "url": ("meta/url", "https://huggingface.co/OWNER/MODEL", "OWNER/MODEL"),
    "path": ("meta/url", "https://example.org/path/to/model", "path/to/model"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_placeholder_pins_no_weights(name):
    member_path, value, placeholder = FIELDS[name]
    messages = [
        row["message"]
        for row in rows_found(v11(put(member_path, value)))
        if row["rule"] == "unpinned-model"
    ]
    assert len(messages) == 1
    assert f'"{placeholder}' in messages[0]
    assert "is a placeholder" in messages[0]


def test_a_link_of_format_1_0_is_looked_at_too():
    rows = rows_found(v10(put("meta/url", "https://huggingface.co/OWNER/NAME")))
    assert [row["pointer"] for row in rows if row["rule"] == "unpinned-model"] == ["/meta/url"]


CARDS = {
    "<architecture of the model>": "<architecture of the model>",
    "(e.g. mean over tokens)": "(e.g. ",
    "TODO": "TODO",
    "to be said, TBD": "TBD",
    "<https://huggingface.co/OWNER/MODEL> at `main`": "OWNER/MODEL",
    f"<https://huggingface.co/org/m> at `{ZEROS}`": ZEROS,
    "<40 hex digits>": "<40 hex digits>",
    "YOUR_ORG/YOUR_MODEL": "YOUR_ORG/YOUR_MODEL",
    "12 layers, width 10<sup>3</sup>": "",
    "<https://example.org>": "",
    "<a.b@example.org>": "",
    "mean over all tokens (e.g. those of a window)": "",
    "org/model at 0a0b": "",
    "owner/model": "",
    f"1{ZEROS}": "",
    'a <span class="x">word</span>': "",
    "AUTODOC": "",
}


@each("text", CARDS)
def test_a_placeholder_of_a_card(text):
    assert placeholder_in(text) == CARDS[text]
    rows = rows_found(v10(card_text=card_with("BERT encoder", text)))
    own = [row for row in rows if row["rule"] == "placeholder-in-card"]
    assert len(own) == bool(CARDS[text])


def test_a_placeholder_outside_of_the_fields_is_named_once():
    text = (
        card_with("BERT encoder", "BERT")
        + "\nSee https://huggingface.co/OWNER/MODEL, OWNER/MODEL\n"
    )
    own = [row for row in rows_found(v10(card_text=text)) if row["rule"] == "placeholder-in-card"]
    assert len(own) == 1


def test_names_in_lower_case_may_be_somebodys():
    assert placeholder_name("org/model") == ""
