"""A commitment of made-up tasks, and the plan that a published round of the beacon draws for it."""

import hashlib
import json
from pathlib import Path
from typing import Any

from geneb_ci.audit.canonical import moment_of
from geneb_ci.audit.commitment import BenchmarkPin, Commitment, DrawPolicy, ExtractorCode, Weights
from geneb_ci.audit.sampling.beacon import DELAY_SECONDS, QUICKNET, time_of_round
from geneb_ci.audit.sampling.plan import DrandBeacon, TaskPlan
from geneb_ci.audit.sampling.task_draw import draw_tasks

VECTORS: dict[str, Any] = json.loads(
    Path(__file__).with_name("beacon_vectors.json").read_text(encoding="utf-8")
)
ROUNDS = {
    beacon_round["round"]: beacon_round["signature"]
    for beacon_round in VECTORS["quicknet"]["rounds"]
}
ROUND = 32_285_086
COMMITTED_AT = moment_of(time_of_round(ROUND) - DELAY_SECONDS)
"""When a commitment has to be public for this round to decide."""
TASKS = [f"task-{number:02}" for number in range(20)]
STRATA = [TASKS[:9], TASKS[9:14]]


def hexes(text: str) -> str:
    """Make up a digest."""
    return hashlib.sha256(text.encode()).hexdigest()


def commitment(**changes: Any) -> Commitment:
    """Return a commitment to draw 5 of 20 tasks, changed in some fields."""
    policy = {"drawn": 5, "stratified": False, "strata": [], "tolerance": hexes("tolerance")}
    fields: dict[str, Any] = {
        "protocol": "geneb-audit-v1",
        "model_id": "model",
        "submission_sha256": hexes("submission"),
        "extractor": ExtractorCode(
            path="submissions/extractors/model.py",
            class_name="Model",
            sha256=hexes("module"),
            options={},
            tree=hexes("tree"),
        ),
        "weights": Weights(kind="none", location="", revision=None, files={}),
        "benchmark": BenchmarkPin(
            name="small", sha256=hexes("benchmark"), dataset="org/tasks", revision="0" * 40
        ),
        "regimes": ["full"],
        "tasks": TASKS,
        "policy": DrawPolicy.model_validate(policy | changes.pop("policy", {})),
    }
    return Commitment(**(fields | changes))


def stratified(**changes: Any) -> Commitment:
    """Return a commitment with two larger categories, of 9 and 5 tasks, and 6 other tasks."""
    return commitment(policy={"stratified": True, "strata": STRATA, **changes})


def beacon(number: int = ROUND) -> DrandBeacon:
    """Return a published round."""
    return DrandBeacon(kind="drand", chain=QUICKNET.hash, round=number, signature=ROUNDS[number])


def plan(of: Commitment | None = None, **options: Any) -> TaskPlan:
    """Return the plan for a commitment."""
    return draw_tasks(of or commitment(), COMMITTED_AT, beacon(), **options)


def draw_at(of: Commitment, second: int, **options: Any) -> TaskPlan:
    """Draw for a commitment that was public some seconds after `COMMITTED_AT`."""
    return draw_tasks(
        of, moment_of(time_of_round(ROUND) - DELAY_SECONDS + second), beacon(), **options
    )


def task_plan(path: Path) -> TaskPlan:
    """Return a plan of tasks that a command wrote."""
    return TaskPlan.model_validate_json(path.read_bytes())
