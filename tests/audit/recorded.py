"""A repository of the small benchmark with keys, policy, a submission and records of its audits."""

import base64
import functools
import hashlib
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from geneb_ci.audit.canonical import moment_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.compare.embedding_outcome import AnyOutcome
from geneb_ci.audit.compare.limits import limits_digest
from geneb_ci.audit.compare.outcome import AuditOutcome
from geneb_ci.audit.record.envelope import key_id, parse_envelope, sign_payload
from geneb_ci.audit.record.events import withdrawal_of
from geneb_ci.audit.record.keys import TrustedKey
from geneb_ci.audit.record.statement import WITHDRAWN_SUFFIX, record_of
from geneb_ci.audit.rerun.few_shot import FewShotTask
from geneb_ci.audit.rerun.honesty import varied_sequence_count
from geneb_ci.audit.sampling.beacon import DELAY_SECONDS, QUICKNET, time_of_round
from geneb_ci.audit.sampling.plan import DrandBeacon, EarlierDraw, TaskPlan
from geneb_ci.audit.sampling.task_draw import draw_tasks
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.rescored import TEST_TIMES
from tests.audit.examples import ROUNDS
from tests.audit.place import POLICY
from tests.small import BENCHMARK, BENCHMARK_FILE, small_v11

MODEL = "model"
FIRST, SECOND = 123, 32_285_086
"""Published rounds of the beacon: 2023-08-23 and later."""


def key(seed: str = "maintainer") -> Ed25519PrivateKey:
    """Return a private key of the tests, the same each time."""
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(seed.encode()).digest())


def pem_of(seed: str = "maintainer") -> bytes:
    """Return the file of a private key of the tests."""
    return key(seed).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def entry(of: Ed25519PrivateKey | None = None, **changes: Any) -> dict[str, Any]:
    """Return the entry of a key in keys.json."""
    raw = (of or key()).public_key().public_bytes_raw()
    members = {
        "keyid": key_id(raw),
        "public_key": base64.b64encode(raw).decode(),
        "owner": "a maintainer",
        "valid_from": "2023-01-01T00:00:00Z",
    }
    return TrustedKey.model_validate(members | changes).model_dump()


def committed_at(number: int) -> str:
    """Return the moment of a commitment for which this round decides."""
    return moment_of(time_of_round(number) - DELAY_SECONDS)


@functools.cache
def submission_bytes(tag: str = "") -> bytes:
    """Return a submission; another tag, other bytes."""
    document = small_v11(MODEL)
    document["meta"]["training_data"] = f"human genome{tag}"
    return json.dumps(document).encode()


def commitment(raw: bytes, **changes: Any) -> Commitment:
    """Commit to a submission of the small benchmark."""
    run = json.loads(raw)["run"]
    fields: dict[str, Any] = {
        "protocol": "geneb-audit-v1",
        "model_id": MODEL,
        "submission_sha256": hashlib.sha256(raw).hexdigest(),
        "extractor": run["extractor"] | {"options": {}, "tree": hashlib.sha256(b"").hexdigest()},
        "weights": {
            "kind": run["model"]["kind"],
            "location": run["model"]["location"],
            "revision": run["model"]["revision"],
            "files": run["model"]["weights"],
        },
        "benchmark": {
            "name": BENCHMARK.name,
            "sha256": BENCHMARK.sha256,
            "dataset": BENCHMARK.dataset.repo_id,
            "revision": BENCHMARK.dataset.revision,
        },
        "regimes": list(BENCHMARK.regimes),
        "tasks": list(BENCHMARK.task_ids),
        "policy": {
            "drawn": 2,
            "stratified": False,
            "strata": [],
            "tolerance": limits_digest(),
        },
    }
    return Commitment.model_validate(fields | changes)


def plan_for(
    raw: bytes, number: int = FIRST, earlier: tuple[EarlierDraw, ...] = (), **changes: Any
) -> TaskPlan:
    """Draw for a submission with a published round."""
    beacon = DrandBeacon(kind="drand", chain=QUICKNET.hash, round=number, signature=ROUNDS[number])
    return draw_tasks(commitment(raw, **changes), committed_at(number), beacon, earlier=earlier)


def compared(raw: bytes, regime: str, task: str, shift: float = 0.0) -> dict[str, Any]:
    """Compare a cell with a rerun that lies `shift` below it in MCC, far or near."""
    claimed = json.loads(raw)["results"][regime][task]
    noise = random.Random(f"{regime}/{task}").uniform(-0.001, 0.001)
    return {
        "claimed": claimed,
        "rescored": claimed | {"MCC": claimed["MCC"] - shift + noise},
        "tolerance": {
            "MCC": 0.004,
            "Acc": 0.003,
            "F1": 0.003,
            "copies": 16,
            "flips": 0.5,
            "spread": 0.0005,
        },
        "predictions_equal": False,
        "canonical": None,
        "verdict": "differs" if shift > 0.003 else "agrees",
    }


def variants_of(tasks: int, worse: int = 30) -> dict[str, Any]:
    """Return what variants show of an honest extractor; of a memoriser, with more that is worse."""
    kinds = {
        kind: {"rows": 1000, "worse": worse, "better": 25}
        for kind in ("substituted", "cropped", "shifted")
    }
    return {
        "nonce": hashlib.sha256(b"nonce").hexdigest(),
        "rows": varied_sequence_count(tasks),
        "reversed": False,
        "kinds": kinds,
        "training": {"rows": 1000, "worse": 20, "better": 20},
        "memorised": worse > 100,
    }


def few_shot_of(
    tasks: Sequence[str], benchmark: Benchmark = BENCHMARK, **fits: list[float] | None
) -> dict[str, Any]:
    """Return the scores of few-shot probes of an honest extractor, with `fits` in their place."""
    honest = {"published": [0.1] * 5, "others": [0.1] * 20, "varied": [0.1] * 5}
    regimes: dict[str, Any] = {}
    for regime, shots in benchmark.protocol.few_shot_k.items():
        regimes[regime] = {}
        for task in tasks:
            counts = benchmark.by_id[task].test_class_counts or [0]
            tests = [0.1] * 20 if min(counts) >= TEST_TIMES * shots else None
            scores = FewShotTask.model_validate({**honest, "tests": tests, **fits})
            regimes[regime][task] = scores.model_dump()
    return {"regimes": regimes}


def outcome_of(
    plan: TaskPlan,
    raw: bytes,
    shift: float = 0.0,
    level: int = 2,
    benchmark: Benchmark = BENCHMARK,
) -> AuditOutcome:
    """Return what an audit of a plan found; a shift lowers the first task's rerun."""
    tasks = []
    for index, chosen_task in enumerate(plan.chosen):
        own = shift if index == 0 else 0.0
        regimes = {
            regime: compared(raw, regime, chosen_task.task, own)
            for regime in plan.commitment.regimes
        }
        verdicts = {cell["verdict"] for cell in regimes.values()}
        tasks.append(
            {
                "task": chosen_task.task,
                "reason": chosen_task.reason,
                "verdict": "differs" if "differs" in verdicts else "agrees",
                "regimes": regimes,
            }
        )
    begun = time_of_round(plan.beacon.round) if isinstance(plan.beacon, DrandBeacon) else 0
    return AuditOutcome.model_validate(
        {
            "schema_version": "1.0",
            "plan": plan,
            "tasks": tasks,
            "decoys": {"order_dependent": False, "memorised": False, "detail": "8 decoys"},
            "variants": variants_of(len(plan.chosen)),
            "few_shot": few_shot_of([choice.task for choice in plan.chosen], benchmark),
            "verdict": "differs" if any(t["verdict"] == "differs" for t in tasks) else "agrees",
            "sandbox": {
                "level": level,
                "kind": "bubblewrap" if level else "none",
                "escapes": [
                    {"name": name, "refused": True, "detail": "refused"}
                    for name in (("network", "home") if level else ())
                ],
                "gpu": False,
                "limits": {"memory_mib": 4096},
            },
            "noise": "float32",
            "harness": {"version": BENCHMARK.harness_version, "commit": "0" * 40, "dirty": False},
            "benchmark_sha256": plan.commitment.benchmark.sha256,
            "dataset_revision": plan.commitment.benchmark.revision,
            "packages": {"numpy": "2.3.0"},
            "notes": ["the full regime moves through early stopping alone"],
            "started_at": moment_of(begun + 10),
            "finished_at": moment_of(begun + 4000),
        }
    )


def record_bytes(outcome: AuditOutcome, of: Ed25519PrivateKey | None = None) -> bytes:
    """Sign an outcome."""
    return record_of(outcome, of or key()).content


def mutated(outcome: AuditOutcome, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Change the statement of an outcome, whether it stays true or not, and sign it again."""
    statement = statement_of(outcome)
    change(statement)
    return resealed(statement)


def statement_of(outcome: AuditOutcome) -> dict[str, Any]:
    """Return what is signed, as plain values."""
    statement: dict[str, Any] = json.loads(parse_envelope(record_bytes(outcome)).payload)
    return statement


def resealed(statement: dict[str, Any], of: Ed25519PrivateKey | None = None) -> bytes:
    """Sign plain values as they are, lone surrogates too."""
    raw = json.dumps(statement, sort_keys=True, separators=(",", ":"))
    return sign_payload(raw.encode(), of or key())


def repository(
    root: Path, raw: bytes | None = None, keys: list[dict[str, Any]] | None = None
) -> Path:
    """Write a repository without records."""
    files = {
        "schemas/benchmark.json": BENCHMARK_FILE.read_bytes(),
        f"submissions/{MODEL}.json": raw if raw is not None else submission_bytes(),
        "leaderboard/policy/policy.toml": POLICY.encode(),
        "leaderboard/policy/official.json": b'{"files": {}}',
        "leaderboard/policy/keys.json": json.dumps(
            {"keys": keys if keys is not None else [entry()]}
        ).encode(),
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def write_keys(root: Path, keys: list[dict[str, Any]]) -> None:
    """Replace the keys of the policy."""
    for private_key in keys:
        TrustedKey.model_validate(private_key)
    path = root / "leaderboard/policy/keys.json"
    path.write_text(json.dumps({"keys": keys}), encoding="utf-8")


def put(root: Path, outcome: AnyOutcome, of: Ed25519PrivateKey | None = None) -> Path:
    """Write a record where it belongs."""
    record = record_of(outcome, of or key())
    path = root / "leaderboard/audits" / record.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(record.content)
    return path


def withdraw(
    path: Path, of: Ed25519PrivateKey | None = None, reason: str = "the wrong weights were fetched"
) -> Path:
    """Withdraw a record, and write that beside it."""
    content = withdrawal_of(MODEL, path.read_bytes(), reason, "2026-11-20T08:30:00Z", of or key())
    withdrawal_path = path.with_name(f"{path.stem}{WITHDRAWN_SUFFIX}")
    withdrawal_path.write_bytes(content)
    return withdrawal_path
