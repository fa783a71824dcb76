"""A valid record compared with a repository: every refusal, by one changed value."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.audit.compare.outcome import AuditOutcome
from geneb_ci.audit.errors import MissingInput, StepMismatch
from geneb_ci.audit.sampling.design import AuditPolicy
from geneb_ci.audit.trust.applicability import (
    TrustInputs,
    check_benchmark,
    check_harness,
    check_policy,
    check_sandbox,
    check_submission,
    left_out_regimes,
)
from tests.audit.recorded import FIRST, MODEL, outcome_of, plan_for, submission_bytes
from tests.small import BENCHMARK

RAW = submission_bytes()
OUTCOME = outcome_of(plan_for(RAW, FIRST), RAW)
POLICY = AuditPolicy.model_validate(
    {
        "drawn": 2,
        "stratified": False,
        "regimes": ["full", "10shot", "1shot"],
        "minimum_drawn": 2,
        "minimum_level": 2,
    }
)
Change = Callable[[dict[str, Any]], Any]


def changed(*path: str | int, to: Any) -> AuditOutcome:
    """Return the outcome with one value changed; nothing is drawn or checked again."""
    audit_outcome: AuditOutcome = _put(OUTCOME, path, to)
    return audit_outcome


def _put(node: Any, path: tuple[str | int, ...], value: Any) -> Any:
    if not path:
        return value
    first, *rest = path
    if isinstance(node, list | tuple):
        members = list(node)
        members[int(first)] = _put(members[int(first)], tuple(rest), value)
        return type(node)(members)
    name = str(first)
    return node.model_copy(update={name: _put(getattr(node, name), tuple(rest), value)})


def inputs(folder: Path | None = None, **policy: Any) -> TrustInputs:
    policy_with_changes = POLICY.model_copy(update=policy)
    return TrustInputs(BENCHMARK, policy_with_changes, folder, plans=(), unreadable={})


def here(folder: Path, change: Change = lambda _: None) -> tuple[AuditOutcome, TrustInputs]:
    """Return the outcome for a submission with one change, and the repository that holds it."""
    document = json.loads(RAW)
    change(document)
    raw = json.dumps(document).encode()
    (folder / f"{MODEL}.json").write_bytes(raw)
    digest = hashlib.sha256(raw).hexdigest()
    return changed("plan", "commitment", "submission_sha256", to=digest), inputs(folder)


def refusal(check: Callable[[AuditOutcome, TrustInputs], None], *what: Any) -> tuple[str, str]:
    with pytest.raises(StepMismatch) as caught:
        check(*what)
    error = caught.value
    assert error.message.startswith(f"{error.step}: ")
    return error.step, error.message.removeprefix(f"{error.step}: ")


def test_the_outcome_itself_applies_to_its_repository(tmp_path):
    outcome, folder = here(tmp_path)
    for check in (check_submission, check_benchmark, check_policy, check_harness, check_sandbox):
        check(outcome, folder)


PIN = ("plan", "commitment", "benchmark")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            (*PIN, "sha256"),
            "0" * 64,
            f'the definition is now "{BENCHMARK.sha256}", and was "',
        ),
        ((*PIN, "name"), "OTHER", f'the name is now "{BENCHMARK.name}", and was "'),
        ((*PIN, "dataset"), "a/b", f'the dataset is now "{BENCHMARK.dataset.repo_id}", and was '),
        ((*PIN, "revision"), "1" * 40, "the dataset revision is now "),
        (
            ("plan", "commitment", "tasks"),
            ["splice_sites", "no such"],
            'the commitment names regimes or tasks that the benchmark does not have: "no',
        ),
        (
            ("plan", "commitment", "regimes"),
            ["full", "5shot"],
            'the commitment names regimes or tasks that the benchmark does not have: "5shot"',
        ),
    ],
)
def test_another_benchmark_is_stale(path, value, message):
    step, refusal_text = refusal(check_benchmark, changed(*path, to=value), inputs())
    assert step == "benchmark"
    assert refusal_text.startswith(message)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            ("plan", "commitment", "policy", "strata"),
            ["Promoters"],
            "the sample has other strata than the ",
        ),
        (
            ("plan", "commitment", "policy", "tolerance"),
            "0" * 64,
            "the audit was judged by other limits than this version of geneb-ci has",
        ),
        (
            ("plan", "commitment", "regimes"),
            ["full"],
            "the audit leaves out the regimes 10shot, 1shot",
        ),
        (
            ("plan", "chosen"),
            OUTCOME.plan.chosen[:1],
            "the audit drew 1 task, but the policy requires 2",
        ),
    ],
)
def test_a_sample_that_the_policy_does_not_take(path, value, message):
    outcome = changed(*path, to=value)
    step, refusal_text = refusal(check_policy, outcome, inputs())
    assert step == "policy"
    assert refusal_text.startswith(message)


def test_a_policy_that_asks_for_strata():
    assert refusal(check_policy, OUTCOME, inputs(stratified=True)) == (
        "policy",
        "the sample is not stratified, but the policy requires strata",
    )


def test_a_regime_is_left_out_when_it_is_asked_for_there_and_claimed(tmp_path):
    full = changed("plan", "commitment", "regimes", to=["full"])
    assert left_out_regimes(full, inputs()) == ["10shot", "1shot"]
    assert left_out_regimes(full, inputs(regimes=["1shot", "full"])) == ["1shot"]
    assert left_out_regimes(OUTCOME, inputs()) == []

    def without(document: dict[str, Any]) -> None:
        for table in ("results", "evidence"):
            document[table]["10shot"] = {}
        document["gaps"] = {"10shot": dict.fromkeys(BENCHMARK.task_ids, "does not fit one GPU")}

    _, folder = here(tmp_path, without)
    claim = folder.submission(MODEL)
    assert claim is not None
    assert claim.submission is not None
    assert left_out_regimes(full, folder) == ["1shot"]


def test_a_harness_of_another_version_or_with_changes():
    other = changed("harness", "version", to="GENEB-0.2.0")
    assert refusal(check_harness, other, inputs()) == (
        "harness",
        'version "GENEB-0.2.0" of the harness scored, but the current version is "GENEB-0.1.0"',
    )
    dirty = changed("harness", "dirty", to=True)
    assert refusal(check_harness, dirty, inputs()) == (
        "harness",
        "the harness that scored had local changes",
    )


def test_a_sandbox_that_was_open():
    assert refusal(check_sandbox, OUTCOME, inputs(minimum_level=3)) == (
        "sandbox",
        "the extractor ran at sandbox level 2, but the policy requires level 3 or above",
    )
    names = [escape.name for escape in OUTCOME.sandbox.escapes]
    changed_document = changed("sandbox", "escapes", 0, "refused", to=False)
    assert refusal(check_sandbox, changed_document, inputs()) == (
        "sandbox",
        f'escapes that succeeded: "{names[0]}"',
    )
    none = changed("sandbox", "escapes", to=[])
    assert refusal(check_sandbox, none, inputs()) == ("sandbox", "no escape was attempted")
    check_sandbox(OUTCOME, inputs(minimum_level=2))


WEIGHTS = ("plan", "commitment", "weights")
CODE = ("plan", "commitment", "extractor")


@pytest.mark.parametrize(
    ("path", "value", "what"),
    [
        ((*CODE, "sha256"), "1" * 64, "extractor"),
        ((*CODE, "class_name"), "Other", "class of the extractor"),
        ((*WEIGHTS, "kind"), "local", "kind of weights"),
        (("noise",), "float16", "dtype"),
        ((*WEIGHTS, "location"), "a/b", "location of the weights"),
        ((*WEIGHTS, "revision"), "2" * 40, "revision of the weights"),
        ((*WEIGHTS, "files"), {"x": "0" * 64}, "weight files"),
    ],
)
def test_a_run_other_than_the_one_committed(tmp_path, path, value, what):
    outcome, folder = here(tmp_path)
    digest = outcome.plan.commitment.submission_sha256
    other = _put(changed(*path, to=value), ("plan", "commitment", "submission_sha256"), digest)
    step, refusal_text = refusal(check_submission, other, folder)
    assert step == "submission"
    assert refusal_text.startswith(f"{what}: the commitment has ")


@pytest.mark.parametrize("same", [True, False])
def test_a_folder_is_the_published_weights_if_the_files_are_the_same(tmp_path, same):
    outcome, folder = here(
        tmp_path,
        lambda document: document["run"]["model"].update(
            kind="local", location="folder", revision=None
        ),
    )
    files = dict(outcome.plan.commitment.weights.files) | {"config.json": "1" * 64}
    if not same:
        files["model.safetensors"] = "2" * 64
    digest = outcome.plan.commitment.submission_sha256
    published = _put(changed(*WEIGHTS, "kind", to="zenodo"), (*WEIGHTS, "files"), files)
    other = _put(published, ("plan", "commitment", "submission_sha256"), digest)
    if same:
        check_submission(other, folder)
    else:
        assert refusal(check_submission, other, folder)[1].startswith(
            "weight files: the commitment has"
        )


def test_a_submission_that_is_not_here_was_changed_or_cannot_be_read(tmp_path):
    with pytest.raises(MissingInput) as caught:
        check_submission(OUTCOME, inputs(tmp_path / "empty"))
    assert (
        caught.value.message
        == "submission: model.json, with which the record is compared, is missing"
    )
    _, folder = here(tmp_path, lambda document: document["meta"].update(display="Another name"))
    step, refusal_text = refusal(check_submission, OUTCOME, folder)
    assert (step, refusal_text.partition(" has ")[0]) == ("submission", "model.json")
    assert refusal_text.endswith(
        f"the audited file had {OUTCOME.plan.commitment.submission_sha256}"
    )


def test_a_submission_that_claims_other_things_than_were_drawn_from(tmp_path):
    outcome, folder = here(tmp_path)
    digest = outcome.plan.commitment.submission_sha256
    for path, value, message in (
        (
            "tasks",
            list(reversed(BENCHMARK.task_ids)),
            "the tasks that may be drawn are not those that the ",
        ),
        (
            "tasks",
            list(BENCHMARK.task_ids[:2]),
            'the tasks that may be drawn are not those that the submission claims: "splice_sites"',
        ),
        ("regimes", ["full", "10shot", "5shot"], "the regimes that may be drawn are not "),
        (
            "regimes",
            ["1shot", "full"],
            "the regimes that may be drawn are not those that the submission claims: ",
        ),
    ):
        other = _put(
            changed("plan", "commitment", path, to=value),
            ("plan", "commitment", "submission_sha256"),
            digest,
        )
        step, refusal_text = refusal(check_submission, other, folder)
        assert (step, refusal_text[: len(message)]) == ("submission", message)
