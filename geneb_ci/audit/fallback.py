"""The recorded substitute for a beacon that cannot be reached: HMAC under a key published before.

It stops contributors, who do not know the key, and not the maintainer, who does. So it is for an
outage of an hour only, says why in the record, and takes no key whose digest was not published.
"""

import hashlib
import hmac
import re
from collections.abc import Collection

from geneb_ci.audit.plan import FallbackBeacon
from geneb_ci.audit.steps import SIGNATURE, AuditRefused, StepMismatch

# How long the beacon has to be out of reach, counted from the moment at which its round is due.
OUTAGE = 3600  # seconds
KEY = re.compile(r"[0-9a-f]{64}")


def fallback(
    commitment: str, key: str, published: Collection[str], why: str, *, reveal: bool = False
) -> FallbackBeacon:
    """Give the substitute for one commitment.

    `key` has 64 hex digits; `published` holds the SHA-256 of the raw bytes of each key of the
    policy. Raises AuditRefused when the key is none of them, or when no reason is given.
    """
    if not KEY.fullmatch(key):
        raise AuditRefused(
            "the fallback key is not 64 hex digits", "make one: openssl rand -hex 32 > key"
        )
    if not why.strip():
        raise AuditRefused(
            "no reason is given for going without the beacon",
            "say what was unreachable and since when: --why TEXT; it becomes part of the record",
        )
    key_sha256 = hashlib.sha256(bytes.fromhex(key)).hexdigest()
    if key_sha256 not in published:
        raise AuditRefused(
            f"the fallback key was not published: {key_sha256} is not among fallback_keys of the "
            "policy",
            "take the key of this epoch; a new one counts for commitments after its digest stands "
            "in leaderboard/policy/policy.toml on the main branch",
        )
    value = _value(commitment, key)
    return FallbackBeacon(
        kind="hmac",
        key_sha256=key_sha256,
        key=key if reveal else None,
        value=value,
        why=why.strip(),
    )


def is_open(beacon: FallbackBeacon) -> bool:
    """Whether nobody but the key's owner can verify it yet."""
    return beacon.key is None


def verify(beacon: FallbackBeacon, commitment: str) -> None:
    """Verify a revealed key against its digest and the value; one not revealed is left open.

    Raises StepMismatch of the step "signature".
    """
    if beacon.key is None:
        return
    if hashlib.sha256(bytes.fromhex(beacon.key)).hexdigest() != beacon.key_sha256:
        raise StepMismatch(SIGNATURE, "the revealed key is not the one whose digest was published")
    if not hmac.compare_digest(_value(commitment, beacon.key), beacon.value):
        raise StepMismatch(SIGNATURE, "the value is not the HMAC of the commitment under the key")


def _value(commitment: str, key: str) -> str:
    return hmac.digest(bytes.fromhex(key), bytes.fromhex(commitment), "sha256").hex()
