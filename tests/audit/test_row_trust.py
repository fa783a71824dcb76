"""What an audit by receipt is worth: `verified` where it is large and whole, never `reproduced`."""

import dataclasses

import pytest

from geneb_ci.audit.trust import Decision, RowAuditFacts, decide
from geneb_ci.common.types import TrustLevel
from tests.audit.test_trust import BEFORE, DEMANDS, OWN, TASKS, audit

ROWS = RowAuditFacts(test=1500, embedded=9300, equal=60, cells=60)
STRICT = dataclasses.replace(DEMANDS, minimum_rows=1500)


def by_receipt(rows: RowAuditFacts = ROWS, **changes: object) -> Decision:
    """Return the decision on one audit by receipt."""
    found = audit(0, rerun={}, drawn=0, rows=rows, **changes)
    return decide(OWN, [found], {}, STRICT)


def test_a_whole_receipt_verifies_and_says_what_was_done() -> None:
    found = by_receipt()
    assert found.level is TrustLevel.VERIFIED
    assert found.reason.endswith("agrees: 60/60 cells, 9,300 rows of the receipt")
    assert found.audit is not None
    assert found.audit.text == "60/60 cells, 9,300 rows"


def test_a_failed_one_disputes() -> None:
    assert by_receipt(agrees=False).level is TrustLevel.DISPUTED


def test_one_of_an_earlier_version_is_stale() -> None:
    assert by_receipt(versions=BEFORE).level is TrustLevel.STALE


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"test": 1499}, "1,499 test rows of each regime drawn, the policy requires 1500"),
        ({"weak": "computed in bfloat16"}, "the receipt is weak: computed in bfloat16"),
        ({"missing": (TASKS[0],)}, "the receipt has no cells of task-00"),
        ({"equal": 59}, "1 cell not claimed"),
        ({"gone": "2026-09-01"}, "nobody can repeat it: the receipt was last there on 2026-09-01"),
    ],
)
def test_what_is_too_small_adds_no_level(change: dict[str, object], said: str) -> None:
    found = by_receipt(dataclasses.replace(ROWS, **change))  # type: ignore[arg-type]
    assert found.level is TrustLevel.SELF_REPORTED
    assert said in found.reason


def test_an_earlier_one_without_variants_adds_no_level() -> None:
    found = by_receipt(varied=False)
    assert found.level is TrustLevel.SELF_REPORTED
    assert "no variants of the sequences were embedded" in found.reason


def test_it_never_reproduces() -> None:
    pair = [
        audit(0, rerun={}, drawn=0, rows=ROWS, signer=signer, audit_id=f"{number:016}")
        for number, signer in enumerate(("one", "another"))
    ]
    assert decide(OWN, pair, {}, STRICT).level is TrustLevel.VERIFIED


def test_beside_an_audit_of_tasks_both_are_shown() -> None:
    found = decide(OWN, [audit(), audit(0, rerun={}, drawn=0, rows=ROWS)], {}, STRICT)
    assert found.audit is not None
    assert found.audit.text == "audited 13/20, 60/60 cells, 9,300 rows"
