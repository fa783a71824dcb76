"""Gets the value of the beacon from a file, from public relays, or by the fallback."""

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from geneb_ci.audit.canonical import ROUND_STEP, SIGNATURE_STEP, moment_of, seconds_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.sampling.beacon import (
    OUTAGE_SECONDS,
    QUICKNET,
    fallback_value,
    practice_beacon,
    randomness_of,
    require_practice,
    round_at,
    time_of_round,
    verify_round,
)
from geneb_ci.audit.sampling.design import AuditPolicy
from geneb_ci.audit.sampling.plan import Beacon, DrandBeacon, FallbackBeacon
from geneb_ci.common.addresses import AllowedServers
from geneb_ci.common.connection import opener
from geneb_ci.common.errors import NothingChecked, UsageProblem
from geneb_ci.common.finding import Fault
from geneb_ci.submission.reading import read_bytes
from reference_harness.formats.base import Hex64, first_error
from reference_harness.formats.text import Say

RELAYS = (
    "https://api.drand.sh",
    "https://api2.drand.sh",
    "https://api3.drand.sh",
    "https://drand.cloudflare.com",
)
"""Public servers of drand's rounds: https://docs.drand.love/developer/http-api."""
ANSWER_BYTES_MAX = 4096
"""Largest size of the answer of a relay, in bytes: a round takes about 250."""
ANSWER_SECONDS_MAX = 10.0
"""Longest time for a complete answer of a relay, however slowly it arrives."""
ATTEMPTS_MAX = 3
"""Number of times that all relays are queried: one may get a round some seconds after it is due."""
PAUSE_SECONDS = 3.0
"""Time between two attempts: one period of the chain."""
_CHUNK_BYTES = 1024
"""Largest number of bytes of an answer that are read at a time."""


class BeaconUnavailable(NothingChecked):
    """No relay returned the round."""


class _RelayAnswer(BaseModel):
    """A round as a relay returns it, by either version of drand's HTTP API.

    Other members of the answer are ignored.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    round: Annotated[int, Field(ge=1, lt=2**64)]
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{96}$")]
    randomness: Hex64 | None = None


def parse_round(raw: bytes, number: int) -> DrandBeacon:
    """Return the verified round in the answer of a relay, or in a file.

    Raises StepMismatch of the step "round" or "signature" when it is not the round `number`.
    """
    try:
        answer = _RelayAnswer.model_validate_json(raw)
    except ValidationError as error:
        raise StepMismatch(
            SIGNATURE_STEP,
            f"this is not a round of the beacon: {first_error(error)}",
            f"download {RELAYS[0]}/{QUICKNET.hash}/public/{number}",
        ) from error
    if answer.round != number:
        raise StepMismatch(
            ROUND_STEP,
            f"this is round {answer.round}, expected round {number} for this commitment",
            f"download {RELAYS[0]}/{QUICKNET.hash}/public/{number}",
        )
    verify_round(answer.round, answer.signature)
    if answer.randomness not in {None, randomness_of(answer.signature).hex()}:
        raise StepMismatch(
            SIGNATURE_STEP, "the randomness of the round is not the SHA-256 of its signature"
        )
    return DrandBeacon(
        kind="drand", chain=QUICKNET.hash, round=answer.round, signature=answer.signature
    )


def fetch_round(
    number: int,
    relays: Sequence[str] = RELAYS,
    *,
    timeout: float = ANSWER_SECONDS_MAX,
    pause: Callable[[float], None] = time.sleep,
) -> DrandBeacon:
    """Query the relays in order, up to `ATTEMPTS_MAX` times, and return the first genuine round.

    `timeout` is in seconds for one answer. Raises BeaconUnavailable, with the answer of each relay,
    and UsageProblem for an address that is not https; http is allowed on the loopback interface.
    """
    for relay in relays:
        if not AllowedServers(is_user_named=True).allows(relay):
            raise UsageProblem(
                f"--relay {relay!r} is not an https address",
                f"pass an address such as {RELAYS[0]}",
            )
    failures: dict[str, str] = {}
    for attempt in range(ATTEMPTS_MAX):
        if attempt:
            pause(PAUSE_SECONDS)
        for relay in relays:
            address = f"{relay.rstrip('/')}/{QUICKNET.hash}/public/{number}"
            try:
                return parse_round(_relay_answer(address, timeout), number)
            except (OSError, http.client.HTTPException, ValueError) as error:
                failures[relay] = _error_text(error)
            except StepMismatch as error:
                failures[relay] = error.message
    raise BeaconUnavailable(
        f"no relay returned round {number}: "
        + "; ".join(f"{relay}: {failure}" for relay, failure in failures.items()),
        "try again later, or pass the round as a file by --beacon-file; if the round is an hour "
        "overdue, draw by --fallback-key-file with --why",
    )


def wait_for_round(
    number: int,
    say: Say,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until the round `number` is due, after a line of progress; return at once if it is."""
    time_due = time_of_round(number)
    seconds_left = time_due - now()
    if seconds_left > 0:
        say(f"round {number} is due at {moment_of(time_due)}, in {seconds_left:.0f} s: waiting")
        sleep(seconds_left)


def _relay_answer(address: str, timeout: float) -> bytes:
    """Return the bytes at an address. Raises an OSError, HTTPException or ValueError."""
    request = urllib.request.Request(address, headers={"Accept": "application/json"})  # noqa: S310 (fetch_round looked at the scheme)
    deadline = time.monotonic() + timeout
    with opener(AllowedServers(is_user_named=True)).open(request, timeout=timeout) as answer:
        raw = b""
        # read1 returns what has arrived, so a slow server meets the deadline.
        while chunk := answer.read1(_CHUNK_BYTES):
            raw += chunk
            if len(raw) > ANSWER_BYTES_MAX:
                raise ValueError(f"the answer has more than {ANSWER_BYTES_MAX} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError(f"no complete answer within {timeout:g} s")
    return raw


def _error_text(error: Exception) -> str:
    """Return as text why a relay returned no round."""
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        return f"HTTP {error.code}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__


CLOCK_SKEW_SECONDS = 60
"""Largest error of the clock of a maintainer's machine that is accepted."""


class BeaconSource(NamedTuple):
    """The options that decide where the beacon's value comes from."""

    beacon_file: Path | None = None
    """The file with the round; None: the round is downloaded."""
    relay: tuple[str, ...] = ()
    """Addresses of the relays to query; empty: those in `RELAYS`."""
    fallback_key_file: Path | None = None
    """The file of the fallback key; None: the draw is not by the fallback."""
    why: str = ""
    """The reason for the fallback."""
    reveal: bool = False
    """Whether the fallback key is written into the plan."""
    practice: bool = False
    """Whether to draw at once by a value that anybody can foresee, on the practice benchmark."""

    def check(self) -> None:
        """Raise UsageProblem if options contradict each other."""
        if self.practice and (self.beacon_file or self.relay or self.fallback_key_file):
            raise UsageProblem(
                "--practice cannot be combined with --beacon-file, --relay or --fallback-key-file",
                "leave out --practice, or pass --practice without these options",
            )
        if self.fallback_key_file is not None and (self.beacon_file or self.relay):
            raise UsageProblem(
                "--fallback-key-file cannot be combined with --beacon-file or --relay",
                "leave out --fallback-key-file, or pass --fallback-key-file without these options",
            )
        if self.fallback_key_file is None and (self.why or self.reveal):
            raise UsageProblem(
                "--why and --reveal need --fallback-key-file",
                "pass --fallback-key-file F, or leave out --why and --reveal",
            )

    def check_benchmark(self, sha256: str) -> None:
        """Raise UsageProblem for --practice with another benchmark than the practice benchmark."""
        if self.practice:
            require_practice(sha256)


def beacon_of(
    commitment: Commitment,
    committed_at: str,
    source: BeaconSource,
    policy: AuditPolicy,
    say: Say,
) -> Beacon:
    """Return the value that decides a draw: from a file, from the relays, or by the fallback.

    `say` gets a line before a wait for the round. Raises UsageProblem for options that contradict
    each other or name an unpublished key, NothingChecked for a file that cannot be read or contains
    another round and for a fallback before its time, and what `fetch_round` raises.
    """
    source.check()
    committed_seconds = seconds_of(committed_at)
    if committed_seconds > time.time() + CLOCK_SKEW_SECONDS:
        raise UsageProblem(
            f"--committed-at {committed_at} is in the future: the clock of this machine says "
            f"{moment_of(int(time.time()))}",
            "pass the time at which the commitment became public, in UTC",
        )
    if source.fallback_key_file is not None:
        return _fallback_beacon(
            commitment, committed_seconds, source.fallback_key_file, source, policy
        )
    number = round_at(committed_seconds)
    if source.practice:
        return practice_beacon(number, commitment.benchmark.sha256)
    if source.beacon_file is not None:
        raw = read_bytes(source.beacon_file)
        if isinstance(raw, Fault):
            raise NothingChecked(
                f"{source.beacon_file}: {raw.message}",
                "pass a file with the round by --beacon-file",
            )
        try:
            return parse_round(raw, number)
        except StepMismatch as error:
            # No audit has begun, so this is no differing audit.
            raise NothingChecked(f"{source.beacon_file}: {error.message}", error.fix) from error
    wait_for_round(number, say)
    return fetch_round(number, source.relay or RELAYS)


def _fallback_beacon(
    commitment: Commitment,
    committed_seconds: int,
    key_file: Path,
    source: BeaconSource,
    policy: AuditPolicy,
) -> FallbackBeacon:
    """Return the fallback beacon that the key in a file gives for a commitment.

    Raises NothingChecked if the beacon's round is not yet an hour overdue.
    """
    raw = read_bytes(key_file)
    if isinstance(raw, Fault):
        raise NothingChecked(f"{key_file}: {raw.message}", "pass a file with 64 hex digits")
    beacon = fallback_value(
        commitment.sha256,
        raw.decode("ascii", "replace").strip(),
        policy.fallback_keys,
        source.why,
        reveal=source.reveal,
    )
    fallback_from = time_of_round(round_at(committed_seconds)) + OUTAGE_SECONDS
    if time.time() < fallback_from:
        raise NothingChecked(
            "the beacon's round is less than an hour overdue; the fallback key may be used from "
            f"{moment_of(fallback_from)} on",
            "draw by the beacon, or wait until then",
        )
    return beacon
