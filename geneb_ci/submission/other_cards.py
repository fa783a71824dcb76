"""What a card says about the identity of its model, and the other cards of a board."""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.submission.names import Card, CardField, parse_card
from geneb_ci.submission.reading import PATH_SORT_KEY
from reference_harness.formats.files import NotReadable, read_json, read_regular
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX

_TITLE = re.compile(r"(?m)^#[ \t]+(.*)$")
_LINK = re.compile(r"https?://[^\s<>()\[\]`\"']+")
_HUB_REPOSITORY = re.compile(r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/([\w.-]+/[\w.-]+)")
_OTHER_HUB_FOLDERS = ("datasets/", "spaces/", "docs/", "papers/", "collections/")
"""Beginnings of paths on the Hub that are not repositories of models."""
_NAMED_REPOSITORY = re.compile(r"\b(?:of|from)\s+`?([\w.-]+/[\w.-]+)`?(?=[\s.,;)]|\Z)")
"""Repository that a sentence names after "of" or "from", without a link."""
_DIGEST = re.compile(r"(?<![0-9a-z])[0-9a-f]{64}(?![0-9a-z])")
_COMMIT = re.compile(r"(?<![0-9a-z])[0-9a-f]{40}(?![0-9a-z])")
FIELD_TEXT_MIN = 40
"""Minimum length of a statement that two people would not write identically by chance."""


class CardFacts(NamedTuple):
    """What a card says about the identity of its model."""

    title: str
    weights: str
    """The statement about the weights, without markup; "" if it is very short."""
    training: str
    """The statement about the training data, without markup; "" if it is very short."""
    links: frozenset[str]
    """Links in the statement about the weights."""
    repositories: frozenset[str]
    """Repositories of the Hub in the statement about the weights, in lower case."""
    digests: frozenset[str]
    """SHA-256 digests in the statement about the weights."""
    commits: frozenset[str]
    """Commits, of 40 hex digits, in the statement about the weights."""


def weights_of(card: Card) -> CardField | None:
    """Return the field about the weights; None if the card has no such field."""
    return card.field_named("weights", "checkpoint")


def training_of(card: Card) -> CardField | None:
    """Return the field about the training data; None if the card has no such field."""
    return card.field_named("training data", "pretraining")


def title_line(card: Card) -> int:
    """Return the number of the line with the title; 1 without a title."""
    match = _TITLE.search(card.text)
    return 1 if match is None else card.text.count("\n", 0, match.start()) + 1


def card_facts(card: Card) -> CardFacts:
    """Return the facts by which a card identifies its model."""
    title, weights_field, training_field = (
        _TITLE.search(card.text),
        weights_of(card),
        training_of(card),
    )
    weights_text = weights_field.value if weights_field else ""
    return CardFacts(
        title.group(1).strip(" \t#") if title else "",
        _plain_field_text(weights_text),
        _plain_field_text(training_field.value if training_field else ""),
        links_in(weights_text),
        repositories_in(weights_text),
        frozenset(_DIGEST.findall(weights_text)),
        frozenset(_COMMIT.findall(weights_text)),
    )


def _plain_field_text(text: str) -> str:
    """Return a field's text in lower case, without markup; "" if shorter than `FIELD_TEXT_MIN`."""
    plain = " ".join(re.sub(r"[`*_<>]", "", text).casefold().split())
    return plain if len(plain) >= FIELD_TEXT_MIN else ""


def links_in(text: str) -> frozenset[str]:
    """Return the links in a text, in lower case, without punctuation at the end."""
    return frozenset(link.rstrip(".,;/").casefold() for link in _LINK.findall(text))


def repositories_in(statement: str) -> frozenset[str]:
    """Return the repositories of models that a text mentions, in lower case."""
    names = [name.rstrip(".").casefold() for name in _HUB_REPOSITORY.findall(statement)]
    names = [name for name in names if not name.startswith(_OTHER_HUB_FOLDERS)]
    return frozenset(
        names or [name.rstrip(".").casefold() for name in _NAMED_REPOSITORY.findall(statement)]
    )


class RowFacts(NamedTuple):
    """What a row says about the identity of its model."""

    links: frozenset[str]
    """Links in the metadata of the row."""
    repositories: frozenset[str]
    """Repositories of the Hub that the row names, in lower case."""
    training: str
    """The statement about the training data, in lower case; "" without one."""

    def has_same_weights(self, other_row: "RowFacts") -> bool:
        """Whether two rows refer to the same weights."""
        return bool(self.links & other_row.links or self.repositories & other_row.repositories)


def row_facts(document: Any) -> RowFacts:
    """Return the facts by which a submission identifies its model; missing facts are empty."""
    meta, model = _object_at(document, "meta"), _object_at(_object_at(document, "run"), "model")
    url, location = meta.get("url"), model.get("location")
    links = links_in(url) if isinstance(url, str) else frozenset[str]()
    repositories = repositories_in(url) if isinstance(url, str) else frozenset[str]()
    if model.get("kind") == "huggingface" and isinstance(location, str):
        repositories |= {location.casefold()}
    training = meta.get("training_data")
    return RowFacts(links, repositories, training.casefold() if isinstance(training, str) else "")


def _object_at(members: Any, key: str) -> Mapping[str, Any]:
    """Return the member at a key if it is an object; else an empty object."""
    member = members.get(key) if isinstance(members, Mapping) else None
    return member if isinstance(member, Mapping) else {}


@dataclass(frozen=True)
class OtherCards:
    """The cards and rows of a board, each read when it is needed."""

    cards_folder: Path | None = None
    rows_folder: Path | None = None

    _facts_by_path: dict[Path, CardFacts | None] = field(
        default_factory=dict, compare=False, repr=False
    )

    @functools.cached_property
    def _card_paths(self) -> tuple[Path, ...]:
        """The files of all cards."""
        return (
            tuple(sorted(self.cards_folder.glob("*.md"), key=PATH_SORT_KEY))
            if self.cards_folder
            else ()
        )

    def cards_except(self, model_id: str) -> Iterator[tuple[str, CardFacts]]:
        """Yield model id and card facts of each model except `model_id` whose card can be read."""
        for path in self._card_paths:
            if path.stem == model_id:
                continue
            if path not in self._facts_by_path:
                self._facts_by_path[path] = _read_facts(path)
            facts = self._facts_by_path[path]
            if facts is not None:
                yield path.stem, facts

    def row(self, model_id: str) -> RowFacts:
        """Return the facts by which a row identifies its model; empty if it cannot be read."""
        if self.rows_folder is None:
            return row_facts(None)
        try:
            raw = read_regular(
                self.rows_folder / f"{model_id}.json", SUBMISSION_BYTES_MAX, links=False
            )
            return row_facts(read_json(raw))
        except (NotReadable, ValueError):
            return row_facts(None)


def _read_facts(path: Path) -> CardFacts | None:
    """Return the facts in the card at a path; None if the card cannot be read."""
    try:
        card = parse_card(read_regular(path, SUBMISSION_BYTES_MAX, links=False), path.name)
    except NotReadable:
        return None
    return None if card.fault is not None else card_facts(card)
