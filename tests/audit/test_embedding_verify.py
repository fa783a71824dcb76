"""A record of an audit by receipt follows from its numbers: each change of them is refused."""

import contextlib
import dataclasses
import hashlib
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.audit.compare.embedding_outcome import (
    NOT_PROVED,
    SUPERSEDED_REASON,
    WITH_BOUNDS,
    WITH_COLUMN_TOLERANCES,
    WITH_FEW_SHOT,
    WITH_ROW_TOLERANCES,
    EmbeddingOutcome,
    PartEffect,
    not_proved_sentences,
    reasons_of,
    room_reason,
)
from geneb_ci.audit.compare.limits import limits_digest
from geneb_ci.audit.compare.outcome import verdict_from_reasons
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.record.keys import TrustedKey
from geneb_ci.audit.record.statement import parse_record, record_of
from geneb_ci.audit.record.verify import verify_record
from geneb_ci.audit.record.verify_embeddings import (
    RerunEmbeddings,
    check_comparisons,
    check_embeddings,
    read_rerun,
)
from geneb_ci.audit.rerun.honesty import FRESH_OBJECTION, MEMORISED_OBJECTION
from geneb_ci.audit.sampling.beacon import QUICKNET
from geneb_ci.audit.sampling.design import AuditPolicy, sampled_tasks, tickets_of
from geneb_ci.audit.sampling.embedding_draw import (
    check_embedding_plan,
    draw_embeddings,
    earlier_embedding_draws,
    embedding_counts,
    refit_tasks,
)
from geneb_ci.audit.sampling.plan import (
    DrandBeacon,
    EarlierEmbeddings,
    EmbeddingPlan,
)
from geneb_ci.audit.trust.applicability import TrustInputs, check_policy
from geneb_ci.common.errors import UsageProblem
from geneb_ci.receipt import column_rule, first_rule
from geneb_ci.receipt.draw import EmbeddingCounts
from geneb_ci.render.receipts import embedding_outcome_text
from reference_harness.formats.run_record import TaskReceipt
from tests.audit.examples import ROUNDS
from tests.audit.place import put
from tests.audit.recorded import (
    FIRST,
    SECOND,
    commitment,
    committed_at,
    entry,
    key,
    outcome_of,
    plan_for,
    submission_bytes,
)
from tests.each import each
from tests.receipt.audited import receipt_with
from tests.small import BENCHMARK

ROOT = "ab" * 32
RAW = submission_bytes()
INPUTS = TrustInputs(
    BENCHMARK,
    AuditPolicy(
        drawn=2,
        stratified=False,
        regimes=["full"],
        minimum_drawn=2,
        minimum_level=2,
        fallback_keys=[],
        spent_keys=[],
    ),
    None,
    (),
    {},
)
Change = Callable[[dict[str, Any]], None]
CELLS = {"equal": 3, "of": 3, "differing": [], "unclaimed": [], "unequal": []}


def row_plan(
    number: int = FIRST, earlier: tuple[EarlierEmbeddings, ...] = (), tag: str = ""
) -> EmbeddingPlan:
    beacon = DrandBeacon(kind="drand", chain=QUICKNET.hash, round=number, signature=ROUNDS[number])
    rows = EmbeddingCounts(test=1500, training=3, support=9, whole=False)
    raw = submission_bytes(tag)
    return draw_embeddings(commitment(raw), committed_at(number), beacon, ROOT, rows, earlier)


def sound(*, altered: bool = False) -> EmbeddingOutcome:
    """Return an outcome of one task with three distinct embeddings, the second altered or not."""
    task: dict[str, Any] = {
        "task": BENCHMARK.task_ids[0],
        "train": 10,
        "test": 10,
        "strata": {"training": 10},
        "rows": {"training": "1 4 1", "test full": "12 4"},
        "deviation": "0 400 0" if altered else "0 0.5 0",
        "mismatch": "0 40 1" if altered else "0 0 1",
        "failed": [],
    }
    if altered:
        task["failed"] = [
            {"row": 4, "again": {"dtype": "float64", "deviation": 400.0, "mismatch": 40}}
        ]
    tasks = outcome_of(plan_for(RAW), RAW)
    value = {
        "schema_version": WITH_COLUMN_TOLERANCES,
        "plan": row_plan().model_dump(),
        "receipt": {"root": ROOT, "dim": 64, "compute_dtype": "float32", "tf32": False, "tasks": 1},
        "cells": CELLS,
        "tasks": [task],
        "direction": {"rows": 3, "statistic": 0.2, "p": 0.4},
        "effect": {
            "training": {"rows": 1, "statistic": -1.0},
            "test": {"rows": 1, "statistic": 1.0},
        },
        "verdict": "agrees",
        "reasons": [],
        "not_proved": list(NOT_PROVED),
        "rerun_sha256": "cd" * 32,
        **{
            name: getattr(tasks, name)
            for name in ("benchmark_sha256", "dataset_revision", "packages", "notes")
        },
        **{name: getattr(tasks, name) for name in ("started_at", "finished_at")},
        **{name: getattr(tasks, name).model_dump() for name in ("decoys", "sandbox", "harness")},
    }
    embedding_outcome = EmbeddingOutcome.model_validate_json(json.dumps(value))
    reasons = reasons_of(embedding_outcome)
    return embedding_outcome.model_copy(
        update={"reasons": reasons, "verdict": verdict_from_reasons(reasons)}
    )


def changed(change: Change, of: EmbeddingOutcome) -> EmbeddingOutcome:
    value = json.loads(of.model_dump_json())
    change(value)
    return EmbeddingOutcome.model_validate_json(json.dumps(value))


@pytest.mark.parametrize("altered", [False, True])
def test_a_sound_outcome_passes_and_is_read_back(altered: bool) -> None:
    files = sound(altered=altered)
    assert files.verdict == ("differs" if altered else "agrees")
    check_embeddings(files, INPUTS)
    keys = {entry()["keyid"]: TrustedKey.model_validate(entry())}
    assert parse_record(record_of(files, key()).content, keys).outcome == files


def varied(worse: int = 1, **other: Any) -> EmbeddingOutcome:
    """Return `sound` with variants of forty test embeddings, of which so many became wrong."""
    value = json.loads(sound().model_dump_json())
    value["tasks"][0]["test"] = 40
    value |= {
        "variants": {
            "nonce": "ef" * 32,
            "rows": 40,
            "reversed": False,
            "kinds": {"substituted": {"rows": 40, "worse": worse, "better": 0}},
            "training": None,
            "others": {
                "1shot, canonical": {
                    "fits": 5,
                    "kinds": {"substituted": {"rows": 200, "worse": 0, "better": 0}},
                }
            },
            "memorised": False,
        }
        | other
    }
    return EmbeddingOutcome.model_validate_json(json.dumps(value))


def test_an_earlier_record_has_no_variants_and_the_same_bytes() -> None:
    text = sound().model_dump_json()
    assert "variants" not in json.loads(text)
    assert EmbeddingOutcome.model_validate_json(text).model_dump_json() == text


def test_flagged_variants_are_a_reason_and_their_counts_decide() -> None:
    check_embeddings(varied(), INPUTS)
    known = varied(40, memorised=True)
    with pytest.raises(StepMismatch, match="the reasons of the verdict are not those"):
        check_embeddings(known, INPUTS)
    check_embeddings(
        known.model_copy(update={"reasons": [MEMORISED_OBJECTION], "verdict": "differs"}), INPUTS
    )


def refitted(**other: Any) -> EmbeddingOutcome:
    """Return `varied` with a probe that is fitted on variants of the ten training embeddings."""
    counts = {"rows": 40, "worse": 2, "better": 1}
    value = json.loads(varied().model_dump_json())
    value["variants"]["training"] = counts
    value["tasks"][0]["rows"]["strongest"] = " ".join(map(str, range(10)))
    value["tasks"][0] |= {"deviation": " ".join("0" * 11), "mismatch": " ".join("0" * 11)}
    value |= {
        "schema_version": "2.1",
        "refits": [{"task": BENCHMARK.task_ids[0], "rows": 10, "training": counts}],
    } | other
    return EmbeddingOutcome.model_validate_json(json.dumps(value))


def bounded(**other: Any) -> EmbeddingOutcome:
    """Return `refitted` with scores of record, and what altered test embeddings can hide."""
    value = json.loads(refitted(schema_version=WITH_BOUNDS).model_dump_json())
    probe = {"fits": 1, "kinds": {"substituted": {"rows": 40, "worse": 0, "better": 0}}}
    value["variants"]["others"]["full, record"] = probe
    value["cells"]["of_record"] = 3
    value["bounds"] = [{"regime": "full", "draws": 2, "flipped": 0, "raised": 0.9}]
    return EmbeddingOutcome.model_validate_json(json.dumps(value | other))


def fitted(**other: Any) -> dict[str, Any]:
    """Return scores of the few-shot probes of the one task, by regime."""
    document = {"published": "0.1000 " * 4 + "0.1000", "others": "0.1000 " * 19 + "0.1000"}
    document |= {"varied": document["published"]} | other
    task = {BENCHMARK.task_ids[0]: {name: value for name, value in document.items() if value}}
    return {"regimes": dict.fromkeys(BENCHMARK.protocol.few_shot_k, task)}


def supported(**other: Any) -> EmbeddingOutcome:
    """Return `bounded` with few-shot probes that are fitted on other sequences, in version 2.3."""
    value = json.loads(bounded().model_dump_json())
    value["variants"]["rows"] = 4000
    parts = ("kinds", "training", "others")
    value["variants"]["tasks"] = {
        BENCHMARK.task_ids[0]: {name: value["variants"][name] for name in parts}
    }
    value["refits"][0]["support"] = 9
    value |= {"schema_version": WITH_FEW_SHOT, "few_shot": fitted()}
    return EmbeddingOutcome.model_validate_json(json.dumps(value | other))


def variants_in(expected: dict[str, Any]) -> dict[str, Any]:
    """Return the decisions on variants of the one task of a record."""
    (own,) = expected["variants"]["tasks"].values()
    task: dict[str, Any] = own
    return task


def test_few_shot_probes_decide_by_their_scores() -> None:
    outcome = supported()
    check_embeddings(outcome, INPUTS)
    text = outcome.model_dump_json()
    assert EmbeddingOutcome.model_validate_json(text).model_dump_json() == text
    low = "0.0000 " * 19 + "0.0000"
    known = supported(few_shot=fitted(others=low))
    with pytest.raises(StepMismatch, match="the reasons of the verdict are not those"):
        check_embeddings(known, INPUTS)
    (reason,) = reasons_of(known)
    assert reason == (
        "few-shot probes score more on the published sequences than on others of the same tasks: "
        "10shot in the mean of 1 task MCC +0.100 of at most 0.020, 1shot in the mean of 1 task MCC "
        "+0.100 of at most 0.020"
    )
    check_embeddings(known.model_copy(update={"reasons": [reason], "verdict": "differs"}), INPUTS)
    (reason,) = reasons_of(supported(few_shot=fitted(varied="0.0000 " * 4 + "0.0000")))
    assert reason.startswith(
        "few-shot probes score more on the published sequences than on variants of them: 10shot in"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda result: result.pop("few_shot"),
            "the record has no few-shot probes fitted on other sequences",
        ),
        (
            lambda result: result.update(few_shot=fitted(varied=None)),
            "lacks fits on variants, unlike the draw",
        ),
        (lambda result: result.update(few_shot=fitted(others="0.1000")), "other numbers of fits"),
        (lambda result: result["few_shot"]["regimes"].pop("1shot"), "probes of 10shot were fitted"),
        (
            lambda result: result["refits"][0].update(support=11),
            "11 sequences of .* were varied, expected at most",
        ),
        (lambda result: result["variants"].update(rows=40), "40 sequences per task were varied"),
        (
            lambda result: result["variants"].pop("tasks"),
            "expected decisions of each task of the record",
        ),
        (
            lambda result: variants_in(result)["kinds"]["substituted"].update(worse=0),
            "the sums of the decisions of the tasks are not the decisions of all",
        ),
        (
            lambda result: (
                result["refits"][0]["training"].update(worse=1),
                result["variants"]["training"].update(worse=1),
            ),
            "the sums of the decisions of the tasks are not the decisions of all",
        ),
        (
            lambda result: result.update(schema_version=WITH_BOUNDS),
            "40|each task are not those of its version",
        ),
    ],
)
def test_few_shot_probes_of_another_version_draw_or_count_are_refused(
    change: Change, message: str
) -> None:
    with pytest.raises(StepMismatch, match=message):
        check_embeddings(changed(change, supported()), INPUTS)


def test_records_before_version_2_3_have_no_few_shot_probes() -> None:
    check_embeddings(bounded(), INPUTS)
    assert "few_shot" not in json.loads(bounded().model_dump_json())
    with pytest.raises(StepMismatch, match="unlike records of its version or benchmark"):
        check_embeddings(bounded(few_shot=fitted()), INPUTS)


def bounds(**other: Any) -> list[dict[str, Any]]:
    return [{"regime": "full", "draws": 2, "flipped": 0, "raised": 0.9} | other]


def with_fresh(right: int = 150, **other: Any) -> EmbeddingOutcome:
    """Return `bounded` with a fresh set of 200 sequences, of which each probe got so many right."""

    def decided(fits: int) -> dict[str, Any]:
        public = {"rows": 40 * fits, "right": 30 * fits, "MCC": 0.5}
        fresh = {"rows": 200 * fits, "right": right * fits, "MCC": 0.5}
        return {BENCHMARK.task_ids[0]: {"public": public, "fresh": fresh, "fits": fits}}

    probes = bounded().variants
    assert probes is not None
    others = {name: decided(probe.fits) for name, probe in probes.others.items()}
    own = {"commitment": "ab" * 32, "tasks": decided(1), "others": others, "dropped": False}
    return bounded(fresh=own | other)


def test_a_fresh_set_decides_by_its_numbers_and_a_record_names_what_it_leaves_open() -> None:
    check_embeddings(with_fresh(), INPUTS)
    dropped = with_fresh(40, dropped=True)
    (reason,) = reasons_of(dropped)
    assert reason == FRESH_OBJECTION
    differing = dropped.model_copy(update={"reasons": [reason], "verdict": "differs"})
    check_embeddings(differing, INPUTS)
    assert "fresh" not in json.loads(bounded().model_dump_json())
    memory, *others = not_proved_sentences(dropped.cells, dropped.fresh, 3)
    assert memory == (
        "that no label is known: the fresh set is of 1 of 3 tasks, and shows what is worth more "
        "than 0.05 of their accuracy"
    )
    assert others == list(NOT_PROVED[1:-1])


TRIED: dict[str, Any] = {
    "public": {"rows": 40, "right": 30, "MCC": 0.5},
    "fresh": {"rows": 9, "right": 7, "MCC": 0.5},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda result: result["fresh"].update(dropped=True), "dropped is True, which contradicts"),
        (lambda result: result["fresh"].update(others={}), "other probes decided on it"),
        (
            lambda result: result["fresh"].update(tasks={"other": TRIED}),
            "its tasks are not tasks of the receipt",
        ),
        (lambda result: own_fresh(result)["public"].update(rows=39), "not decide on all test"),
        (lambda result: own_fresh(result)["fresh"].update(right=201), "are right than were made"),
        (
            lambda result: result.update(schema_version="2.1", bounds=[]),
            "fresh set, which records of version 2.1 cannot have",
        ),
    ],
)
def test_a_fresh_set_that_contradicts_itself_or_the_record_is_refused(
    change: Change, message: str
) -> None:
    with pytest.raises(StepMismatch, match=message):
        check_embeddings(changed(change, with_fresh()), INPUTS)


def own_fresh(expected: dict[str, Any]) -> dict[str, Any]:
    """Return the decisions of the full regime on the fresh set, of a record."""
    (own,) = expected["fresh"]["tasks"].values()
    task: dict[str, Any] = own
    return task


def test_a_bound_is_of_what_was_drawn_and_compared() -> None:
    check_embeddings(bounded(bounds=bounds(flipped=2)), INPUTS)
    assert room_reason(bounded(bounds=bounds(flipped=2))) == ""
    flipped = room_reason(bounded(bounds=bounds(draws=1500, flipped=4)))
    assert flipped == (
        "4 of 1,500 drawn test embeddings of full are classified rightly as committed and wrongly "
        "as rerun, the limit is 3"
    )
    text = embedding_outcome_text(bounded())
    assert (
        "with 95 % confidence, altered test embeddings raise the mean MCC of full by at most "
        "0.9000: 0 of 2 draws change the predicted class\n"
    ) in text
    for wrong in (
        bounded(bounds=[]),
        bounded(bounds=bounds(regime="10shot")),
        bounded(bounds=bounds(draws=3)),
        bounded(schema_version="2.1"),
        bounded(cells=CELLS),
    ):
        with pytest.raises(StepMismatch, match="the bounds are not those of the regimes"):
            check_embeddings(wrong, INPUTS)
    with pytest.raises(StepMismatch, match="3 of 2 draws of full are flipped"):
        check_embeddings(bounded(bounds=bounds(flipped=3)), INPUTS)


def test_a_record_calls_an_embedding_a_row_before_version_2_2_and_keeps_its_words() -> None:
    """A verdict is made again from the numbers, and has to say the same."""
    flips = {"deviation": "0 400" + " 0" * 9, "mismatch": "0 40" + " 0" * 9}
    again = {"dtype": "float64", "deviation": 400.0, "mismatch": 40}
    for version, noun in (("2.1", "row"), (WITH_BOUNDS, "embedding")):
        value = json.loads(bounded().model_dump_json())
        value["tasks"][0] |= flips | {"failed": [{"row": 1, "again": again}]}
        value |= {"schema_version": version, "bounds": value["bounds"] * (noun != "row")}
        outcome = EmbeddingOutcome.model_validate_json(json.dumps(value))
        (reason,) = reasons_of(outcome)
        assert reason.startswith(
            f"1 {noun} of 11 is not what the extractor gives: training {noun} 1 of "
        )
        check_embeddings(
            outcome.model_copy(update={"reasons": [reason], "verdict": "differs"}), INPUTS
        )


def refits(**other: Any) -> list[dict[str, Any]]:
    (task,) = json.loads(refitted().model_dump_json())["refits"]
    return [task | other]


def test_probes_fitted_on_variants_follow_from_the_seed_and_decide() -> None:
    outcome = refitted()
    check_embeddings(outcome, INPUTS)
    text = outcome.model_dump_json()
    assert EmbeddingOutcome.model_validate_json(text).model_dump_json() == text
    known = {"rows": 40, "worse": 38, "better": 0}
    variants = json.loads(text)["variants"] | {"training": known, "memorised": True}
    flagged = refitted(refits=refits(training=known), variants=variants)
    check_embeddings(
        flagged.model_copy(update={"reasons": [MEMORISED_OBJECTION], "verdict": "differs"}), INPUTS
    )
    with pytest.raises(StepMismatch, match="the reasons of the verdict are not those"):
        check_embeddings(flagged, INPUTS)


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (refitted(refits=[]), "variants: probes of no task were fitted, expected "),
        (
            refitted(refits=refits(task="another")),
            "variants: probes of another were fitted, expected ",
        ),
        (
            refitted(refits=refits(rows=11)),
            "11 training sequences of .* were varied, expected at most 10",
        ),
        (refitted(refits=refits(training=None)), "are not the sum of those of the tasks"),
        (
            refitted(refits=refits(training={"rows": 39, "worse": 2, "better": 1})),
            "a probe did not decide on all test embeddings",
        ),
        (
            refitted(schema_version=WITH_COLUMN_TOLERANCES, tasks=varied().model_dump()["tasks"]),
            "the record has probes fitted on variants, which records of version",
        ),
        (
            refitted(cells={**CELLS, "of_record": 3}),
            "no decisions of the probes of record, whose scores were compared",
        ),
        (
            refitted(variants=None),
            "the record has no variants, which records of version 2.1 must have",
        ),
        (refitted(tasks=varied().model_dump()["tasks"]), "0 of the strongest training embeddings"),
        (
            refitted().model_copy(update={"schema_version": WITH_COLUMN_TOLERANCES, "refits": []}),
            "the record lists the strongest training embeddings, unlike records of its version",
        ),
    ],
)
def test_refits_that_contradict_the_draw_are_refused(
    outcome: EmbeddingOutcome, message: str
) -> None:
    with pytest.raises(StepMismatch, match=message):
        check_embeddings(outcome, INPUTS)


def test_the_tasks_of_refits_are_those_that_a_draw_of_tasks_chooses() -> None:
    """Earlier draws count again, and what is drawn does not depend on the order of the tasks."""
    plan, tasks = row_plan(), list(BENCHMARK.task_ids)
    own = refit_tasks(plan, tasks)
    assert len(own) == plan.commitment.policy.drawn < len(tasks)
    assert own == refit_tasks(plan, tasks[::-1])
    assert own == sampled_tasks([each.task for each in tickets_of(plan.seed, tasks)], len(own))
    before = row_plan(SECOND)
    again = (EarlierEmbeddings(commitment="1" * 64, seed=before.seed),)
    both = refit_tasks(row_plan(earlier=again), tasks)
    assert both == [*own, *(task for task in refit_tasks(before, tasks) if task not in own)]
    assert refit_tasks(plan, tasks[:1]) == tasks[:1]
    strata = [tasks[:2], tasks[2:]]
    policy = plan.commitment.policy.model_copy(update={"strata": strata, "drawn": 2})
    commitment_of = plan.commitment.model_copy(update={"policy": policy})
    chosen = refit_tasks(plan.model_copy(update={"commitment": commitment_of}), tasks)
    assert [len(set(chosen) & set(part)) for part in strata] == [1, 1]


ONE_KIND = {"substituted": {"rows": 41, "worse": 0, "better": 0}}


@pytest.mark.parametrize(
    ("embedding_outcome", "message"),
    [
        (varied(40), "memorised is False, which contradicts the numbers"),
        (varied(memorised=True), "memorised is True, which contradicts the numbers"),
        (varied(41), "substituted: 41 of 40 decisions changed"),
        (varied(rows=39), "39 sequences per task were varied, expected 40"),
        (varied(kinds=ONE_KIND, others={}), "41 test sequences were varied"),
        (varied(kinds={}), "expected only the kind .substituted. of variants of test sequences"),
        (
            varied(others={"1shot, canonical": {"fits": 5, "kinds": ONE_KIND}}),
            "40 test sequences were varied, expected at most 40, and decisions of every probe",
        ),
    ],
)
def test_variants_that_contradict_themselves_are_refused(
    embedding_outcome: EmbeddingOutcome, message: str
) -> None:
    with pytest.raises(StepMismatch, match=message):
        check_embeddings(embedding_outcome, INPUTS)


def test_rows_of_variants_have_the_shapes_of_the_record() -> None:
    more = {
        "varied_task": np.zeros(40, "<i8"),
        "varied_row": np.arange(40, dtype="<i8"),
        "varied": np.ones((40, 64), "<f4"),
    }

    def read(**other: Any) -> RerunEmbeddings:
        raw = file_of(arrays(**more | other))
        digest = hashlib.sha256(raw).hexdigest()
        return read_rerun(raw, varied().model_copy(update={"rerun_sha256": digest}))

    variants = read().variants
    assert variants is not None
    assert variants.row.tolist() == [*range(40)]
    assert reread(file_of(arrays())).variants is None
    assert variants is not None
    assert read().refits is None
    trained = {
        f"refit{end}": array[:10]
        for end, array in zip(("_task", "_row", ""), more.values(), strict=True)
    }
    raw = file_of(arrays(**more | trained))
    update = {"rerun_sha256": hashlib.sha256(raw).hexdigest()}
    without_strongest = refitted().model_copy(update=update | {"tasks": varied().tasks})
    again = read_rerun(raw, without_strongest).refits
    assert again is not None
    assert again.row.tolist() == [*range(10)]
    with pytest.raises(StepMismatch, match=r"varied has the shape \(39, 64\)"):
        read(varied=np.ones((39, 64), "<f4"))


def test_the_reason_names_the_row_and_the_limits() -> None:
    (reason,) = sound(altered=True).reasons
    assert reason == (
        "1 row of 3 is not what the extractor gives: training row 4 of "
        f"{BENCHMARK.task_ids[0]} deviates by 4.0e+02 times what its column allows; "
        "40 of its 64 coordinates round otherwise, 4 may; alone in float64, 4.0e+02 and 40"
    )


def earlier(deviation: str = "0 1e-06 0", **other: Any) -> EmbeddingOutcome:
    """Return `sound` as version 1.0 recorded it: deviations in root mean squares of the
    embedding."""
    value = json.loads(sound().model_dump_json()) | {"schema_version": WITH_ROW_TOLERANCES}
    del value["effect"]
    value["tasks"][0] |= {"deviation": deviation} | other
    return EmbeddingOutcome.model_validate_json(json.dumps(value))


def test_an_earlier_record_keeps_to_its_own_rule_and_shows_nothing() -> None:
    check_embeddings(earlier(), INPUTS)
    with pytest.raises(StepMismatch, match="the failed embeddings do not follow"):
        check_embeddings(earlier("0 2e-05 0"), INPUTS)
    again = {"row": 4, "again": {"dtype": "float64", "deviation": 2e-5, "mismatch": 40}}
    altered = earlier("0 2e-05 0", failed=[again])
    (reason,) = reasons_of(altered)
    assert "deviates by 2.0e-05 of its root mean square, 1e-05 is allowed; " in reason
    check_embeddings(altered.model_copy(update={"reasons": [reason], "verdict": "differs"}), INPUTS)
    with pytest.raises(StepMismatch) as caught:
        check_policy(earlier(), INPUTS)
    assert (caught.value.step, caught.value.message) == ("policy", f"policy: {SUPERSEDED_REASON}")


@pytest.mark.parametrize(
    ("more", "limits", "message"),
    [
        (0, limits_digest(), "cells were not recomputed"),
        (1, limits_digest(), "test embeddings? of each regime, but the policy requires"),
        (0, "0" * 64, "the audit was judged by other limits than this version of geneb-ci has"),
    ],
)
def test_the_policy_asks_for_enough_embeddings_and_for_the_limits_of_today(
    more: int, limits: str, message: str
) -> None:
    plan = row_plan()
    policy = plan.commitment.policy.model_copy(update={"tolerance": limits})
    commitment = plan.commitment.model_copy(update={"policy": policy})
    plan = plan.model_copy(update={"commitment": commitment})
    outcome = sound().model_copy(update={"plan": plan})
    minimum = INPUTS.policy.model_copy(update={"minimum_rows": outcome.plan.rows.test + more})
    with pytest.raises(StepMismatch, match=message):
        check_policy(outcome, dataclasses.replace(INPUTS, policy=minimum))


@pytest.mark.parametrize("version", [WITH_ROW_TOLERANCES, WITH_COLUMN_TOLERANCES])
def test_a_comparison_is_made_again_by_the_rule_of_its_version(version: str) -> None:
    """Embedding 4 has a column that is 0 in the others, and another of large values."""
    rerun = (1 + np.arange(192).reshape(3, 64) / 512).astype("<f4")
    rerun[:, 0] = 3e4
    committed = rerun.astype("<f2")
    committed[1, 1:3] += np.float16(0.25)
    by_row = first_rule.compare_by_first_rule(committed, rerun, 0)
    by_column = column_rule.compare_with_rerun(
        committed, rerun, column_rule.coordinate_tolerances(rerun, 0), 0
    )
    compared = by_row if version == WITH_ROW_TOLERANCES else by_column
    assert (by_row.deviation[1] < 1e-4, by_column.deviation[1] > 1e4) == (True, True)
    outcome = earlier() if version == WITH_ROW_TOLERANCES else sound(altered=True)
    value = json.loads(outcome.model_dump_json())
    value["tasks"][0] |= {
        "deviation": " ".join(f"{each:g}" for each in compared.deviation.tolist()),
        "mismatch": " ".join(map(str, compared.mismatch.tolist())),
    }
    again = column_rule.compare_with_repeat(
        committed[1], rerun[1], rerun[1], column_rule.coordinate_tolerances(rerun, 0)[1], 0
    )
    for failed in value["tasks"][0]["failed"]:
        failed["again"] |= {"deviation": again.deviation, "mismatch": again.mismatch}
    outcome = EmbeddingOutcome.model_validate_json(json.dumps(value))
    root: dict[str, Any] = {"bytes": 2560, "sha256": "0" * 64, "root": "0" * 64}
    entry_of_task = TaskReceipt(train=10, test=10, dim=64, scale_log2=0, **root)
    receipt = receipt_with(64, {outcome.tasks[0].task: entry_of_task})
    rows = RerunEmbeddings(
        np.zeros(3, "<i8"), np.array(DRAWN), committed, rerun, [[]] * 3, rerun[1:2]
    )
    check_comparisons(rows, outcome, receipt)
    if version == WITH_COLUMN_TOLERANCES:
        with pytest.raises(
            StepMismatch, match="embedding 4 compares otherwise when computed again"
        ):
            check_comparisons(rows._replace(repeats=rerun[1:2] + 1), outcome, receipt)
    with pytest.raises(StepMismatch, match=r"compares? otherwise"):
        check_comparisons(rows._replace(rerun=rerun * np.float32(1.01)), outcome, receipt)


DRAWN = (1, 4, 12)
"""The distinct embeddings of `sound`."""


def arrays(**other: Any) -> dict[str, np.ndarray]:
    """Return what a file of rerun embeddings of `sound` has, or others of these names."""
    return {
        "task": np.zeros(3, "<i8"),
        "row": np.array(DRAWN, "<i8"),
        "committed": np.ones((3, 64), "<f2"),
        "rerun": np.ones((3, 64), "<f4"),
        "length": np.array([5, 5, 4], "<i8"),
        "proof": np.zeros((14, 32), "u1"),
        "again": np.zeros((0, 64), "<f4"),
    } | other


def file_of(expected: dict[str, Any], *, compressed: bool = False) -> bytes:
    stream = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(stream, **expected)
    return stream.getvalue()


def reread(raw: bytes) -> RerunEmbeddings:
    return read_rerun(
        raw, sound().model_copy(update={"rerun_sha256": hashlib.sha256(raw).hexdigest()})
    )


def test_a_file_of_rerun_rows_is_read() -> None:
    read_rows = reread(file_of(arrays()))
    assert (read_rows.task.tolist(), read_rows.row.tolist()) == ([0, 0, 0], list(DRAWN))
    assert read_rows.committed.tolist() == read_rows.rerun.tolist() == np.ones((3, 64)).tolist()
    assert [len(proof) for proof in read_rows.proofs] == [5, 5, 4]


def claiming(name: str, shape: str) -> bytes:
    """Return a file whose array says that it has another shape, in as many characters."""
    raw, shape_text = file_of(arrays()), str(arrays()[name].shape).encode()
    assert raw.count(shape_text) >= 1
    return raw.replace(shape_text, shape.ljust(len(shape_text)).encode())


HOSTILE = {
    "no archive": (b"rows", "File is not a zip file"),
    "nothing": (b"", "File is not a zip file"),
    "a part": (file_of(arrays())[:-40], "File is not a zip file"),
    "compressed": (file_of(arrays(), compressed=True), "is compressed, expected it uncompressed"),
    "an array less": (
        file_of({name: member for name, member in arrays().items() if name != "rerun"}),
        "There is no item named 'rerun.npy' in the archive",
    ),
    "objects": (
        file_of(arrays(length=np.array([5, 5, None]))),
        "length has the shape (3,) of |O, expected (3,) of <i8",
    ),
    "other numbers": (
        file_of(arrays(rerun=np.ones((3, 64)))),
        "rerun has the shape (3, 64) of <f8, expected (3, 64) of <f4",
    ),
    "another width": (
        file_of(arrays(committed=np.ones((3, 63), "<f2"))),
        "committed has the shape (3, 63) of <f2, expected (3, 64) of <f2",
    ),
    "another order": (
        file_of(arrays(rerun=np.asfortranarray(np.ones((3, 64), "<f4")))),
        "rerun has the shape (3, 64) of <f4, expected (3, 64) of <f4",
    ),
    "a proof of less than nothing": (
        file_of(arrays(length=np.array([19, -9, 4], "<i8"))),
        "a proof has -9 hashes, expected 0 to 64",
    ),
    "a proof without end": (
        file_of(arrays(length=np.array([5, 5, 1 << 60], "<i8"))),
        f"a proof has {1 << 60} hashes, expected 0 to 64",
    ),
    "too few hashes": (
        file_of(arrays(proof=np.zeros((13, 32), "u1"))),
        "proof has the shape (13, 32) of |u1, expected (14, 32) of |u1",
    ),
    "an embedding embedded again that the record has not": (
        file_of(arrays(again=np.zeros((1, 64), "<f4"))),
        "again has the shape (1, 64) of <f4, expected (0, 64) of <f4",
    ),
    "more embeddings than bytes": (claiming("proof", "(9**9,2)"), ""),
    "other embeddings": (
        file_of(arrays(row=np.array([1, 4, 13], "<i8"))),
        "the file of rerun embeddings has other embeddings than the record",
    ),
}  # fmt: skip


@each("name", HOSTILE)
def test_a_hostile_file_of_rerun_rows_is_refused(name: str) -> None:
    raw, message = HOSTILE[name]
    with pytest.raises(StepMismatch) as caught:
        reread(raw)
    assert caught.value.step == "rerun"
    assert message in str(caught.value)


@given(st.integers(0, len(file_of(arrays())) - 1), st.integers(1, 255))
def test_any_other_byte_is_refused_or_read_as_the_same(index: int, mask: int) -> None:
    raw = bytearray(file_of(arrays()))
    raw[index] ^= mask
    with contextlib.suppress(StepMismatch):
        assert reread(bytes(raw)).rerun.tolist() == np.ones((3, 64)).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("verdict", "agrees"), "the verdict is 'agrees', the numbers give 'differs'"),
        (
            put("reasons", []),
            "the reasons of the verdict are not those that the numbers give",
        ),
        (put("tasks", 0, "failed", []), "the failed embeddings do not follow"),
        (put("tasks", 0, "deviation", "2 400 0"), "the failed embeddings do not follow"),
        (put("tasks", 0, "deviation", "0 0"), "3 embeddings are drawn, 2 compared"),
        (
            put("tasks", 0, "rows", {"training": "1 4 30"}),
            "row 30 was drawn, expected a row below 20",
        ),
        (
            put("tasks", 0, "failed", 0, "again", None),
            "some failed embeddings were not computed again",
        ),
        (put("cells", "equal", 2), "unclaimed cells do not add up to 3"),
        (put("receipt", "tasks", 2), "the record compares 1 task, expected the 2 of the receipt"),
        (put("receipt", "root", "00" * 32), "not the one that the plan draws from"),
        (
            put("direction", "p", 1e-9),
            "the reasons of the verdict are not those that the numbers give",
        ),
    ],
)
def test_what_does_not_follow_is_refused(change: Change, message: str) -> None:
    with pytest.raises(StepMismatch) as caught:
        check_embeddings(changed(change, sound(altered=True)), INPUTS)
    assert caught.value.step == "comparison"
    assert message in caught.value.message


def test_a_direction_is_a_reason_of_its_own() -> None:
    files = sound()
    pointed = files.direction.model_copy(update={"statistic": 8.3, "p": 1e-16})
    (reason,) = reasons_of(files.model_copy(update={"direction": pointed}))
    assert reason.startswith("what the rows differ by points towards the labels: rank sum 8.3")


@pytest.mark.parametrize(("statistic", "what"), [(-5.1, "lowers"), (7.0, "raises")])
def test_an_effect_on_the_test_rows_is_a_reason_whatever_its_sign(
    statistic: float, what: str
) -> None:
    outcome = sound()
    assert outcome.effect is not None
    part = PartEffect(rows=30, statistic=statistic)
    effect = outcome.effect.model_copy(update={"training": part})
    (reason,) = reasons_of(outcome.model_copy(update={"effect": effect}))
    assert reason == (
        f"what the training rows differ by {what} the loss of the test rows: "
        f"{abs(statistic):.1f} standard deviations over 30 rows that differ, 5 are allowed"
    )
    with pytest.raises(StepMismatch, match="the reasons of the verdict are not those"):
        check_embeddings(outcome.model_copy(update={"effect": effect}), INPUTS)
    with pytest.raises(StepMismatch, match="the record lacks the effect on the test loss"):
        check_embeddings(outcome.model_copy(update={"effect": None}), INPUTS)


def test_a_plan_of_rows_recomputes_and_another_seed_is_refused() -> None:
    plan = row_plan()
    check_embedding_plan(plan)
    tasks = plan_for(RAW)
    assert plan.seed != tasks.seed, "one commitment has another seed for embeddings than for tasks"
    own = EarlierEmbeddings(commitment=plan.commitment_sha256, seed=ROOT)
    for update in ({"seed": tasks.seed}, {"earlier": [own]}):
        with pytest.raises(StepMismatch):
            check_embedding_plan(plan.model_copy(update=update))


def test_earlier_draws_of_a_method_count_under_another_name() -> None:
    first = row_plan()
    renamed = commitment(submission_bytes(" again"), model_id="another")
    (earlier_draw,) = earlier_embedding_draws([first], renamed)
    assert earlier_draw == EarlierEmbeddings(commitment=first.commitment_sha256, seed=first.seed)
    second = row_plan(SECOND, (earlier_draw,), " again")
    third = commitment(submission_bytes(" a third time"), model_id="third")
    listed = earlier_embedding_draws([second, first], third)
    assert [draw.commitment for draw in listed] == [
        first.commitment_sha256, second.commitment_sha256,
    ]  # fmt: skip
    unlike = commitment(submission_bytes(" other"), model_id="other", weights={
        "kind": "huggingface", "location": "org/other", "revision": "2" * 40,
        "files": {"model.safetensors": "e" * 64},
    })  # fmt: skip
    assert earlier_embedding_draws([first], unlike) == []


def test_a_record_of_a_second_draw_of_one_commitment_is_refused() -> None:
    keys = {entry()["keyid"]: TrustedKey.model_validate(entry())}
    later = outcome_of(plan_for(RAW, SECOND), RAW)
    times = {name: getattr(later, name) for name in ("started_at", "finished_at")}
    again = sound().model_copy(update={"plan": row_plan(SECOND), **times})
    record = parse_record(record_of(again, key()).content, keys)
    assert not verify_record("again", record, INPUTS).broken
    verification = verify_record("again", record, dataclasses.replace(INPUTS, plans=(row_plan(),)))
    (step,) = verification.broken
    assert step.name == "earlier"
    assert "this commitment already has a draw" in step.message
    messages = {step.name: step.message for step in verification.steps}
    assert messages["round"] == ""
    assert messages["sample"].endswith("follows from seed and receipt")


@pytest.mark.parametrize("text", ["", "0", "-3", "1.5", "all", "٣", "99999999", "1_000"])
def test_what_is_no_sample_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem, match="is not the size of a sample"):
        embedding_counts(text)


def test_samples() -> None:
    assert embedding_counts("standard") == EmbeddingCounts(
        test=1500, training=30, support=1500, whole=False
    )
    assert embedding_counts("full").whole
    assert embedding_counts("3000") == EmbeddingCounts(
        test=3000, training=60, support=3000, whole=False
    )
    assert embedding_counts("1") == EmbeddingCounts(test=1, training=1, support=1, whole=False)
