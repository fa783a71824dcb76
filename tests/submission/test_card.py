"""A model card is text with names in it, read in linear time, whatever it holds."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geneb_ci.check.rules.card import parameter_count
from geneb_ci.submission.names import CARD_BYTES_MAX, Card, read_card
from tests.examples import examples
from tests.small import CARD


def read(tmp_path, raw: bytes) -> Card:
    path = tmp_path / "card.md"
    path.write_bytes(raw)
    card = read_card(path, "card.md")
    assert card is not None
    return card


def test_fields_and_sections_are_entries_with_their_lines(tmp_path):
    fields = "- **Pooling:** mean,\n  over tokens\n* **Layer**: last\n"
    text = f"# Title\n\n{fields}\n##  Training data \n\nA\nB\n"
    entries = [(e.name, e.value, e.line) for e in read(tmp_path, text.encode()).fields]
    assert entries == [
        ("Pooling", "mean, over tokens", 3),
        ("Layer", "last", 5),
        ("Training data", "A B", 7),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "## a" + " " * 99_000 + "b",
        "- **a" * 19_000,
        "- **" + "*" * 99_000,
        "-" + " " * 99_000,
        "- **Parameters:** " + "1," * 49_000,
        "- **Parameters:** 1" + " " * 98_000,
        "- **Overlap:** " + "<a" * 49_000,
        "\n" * 99_000,
    ],
)
def test_a_hostile_card_is_read_in_linear_time(tmp_path, text):
    started = time.process_time()
    card = read(tmp_path, text.encode())
    for entry in card.fields:
        parameter_count(entry.value)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"x" * (CARD_BYTES_MAX + 1), "the card has 100,001 bytes"),
        (
            b"x" * 1_000_001,
            "the card cannot be read: the file has 1,000,001 bytes; the limit is 1,000,000",
        ),
        (b"caf\xe9", "the card is not UTF-8 at byte 3"),
    ],
)
def test_a_card_that_cannot_be_read_is_a_fault(tmp_path, raw, message):
    card = read(tmp_path, raw)
    assert card.fault is not None
    assert (card.fault.rule, card.fault.message, card.fields) == ("unreadable-card", message, ())


def test_a_card_that_is_no_file_is_a_fault_and_none_is_none(tmp_path):
    (tmp_path / "link.md").symlink_to("/etc/passwd")
    (tmp_path / "loop.md").symlink_to("loop.md")
    (tmp_path / "folder.md").mkdir()
    messages = []
    for name in ("link.md", "loop.md", "folder.md"):
        card = read_card(tmp_path / name, name)
        assert card is not None
        assert card.fault is not None
        messages.append(card.fault.message)
    link = "the card cannot be read: the file is a symbolic link"
    assert messages == [link, link, "the card cannot be read: this is not a regular file"]
    assert read_card(tmp_path / "absent.md", "absent.md") is None


@settings(max_examples=examples(200), derandomize=True)
@given(
    st.lists(
        st.sampled_from([*CARD.split("\n"), "- **", "##", "\r", "\x0b", "1e5", "T" * 50])
        | st.text()
    )
)
def test_no_card_raises(tmp_path_factory, lines):
    raw = "\n".join(lines).encode("utf-8", "surrogatepass")
    card = read(tmp_path_factory.getbasetemp(), raw)
    for entry in card.fields:
        parameter_count(entry.value)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("19,710,474 in all", 19_710_474),
        ("86M", 86e6),
        ("about 1.2 billion", 1.2e9),
        ("7 000 000", 7e6),
        ("2 trillion", 2e12),
        ("500k", 5e5),
        ("unknown", None),
    ],
)
def test_counts_in_prose(text, count):
    assert parameter_count(text) == count
