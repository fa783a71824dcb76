"""A commitment that is not the one published, or that nothing can be drawn from, is refused."""

import pytest

from geneb_ci.audit.commitment import Commitment, check_commitment
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.sampling.plan import json_text_of
from tests.audit.examples import STRATA, TASKS, commitment, stratified

APART = "a stratum has a task that is not among the tasks, or that is in another stratum"
EMPTY = "the policy has strata without being stratified, or an empty stratum"


@pytest.mark.parametrize("sound", [commitment(), stratified(), stratified(strata=[])])
def test_a_sound_commitment_passes(sound: Commitment) -> None:
    check_commitment(sound, sound.sha256)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (commitment(tasks=[*TASKS, TASKS[0]]), "a task is listed twice"),
        (commitment(policy={"drawn": 21}), "21 tasks are to be drawn from 20"),
        (stratified(strata=[TASKS[:9], TASKS[8:14]]), APART),
        (stratified(strata=[["nowhere"]]), APART),
        (stratified(strata=[[]]), EMPTY),
        (stratified(strata=[STRATA[0], []]), EMPTY),
        (stratified(stratified=False), EMPTY),
    ],
)
def test_nothing_can_be_drawn_from_an_inconsistent_one(wrong: Commitment, message: str) -> None:
    with pytest.raises(StepMismatch) as refusal:
        check_commitment(wrong, wrong.sha256)
    assert (refusal.value.step, refusal.value.message) == ("commitment", f"commitment: {message}")


def test_git_shows_a_commitment_line_by_line() -> None:
    lines = json_text_of(commitment()).splitlines(keepends=True)
    assert lines[:3] == ["{\n", '  "protocol": "geneb-audit-v1",\n', '  "model_id": "model",\n']
    assert lines[-2:] == ["  }\n", "}\n"]


def test_another_digest_was_published() -> None:
    own = commitment()
    with pytest.raises(StepMismatch) as refusal:
        check_commitment(own, "0" * 64)
    assert refusal.value.message == (
        f"commitment: the commitment has the digest {own.sha256}, expected {'0' * 64}"
    )
