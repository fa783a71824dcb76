"""The limits by which an audit is judged, as one digest in each commitment and record."""

import functools
import json

from geneb_ci.audit.canonical import digest
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.compare import joint, tolerance
from geneb_ci.audit.rerun import decoys, few_shot, honesty
from geneb_ci.receipt import embeddings
from reference_harness.formats import rescored
from reference_harness.formats.benchmark import Benchmark


def deciding_limits() -> dict[str, dict[str, str]]:
    """Return, by subject and name, the text of each constant that decides a verdict.

    The constants of the tolerance are left out: `tolerance_digest` has them.
    `tests/audit/test_limits.py` tests that no constant is missing. A renamed constant changes the
    digest.
    """
    # Imported here, since they import numpy, and a plain install reads commitments without it.
    from geneb_ci.receipt import column_rule, direction, influence, raise_bound

    subjects = {
        "variants": (honesty, "TASK_MARGIN"),
        "few-shot probes": (few_shot, "MARGIN FITS_MIN"),
        "other draws": (rescored, "OTHER_DRAWS TEST_TIMES"),
        "decoys": (
            decoys,
            (
                "TWICE TRIANGLES FRESH JUMP SHARE_MEMORISED ANSWERS_MAX SEQUENCES_MIN NOISE "
                "NOISE_SHARE_MIN"
            ),
        ),
        "joint tests": (joint, "U_RATIO LARGEST_EXPONENT"),
        "embeddings": (
            embeddings,
            (
                "TAU_OF_COLUMN FLOOR MISMATCH MISMATCH_MIN POOLED RESCUED NEAR STRONGEST EFFECT "
                "ROOM ROOM_OF_TASK FLIPPED FLIPPED_MIN MISSED LEVEL"
            ),
        ),
        "columns": (
            column_rule,
            "QUARTILES_OF_NORMAL NORMAL EMBEDDINGS_MIN FORESEEN OWN_NOISE SPREAD_MIN",
        ),
        "direction": (direction, "RELABELLINGS TIE"),
        "influence": (
            influence,
            "STEPS STEPS_MAX ACCURATE SOLVED_MAX FLAT PENALTY SPREAD_EMBEDDINGS",
        ),
        "bounds": (raise_bound, "EXACT RATIO HITS_MAX HALVINGS"),
    }
    return {
        subject: {name: repr(getattr(module, name)) for name in names.split()}
        for subject, (module, names) in subjects.items()
    }


def limits_digest() -> str:
    """Return the digest of all limits that decide a verdict, for the policy in a commitment."""
    limits = {"rule": "5", "tolerance": tolerance.tolerance_digest(), "limits": deciding_limits()}
    return _digest_of(json.dumps(limits))


@functools.cache
def _digest_of(limits: str) -> str:
    """Return the digest of limits that are given as JSON text; computed once for each text."""
    return digest(json.loads(limits))


def uses_every_defence(commitment: Commitment, benchmark: Benchmark) -> bool:
    """Whether a commitment has the limits of this version, whose audits use every defence."""
    is_of_benchmark = commitment.benchmark.sha256 == benchmark.sha256
    return is_of_benchmark and commitment.policy.tolerance == limits_digest()


def are_current_limits(committed_digest: str) -> bool:
    """Whether the digest of the limits in a commitment is that of this version.

    Commitments before rule 5 have the digest of the tolerance alone.
    """
    return committed_digest in {limits_digest(), tolerance.tolerance_digest()}
