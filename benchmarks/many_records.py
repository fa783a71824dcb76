"""Write a repository of GENEB with a hundred audited rows, to time their verification."""

import hashlib
import json
from pathlib import Path
from typing import Any

from geneb_ci.audit.compare.limits import limits_digest
from geneb_ci.audit.sampling.beacon import QUICKNET
from geneb_ci.audit.sampling.plan import DrandBeacon, TaskPlan
from geneb_ci.audit.sampling.task_draw import draw_tasks
from geneb_ci.common.benchmark import shipped_benchmark
from tests.audit import recorded
from tests.audit.examples import ROUNDS
from tests.paths import ROOT
from tests.small import small_v11

RECORDS, DRAWN = 100, 13
POLICY = (ROOT / "leaderboard/policy/policy.toml").read_text(encoding="utf-8")


def many_records(root: Path, records: int = RECORDS) -> None:
    """Write a repository of sound rows of format 1.1, each with the record of an audit."""
    recorded.repository(root, b"{}")
    (root / f"submissions/{recorded.MODEL}.json").unlink()
    (root / "schemas/benchmark.json").write_bytes((ROOT / "schemas/benchmark.json").read_bytes())
    (root / "leaderboard/policy/policy.toml").write_text(POLICY, encoding="utf-8")
    for number in range(records):
        name = f"model-{number:03}"
        document = small_v11(name, shipped_benchmark())
        document["run"]["model"]["weights"] = weights_of(name)
        raw = json.dumps(document).encode()
        (root / f"submissions/{name}.json").write_bytes(raw)
        outcome = recorded.outcome_of(_plan(name, raw), raw, benchmark=shipped_benchmark())
        recorded.put(root, outcome)


def weights_of(name: str) -> dict[str, str]:
    """Return weights that only this model has, as rows that share a file share their draws."""
    return {"model.safetensors": hashlib.sha256(name.encode()).hexdigest()}


def _plan(name: str, raw: bytes) -> TaskPlan:
    benchmark = shipped_benchmark()
    pins: dict[str, Any] = {
        "model_id": name,
        "submission_sha256": hashlib.sha256(raw).hexdigest(),
        "benchmark": {
            "name": benchmark.name,
            "sha256": benchmark.sha256,
            "dataset": benchmark.dataset.repo_id,
            "revision": benchmark.dataset.revision,
        },
        "regimes": list(benchmark.regimes),
        "tasks": list(benchmark.task_ids),
        "policy": {
            "drawn": DRAWN,
            "stratified": False,
            "strata": [],
            "tolerance": limits_digest(),
        },
    }
    beacon = DrandBeacon(
        kind="drand",
        chain=QUICKNET.hash,
        round=recorded.SECOND,
        signature=ROUNDS[recorded.SECOND],
    )
    return draw_tasks(
        recorded.commitment(raw, **pins), recorded.committed_at(recorded.SECOND), beacon
    )
