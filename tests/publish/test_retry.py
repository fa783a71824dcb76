"""How long is waited between tries, and after which it is given up: the whole story of each."""

import pytest

from geneb_ci.publish.faults import HeadChanged, HubRateLimited, RetriesExhausted, Retryable
from geneb_ci.publish.session import with_retries
from tests.publish.settled import Patience


def story(*faults: Exception) -> tuple[object, list[float], list[str]]:
    """Return the result or why it gave up, what was waited, and what was said."""
    clock, left = Patience(), list(faults)
    notices: list[str] = []

    def one_try() -> str:
        if left:
            raise left.pop(0)
        return "done"

    try:
        result: object = with_retries(one_try, clock=clock, say=notices.append)
    except RetriesExhausted as refusal:
        result = refusal.message, refusal.fix
    return result, clock.waits, notices


def limited(wait: float | None) -> HubRateLimited:
    return HubRateLimited("429", wait)


def test_waits_double_and_a_moved_head_is_read_at_once():
    assert story(Retryable("503"), HeadChanged("412"), Retryable("lost"), HeadChanged("412")) == (
        "done",
        [2.0, 8.0],
        [
            "try 1 of 6 failed: 503; next try in 2 s",
            "try 2 of 6 failed: 412; next try in 0 s",
            "try 3 of 6 failed: lost; next try in 8 s",
            "try 4 of 6 failed: 412; next try in 0 s",
        ],
    )


def test_six_tries_and_no_wait_after_the_last():
    assert story(*(Retryable(str(k)) for k in range(6))) == (
        (
            "6 tries failed; the last: 5",
            "run the command again later; the command first reads whether an earlier try succeeded",
        ),
        [2.0, 4.0, 8.0, 16.0, 32.0],
        [f"try {k + 1} of 6 failed: {k}; next try in {2 ** (k + 1)} s" for k in range(5)],
    )
    assert story(*(Retryable("x") for _ in range(5)))[0] == "done"


def test_the_hub_names_the_wait():
    assert story(limited(30), limited(None), limited(599)) == (
        "done",
        [31, 4.0, 600],
        [
            "try 1 of 6 failed: 429; next try in 31 s",
            "try 2 of 6 failed: 429; next try in 4 s",
            "try 3 of 6 failed: 429; next try in 600 s",
        ],
    )


def test_a_wait_too_long_is_another_run():
    assert story(limited(600)) == (
        (
            "429: the Hub requires a pause of 601 s",
            "run the command again after this time; publishing twice does no harm",
        ),
        [],
        [],
    )


def test_another_fault_is_raised_at_once():
    with pytest.raises(KeyError):
        story(KeyError("a bug"))
