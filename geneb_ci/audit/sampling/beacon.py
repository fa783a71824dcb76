"""The public beacon and its fallback: which round decides a draw, and whether it is genuine."""

import functools
import hashlib
import hmac
import importlib
import re
from collections.abc import Collection
from types import ModuleType
from typing import Any, NamedTuple

from geneb_ci.audit.canonical import ROUND_STEP, SIGNATURE_STEP
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.sampling.plan import FallbackBeacon, PracticeBeacon
from geneb_ci.common.config import is_practice
from geneb_ci.common.errors import BrokenInstallation, UsageProblem

DELAY_SECONDS = 60
"""Smallest number of seconds from the commitment to the round that decides: longer than the
differences of clocks, so that nobody knows the round at the time of the commitment."""
DOMAIN_SEPARATION_TAG = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"
"""Tag with which the scheme of the beacon, bls-unchained-g1-rfc9380, hashes a message to a point of
the group G1 (RFC 9380)."""
PRACTICE_PREFIX = b"geneb-ci practice beacon"
"""Prefix of the hashed bytes of a practice value."""
ROUND_BYTES = 8
"""Number of bytes of a round's number in hashed messages."""
CACHED_ROUNDS_MAX = 4096
"""Largest number of verified rounds in memory: a ledger verifies each record several times."""
ROUNDS_MAX = 1 << 8 * ROUND_BYTES
"""Rounds have smaller numbers than this."""


class Chain(NamedTuple):
    """A drand chain, a series of beacon rounds, as its address `/info` describes it."""

    hash: str
    """Id of the chain, as hex digits."""
    genesis: int
    """Time of round 1, in seconds since 1970."""
    period: int
    """Seconds between rounds."""
    public_key: str
    """Group key: a compressed point of G2, as hex digits."""


QUICKNET = Chain(
    hash="52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971",
    genesis=1_692_803_367,
    period=3,
    public_key=(
        "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c"
        "8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb"
        "5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
    ),
)
"""The chain by which audits draw, as https://api.drand.sh/<hash>/info describes it; announced at
https://docs.drand.love/blog/quicknet-is-live."""


def round_at(committed_at: int, chain: Chain = QUICKNET) -> int:
    """Return the number of the round that decides a draw.

    It is the first round that is due `DELAY_SECONDS` or more after the commitment.

    `committed_at` is in seconds since 1970. Raises UsageProblem before the chain began.
    """
    seconds_since_genesis = committed_at + DELAY_SECONDS - chain.genesis
    if seconds_since_genesis < 0:
        raise UsageProblem(
            "the commitment is older than the beacon",
            "pass --committed-at with the time at which the commitment became public",
        )
    return -(-seconds_since_genesis // chain.period) + 1


def time_of_round(number: int, chain: Chain = QUICKNET) -> int:
    """Return the time at which the round `number` is due, in seconds since 1970."""
    return chain.genesis + (number - 1) * chain.period


def randomness_of(signature: str) -> bytes:
    """Return the 32 bytes of randomness of a round, from the hex digits of its signature."""
    return hashlib.sha256(bytes.fromhex(signature)).digest()


@functools.lru_cache(maxsize=CACHED_ROUNDS_MAX)
def verify_round(number: int, signature: str, public_key: str = QUICKNET.public_key) -> None:
    """Refuse a signature that is not the beacon's for the round `number`.

    It is the beacon's if e(H(round), key) = e(signature, generator of G2), where `signature` has 96
    hex digits and `public_key` 192. Raises StepMismatch of the step "signature" if
    they are not points of their groups or the equation does not hold, of the step "round" for a
    number out of range; BrokenInstallation if the library of the curve is missing.
    """
    if not 1 <= number < ROUNDS_MAX:
        raise StepMismatch(ROUND_STEP, f"the beacon has no round {number}")
    curve = _curve_library()
    # 1. Both are points of the groups of prime order, and not their neutral elements.
    key_point = _point_of(curve.G2Point, public_key, "the public key")
    signature_point = _point_of(curve.G1Point, signature, "the signature")
    # 2. The round as a point: the message is SHA-256 of its number, 8 bytes, big-endian.
    message = hashlib.sha256(number.to_bytes(ROUND_BYTES, "big")).digest()
    round_point = curve.G1Point.hash_to_curve(message, DOMAIN_SEPARATION_TAG)
    # 3. Both pairings, as one product that has to be 1: the costly last step is made once.
    if not curve.GT.pairing_check([-round_point, signature_point], [key_point, curve.G2Point()]):
        raise StepMismatch(
            SIGNATURE_STEP,
            f"the signature is not that of round {number} of the beacon",
            "download the round from a public relay, such as https://api.drand.sh",
        )


def _point_of(group: Any, encoded: str, point_name: str) -> Any:  # the library's own points
    """Return the point of a group from the hex digits of its compressed form.

    Only the canonical encoding is accepted; the library also reads other forms of the neutral
    element. Raises StepMismatch for anything else.
    """
    try:
        raw = bytes.fromhex(encoded)
        point = group.from_compressed_bytes_unchecked(raw)
    except ValueError as error:
        raise StepMismatch(SIGNATURE_STEP, f"{point_name} is not a point of the curve") from error
    if point == group.identity() or not point.is_in_subgroup():
        raise StepMismatch(
            SIGNATURE_STEP, f"{point_name} is not a point of the group of prime order"
        )
    if point.to_compressed_bytes() != raw:
        raise StepMismatch(
            SIGNATURE_STEP, f"{point_name} is not the canonical encoding of a point of the curve"
        )
    return point


@functools.cache
def _curve_library() -> ModuleType:
    """Import and return the library of the curve BLS12-381."""
    try:
        return importlib.import_module(_CURVE_LIBRARY_NAME)
    except ImportError as error:
        raise BrokenInstallation(
            f"{_CURVE_LIBRARY_NAME}, which verifies the beacon, is not installed",
            "pip install 'geneb-ci[records]'",
        ) from error


_CURVE_LIBRARY_NAME = "py_arkworks_bls12381"


OUTAGE_SECONDS = 3600
"""Number of seconds that a round has to be overdue before a fallback may replace it."""
FALLBACK_KEY_PATTERN = re.compile(r"[0-9a-f]{64}")
"""A fallback key: 32 bytes as hex digits."""


def fallback_value(
    commitment: str,
    hex_key: str,
    published_digests: Collection[str],
    why: str,
    *,
    reveal: bool = False,
) -> FallbackBeacon:
    """Return the fallback value for one commitment: HMAC-SHA256(key, commitment).

    `commitment` is its digest, `hex_key` the key as 64 hex digits, `published_digests` the SHA-256
    of the policy's fallback keys, `why` the reason for the fallback. `reveal` writes the key, too.
    Raises UsageProblem when the key is not among them, or without a reason.
    """
    if not FALLBACK_KEY_PATTERN.fullmatch(hex_key):
        raise UsageProblem(
            "the fallback key is not 64 hex digits",
            "pass the file of a key of the policy, as `openssl rand -hex 32 > key` wrote it",
        )
    if not why.strip():
        raise UsageProblem(
            "--why is missing: a draw without the beacon needs a reason",
            "pass --why TEXT: what was unreachable, and since when; the record shows it",
        )
    key_sha256 = hashlib.sha256(bytes.fromhex(hex_key)).hexdigest()
    if key_sha256 not in published_digests:
        raise UsageProblem(
            f"the fallback key has sha256 {key_sha256}, which is not among fallback_keys of the "
            "policy",
            "use a key whose digest is there; a new key is valid for commitments that are made "
            "after its digest was added to leaderboard/policy/policy.toml of the main branch",
        )
    keyed_digest = _hmac_of(commitment, hex_key)
    return FallbackBeacon(
        kind="hmac",
        key_sha256=key_sha256,
        key=hex_key if reveal else None,
        value=keyed_digest,
        why=why.strip(),
    )


def verify_fallback(beacon: FallbackBeacon, commitment: str) -> None:
    """Refuse a fallback whose revealed key has another digest, or does not give its value.

    While the key is secret, nothing can be verified and any value is accepted.

    Raises StepMismatch of the step "signature".
    """
    if beacon.key is None:
        return
    if hashlib.sha256(bytes.fromhex(beacon.key)).hexdigest() != beacon.key_sha256:
        raise StepMismatch(
            SIGNATURE_STEP, "the revealed key is not the key whose digest the plan names"
        )
    if not hmac.compare_digest(_hmac_of(commitment, beacon.key), beacon.value):
        raise StepMismatch(
            SIGNATURE_STEP, "the value is not the HMAC-SHA256 of the commitment under the key"
        )


def require_practice(benchmark_sha256: str) -> None:
    """Raise UsageProblem unless `benchmark_sha256` is the digest of the practice benchmark."""
    if not is_practice(benchmark_sha256):
        raise UsageProblem(
            "--practice draws by a value that anybody can foresee, which is only allowed for "
            "GENEB-mini",
            "leave out --practice: the draw follows from the public beacon",
        )


def practice_beacon(number: int, benchmark_sha256: str) -> PracticeBeacon:
    """Return the practice beacon of the round `number`. Raises what `require_practice` raises."""
    require_practice(benchmark_sha256)
    return PracticeBeacon(kind="practice", round=number, value=_practice_value(number))


def verify_practice(beacon: PracticeBeacon, benchmark_sha256: str) -> None:
    """Refuse a practice beacon with a wrong value, or for a benchmark that is not for practice.

    Raises StepMismatch of the step "signature".
    """
    if not is_practice(benchmark_sha256):
        raise StepMismatch(
            SIGNATURE_STEP, "the practice beacon is only valid for the practice benchmark"
        )
    if beacon.value != _practice_value(beacon.round):
        raise StepMismatch(
            SIGNATURE_STEP, f"the value is not the practice value of round {beacon.round}"
        )


def _practice_value(number: int) -> str:
    """Return the value of the practice beacon for the round `number`, as hex digits."""
    return hashlib.sha256(PRACTICE_PREFIX + number.to_bytes(ROUND_BYTES, "big")).hexdigest()


def _hmac_of(commitment: str, hex_key: str) -> str:
    """Return the HMAC-SHA256 of the digest of a commitment under a key, all as hex digits."""
    return hmac.digest(bytes.fromhex(hex_key), bytes.fromhex(commitment), "sha256").hex()
