"""Rules on the model card: it exists, is complete, and agrees with the submission."""

import re
from collections.abc import Iterable, Iterator

from geneb_ci.check.rule import Context, Rule, reading_rule
from geneb_ci.common.finding import Fault, Need, Severity
from geneb_ci.submission.names import Card, CardField, skeletons
from geneb_ci.submission.other_cards import (
    CardFacts,
    RowFacts,
    card_facts,
    row_facts,
    title_line,
    training_of,
    weights_of,
)
from geneb_ci.submission.placeholders import placeholder_in, placeholder_name
from reference_harness.formats.text import quoted


def missing_card(context: Context) -> Iterator[Fault]:
    """Report a contributed row without a card; the paper describes the official rows."""
    if (
        context.is_in_repository
        and context.card is None
        and context.model_id
        and "bad-model-id" not in context.reported  # the name of the card has to change too
        and not context.is_official
    ):
        yield Fault(
            MISSING_CARD.id,
            ("model_id",),
            f"there is no model card for {quoted(context.model_id)}",
            "no card",
            f"a file {quoted(f'{context.model_id}.md')} in the folder of cards",
        )


MISSING_CARD = Rule(
    id="missing-card",
    severity=Severity.WARNING,
    what="The row has no model card.",
    why=(
        "Readers need architecture, pooling, layer and training data to interpret a score; the "
        "table has no room for them."
    ),
    fix=(
        "Save a card as submissions/cards/<model_id>.md (in upstream's layout, "
        "model_cards/<model_id>.md), with the fields that `geneb-ci explain incomplete-card` lists."
    ),
    check=missing_card,
    needs=(Need.CARD,),
)


REQUIRED_FIELDS: dict[str, tuple[str, ...]] = {
    "Architecture": ("architecture",),
    "Weights": ("weights", "checkpoint"),
    "Input": ("input", "tokenizer", "tokeniser"),
    "Pooling": ("pooling",),
    "Layer": ("layer",),
    "Training data": ("training data", "pretraining"),
    "Zero-shot": ("zero-shot", "zero shot"),
    "Known overlap": ("overlap", "contamination"),
}
"""By required field of a card: the words of a heading by which the field is recognised."""
_LAYER_WORDS = ("layer", "hidden state", "last hidden")
"""Words by which the text about the pooling states the layer, too."""


def incomplete_card(context: Context) -> Iterator[Fault]:
    """Report all fields that are missing or empty, in one finding."""
    if context.card is None or context.card.fault is not None:
        return
    missing_fields = [
        name for name, words in REQUIRED_FIELDS.items() if not _has_field(context.card, name, words)
    ]
    if missing_fields:
        yield Fault(
            INCOMPLETE_CARD.id,
            (),
            f"the model card lacks: {', '.join(missing_fields)}",
            f"{len(REQUIRED_FIELDS) - len(missing_fields)} of {len(REQUIRED_FIELDS)} fields",
            ", ".join(REQUIRED_FIELDS),
            at=1,
            card=True,
        )


def _has_field(card: Card, field: str, headings: tuple[str, ...]) -> bool:
    """Whether a card has text under one of the headings that a required field may have.

    The layer may also be stated under the heading of the pooling.
    """
    card_field = card.field_named(*headings)
    if card_field is not None and card_field.value:
        return True
    pooling = card.field_named("pooling") if field == "Layer" else None
    return pooling is not None and any(word in pooling.value.casefold() for word in _LAYER_WORDS)


INCOMPLETE_CARD = Rule(
    id="incomplete-card",
    severity=Severity.WARNING,
    what="The model card lacks required fields.",
    why=(
        "Layer and pooling change scores by more than most differences between neighbours on the "
        "board; an undisclosed overlap with test data makes scores worthless."
    ),
    fix=(
        f"Add what is missing of {', '.join(REQUIRED_FIELDS)}: as a line such as "
        "`- **Pooling:** mean of the final hidden states`, or as a section such as "
        "`## Training data`. Write "
        '"unknown" if you do not know.'
    ),
    check=incomplete_card,
    needs=(Need.CARD,),
)


def placeholder_in_card(context: Context) -> Iterator[Fault]:
    """Report each placeholder of a template, in the fields of the card and in its other text."""
    if context.card is not None:
        yield from placeholders_of(context.card)


def placeholders_of(card: Card) -> Iterator[Fault]:
    """Yield a fault for each placeholder in the fields of a card and in its other text."""
    named_fields: set[str] = set()
    for card_field in card.fields:
        placeholder = placeholder_in(card_field.value)
        if placeholder:
            named_fields.add(placeholder)
            message = f"{quoted(card_field.name)} still has the placeholder {quoted(placeholder)}"
            yield _placeholder_fault(message, placeholder, card_field.line)
    for number, line in enumerate(card.text.split("\n"), 1):
        placeholder = placeholder_name(line)
        if placeholder and placeholder not in named_fields:
            named_fields.add(placeholder)
            message = f"the card still has the placeholder {quoted(placeholder)}"
            yield _placeholder_fault(message, placeholder, number)


def _placeholder_fault(message: str, placeholder: str, line: int) -> Fault:
    """Return the fault of a placeholder in a line of the card."""
    expected = "a statement about this model"
    return Fault(
        PLACEHOLDER_IN_CARD.id, (), message, quoted(placeholder), expected, at=line, card=True
    )


PLACEHOLDER_IN_CARD = Rule(
    id="placeholder-in-card",
    severity=Severity.ERROR,
    what="The model card still has placeholder text.",
    why="A placeholder passes as an answer in a program but tells a reader nothing.",
    fix='Replace the placeholder with a statement about this model, or with "unknown".',
    check=placeholder_in_card,
    needs=(Need.CARD,),
)


_PARAMETER_COUNT = re.compile(
    r"[0-9][0-9,_ ]*(?:\.[0-9]+)?\s*(?:[KMBT]\b|thousand|million|billion|trillion)?", re.IGNORECASE
)
_FACTOR_BY_UNIT = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
"""Factor of the first letter of a unit in a parameter count."""
PARAMS_TOLERANCE = 0.06
"""Maximum relative difference of the parameter count in a card, which may be rounded, from that of
the submission: "86M" is 81 to 91 million."""


def card_disagrees(context: Context) -> Iterator[Fault]:
    """Report each fact that the card and the submission state differently."""
    card = context.card
    if card is None:
        return
    yield from _parameter_faults(context, card)
    yield from _weights_faults(context, card)
    for member, field, path in (
        ("display", card.field_named("display name"), ("meta", "display")),
        ("harness_version", card.field_named("harness version"), ("harness_version",)),
        ("submitted_by", card.field_named("submitted by"), ("meta", "submitted_by")),
    ):
        claimed = context.text(*path)
        if field and field.value and claimed and not _is_same_value(field.value, claimed):
            yield _card_fault(member, quoted(field.value), quoted(claimed), field)
    claim = card.field_named("zero-shot", "zero shot")
    zero_shot = context.member("meta", "zero_shot")
    is_claimed = claim and _TRUTH_BY_WORD.get(claim.value.casefold().split(" ")[0].rstrip(".,;:"))
    if claim and is_claimed is not None and isinstance(zero_shot, bool) and is_claimed != zero_shot:
        yield _card_fault("zero_shot", quoted(claim.value), str(zero_shot).lower(), claim)


def _parameter_faults(context: Context, card: Card) -> Iterator[Fault]:
    """Report the parameter count in the card if it differs from the submission's."""
    params = context.member("meta", "params")
    card_field = card.field_named("parameters")
    if card_field is None or type(params) is not int:
        return
    count = parameter_count(card_field.value)
    if count is not None and abs(count - params) > PARAMS_TOLERANCE * max(params, 1):
        yield _card_fault("params", f"{count:,.0f}", f"{params:,}", card_field)


def _weights_faults(context: Context, card: Card) -> Iterator[Fault]:
    """Report repository, commit and digests of the weights if they differ from the submission's."""
    weights_field, facts, row = weights_of(card), card_facts(card), row_facts(context.root)
    if weights_field is None:
        return
    model = context.table("run", "model")
    digests = model.get("weights")
    values_by_name = {
        "the repository of the weights": (facts.repositories, row.repositories),
        "the commit of the weights": (facts.commits, _texts_among([model.get("revision")])),
        "the sha256 of the weights": (
            facts.digests,
            _texts_among(digests.values() if isinstance(digests, dict) else ()),
        ),
    }
    for fact, (in_card, in_row) in values_by_name.items():
        if in_card and in_row and not in_card & in_row:
            yield _card_fault(fact, quoted(min(in_card)), quoted(min(in_row)), weights_field)


def _texts_among(members: Iterable[object]) -> frozenset[str]:
    """Return those of the values that are texts."""
    return frozenset(member for member in members if isinstance(member, str))


_TRUTH_BY_WORD = {"yes": True, "true": True, "no": False, "false": False, "not": False}
"""Truth of a statement in a card by its first word."""


def parameter_count(field_text: str) -> float | None:
    """Return the count in a text such as "19,710,474 in all" or "86M"; None without one."""
    match = _PARAMETER_COUNT.search(field_text)
    if match is None:
        return None
    token = match.group().strip().casefold()
    digits = re.sub(r"[^0-9.]", "", token)
    unit = re.search(r"[kmbt]", token)
    return float(digits) * (_FACTOR_BY_UNIT[unit.group()] if unit else 1)


def _is_same_value(card_value: str, row_value: str) -> bool:
    """Whether two values are equal, except for markup and letter case."""
    return card_value.strip("` *_").casefold() == row_value.strip().casefold()


def _card_fault(fact: str, in_card: str, in_submission: str, field: CardField) -> Fault:
    """Return the fault of a fact that card and submission state differently."""
    message = f"{fact} is {in_card} in the card and {in_submission} in the submission"
    return Fault(CARD_DISAGREES.id, (), message, in_card, in_submission, at=field.line, card=True)


CARD_DISAGREES = Rule(
    id="card-disagrees",
    severity=Severity.ERROR,
    what="The model card and the submission contradict each other.",
    why="One of the two is wrong, and a reader cannot tell which.",
    fix="Correct the card or the submission, so that both describe the same run.",
    check=card_disagrees,
    needs=(Need.CARD,),
)


def copied_card(context: Context) -> Iterator[Fault]:
    """Report a card with text from another model's card, once, for the first such model."""
    card = context.card
    if card is None or card.fault is not None or not context.model_id or context.is_official:
        return
    facts, row = card_facts(card), row_facts(context.root)
    title = _row_with_title(context, facts.title)
    if title:
        message = f"the title {quoted(facts.title)} is the name of the model in {quoted(title)}"
        yield _copied_fault(message, facts.title, title_line(card))
        return
    for model, other_card in context.other_cards.cards_except(context.document.path.stem):
        shared_topics = _shared_topics(facts, other_card, row)
        other_row = context.other_cards.row(model) if shared_topics else row
        shared_topics = [
            name for name in shared_topics if not _is_explained(name, facts, row, other_row)
        ]
        if shared_topics:
            field = weights_of(card) if shared_topics[0] == WEIGHTS else training_of(card)
            topics = " and ".join(shared_topics)
            message = f"the card has the same text about {topics} as the card of {quoted(model)}"
            yield _copied_fault(message, f"text of {quoted(model)}", field.line if field else 1)
            return


WEIGHTS, TRAINING = "the weights", "the training data"  # topics of a card, as messages name them


def _row_with_title(context: Context, title: str) -> str:
    """Return the file name of another row whose id or display name is `title`; "" if none is."""
    own_names = {context.model_id.casefold(), context.text("meta", "display").casefold()}
    if not title or title.casefold() in own_names:
        return ""
    own_path, names_by_form = context.document.path, context.peers.names_by_skeleton
    files = [
        path
        for form in skeletons(title)
        for path, _ in names_by_form.get(form, ())
        if path != own_path
    ]
    return min(path.name for path in files) if files else ""


def _shared_topics(facts: CardFacts, other_facts: CardFacts, row: RowFacts) -> list[str]:
    """Return the topics about which two cards state the same.

    Equal links count only if the row has a link, as one link may lead to the weights of several
    models.
    """
    has_same_weights = bool(
        (facts.digests and facts.digests == other_facts.digests)
        or (facts.links and facts.links == other_facts.links and row.links)
        or (facts.weights and facts.weights == other_facts.weights)
    )
    has_same_training = bool(facts.training) and facts.training == other_facts.training
    return [WEIGHTS] * has_same_weights + [TRAINING] * has_same_training


def _is_explained(topic: str, facts: CardFacts, row: RowFacts, other_row: RowFacts) -> bool:
    """Whether two rows agree about a topic, so that equal text in their cards is no copy."""
    if topic == TRAINING:
        return row.training == other_row.training
    confirmed_links = facts.links & row.links or facts.repositories & row.repositories
    return bool(confirmed_links) or row.has_same_weights(other_row)


def _copied_fault(message: str, actual: str, line: int) -> Fault:
    """Return the fault of a card with text of another card."""
    expected = "a description of this model"
    return Fault(COPIED_CARD.id, (), message, quoted(actual), expected, at=line, card=True)


COPIED_CARD = Rule(
    id="copied-card",
    severity=Severity.ERROR,
    what="The model card has the title, the weights or the training data of another model's card.",
    why="Readers would take statements about the other model as facts about this one.",
    fix=(
        "Describe this model in its card: title, links, weights and training data. If two models "
        'do have the same weights, give both the same "meta.url"; if they have the same training '
        'data, the same "meta.training_data".'
    ),
    check=copied_card,
    needs=(Need.CARD,),
)


_NO_OVERLAP_BEGINNINGS = ("none", "no ", "no.", "not ", "unknown", "n/a")
"""Beginnings of a text that states no overlap with benchmark data."""


def overlap_despite_zero_shot(context: Context) -> Iterator[Fault]:
    """Report a zero-shot claim if the card's overlap field does not begin with a denial."""
    if context.card is None or context.member("meta", "zero_shot") is not True:
        return
    field = context.card.field_named("overlap", "contamination")
    if (
        field
        and field.value
        and not f"{field.value.casefold()} ".startswith(_NO_OVERLAP_BEGINNINGS)
    ):
        yield Fault(
            OVERLAP_DESPITE_ZERO_SHOT.id,
            (),
            f"zero_shot is true, but the card states an overlap: {quoted(field.value)}",
            "zero_shot true and an overlap",
            "zero_shot false, or no overlap",
            at=field.line,
            card=True,
        )


OVERLAP_DESPITE_ZERO_SHOT = Rule(
    id="overlap-despite-zero-shot",
    severity=Severity.WARNING,
    what="The submission claims zero-shot, but its card names an overlap with benchmark data.",
    why="A model that saw the test sequences in training is not zero-shot on them.",
    fix='Set "zero_shot" to false, or begin the overlap field of the card with "none" and explain.',
    check=overlap_despite_zero_shot,
    needs=(Need.CARD,),
)


REPORTED = (
    reading_rule(
        "card",
        "unreadable-card",
        what="The model card cannot be read.",
        why="Reviewers need the card; a link could point to any file.",
        fix="Save the card as a regular UTF-8 Markdown file of at most 100 kB.",
        needs=(Need.CARD,),
    ),
)
"""Rules that the reader of the card reports; only their texts are here."""
