"""What an audit by receipt is worth: it disputes a row, or verifies it if it compares
all."""

import dataclasses
from typing import Any

import pytest

from geneb_ci.audit.trust.attestation import SCORE_EVIDENCE_MEANING, ScoreEvidence, attestation_of
from geneb_ci.audit.trust.level import (
    RECOMPUTED_TEXT,
    UNCOMPARED_TEXT,
    UNVARIED_TEXT,
    Decision,
    EmbeddingAuditFacts,
    decide,
)
from geneb_ci.common.types import Evidence, TrustLevel
from tests.audit.test_trust import BEFORE, DEMANDS, OWN, REGIMES, TASKS, audit

ROWS = EmbeddingAuditFacts(test=1500, embedded=9300, equal=60, cells=60)
STRICT = dataclasses.replace(
    DEMANDS, minimum_rows=1500, regimes=frozenset(REGIMES), every_regime=REGIMES
)


def by_receipt(rows: EmbeddingAuditFacts = ROWS, **changes: object) -> Decision:
    """Return the decision on one audit by receipt."""
    found = audit(0, rerun={}, drawn=0, by_receipt=rows, **changes)
    return decide(OWN, [found], {}, STRICT)


DONE = (
    "cells recomputed from published embeddings: 60/60, 9,300 embeddings computed again, "
    "2026-11-20; the scores shown were not compared"
)


WHOLE = dataclasses.replace(ROWS, cells_of_record=60, varied=True)


def test_a_whole_receipt_whose_shown_scores_were_compared_verifies_the_row() -> None:
    found = by_receipt(WHOLE)
    assert (found.level, found.evidence) == (TrustLevel.VERIFIED, Evidence.AUDITED)
    assert found.reason.endswith(
        "agrees on every cell of its receipt; memory is not excluded, since it had no fresh set"
    )
    shown = by_receipt(WHOLE, fresh_tasks=2)
    assert shown.reason.endswith("its receipt; a fresh set of 2 tasks shows no memory")
    assert found.audit is not None
    assert found.audit.text == "60/60 cells, 9,300 embeddings"
    assert (found.sampled, found.unaudited) == (REGIMES, ())
    standing = attestation_of(found).standing("full", TASKS[0])
    assert SCORE_EVIDENCE_MEANING[standing] == SCORE_EVIDENCE_MEANING[ScoreEvidence.RECOMPUTED]


@pytest.mark.parametrize(
    ("change", "lacking"),
    [({"cells_of_record": 59}, UNCOMPARED_TEXT), ({"varied": False}, UNVARIED_TEXT)],
)
def test_one_that_leaves_out_what_an_audit_of_tasks_does_adds_no_level(
    change: dict[str, Any], lacking: str
) -> None:
    found = by_receipt(dataclasses.replace(WHOLE, **change))
    assert (found.level, found.evidence) == (TrustLevel.SELF_REPORTED, Evidence.CHECKED)
    assert found.recomputed is not None
    assert lacking in found.reason


def test_one_of_another_version_makes_a_row_stale_that_it_verified() -> None:
    assert by_receipt(WHOLE, versions=BEFORE).level is TrustLevel.STALE
    larger = dataclasses.replace(ROWS, embedded=20_000)
    both = [audit(0, rerun={}, drawn=0, by_receipt=rows) for rows in (larger, WHOLE)]
    found = decide(OWN, both, {}, STRICT)
    assert found.level is TrustLevel.VERIFIED
    assert found.recomputed is not None
    assert found.recomputed.facts == WHOLE, "what confirms more goes before what is larger"


def test_a_practice_draw_covers_no_regime() -> None:
    found = by_receipt(WHOLE, is_practice=True)
    assert (found.sampled, found.unaudited) == ((), REGIMES)


def test_a_receipt_without_compared_scores_adds_no_level_and_says_what_was_done() -> None:
    found = by_receipt()
    assert (found.level, found.evidence) == (TrustLevel.SELF_REPORTED, Evidence.CHECKED)
    assert found.reason == f"no audit of tasks counts; {DONE}; {UNVARIED_TEXT}"
    assert (found.audit, found.basis) == (None, ())
    assert found.recomputed is not None
    assert found.recomputed.text == DONE
    assert DONE.startswith(RECOMPUTED_TEXT)


def test_a_failed_one_disputes() -> None:
    found = by_receipt(dataclasses.replace(ROWS, equal=59), agrees=False)
    assert (found.level, found.recomputed) == (TrustLevel.DISPUTED, None)
    assert found.audit is not None
    assert found.audit.text == "59/60 cells, 9,300 embeddings"


def test_a_failed_one_disputes_a_row_that_audits_of_tasks_verify() -> None:
    failed = audit(0, rerun={}, drawn=0, by_receipt=ROWS, agrees=False, versions=BEFORE)
    for agreeing in (audit(0, rerun={}, drawn=0, by_receipt=ROWS), audit()):
        found = decide(OWN, [agreeing, failed], {}, STRICT)
        assert (found.level, found.recomputed) == (TrustLevel.DISPUTED, None)


@pytest.mark.parametrize(
    "changes",
    [{"versions": BEFORE}, {"sandbox": 1}, {"all_refused": False}, {"withdrawn": "wrong weights"}],
)
def test_one_that_does_not_count_is_not_shown(changes: dict[str, Any]) -> None:
    """Nor does it make a row stale: that is said of a row that was confirmed once."""
    found = by_receipt(**changes)
    assert found.level is TrustLevel.SELF_REPORTED
    assert (found.reason, found.recomputed) == ("no audit counts", None)


def test_an_official_row_says_it_too() -> None:
    found = decide(OWN, [audit(0, rerun={}, drawn=0, by_receipt=ROWS)], {"model": OWN}, STRICT)
    assert (found.level, found.evidence) == (TrustLevel.OFFICIAL, Evidence.CHECKED)
    assert found.recomputed is not None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"test": 1499}, "1,499 test embeddings of each regime drawn, the policy requires 1500"),
        ({"weakness": "computed in bfloat16"}, "the receipt is weak: computed in bfloat16"),
        ({"missing": (TASKS[0],)}, "the receipt has no cells of task-00"),
        ({"equal": 59}, "1 cell not claimed"),
        (
            {"receipt_gone_since": "2026-09-01"},
            "nobody can repeat it: the receipt was last available on 2026-09-01",
        ),
    ],
)
def test_what_is_too_small_adds_no_level(change: dict[str, object], said: str) -> None:
    found = by_receipt(dataclasses.replace(ROWS, **change))  # type: ignore[arg-type]
    assert (found.level, found.recomputed) == (TrustLevel.SELF_REPORTED, None)
    assert said in found.reason


def test_an_earlier_one_without_variants_adds_no_level() -> None:
    found = by_receipt(has_variants=False)
    assert found.level is TrustLevel.SELF_REPORTED
    assert "no variants of the sequences were embedded" in found.reason


def test_two_people_confirm_no_more() -> None:
    pair = [
        audit(0, rerun={}, drawn=0, by_receipt=ROWS, signer=signer, audit_id=f"{number:016}")
        for number, signer in enumerate(("one", "another"))
    ]
    assert decide(OWN, pair, {}, STRICT).level is TrustLevel.SELF_REPORTED


def test_it_does_not_help_an_audit_of_too_few_tasks() -> None:
    found = decide(OWN, [audit(12), audit(0, rerun={}, drawn=0, by_receipt=ROWS)], {}, STRICT)
    assert found.level is TrustLevel.SELF_REPORTED
    assert found.reason.endswith("is not enough: 12 tasks drawn, the policy requires 13")
    assert found.recomputed is not None


def test_beside_an_audit_of_tasks_both_are_shown() -> None:
    later = audit(0, rerun={}, drawn=0, by_receipt=ROWS, date="2026-11-21", signer="another")
    found = decide(OWN, [audit(), later], {}, STRICT)
    assert found.audit is not None
    assert (found.audit.text, found.audit.date) == ("audited 13/20", "2026-11-20")
    assert [one.by_receipt for one in found.basis] == [None], "the evidence rests on tasks alone"
    assert found.recomputed is not None
