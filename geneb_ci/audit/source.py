"""Where the value that decides a draw comes from: a file, public relays, a recorded substitute."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from geneb_ci.audit import fetch
from geneb_ci.audit.beacon import round_at, time_of
from geneb_ci.audit.commitment import Commitment
from geneb_ci.audit.fallback import OUTAGE, fallback
from geneb_ci.audit.moments import moment_of, seconds_of
from geneb_ci.audit.plan import Beacon, FallbackBeacon
from geneb_ci.audit.policy import AuditPolicy
from geneb_ci.audit.steps import AuditRefused
from geneb_ci.errors import NothingChecked, UsageProblem
from geneb_ci.read.bytes import read_bytes
from geneb_ci.read.fault import Fault

# A maintainer's clock may be wrong by as much without a word.
SKEW = 60  # seconds


class Source(NamedTuple):
    """Where the beacon's value comes from: a file, relays, or the recorded substitute."""

    beacon_file: Path | None
    relay: tuple[str, ...]
    fallback_key_file: Path | None
    why: str
    reveal: bool


def beacon_of(
    commitment: Commitment,
    committed_at: str,
    source: Source,
    policy: AuditPolicy,
    say: Callable[[str], None],
) -> Beacon:
    """Get the value that decides: from a file, from the relays, or by the recorded substitute.

    `say` is told while the round is waited for. Raises UsageProblem for options that contradict,
    NothingChecked for a file that cannot be read, AuditRefused for a substitute before its time,
    and what `fetch` does.
    """
    at = seconds_of(committed_at)
    if at > time.time() + SKEW:
        raise UsageProblem(
            f"the commitment is from the future: {committed_at}; this machine's clock says "
            f"{moment_of(int(time.time()))}",
            "give the moment at which it became public, in UTC",
        )
    if source.fallback_key_file is not None:
        return _fallback(commitment, at, source.fallback_key_file, source, policy)
    if source.why or source.reveal:
        raise UsageProblem(
            "--why and --reveal are for the fallback", "name its key as well: --fallback-key-file F"
        )
    number = round_at(at)
    if source.beacon_file is not None:
        raw = read_bytes(source.beacon_file)
        if isinstance(raw, Fault):
            raise NothingChecked(
                f"{source.beacon_file}: {raw.message}", "name a file with the round"
            )
        return fetch.parse_round(raw, number)
    fetch.wait_for(number, say)
    return fetch.fetch_round(number, source.relay or fetch.RELAYS)


def _fallback(
    commitment: Commitment, at: int, key_file: Path, source: Source, policy: AuditPolicy
) -> FallbackBeacon:
    if source.beacon_file is not None or source.relay:
        raise UsageProblem(
            "a beacon and a substitute for it are named", "leave out --fallback-key-file"
        )
    raw = read_bytes(key_file)
    if isinstance(raw, Fault):
        raise NothingChecked(f"{key_file}: {raw.message}", "name a file with 64 hex digits")
    found = fallback(
        commitment.sha256,
        raw.decode("ascii", "replace").strip(),
        policy.fallback_keys,
        source.why,
        reveal=source.reveal,
    )
    until = time_of(round_at(at)) + OUTAGE
    if time.time() < until:
        raise AuditRefused(
            "the beacon's round has not been missing for an hour",
            f"the fallback counts from {moment_of(until)} on: draw by the beacon, or wait",
        )
    return found
