"""Asks the public relays for a round of the beacon, and waits for one that is not out yet.

No relay has to be trusted: each answer is verified, and a wrong one only means the next relay.
"""

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from geneb_ci.audit.beacon import QUICKNET, time_of, value_of, verify
from geneb_ci.audit.commitment import Hex64
from geneb_ci.audit.moments import moment_of
from geneb_ci.audit.plan import DrandBeacon
from geneb_ci.audit.steps import ROUND, SIGNATURE, StepMismatch
from geneb_ci.errors import NothingChecked, UsageProblem

# Public relays of the League of Entropy: https://docs.drand.love/developer/http-api
RELAYS = (
    "https://api.drand.sh",
    "https://api2.drand.sh",
    "https://api3.drand.sh",
    "https://drand.cloudflare.com",
)
ANSWER_MAX = 4096  # bytes; a round takes about 250
PATIENCE = 10.0  # seconds for one answer as a whole, however slowly it drips
# A relay may have a round some seconds after it is due: all of them are asked this often.
ATTEMPTS = 3
PAUSE = 3.0  # seconds between attempts: one period of the chain
_CHUNK = 1024


class BeaconUnavailable(NothingChecked):
    """No relay gave the round."""


class _Answer(BaseModel):
    """A round, as both versions of the HTTP API give it; what else it says is left aside."""

    model_config = ConfigDict(strict=True, frozen=True)

    round: Annotated[int, Field(ge=1, lt=2**64)]
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{96}$")]
    randomness: Hex64 | None = None


def parse_round(raw: bytes, number: int) -> DrandBeacon:
    """Read and verify a round, as a relay or a file gives it.

    Raises StepMismatch of the step "round" or "signature" when it is not the round `number`.
    """
    try:
        answer = _Answer.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "/".join(map(str, first["loc"])) or "the document"
        raise StepMismatch(
            SIGNATURE,
            f"this is no round of the beacon: {place}: {first['msg']}",
            f"take what {RELAYS[0]}/{QUICKNET.hash}/public/{number} gives",
        ) from error
    if answer.round != number:
        raise StepMismatch(
            ROUND,
            f"this is round {answer.round}, and the commitment fixes round {number}",
            f"take what {RELAYS[0]}/{QUICKNET.hash}/public/{number} gives",
        )
    verify(answer.round, answer.signature)
    if answer.randomness not in {None, value_of(answer.signature).hex()}:
        raise StepMismatch(SIGNATURE, "its randomness is not SHA-256 of its signature")
    return DrandBeacon(
        kind="drand", chain=QUICKNET.hash, round=answer.round, signature=answer.signature
    )


def fetch_round(
    number: int,
    relays: Sequence[str] = RELAYS,
    *,
    patience: float = PATIENCE,
    pause: Callable[[float], None] = time.sleep,
) -> DrandBeacon:
    """Ask the relays in order, `ATTEMPTS` times, for a round; the first genuine one is taken.

    `patience` is in seconds for one answer. Raises BeaconUnavailable, with what each relay said,
    and UsageProblem for an address that is not https (http for this machine itself).
    """
    for relay in relays:
        if not relay.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
            raise UsageProblem(f"{relay!r} is not an https address", f"try {RELAYS[0]}")
    said: dict[str, str] = {}
    for attempt in range(ATTEMPTS):
        if attempt:
            pause(PAUSE)
        for relay in relays:
            address = f"{relay.rstrip('/')}/{QUICKNET.hash}/public/{number}"
            try:
                return parse_round(_get(address, patience), number)
            except (OSError, http.client.HTTPException, ValueError) as error:
                said[relay] = _reason(error)
            except StepMismatch as error:
                said[relay] = error.message
    raise BeaconUnavailable(
        f"no relay gave round {number}: " + "; ".join(f"{r}: {why}" for r, why in said.items()),
        "try again later, or give the round as a file: --beacon-file. After an hour without it, "
        "--fallback-key-file with --why is the recorded substitute",
    )


def wait_for(
    number: int,
    say: Callable[[str], None],
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until a round is due, and say so first; returns at once when it is."""
    due = time_of(number)
    left = due - now()
    if left > 0:
        say(f"round {number} is due at {moment_of(due)}, in {left:.0f} s: waiting")
        sleep(left)


def _get(address: str, patience: float) -> bytes:
    request = urllib.request.Request(address, headers={"Accept": "application/json"})  # noqa: S310 (fetch_round looked at the scheme)
    deadline = time.monotonic() + patience
    with urllib.request.urlopen(request, timeout=patience) as answer:  # noqa: S310
        raw = b""
        # read1 gives what is there: a server that drips one byte at a time meets the deadline.
        while chunk := answer.read1(_CHUNK):
            raw += chunk
            if len(raw) > ANSWER_MAX:
                raise ValueError(f"more than {ANSWER_MAX} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError(f"no whole answer within {patience:g} s")
    return raw


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        return f"HTTP {error.code}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__
