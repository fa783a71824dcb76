"""Tokens, the Space of a job, and the time that lost answers may take: without a Hub."""

import types
from collections.abc import Iterator

import huggingface_hub
import pytest
from huggingface_hub.errors import OIDCError
from huggingface_hub.utils import httpx

from geneb_ci.publish import session
from geneb_ci.publish.faults import (
    NoHubToken,
    RetriesExhausted,
    Retryable,
    StorageFailed,
    UnknownOutcome,
)
from geneb_ci.publish.session import (
    REQUEST_TIMEOUT_S,
    RESOURCE_VARIABLE,
    find_token,
    token_to_read,
    with_retries,
)
from tests.publish.settled import Patience

SPACE = "spaces/geneb/board"


@pytest.fixture(autouse=True)
def _no_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RESOURCE_VARIABLE, raising=False)


def answer_of_client(monkeypatch: pytest.MonkeyPatch, answer: str | Exception | None) -> Patience:
    """Let the Hub's client answer this when it is asked for a token."""

    def get_token() -> str | None:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(huggingface_hub, "get_token", get_token)
    return Patience()


def tries(monkeypatch: pytest.MonkeyPatch, fault: Retryable, seconds: float) -> tuple[str, int]:
    """Return why it was given up, and after how many tries that took so many seconds each."""
    now = 0.0
    made = 0

    def one_try() -> None:
        nonlocal now, made
        now, made = now + seconds, made + 1
        raise fault

    monkeypatch.setattr(session, "time", types.SimpleNamespace(monotonic=lambda: now))
    with pytest.raises(RetriesExhausted) as given_up:
        with_retries(one_try, clock=Patience())
    return given_up.value.message, made


@pytest.mark.parametrize("fault", [UnknownOutcome("no answer"), StorageFailed("no answer")])
def test_answers_that_never_come_take_two_timeouts(monkeypatch, fault):
    assert tries(monkeypatch, fault, 101) == ("2 tries failed in 202 s; the last: no answer", 2)
    assert tries(monkeypatch, fault, 90) == ("3 tries failed in 270 s; the last: no answer", 3)
    assert tries(monkeypatch, fault, 500) == ("2 tries failed in 1000 s; the last: no answer", 2)
    assert tries(monkeypatch, fault, 1) == ("6 tries failed; the last: no answer", 6)


def test_the_time_of_an_answer_does_not_count(monkeypatch):
    assert tries(monkeypatch, Retryable("503"), 500) == ("6 tries failed; the last: 503", 6)


@pytest.mark.parametrize(
    ("scope", "name"),
    [
        (None, None),
        (SPACE, "geneb/board"),
        ("spaces/board", None),
        ("spaces/geneb/board/x", None),
        ("datasets/geneb/board", None),
        ("geneb/board", None),
        ("spaces", None),
    ],
)
def test_the_space_that_a_job_is_scoped_to(monkeypatch, scope, name):
    if scope is not None:
        monkeypatch.setenv(RESOURCE_VARIABLE, scope)
    assert session.space_of_environment() == name


@pytest.fixture
def unhurried() -> Iterator[None]:
    """Let the Hub's client wait as long as it likes, as before it is used."""
    huggingface_hub.get_session().timeout = None
    yield
    huggingface_hub.close_session()


@pytest.mark.usefixtures("unhurried")
def test_a_token_is_asked_for_with_a_timeout(monkeypatch):
    """The client may exchange the job's identity for a token, which is a request."""
    results = []

    def get_token() -> str:
        results.append(huggingface_hub.get_session().timeout)
        return "hf_token"

    monkeypatch.setattr(huggingface_hub, "get_token", get_token)
    assert find_token(SPACE) == "hf_token"
    assert results == [httpx.Timeout(REQUEST_TIMEOUT_S)]


@pytest.mark.parametrize("token", ["hf_\xfc", "hf_a\x1b[2J", "hf_a\nb"])
def test_a_token_of_other_characters_is_not_sent(monkeypatch, token):
    clock = answer_of_client(monkeypatch, token)
    with pytest.raises(NoHubToken) as refusal:
        find_token(SPACE, clock=clock)
    assert (refusal.value.message, refusal.value.fix) == (
        "HF_TOKEN contains invalid characters",
        "copy the token from the Hub again",
    )
    assert token_to_read(SPACE) is None


def test_there_may_be_no_token(monkeypatch):
    clock = answer_of_client(monkeypatch, None)
    with pytest.raises(NoHubToken) as refusal:
        find_token(SPACE, clock=clock)
    assert refusal.value.message == f"no token to publish {SPACE} was found"
    assert token_to_read(SPACE) is None


def test_a_job_without_an_identity_is_told_so_at_once(monkeypatch):
    clock = answer_of_client(monkeypatch, OIDCError("id-token: none"))
    with pytest.raises(NoHubToken) as refusal:
        find_token(SPACE, clock=clock)
    assert (refusal.value.message, refusal.value.fix) == (
        f"{RESOURCE_VARIABLE} is set, but the job has no OIDC identity: id-token: none",
        "add `permissions: id-token: write` to the job",
    )
    assert clock.waits == []


@pytest.mark.parametrize("error", [httpx.ConnectError("refused"), ValueError("x"), KeyError("x")])
def test_an_exchange_that_does_not_answer_is_tried_again(monkeypatch, error):
    clock = answer_of_client(monkeypatch, error)
    with pytest.raises(RetriesExhausted) as refusal:
        find_token(SPACE, clock=clock)
    assert refusal.value.message == (
        f"6 tries failed; the last: no token from the Hub ({type(error).__name__})"
    )
    assert clock.waits == [2, 4, 8, 16, 32]


def test_a_token_for_another_space_is_not_asked_for(monkeypatch):
    clock = answer_of_client(monkeypatch, "hf_token")
    monkeypatch.setenv(RESOURCE_VARIABLE, "spaces/geneb/other")
    with pytest.raises(NoHubToken) as refusal:
        find_token(SPACE, clock=clock)
    assert refusal.value.message == (
        f"{RESOURCE_VARIABLE} is 'spaces/geneb/other', but the Space to publish is {SPACE!r}"
    )
