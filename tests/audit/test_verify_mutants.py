"""One bit flipped in each field of a record is refused, and the step that refuses it is named."""

import base64
import json
from collections import defaultdict
from typing import Any

import pytest

from geneb_ci.audit.record.envelope import is_signed_by, parse_envelope
from geneb_ci.audit.record.repository import AuditRepository
from geneb_ci.audit.record.verify import VERIFICATION_STEPS, StepState
from geneb_ci.common.config import find_layout
from tests.audit import flip
from tests.audit.recorded import (
    FIRST,
    key,
    outcome_of,
    plan_for,
    record_bytes,
    repository,
    resealed,
    statement_of,
    submission_bytes,
)
from tests.each import each
from tests.small import BENCHMARK

RAW = submission_bytes()
OUTCOME = outcome_of(plan_for(RAW, FIRST), RAW)
STATEMENT = statement_of(OUTCOME)
PATHS: defaultdict[str, list[flip.Path]] = defaultdict(list)
"""Field to the paths of its leaves."""
for leaf_path in flip.leaves(STATEMENT):
    PATHS[flip.pointer(leaf_path)].append(leaf_path)
FIELDS = sorted(PATHS)
PLAN = "predicate/plan"
COMMITMENT = f"{PLAN}/commitment"

# What the first step is that refuses a flipped bit which the trusted key signed again. Where the
# value is no longer of its form (a hex digit that is none, an unknown word) it is "statement".
REFUSED_AT = {
    "_type": "statement",
    "subject": "statement",
    "predicateType": "statement",
    "predicate/schema_version": "statement",
    "predicate/benchmark_sha256": "statement",
    "predicate/dataset_revision": "statement",
    "predicate/started_at": "statement",
    f"{PLAN}/schema_version": "statement",
    f"{PLAN}/committed_at": "statement",  # in seconds, it is test_input_60's "round"
    f"{PLAN}/commitment_sha256": "commitment",
    COMMITMENT: "commitment",
    f"{COMMITMENT}/model_id": "statement",
    f"{COMMITMENT}/submission_sha256": "statement",
    f"{COMMITMENT}/benchmark/sha256": "statement",
    f"{COMMITMENT}/benchmark/revision": "statement",
    f"{COMMITMENT}/protocol": "statement",
    f"{COMMITMENT}/extractor/options": "statement",
    f"{COMMITMENT}/policy/strata": "statement",
    f"{PLAN}/beacon/kind": "statement",
    f"{PLAN}/beacon/chain": "round",
    f"{PLAN}/beacon/round": "round",
    f"{PLAN}/beacon/signature": "signature",
    f"{PLAN}/seed": "seed",
    f"{PLAN}/tickets": "tickets",
    f"{PLAN}/chosen/*/task": "sample",
    f"{PLAN}/chosen/*/reason": "sample",
    f"{PLAN}/earlier": "statement",
    "predicate/noise": "submission",
    "predicate/verdict": "comparison",
    "predicate/tasks": "comparison",
    **{
        f"predicate/tasks/*/regimes/{regime}/canonical": "statement"
        for regime in ("full", "10shot", "1shot")
    },
    "predicate/decoys/order_dependent": "comparison",
    "predicate/decoys/memorised": "comparison",
    "predicate/variants/memorised": "comparison",
    "predicate/variants/rows": "comparison",
    "predicate/fresh": "statement",
    "predicate/precision": "statement",
    **{
        f"predicate/tasks/*/regimes/{regime}/tolerance/honest": "statement"
        for regime in ("full", "10shot", "1shot")
    },
    "predicate/harness/version": "harness",
    "predicate/harness/dirty": "harness",
    "predicate/sandbox/escapes/*/refused": "sandbox",
}
# What only who signed can know: nothing public could tell a wrong value from a right one. That the
# reruns gave these numbers is the signer's word, and the reason why records are signed.
SIGNERS_WORD = {
    "predicate/decoys/detail",
    "predicate/finished_at",
    "predicate/harness/commit",
    "predicate/notes/*",
    "predicate/packages/numpy",
    "predicate/sandbox/escapes/*/detail",
    "predicate/sandbox/escapes/*/name",
    "predicate/sandbox/gpu",
    "predicate/sandbox/kind",
    "predicate/sandbox/level",
    "predicate/sandbox/limits/memory_mib",
    "predicate/variants/nonce",
    "predicate/variants/reversed",
    *(
        f"predicate/variants/{part}/{count}"
        for part in ("kinds/substituted", "kinds/cropped", "kinds/shifted", "training")
        for count in ("rows", "worse", "better")
    ),
    *(
        f"predicate/few_shot/regimes/{regime}/{choice.task}/{fits}"
        for regime in BENCHMARK.protocol.few_shot_k
        for choice in OUTCOME.plan.chosen
        for fits in ("published", "others", "varied")
    ),
    *(
        f"predicate/tasks/*/regimes/{regime}/{field}"
        for regime in ("full", "10shot", "1shot")
        for field in (
            "predictions_equal",
            *(f"rescored/{metric}" for metric in ("MCC", "Acc", "F1")),
            *(f"tolerance/{name}" for name in ("MCC", "Acc", "F1", "copies", "flips", "spread")),
        )
    ),
}


@pytest.fixture(scope="module")
def repository_folder(tmp_path_factory):
    return repository(tmp_path_factory.mktemp("repository"))


def refused_at(repository_folder, raw: bytes) -> list[str]:
    path = repository_folder / "record.json"
    path.write_bytes(raw)
    verification = AuditRepository(find_layout(repository_folder)).verification(path)
    assert [step.name for step in verification.steps] == list(VERIFICATION_STEPS)
    assert verification.holds == (not verification.differs)
    return [step.name for step in verification.steps if step.state is StepState.DIFFERS]


def expected(field: str) -> str:
    """Return the step of a field, or of the nearest one above it."""
    parts = field.split("/")
    above = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next(REFUSED_AT[name] for name in above if name in REFUSED_AT)


def test_the_record_itself_holds(repository_folder):
    assert refused_at(repository_folder, record_bytes(OUTCOME)) == []
    assert len(FIELDS) > 80


def first_flip(field: str) -> dict[str, Any]:
    """Return the statement with one bit of a field flipped."""
    path = PATHS[field][0]
    changed_record: dict[str, Any] = flip.put_at(
        STATEMENT, path, next(flip.flips(flip.at(STATEMENT, path)))
    )
    return changed_record


@each("field", FIELDS)
def test_a_flipped_bit_without_a_new_signature_is_refused_at_the_signer(repository_folder, field):
    mutant = json.loads(record_bytes(OUTCOME))
    payload = parse_envelope(resealed(first_flip(field))).payload
    mutant["payload"] = base64.b64encode(payload).decode()
    raw = json.dumps(mutant, separators=(",", ":")).encode() + b"\n"
    assert refused_at(repository_folder, raw) == ["signer"]


def test_a_flipped_bit_that_a_stranger_signed_is_refused_at_the_signer(repository_folder):
    """Whatever was changed: a signature is of all bytes."""
    stranger = key("a stranger")
    raw = resealed(first_flip("predicate/verdict"), stranger)
    assert is_signed_by(parse_envelope(raw), stranger.public_key().public_bytes_raw())
    assert refused_at(repository_folder, raw) == ["signer"]


@each("field", FIELDS)
def test_a_flipped_bit_that_a_trusted_key_signed_is_refused_at_its_own_step(
    repository_folder, field
):
    seen = set()
    for path in PATHS[field]:
        for leaf in flip.flips(flip.at(STATEMENT, path)):
            steps = refused_at(repository_folder, resealed(flip.put_at(STATEMENT, path, leaf)))
            if field in SIGNERS_WORD:
                assert steps in ([], ["statement"], ["comparison"])
            else:
                assert steps, f"{field} = {leaf!r} is taken"
                assert steps[0] in {expected(field), "statement"}
                seen.add(steps[0])
    assert field in SIGNERS_WORD or expected(field) in seen


def test_each_field_is_either_refused_or_named_as_the_signers_word():
    assert set(FIELDS) >= SIGNERS_WORD
    assert all(expected(field) for field in FIELDS if field not in SIGNERS_WORD)


ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**53,
    10**30,
    0.5,
    -0.0,
    1e308,
    "",
    "x" * 250,
    "é",
    "٣",
    [],
    {},
    [[]],
)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param((None, 10**30, "٣"), id="some"),
        pytest.param(ODD, id="all", marks=pytest.mark.nightly),
    ],
)
@each("field", FIELDS)
def test_an_odd_value_that_a_trusted_key_signed_is_no_crash(repository_folder, field, values):
    path = PATHS[field][0]
    for leaf in values:
        steps = refused_at(repository_folder, resealed(flip.put_at(STATEMENT, path, leaf)))
        assert steps or field in SIGNERS_WORD or leaf == flip.at(STATEMENT, path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("weights", "files"), {"modèle.bin": "0" * 64}),
        (("extractor", "options"), {"größe": "4"}),
        (("extractor", "class_name"), "\ud800"),
        (("policy", "drawn"), 2**53),
    ],
)
def test_a_signed_commitment_that_has_no_digest_is_refused(repository_folder, path, value):
    """Canonical JSON has ASCII keys, UTF-8 texts and numbers below 2**53."""
    steps = refused_at(
        repository_folder,
        resealed(flip.put_at(STATEMENT, ("predicate", "plan", "commitment", *path), value)),
    )
    assert steps[0] in {"statement", "envelope"}
