"""Authorship, evidence and trust levels of rows.

`tools/generate.py` writes benchmark.schema.json and all lists of levels from these values.
"""

import enum


class TrustLevel(enum.StrEnum):
    """Authorship and evidence of a row in one word, in files and on upstream's page."""

    SELF_REPORTED = "self-reported"
    """Passes every check; texts write `checked`."""
    VERIFIED = "verified"
    """An audit agrees; texts write `audited`."""
    REPRODUCED = "reproduced"
    """Audits by two signers cover every task."""
    OFFICIAL = "official"
    """The file of the benchmark's authors."""
    DISPUTED = "disputed"
    """An audit differs."""
    STALE = "stale"
    """The audits are for another version of harness, benchmark or data."""


class Authorship(enum.StrEnum):
    """Author of a row's file: the benchmark's authors or a contributor; not related to evidence."""

    OFFICIAL = "official"
    CONTRIBUTED = "contributed"


class Evidence(enum.StrEnum):
    """How others confirmed the scores of a row, whoever its author is."""

    NONE = "none"
    CHECKED = "checked"
    AUDITED = "audited"
    REPRODUCED = "reproduced"
    DISPUTED = "disputed"
    STALE = "stale"


WORD_BY_LEVEL = {
    TrustLevel.SELF_REPORTED.value: Evidence.CHECKED.value,
    TrustLevel.VERIFIED.value: Evidence.AUDITED.value,
}
"""Word of the evidence that texts use instead of a trust level, by trust level."""


def level_word(level: str) -> str:
    """Return the word for a trust level in texts, such as `audited` for `verified`."""
    return WORD_BY_LEVEL.get(level, level)


AUTHORSHIP_MEANING = {
    Authorship.OFFICIAL: "the file of the benchmark's authors, byte for byte",
    Authorship.CONTRIBUTED: "a file that somebody else submitted",
}
"""Meaning of each authorship in one line, for readers of the board."""
EVIDENCE_MEANING = {
    Evidence.NONE: "does not pass the checks, so it is not on the board",
    Evidence.CHECKED: "passes every check; no audit confirms its scores",
    Evidence.AUDITED: "an audit agrees; its sample was drawn after the submission was committed to",
    Evidence.REPRODUCED: "audits by two signers cover every task of every audited regime",
    Evidence.DISPUTED: "an audit differs, or its last runs were aborted",
    Evidence.STALE: (
        "the audits are for another version of harness, benchmark or data, or another scorer "
        "computed the scores"
    ),
}
"""Meaning of each evidence in one line, for readers of the board, in the order of the page."""
EVIDENCE_ORDER = (Evidence.NONE, Evidence.CHECKED, Evidence.AUDITED, Evidence.REPRODUCED)
"""Evidence in ascending order; `disputed` and `stale` are below all of these."""


def level_meaning(level: str) -> str:
    """Return the meaning of a trust level, evidence or authorship; "" for another word."""
    meanings = (*AUTHORSHIP_MEANING.items(), *EVIDENCE_MEANING.items())
    return next((meaning for word, meaning in meanings if word == level_word(level)), "")


def has_evidence(evidence: Evidence, minimum: Evidence | None) -> bool:
    """Whether evidence is at least `minimum`; for None, whether it is not `disputed`."""
    if minimum is None:
        return evidence is not Evidence.DISPUTED
    return evidence in EVIDENCE_ORDER[EVIDENCE_ORDER.index(minimum) :]
