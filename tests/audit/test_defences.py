"""One list of defences for both samples: what it names exists, and decides what it says."""

import ast
import dataclasses
import functools
import importlib
import itertools
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.audit.compare import outcome as outcomes
from geneb_ci.audit.compare.embedding_outcome import RerunResult
from geneb_ci.audit.compare.outcome import AuditOutcome, objections_to_outcome
from geneb_ci.audit.defences import DEFENCES, DefenceUse
from geneb_ci.audit.errors import AuditRefused
from geneb_ci.audit.record.signing import refuse_unknown_run
from geneb_ci.audit.rerun.few_shot import FewShotResult
from geneb_ci.common.config import find_layout
from tests.audit.recorded import outcome_of, plan_for, submission_bytes
from tests.each import each
from tests.paths import ROOT

RAW = submission_bytes()


def uses() -> Iterator[tuple[str, DefenceUse]]:
    for defence in DEFENCES:
        for use in (defence.tasks, defence.embeddings):
            if isinstance(use, DefenceUse):
                yield defence.name, use


@functools.cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@each(("name", "use"), list(uses()))
def test_each_function_and_each_attack_exists(name: str, use: DefenceUse) -> None:
    module, _, function = use.function.partition(":")
    assert callable(operator.attrgetter(function)(importlib.import_module(module))), name
    file, _, test = use.test.partition("::")
    assert test in functions_of(file), name


def test_each_defence_is_named_once_and_says_why_a_sample_lacks_it() -> None:
    names = [defence.name for defence in DEFENCES]
    assert len(set(names)) == len(names)
    for defence in DEFENCES:
        reasons = [use for use in (defence.tasks, defence.embeddings) if isinstance(use, str)]
        assert len(reasons) < 2
        assert all(reasons)


def honest() -> AuditOutcome:
    return outcome_of(plan_for(RAW), RAW)


def changed(name: str, **fields: Any) -> AuditOutcome:
    """Return an honest outcome whose part `name` shows an attack."""
    outcome = honest()
    part = getattr(outcome, name).model_copy(update=fields)
    return outcome.model_copy(update={name: part})


def few_shot(**fits: Any) -> AuditOutcome:
    """Return an honest outcome with scores of few-shot probes, some of which are given."""
    settings = {"published": [0.1] * 5, "others": [0.1] * 20, "varied": [0.1] * 5} | fits
    result = FewShotResult.model_validate({"regimes": {"1shot": {"a task": settings}}})
    return honest().model_copy(update={"few_shot": result})


def object_to(outcome: AuditOutcome) -> set[str]:
    return {reason.defence for reason in objections_to_outcome(outcome)}


@pytest.mark.parametrize(
    ("outcome", "defence"),
    [
        (changed("decoys", order_dependent=True), outcomes.ORDER),
        (changed("decoys", memorised=True), outcomes.DECOYS),
        (changed("variants", memorised=True), outcomes.VARIANTS),
        (few_shot(others=[0.0] * 20), outcomes.OTHER_DRAWS),
        (few_shot(varied=[0.0] * 5), outcomes.SUPPORT),
        (few_shot(tests=[0.0] * 20), outcomes.TEST_DRAWS),
    ],
)
def test_an_attack_that_one_defence_sees_passes_without_it(
    outcome: AuditOutcome, defence: str
) -> None:
    assert object_to(honest()) == object_to(few_shot()) == set()
    assert object_to(outcome) == {defence}
    assert defence in {listed.name for listed in DEFENCES}


def test_a_raised_score_is_seen_by_the_comparison() -> None:
    raised = outcome_of(plan_for(RAW), RAW, shift=0.3)
    assert outcomes.TOLERANCE in object_to(raised)


@pytest.mark.parametrize(
    ("shift", "unknown", "memorised"), list(itertools.product((0.0, 0.3), (0, 1), (0, 1)))
)
def test_scores_that_differ_from_an_unknown_run_are_no_record(
    shift: float, unknown: int, memorised: int, tmp_path: Path
) -> None:
    """Only of a run that the registry describes and calls unknown, where scores alone differ."""
    policy = tmp_path / "policy"
    (policy / "models").mkdir(parents=True)
    text = 'run_unknown = "it cannot run"\ncandidates = [{ what = "centred letters" }]\n' * unknown
    plan = plan_for(RAW, entry="0" * 64)
    entry = policy / "models" / f"{plan.commitment.model_id}.toml"
    entry.write_text(f'schema_version = "1.0"\n{text}', encoding="utf-8")
    outcome = outcome_of(plan, RAW, shift)
    decoys = outcome.decoys.model_copy(update={"memorised": bool(memorised)})
    result = RerunResult(outcome.model_copy(update={"decoys": decoys}))
    layout = dataclasses.replace(find_layout(ROOT), policy=policy)
    if shift and unknown and not memorised:
        with pytest.raises(AuditRefused, match="it cannot run") as refused:
            refuse_unknown_run(result, layout)
        assert "try first: centred letters" in refused.value.fix
    else:
        refuse_unknown_run(result, layout)
