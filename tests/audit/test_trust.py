"""The table from evidence to level: every row that matters, and laws over made-up evidence."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.audit.trust.attestation import (
    SCORE_EVIDENCE_MEANING,
    SUBMITTERS_WORD,
    ScoreEvidence,
    attestation_of,
)
from geneb_ci.audit.trust.level import (
    Audit,
    AuditSummary,
    Decision,
    EmbeddingAuditFacts,
    EvidenceRequirements,
    Versions,
    decide,
)
from geneb_ci.common.types import Evidence, TrustLevel
from tests.each import each

OWN, OTHER = "a" * 64, "b" * 64
NOW = Versions("GENEB-0.1.0", "c" * 64, "d" * 40)
BEFORE = Versions("GENEB-0.0.9", "c" * 64, "d" * 40)
TASKS = [f"task-{number:02}" for number in range(20)]
REGIMES = ("full", "10shot", "1shot")
DEMANDS = EvidenceRequirements(
    minimum_drawn=13,
    minimum_level=2,
    stratified=False,
    tasks=frozenset(TASKS),
    versions=NOW,
)
OFFICIAL = {"model": OWN}


def audit(tasks: int = 13, **changes: object) -> Audit:
    """Return an audit that agrees, on the first tasks in every regime."""
    rerun = {regime: frozenset(TASKS[:tasks]) for regime in REGIMES}
    sound = Audit(
        audit_id="0" * 16,
        model_id="model",
        submission_sha256=OWN,
        agrees=True,
        drawn=min(tasks, 13),
        stratified=False,
        uncompared_regimes=(),
        rerun=rerun,
        sandbox=2,
        all_refused=True,
        harness_unchanged=True,
        versions=NOW,
        date="2026-11-20",
    )
    return dataclasses.replace(sound, **changes)  # type: ignore[arg-type]  # its own fields


def level(
    *audits: Audit, official: bool = False, demands: EvidenceRequirements = DEMANDS
) -> TrustLevel:
    return decide(OWN, audits, OFFICIAL if official else {}, demands).level


PART = {"full": frozenset(TASKS), "10shot": frozenset(TASKS[:13]), "1shot": frozenset(TASKS[:13])}
HEAD = {"full": frozenset(TASKS[:13])}
FAILED = audit(agrees=False)


def pair(tasks: int = 13, **changes: object) -> list[Audit]:
    """Return the same audit by two signers."""
    second = {"audit_id": "1" * 16, "signer": "another maintainer"}
    return [audit(tasks, **changes), audit(tasks, **second | changes)]


@each(
    ("audits", "expected"),
    [
        # No evidence, and evidence that does not count.
        ([], "self-reported"),
        ([audit(submission_sha256=OTHER)], "self-reported"),
        ([audit(withdrawn="wrong weights")], "self-reported"),
        ([audit(sandbox=0)], "self-reported"),
        ([audit(sandbox=1)], "self-reported"),
        ([audit(all_refused=False)], "self-reported"),
        ([audit(harness_unchanged=False)], "self-reported"),
        # Noise in which too much could be hidden: 0.0112 may, where the benchmark has 20 tasks.
        (pair(20, hidden_raises=dict.fromkeys(REGIMES, 0.0111)), "reproduced"),
        (pair(20, hidden_raises=dict.fromkeys(REGIMES, 0.0113)), "verified"),
        # Enough, too little, and no more by adding up samples.
        ([audit()], "verified"),
        ([audit(sandbox=4)], "verified"),
        ([audit(12)], "self-reported"),
        ([audit(12), audit(12, audit_id="1" * 16)], "self-reported"),
        ([audit(uncompared_regimes=("1shot",))], "self-reported"),
        # Where most tolerances are too wide, agreement is no evidence of that regime.
        ([audit(uninformative_regimes=("full",))], "self-reported"),
        (pair(20), "reproduced"),
        # A regime of which too little is informative verifies nothing, by nobody.
        (pair(20, uninformative_regimes=("full",)), "self-reported"),
        ([audit(20, uninformative_regimes=REGIMES)], "self-reported"),
        ([audit(uninformative_regimes=("full",), agrees=False)], "disputed"),
        # Targeted tasks are rerun and not drawn: they do not verify, but they do cover.
        ([audit(15, drawn=5)], "self-reported"),
        (pair(20, drawn=5), "self-reported"),
        ([audit(20, drawn=5), *pair(13)], "reproduced"),
        ([audit(20)], "verified"),
        # One key that invents numbers verifies at most; the second signer has to be another person.
        ([audit(20), audit(20, audit_id="1" * 16)], "verified"),
        ([audit(20, signer="Jo  Doe"), audit(20, signer="jo doe")], "verified"),
        ([audit(20), audit(12, signer="another maintainer")], "verified"),
        ([audit(20), audit(13, signer="another maintainer")], "reproduced"),
        (pair(rerun=PART), "reproduced"),
        (
            [
                audit(rerun={"full": frozenset(TASKS[:13])}),
                audit(rerun={"full": frozenset(TASKS[7:])}, signer="another maintainer"),
            ],
            "reproduced",
        ),
        (
            [
                audit(rerun={"full": frozenset(TASKS[:13])}),
                audit(rerun={"1shot": frozenset(TASKS[7:])}),
            ],
            "verified",
        ),
        # Versions.
        ([audit(versions=BEFORE)], "stale"),
        ([audit(20, versions=BEFORE)], "stale"),
        ([audit(12, versions=BEFORE)], "self-reported"),
        ([audit(versions=BEFORE), audit()], "verified"),
        ([audit(20, versions=BEFORE), audit()], "verified"),
        ([audit(versions=dataclasses.replace(NOW, dataset="e" * 40))], "stale"),
        ([audit(versions=dataclasses.replace(NOW, benchmark="e" * 64))], "stale"),
        # A failure outranks everything, whatever its size, level or version, but level 0.
        ([FAILED], "disputed"),
        ([FAILED, audit(20)], "disputed"),
        ([audit(1, agrees=False)], "disputed"),
        ([audit(agrees=False, sandbox=1)], "disputed"),
        ([audit(agrees=False, all_refused=False)], "disputed"),
        ([audit(agrees=False, versions=BEFORE), audit()], "disputed"),
        ([audit(agrees=False, sandbox=0), audit()], "verified"),
        ([audit(agrees=False, harness_unchanged=False), audit()], "verified"),
        ([audit(agrees=False, submission_sha256=OTHER), audit()], "verified"),
        ([audit(agrees=False, withdrawn="wrong weights"), audit()], "verified"),
        ([audit(agrees=False, withdrawn="wrong weights")], "self-reported"),
    ],
)
def test_the_table(audits, expected):
    assert level(*audits) == expected
    # An official file is official whatever agrees with it; a failed audit disputes it.
    assert level(*audits, official=True) == ("disputed" if expected == "disputed" else "official")


def test_a_sample_has_to_be_stratified_where_the_policy_says_so():
    demands = dataclasses.replace(DEMANDS, stratified=True)
    assert level(audit(), demands=demands) == "self-reported"
    assert level(audit(stratified=True), demands=demands) == "verified"


def test_a_smaller_benchmark_needs_the_tasks_that_its_policy_asks_for():
    demands = dataclasses.replace(DEMANDS, tasks=frozenset(TASKS[:5]), minimum_drawn=5)
    assert level(audit(4), demands=demands) == "self-reported"
    assert level(audit(5), demands=demands) == "verified"
    assert level(*pair(5), demands=demands) == "reproduced"


def test_what_the_board_shows_of_audits():
    first = audit(rerun={"full": frozenset(TASKS[:13])}, sandbox=3, date="2026-11-19")
    second = audit(rerun={"full": frozenset(TASKS[4:15])}, audit_id="1" * 16)
    assert decide(OWN, [first, second], {}, DEMANDS).audit == AuditSummary(
        tasks=15, of=20, date="2026-11-20", sandbox=2, agrees=True
    )
    assert decide(OWN, [first, FAILED], {}, DEMANDS).audit == AuditSummary(
        tasks=13, of=20, date="2026-11-20", sandbox=2, agrees=False
    )
    assert decide(OWN, [audit(5)], {}, DEMANDS).audit == AuditSummary(
        tasks=5, of=20, date="2026-11-20", sandbox=2, agrees=True
    )
    assert decide(OWN, [audit(sandbox=0)], OFFICIAL, DEMANDS).audit is None


@pytest.mark.parametrize(
    ("audits", "reason"),
    [
        ([], "no audit counts"),
        ([audit()], "audit 0000000000000000 agrees on at least 13 drawn tasks"),
        (pair(20), "by 2 signers or more cover each of the 20 tasks of the regime 10shot"),
        ([FAILED], "audit 0000000000000000 differs"),
        ([audit(5)], "the audit drew 5 tasks, but the policy requires 13"),
        ([audit(uncompared_regimes=("1shot",))], "it leaves out the regimes 1shot"),
        (
            [audit(uninformative_regimes=("full",))],
            "fewer than half of the cells are informative in full",
        ),
        (
            [audit(versions=BEFORE)],
            "agrees, but for another version of harness, benchmark or dataset",
        ),
    ],
)
def test_the_reason_says_why(audits, reason):
    assert reason in decide(OWN, audits, {}, DEMANDS).reason


def test_a_disputed_official_file_is_still_the_authors_own():
    decision = decide(OWN, [FAILED], OFFICIAL, DEMANDS)
    assert (decision.level, decision.is_official) == (TrustLevel.DISPUTED, True)


# How much a row of each level can be trusted, as far as levels can be compared at all.
TRUST = ("disputed", "stale", "self-reported", "verified", "reproduced", "official")


def trust(decision: Decision) -> int:
    return TRUST.index(decision.level)


any_audit = st.builds(
    audit,
    tasks=st.integers(1, 20),
    agrees=st.booleans(),
    sandbox=st.integers(0, 4),
    all_refused=st.booleans(),
    harness_unchanged=st.booleans(),
    versions=st.sampled_from([NOW, BEFORE]),
    withdrawn=st.sampled_from(["", "", "", "why"]),
    submission_sha256=st.sampled_from([OWN, OWN, OWN, OTHER]),
    uncompared_regimes=st.sampled_from([(), (), ("1shot",)]),
    uninformative_regimes=st.sampled_from([(), (), ("full",)]),
)
any_audits = st.lists(any_audit, max_size=5)
any_official = st.sampled_from([{}, OFFICIAL])


@given(any_audits, any_audit, any_official)
def test_a_failed_audit_never_raises_a_level(audits, audit_tried, official):
    failed = dataclasses.replace(audit_tried, agrees=False)
    before = decide(OWN, audits, official, DEMANDS)
    after = decide(OWN, [*audits, failed], official, DEMANDS)
    assert trust(after) <= trust(before)
    counts = failed.sandbox > 0 and failed.harness_unchanged and not failed.withdrawn
    if counts and failed.submission_sha256 == OWN:
        assert after.level == "disputed"


@pytest.mark.parametrize(
    "change", [{"submission_sha256": OTHER}, {"sandbox": 0}, {"withdrawn": "why"}]
)
@given(any_audits, any_audit, any_official)
def test_an_audit_of_other_bytes_without_sandbox_or_withdrawn_never_counts(
    change, audits, audit_tried, official
):
    left_out = dataclasses.replace(audit_tried, **change)
    assert decide(OWN, [*audits, left_out], official, DEMANDS) == decide(
        OWN, audits, official, DEMANDS
    )


@given(any_audits, any_audit, st.integers(0, 20), any_official)
def test_more_drawn_tasks_never_lower_a_level(audits, audit_tried, more, official):
    fewer = decide(OWN, [*audits, audit_tried], official, DEMANDS)
    larger = dataclasses.replace(
        audit_tried,
        drawn=min(audit_tried.drawn + more, 20),
        rerun={
            regime: tasks | frozenset(TASKS[: min(audit_tried.drawn + more, 20)])
            for regime, tasks in audit_tried.rerun.items()
        },
    )
    decision = decide(OWN, [*audits, larger], official, DEMANDS)
    # What was of no version to count becomes evidence of an old one: stale, which is no less.
    if {fewer.level, decision.level} != {TrustLevel.STALE, TrustLevel.SELF_REPORTED}:
        assert trust(decision) >= trust(fewer)


@given(any_audits, any_official)
def test_the_order_of_the_records_plays_no_part(audits, official):
    decision = decide(OWN, audits, official, DEMANDS)
    other = decide(OWN, reversed(audits), official, DEMANDS)
    assert (decision.level, decision.reason, decision.audit) == (
        other.level,
        other.reason,
        other.audit,
    )


@given(any_audits, any_official)
def test_what_a_row_shows_is_what_its_level_rests_on(audits, official):
    decision = decide(OWN, audits, official, DEMANDS)
    assert (decision.audit is None) == (not decision.basis)
    if decision.level in {"verified", "reproduced", "stale", "disputed"}:
        assert decision.audit is not None
        assert decision.audit.agrees == (decision.level != "disputed")


DEFINED = dataclasses.replace(DEMANDS, requires_scorer=True, regimes=frozenset(REGIMES))
WHOLE = {regime: frozenset(TASKS) for regime in REGIMES}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"unclaimed_cells": ("1shot of task-03",)},
            "drawn tasks have no claim in 1shot of task-03",
        ),
        (
            {"cells_without_scorer": ("full of task-03",)},
            "so that no definition determines the drawn cells: full of task-03",
        ),
        ({"has_variants": False}, "no variants of the sequences were embedded"),
    ],
)
def test_what_an_audit_did_not_compare_does_not_verify(changes, reason):
    decision = decide(OWN, [audit(**changes)], {}, DEFINED)
    assert decision.level == "self-reported"
    assert reason in decision.reason
    assert level(audit(), demands=DEFINED) == "verified"


def test_only_every_regime_of_the_policy_is_reproduced_and_only_with_defined_scores():
    part = WHOLE | {"1shot": frozenset(TASKS[:19])}
    second = audit(20, tasks_with_scorer=WHOLE, audit_id="b", signer="another")
    assert level(audit(20, tasks_with_scorer=WHOLE), demands=DEFINED) == "verified"
    assert level(audit(20, tasks_with_scorer=WHOLE), second, demands=DEFINED) == "reproduced"
    assert level(audit(20, tasks_with_scorer=part), demands=DEFINED) == "verified"
    assert level(audit(rerun=part, tasks_with_scorer=part), demands=DEFINED) == "verified"
    other = audit(
        rerun={"1shot": frozenset(TASKS[19:])}, tasks_with_scorer={"1shot": frozenset(TASKS)}
    )
    first = audit(rerun=part, tasks_with_scorer=part)
    twin = dataclasses.replace(first, audit_id="c", signer="another")
    assert level(first, other, demands=DEFINED) == "verified"
    assert decide(OWN, [first, twin, other], {}, DEFINED).reason == (
        "audits by 2 signers or more cover each of the 20 tasks of the 3 regimes 10shot, 1shot, "
        "full; memory is not excluded, since no audit had a fresh set"
    )
    older = audit(20, tasks_with_scorer=WHOLE, versions=BEFORE)
    assert level(first, twin, older, demands=DEFINED) == "verified"


EVERY = dataclasses.replace(
    DEMANDS, regimes=frozenset(REGIMES[:2]), every_regime=REGIMES, requires_scorer=False
)
ALL_OF = {regime: frozenset(TASKS) for regime in REGIMES[:2]}
FEW = {regime: frozenset(TASKS[:5]) for regime in REGIMES}
WITHOUT_LAST = {regime: frozenset(TASKS[:13]) for regime in REGIMES[:2]}


@pytest.mark.parametrize(
    ("audits", "first", "last", "elsewhere", "left_out"),
    [
        # Of a rerun task, of another in the same regime, of one in the regime without an audit.
        ([], "submitted", "submitted", "submitted", ()),
        ([audit(drawn=5, rerun=FEW)], "rerun", "submitted", "rerun", ()),
        ([audit(rerun=WITHOUT_LAST)], "rerun", "sampled", "submitted", ("1shot",)),
        (pair(rerun=ALL_OF), "rerun", "rerun", "submitted", ("1shot",)),
        ([audit(rerun=WITHOUT_LAST, versions=BEFORE)], "stale", "stale", "submitted", ()),
        ([audit(rerun=WITHOUT_LAST), FAILED], "disputed", "disputed", "disputed", ()),
        # What was rerun beside the sample does not make a sample of its regime.
        (
            [audit(rerun=WITHOUT_LAST), audit(drawn=1, rerun={"1shot": frozenset(TASKS[:1])})],
            *("rerun", "sampled", "rerun", ("1shot",)),
        ),
    ],
)
def test_what_audits_show_of_a_score(
    audits: list[Audit], first: str, last: str, elsewhere: str, left_out: tuple[str, ...]
) -> None:
    row = attestation_of(decide(OWN, audits, {}, EVERY))
    results = (
        row.score_evidence("full", TASKS[0]),
        row.score_evidence("full", TASKS[-1]),
        row.score_evidence("1shot", TASKS[0]),
    )
    assert results == (first, last, elsewhere)
    assert row.unconfirmed_regimes == left_out


def test_who_signed_is_named_once_and_a_dispute_stands_for_nothing() -> None:
    row = attestation_of(decide(OWN, pair(rerun=ALL_OF, signer="A. Maintainer"), {}, EVERY))
    (rerun, _) = row.statements
    assert rerun.by == (
        "rerun by A. Maintainer (20 of 20 tasks; full, 10shot), equal within the tolerance"
    )
    stale = attestation_of(decide(OWN, [audit(rerun=WITHOUT_LAST, versions=BEFORE)], {}, EVERY))
    assert stale.statements[0].by.endswith("for another version of harness, benchmark or data")
    disputed = attestation_of(decide(OWN, [FAILED], {}, EVERY))
    assert [own.by for own in disputed.statements] == [
        SCORE_EVIDENCE_MEANING[ScoreEvidence.DISPUTED]
    ]
    authors_by_field = {own.fields: own.by for own in disputed.every_statement}
    assert authors_by_field["code, weights and number format of the run"].startswith("in dispute")
    assert authors_by_field["name and size"] == SUBMITTERS_WORD


@pytest.mark.parametrize(("of_record", "standing"), [(0, "submitted"), (60, "recomputed")])
def test_scores_that_a_receipt_gives_are_attested_by_it_and_no_others(
    of_record: int, standing: str
) -> None:
    rows = EmbeddingAuditFacts(test=1, embedded=90, equal=60, cells=60, cells_of_record=of_record)
    row = attestation_of(decide(OWN, [audit(0, rerun={}, by_receipt=rows)], {}, EVERY))
    assert row.score_evidence("full", TASKS[0]) == standing
    by = "recomputed from published embeddings (60 of 60 cells)"
    authors_by_field = {own.fields: own.by for own in row.every_statement}
    shown = by if of_record else SUBMITTERS_WORD
    assert (authors_by_field["scores of tasks"], authors_by_field["scores by seed"]) == (
        shown,
        shown,
    )
    assert authors_by_field["canonical scores"] == by
    assert authors_by_field["code, weights and number format of the run"].startswith(
        "used to compute 90 embeddings"
    )
    both = attestation_of(
        decide(OWN, [audit(rerun=WITHOUT_LAST), audit(0, rerun={}, by_receipt=rows)], {}, EVERY)
    )
    assert both.score_evidence("full", TASKS[0]) == "rerun"
    assert both.score_evidence("full", TASKS[-1]) == ("recomputed" if of_record else "sampled")


def test_a_draw_that_anybody_could_foresee_says_nothing_of_what_was_not_rerun():
    drawn, practised = (
        decide(OWN, [audit(is_practice=is_practice)], {}, DEMANDS) for is_practice in (False, True)
    )
    assert drawn.evidence == practised.evidence == "audited"
    assert set(drawn.sampled) == set(REGIMES)
    assert practised.sampled == ()
    assert (
        attestation_of(practised).score_evidence(REGIMES[0], "not rerun") is ScoreEvidence.SUBMITTED
    )


def test_a_row_that_was_not_rescored_is_stale_whatever_its_audits_say() -> None:
    demands = dataclasses.replace(DEMANDS, scorer="1" * 64)
    assert decide(OWN, [audit()], {}, demands, scorer="1" * 64).level is TrustLevel.VERIFIED
    assert decide(OWN, [audit()], {}, demands).level is TrustLevel.VERIFIED, "it names none"
    for audits in ([audit()], []):
        decision = decide(OWN, audits, {}, demands, scorer="2" * 64)
        assert (decision.level, decision.evidence) == (TrustLevel.STALE, Evidence.STALE)
        assert decision.reason.startswith("its scores come from the scorer 2222222222222222...")
    failed = [audit(agrees=False)]
    assert decide(OWN, failed, {}, demands, scorer="2" * 64).level is TrustLevel.DISPUTED
