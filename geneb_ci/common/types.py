"""Authorship, evidence and trust levels of rows.

`tools/generate.py` has benchmark.schema.json and all lists of levels from here.
"""

import enum


class TrustLevel(enum.StrEnum):
    """Authorship and evidence in one word, as files and upstream's page have it."""

    SELF_REPORTED = "self-reported"
    VERIFIED = "verified"
    REPRODUCED = "reproduced"
    OFFICIAL = "official"
    DISPUTED = "disputed"
    STALE = "stale"


class Authorship(enum.StrEnum):
    """Whose file a row is; it says nothing of whether the scores were confirmed."""

    OFFICIAL = "official"
    CONTRIBUTED = "contributed"


class Evidence(enum.StrEnum):
    """The evidence by others that confirms the scores of a row, whoever its author is."""

    NONE = "none"
    CHECKED = "checked"
    AUDITED = "audited"
    REPRODUCED = "reproduced"
    DISPUTED = "disputed"
    STALE = "stale"


LEVEL_WORDS = {
    TrustLevel.SELF_REPORTED.value: Evidence.CHECKED.value,
    TrustLevel.VERIFIED.value: Evidence.AUDITED.value,
}
"""Trust levels that people read by another word, which is that of the evidence."""


def level_word(level: str) -> str:
    """Return the word for a trust level that people read: `official`, or the evidence."""
    return LEVEL_WORDS.get(level, level)


AUTHORSHIP_MEANING = {
    Authorship.OFFICIAL: "the file of the benchmark's authors, byte for byte",
    Authorship.CONTRIBUTED: "a file that somebody else submitted",
}
EVIDENCE_MEANING = {
    Evidence.NONE: "does not pass the checks, so it is not on the board",
    Evidence.CHECKED: "passes every check; no audit confirms its scores",
    Evidence.AUDITED: "an audit of what was drawn after the submission was fixed agrees",
    Evidence.REPRODUCED: "audits by two signers cover every task of every audited regime",
    Evidence.DISPUTED: "an audit differs, or its last runs were aborted",
    Evidence.STALE: (
        "the audits are for another version of harness, benchmark or data, or its scores of "
        "another scorer"
    ),
}
"""One line for readers of the board, in the order in which the page explains them."""
EVIDENCE_ORDER = (Evidence.NONE, Evidence.CHECKED, Evidence.AUDITED, Evidence.REPRODUCED)
"""From least to most; `disputed` and `stale` meet none of them."""


def level_meaning(level: str) -> str:
    """Return what a trust level, evidence or authorship says of a row; "" for another word."""
    meanings = (*AUTHORSHIP_MEANING.items(), *EVIDENCE_MEANING.items())
    return next((meaning for word, meaning in meanings if word == level_word(level)), "")


def has_evidence(evidence: Evidence, minimum: Evidence | None) -> bool:
    """Whether evidence is at least the one that is asked for; None asks for any but `disputed`."""
    if minimum is None:
        return evidence is not Evidence.DISPUTED
    return evidence in EVIDENCE_ORDER[EVIDENCE_ORDER.index(minimum) :]
