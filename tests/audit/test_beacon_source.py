"""Fetching a round from a server on this machine: only the genuine round is accepted."""

import json

import pytest

from geneb_ci.audit.errors import StepMismatch
from geneb_ci.audit.sampling.beacon import QUICKNET, randomness_of, time_of_round
from geneb_ci.audit.sampling.beacon_source import (
    ANSWER_BYTES_MAX,
    ATTEMPTS_MAX,
    PAUSE_SECONDS,
    RELAYS,
    BeaconUnavailable,
    fetch_round,
    parse_round,
    wait_for_round,
)
from geneb_ci.common.errors import Exit, UsageProblem
from tests.audit.examples import ROUND, ROUNDS, VECTORS, beacon
from tests.audit.relay import drips, hangs_up, relay, says

PATH = f"/{QUICKNET.hash}/public/{ROUND}"


def text(number: int = ROUND, signature: str = ROUNDS[ROUND], **more: str) -> str:
    return json.dumps({"round": number, "signature": signature} | more)


def fetched(*relays: str, timeout: float = 5.0):
    """Fetch; also give how long it was to pause."""
    pauses: list[float] = []
    return fetch_round(ROUND, relays, timeout=timeout, pause=pauses.append), pauses


def test_the_first_relay_is_asked_for_the_round_by_chain_and_number():
    with relay(says(text())) as (first, requests), relay(says(text())) as (two, unasked):
        assert fetched(first, two) == (beacon(), [])
    assert requests == [PATH]
    assert unasked == []


def test_both_versions_of_the_api_are_understood():
    assert parse_round(text().encode(), ROUND) == beacon()
    randomness = randomness_of(ROUNDS[ROUND]).hex()
    whole = text(randomness=randomness, previous_signature="")
    assert parse_round(whole.encode(), ROUND) == beacon()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (says("gone", 404), "HTTP 404"),
        (says("broken", 500), "HTTP 500"),
        (says("too early", 425), "HTTP 425"),
        (
            says("no json"),
            "signature: this is not a round of the beacon: the document: Invalid JSON",
        ),
        (says("[]"), "signature: this is not a round of the beacon: the document: Input should be"),
        (says(""), "signature: this is not a round of the beacon: the document: Invalid JSON"),
        (says(b"\xff\xfe\x00"), "signature: this is not a round of the beacon"),
        (says("x" * (ANSWER_BYTES_MAX + 1)), f"the answer has more than {ANSWER_BYTES_MAX} bytes"),
        (says(text(number=ROUND - 1)), f"round: this is round {ROUND - 1}, expected round"),
        (says(text(ROUND - 1, ROUNDS[ROUND - 1])), f"round: this is round {ROUND - 1}"),
        (
            says(text(signature=ROUNDS[ROUND - 1])),
            f"signature: the signature is not that of round {ROUND} of the beacon",
        ),
        (says(text(signature="0" * 96)), "signature: the signature is not a point"),
        (says(text(signature="xyz")), "signature: this is not a round of the beacon: signature"),
        (says(text(randomness="0" * 64)), "signature: the randomness of the round is not"),
        (
            says(json.dumps({"round": str(ROUND)})),
            "signature: this is not a round of the beacon: round",
        ),
        (hangs_up, "Remote end closed connection without response"),
    ],
)
def test_a_wrong_answer_leads_to_the_next_relay_and_is_told_at_the_end(wrong, message):
    with relay(wrong) as (bad, requests), relay(says(text())) as (good, _):
        assert fetched(bad, good) == (beacon(), [])
        assert requests == [PATH]
        with pytest.raises(BeaconUnavailable) as caught:
            fetched(bad)
    assert caught.value.message.startswith(f"no relay returned round {ROUND}: {bad}: {message}")
    assert len(requests) == 1 + ATTEMPTS_MAX
    assert caught.value.exit_code is Exit.NOT_CHECKED
    assert "--beacon-file" in caught.value.fix


def test_a_relay_that_drips_is_left_in_time():
    """Each byte comes soon enough, and the whole would take seven seconds."""
    with (
        relay(drips(text(), 0.05)) as (slow, requests),
        pytest.raises(BeaconUnavailable, match=r"no complete answer within 0\.2 s"),
    ):
        fetched(slow, timeout=0.2)
    assert len(requests) == ATTEMPTS_MAX


def test_a_round_that_is_late_is_asked_for_again():
    with relay(says("", 404), says("", 404), says(text())) as (late, requests):
        assert fetched(late) == (beacon(), [PAUSE_SECONDS, PAUSE_SECONDS])
    assert requests == [PATH] * 3


def test_a_relay_that_is_not_there():
    with relay(says("")) as (gone, _):
        pass
    with pytest.raises(BeaconUnavailable, match="Connection refused"):
        fetched(gone)


@pytest.mark.parametrize("address", ["http://api.drand.sh", "file:///etc/passwd", "api.drand.sh"])
def test_only_https_is_asked(address):
    with pytest.raises(UsageProblem, match="is not an https address"):
        fetched(address)


def test_the_public_relays_are_asked_over_https():
    assert all(address.startswith("https://") for address in RELAYS)
    assert len(set(RELAYS)) == 4


def test_a_round_of_another_chain_is_refused():
    other = VECTORS["test_key"]["rounds"][0]
    raw = text(other["round"], other["signature"]).encode()
    with pytest.raises(StepMismatch) as caught:
        parse_round(raw, other["round"])
    assert caught.value.step == "signature"


def test_waiting_for_a_round_is_announced():
    notices: list[str] = []
    slept: list[float] = []
    wait_for_round(
        ROUND, notices.append, now=lambda: time_of_round(ROUND) - 42.4, sleep=slept.append
    )
    assert notices == [f"round {ROUND} is due at 2026-09-17T15:23:42Z, in 42 s: waiting"]
    assert slept == [pytest.approx(42.4)]


def test_a_round_that_is_due_is_not_waited_for():
    called: list[object] = []
    wait_for_round(
        ROUND, called.append, now=lambda: float(time_of_round(ROUND)), sleep=called.append
    )
    assert called == []
