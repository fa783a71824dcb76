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
    outcome = audit(0, rerun={}, drawn=0, by_receipt=rows, **changes)
    return decide(OWN, [outcome], {}, STRICT)


DONE = (
    "cells recomputed from published embeddings: 60/60, 9,300 embeddings computed again, "
    "2026-11-20; the scores shown were not compared"
)


WHOLE = dataclasses.replace(ROWS, cells_of_record=60, varied=True)


def test_a_whole_receipt_whose_shown_scores_were_compared_verifies_the_row() -> None:
    evidence = by_receipt(WHOLE)
    assert (evidence.level, evidence.evidence) == (TrustLevel.VERIFIED, Evidence.AUDITED)
    assert evidence.reason.endswith(
        "agrees on every cell of its receipt; memory is not excluded, since no audit had a fresh "
        "set"
    )
    shown = by_receipt(WHOLE, fresh_tasks=2)
    assert shown.reason.endswith("its receipt; a fresh set of 2 tasks shows no memory")
    assert evidence.audit is not None
    assert evidence.audit.text == "60/60 cells, 9,300 embeddings"
    assert (evidence.sampled, evidence.unaudited) == (REGIMES, ())
    standing = attestation_of(evidence).score_evidence("full", TASKS[0])
    assert SCORE_EVIDENCE_MEANING[standing] == SCORE_EVIDENCE_MEANING[ScoreEvidence.RECOMPUTED]


@pytest.mark.parametrize(
    ("change", "lacking"),
    [({"cells_of_record": 59}, UNCOMPARED_TEXT), ({"varied": False}, UNVARIED_TEXT)],
)
def test_one_that_leaves_out_what_an_audit_of_tasks_does_adds_no_level(
    change: dict[str, Any], lacking: str
) -> None:
    evidence = by_receipt(dataclasses.replace(WHOLE, **change))
    assert (evidence.level, evidence.evidence) == (TrustLevel.SELF_REPORTED, Evidence.CHECKED)
    assert evidence.recomputed is not None
    assert lacking in evidence.reason


def test_one_of_another_version_makes_a_row_stale_that_it_verified() -> None:
    assert by_receipt(WHOLE, versions=BEFORE).level is TrustLevel.STALE
    larger = dataclasses.replace(ROWS, embedded=20_000)
    both = [audit(0, rerun={}, drawn=0, by_receipt=rows) for rows in (larger, WHOLE)]
    decision = decide(OWN, both, {}, STRICT)
    assert decision.level is TrustLevel.VERIFIED
    assert decision.recomputed is not None
    assert decision.recomputed.facts == WHOLE, "what confirms more goes before what is larger"


def test_a_practice_draw_covers_no_regime() -> None:
    evidence = by_receipt(WHOLE, is_practice=True)
    assert (evidence.sampled, evidence.unaudited) == ((), REGIMES)


def test_a_receipt_without_compared_scores_adds_no_level_and_says_what_was_done() -> None:
    evidence = by_receipt()
    assert (evidence.level, evidence.evidence) == (TrustLevel.SELF_REPORTED, Evidence.CHECKED)
    assert evidence.reason == f"no audit of tasks counts; {DONE}; {UNVARIED_TEXT}"
    assert (evidence.audit, evidence.basis) == (None, ())
    assert evidence.recomputed is not None
    assert evidence.recomputed.text == DONE
    assert DONE.startswith(RECOMPUTED_TEXT)


def test_a_failed_one_disputes() -> None:
    evidence = by_receipt(dataclasses.replace(ROWS, equal=59), agrees=False)
    assert (evidence.level, evidence.recomputed) == (TrustLevel.DISPUTED, None)
    assert evidence.audit is not None
    assert evidence.audit.text == "59/60 cells, 9,300 embeddings"


def test_a_failed_one_disputes_a_row_that_audits_of_tasks_verify() -> None:
    failed = audit(0, rerun={}, drawn=0, by_receipt=ROWS, agrees=False, versions=BEFORE)
    for agreeing in (audit(0, rerun={}, drawn=0, by_receipt=ROWS), audit()):
        decision = decide(OWN, [agreeing, failed], {}, STRICT)
        assert (decision.level, decision.recomputed) == (TrustLevel.DISPUTED, None)


@pytest.mark.parametrize(
    "changes",
    [{"versions": BEFORE}, {"sandbox": 1}, {"all_refused": False}, {"withdrawn": "wrong weights"}],
)
def test_one_that_does_not_count_is_not_shown(changes: dict[str, Any]) -> None:
    """Nor does it make a row stale: that is said of a row that was confirmed once."""
    evidence = by_receipt(**changes)
    assert evidence.level is TrustLevel.SELF_REPORTED
    assert (evidence.reason, evidence.recomputed) == ("no audit counts", None)


def test_an_official_row_says_it_too() -> None:
    decision = decide(OWN, [audit(0, rerun={}, drawn=0, by_receipt=ROWS)], {"model": OWN}, STRICT)
    assert (decision.level, decision.evidence) == (TrustLevel.OFFICIAL, Evidence.CHECKED)
    assert decision.recomputed is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"test": 1499},
            "the audit drew 1,499 test embeddings of each regime, but the policy requires 1500",
        ),
        ({"weakness": "computed in bfloat16"}, "the receipt is weak: computed in bfloat16"),
        ({"missing": (TASKS[0],)}, "the receipt has no cells of task-00"),
        ({"equal": 59}, "1 cell not claimed"),
        (
            {"receipt_gone_since": "2026-09-01"},
            "nobody can repeat the audit: the receipt was last available on 2026-09-01",
        ),
    ],
)
def test_what_is_too_small_adds_no_level(change: dict[str, object], message: str) -> None:
    evidence = by_receipt(dataclasses.replace(ROWS, **change))  # type: ignore[arg-type]
    assert (evidence.level, evidence.recomputed) == (TrustLevel.SELF_REPORTED, None)
    assert message in evidence.reason


def test_an_earlier_one_without_variants_adds_no_level() -> None:
    evidence = by_receipt(has_variants=False)
    assert evidence.level is TrustLevel.SELF_REPORTED
    assert "no variants of the sequences were embedded" in evidence.reason


def test_two_people_confirm_no_more() -> None:
    pair = [
        audit(0, rerun={}, drawn=0, by_receipt=ROWS, signer=signer, audit_id=f"{number:016}")
        for number, signer in enumerate(("one", "another"))
    ]
    assert decide(OWN, pair, {}, STRICT).level is TrustLevel.SELF_REPORTED


def test_it_does_not_help_an_audit_of_too_few_tasks() -> None:
    decision = decide(OWN, [audit(12), audit(0, rerun={}, drawn=0, by_receipt=ROWS)], {}, STRICT)
    assert decision.level is TrustLevel.SELF_REPORTED
    assert decision.reason.endswith(
        "is not enough: the audit drew 12 tasks, but the policy requires 13"
    )
    assert decision.recomputed is not None


def test_beside_an_audit_of_tasks_both_are_shown() -> None:
    later = audit(0, rerun={}, drawn=0, by_receipt=ROWS, date="2026-11-21", signer="another")
    decision = decide(OWN, [audit(), later], {}, STRICT)
    assert decision.audit is not None
    assert (decision.audit.text, decision.audit.date) == ("audited 13/20", "2026-11-20")
    assert [item.by_receipt for item in decision.basis] == [None], (
        "the evidence rests on tasks alone"
    )
    assert decision.recomputed is not None
