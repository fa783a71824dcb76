"""Rules on the row of a pull request: its model, card, extractor, and competing pull requests."""

from collections.abc import Iterator

from geneb_ci.check.change import Change, ChangeFault, RivalKind
from geneb_ci.check.rule import ChangeRule
from geneb_ci.common.finding import Severity
from reference_harness.formats.text import plural, quoted


def several_models(change: Change) -> Iterator[ChangeFault]:
    """Report each row of another model; if it is unclear which model is submitted, every row."""
    if len(change.rows) > 1:
        for file in change.rows:
            if file != change.row:
                message = f"{quoted(file.path)} is the row of another model"
                actual = plural(len(change.rows), "row")
                yield ChangeFault(
                    SEVERAL_MODELS.id, file.path, message, actual, "the row of one model"
                )


SEVERAL_MODELS = ChangeRule(
    id="several-models",
    severity=Severity.ERROR,
    what="The pull request changes the rows of more than one model.",
    why=(
        "A pull request is reviewed, audited and reverted for one model; beside a new row, an edit "
        "of another one could go unnoticed."
    ),
    fix="Open one pull request for each model.",
    check=several_models,
)


def edited_without_note(change: Change) -> Iterator[ChangeFault]:
    """Report an edited row, extractor or lock if the card has no new correction note."""
    if change.correction and change.card is not None:
        return
    for file in (change.row, change.extractor, change.lock):
        if file is not None and file.before is not None and file.after is not None:
            message = (
                f"{quoted(file.path)} is already published, and no note in the card explains "
                "the change"
            )
            expected = "a line `- **Correction:**` in the card, added in the same pull request"
            yield ChangeFault(
                EDITED_WITHOUT_NOTE.id, file.path, message, "no correction note", expected
            )


EDITED_WITHOUT_NOTE = ChangeRule(
    id="edited-without-note",
    severity=Severity.ERROR,
    what="A published row or its extractor is changed without a correction note.",
    why=(
        "Readers may have cited the old scores, and somebody else might edit a row to lower its "
        "scores."
    ),
    fix=(
        "Add to the card a line such as `- **Correction:** 2026-11-20, full regime rerun after a "
        "fix of the pooling`; a maintainer confirms it with the row's author."
    ),
    check=edited_without_note,
)


def invalid_audit_record(change: Change) -> Iterator[ChangeFault]:
    """Report each audit record that fails verification or cannot be read."""
    for path, reason in change.invalid_records:
        yield ChangeFault(
            INVALID_AUDIT_RECORD.id,
            path,
            f"{quoted(path)} does not verify: {reason}",
            reason,
            "a record that verifies",
        )


INVALID_AUDIT_RECORD = ChangeRule(
    id="invalid-audit-record",
    severity=Severity.ERROR,
    what="An audit record of the pull request does not verify.",
    why="Trust levels follow from signed records alone; with an invalid one no board can be built.",
    fix=(
        "Run `geneb-ci audit verify` on your branch to see which step fails. Do not edit the "
        "record. "
        "If the policy does not list your key, add it in a pull request first."
    ),
    check=invalid_audit_record,
)


_COLLISION_TEXTS = {RivalKind.FILE: "changes the same file", RivalKind.NAME: "uses the same name"}
"""What another pull request does, by kind of collision."""


def open_collision(change: Change) -> Iterator[ChangeFault]:
    """Report each passing open pull request that changes the same file or uses the same name."""
    for rival in change.rivals:
        if rival.kind in _COLLISION_TEXTS:
            collision = f"{_COLLISION_TEXTS[rival.kind]}: {quoted(rival.subject)}"
            message = f"pull request {rival.number} {collision}"
            row_path = change.row.path if change.row is not None else ""
            yield ChangeFault(
                OPEN_COLLISION.id,
                row_path,
                message,
                quoted(rival.subject),
                "a file and a name that no other open pull request has",
            )


OPEN_COLLISION = ChangeRule(
    id="open-collision",
    severity=Severity.ERROR,
    what="Another open pull request that passes the checks uses the same file, id or display name.",
    why="Merged together, the two would collide, and the board could not be published.",
    fix=(
        "Choose another id and display name, or wait: as soon as the other pull request is merged "
        "or closed, this one is checked again."
    ),
    check=open_collision,
)


def open_copy(change: Change) -> Iterator[ChangeFault]:
    """Report each open pull request with this row's scores, up to differences between reruns."""
    for rival in change.rivals:
        if rival.kind is RivalKind.COPY:
            message = (
                f"the scores are the same as those of {quoted(rival.subject)} in pull request "
                f"{rival.number}"
            )
            file = change.row.path if change.row is not None else ""
            yield ChangeFault(
                OPEN_COPY.id, file, message, "the same scores", "scores of this model"
            )


OPEN_COPY = ChangeRule(
    id="open-copy",
    severity=Severity.WARNING,
    what="Another open pull request has the same scores, up to differences that a rerun can cause.",
    why="Two models never agree so closely: one row is a copy, or was run with the wrong weights.",
    fix="Check which weights the extractor loads. If both rows are right, say why in a comment.",
    check=open_copy,
)


def row_without_card(change: Change) -> Iterator[ChangeFault]:
    """Report an added row whose card is not in the pull request."""
    row = change.row
    if row is not None and row.before is None and row.after is not None and change.card is None:
        card = f"{change.folders.cards}/{change.model}.md"
        message = f"this pull request has no model card for {quoted(change.model)}"
        yield ChangeFault(ROW_WITHOUT_CARD.id, row.path, message, "no card", quoted(card))


ROW_WITHOUT_CARD = ChangeRule(
    id="row-without-card",
    severity=Severity.ERROR,
    what="A new row has no model card.",
    why=(
        "Readers need architecture, pooling, layer and training data to interpret a score, and "
        "nobody adds a card later."
    ),
    fix=(
        "Add the card to this pull request: `geneb-ci new` writes one for a model on the Hub; "
        "otherwise write it with the fields that `geneb-ci explain incomplete-card` lists."
    ),
    check=row_without_card,
)


def row_without_extractor(change: Change) -> Iterator[ChangeFault]:
    """Report an added row whose extractor is neither added nor already in the repository."""
    row = change.row
    if row is None or row.before is not None or row.after is None or change.extractor is not None:
        return
    if not change.has_extractor:
        module = change.named_module or "<module>.py"
        message = f"this pull request has no extractor for {quoted(change.model)}"
        expected = quoted(f"{change.folders.extractors}/{module}")
        yield ChangeFault(ROW_WITHOUT_EXTRACTOR.id, row.path, message, "no extractor", expected)


ROW_WITHOUT_EXTRACTOR = ChangeRule(
    id="row-without-extractor",
    severity=Severity.ERROR,
    what="A new row has no extractor.",
    why="An audit reruns the extractor: without it, no score of the row can be verified.",
    fix="Add the extractor module, exactly as used, to the folder of extractors.",
    check=row_without_extractor,
)
