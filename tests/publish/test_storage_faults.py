"""Faults of the Hub's storage at each step, with its real client: named, bounded, tried again."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from geneb_ci.audit.commitment import Weights
from geneb_ci.audit.rerun.weights import fetch_weights
from geneb_ci.common.errors import WeightsRefused
from geneb_ci.publish import faults
from geneb_ci.publish.git import GitRepository
from geneb_ci.publish.push import MainIntent, PublishOutcome, push
from geneb_ci.publish.space import Space
from reference_harness import mini
from reference_harness.data import benchmark, download
from reference_harness.errors import DataError
from reference_harness.formats.hub_storage import StorageFailure, storage_failure
from tests.harness.support import write_remote
from tests.publish.conftest import NAME, RESOURCE, made
from tests.publish.hub import ALTERED, CUT, HANG, RESET, WRITER, Fault
from tests.publish.hub_cas import CAS_TOKEN
from tests.publish.settled import Patience, assert_settled
from tests.publish.storage_client import quick_storage, without_ports

__all__ = ["quick_storage"]
pytestmark = pytest.mark.usefixtures("quick_storage")

SCRIPTS_ARE_LARGE = b"*.js filter=lfs diff=lfs merge=lfs -text\n"
LASTING = 99
WAITS = [2, 4, 8, 16, 32]
TOKEN, BYTES, FILES = (
    "asked for a token to upload with",
    "sent the bytes",
    "sent the list of files",
)
CONCERNS = " (uploading board-current.js and 9 more)"


@pytest.fixture
def repo(hub):
    return hub.create(RESOURCE, {".gitattributes": SCRIPTS_ARE_LARGE})


@pytest.fixture
def newest(clone):
    return MainIntent(made(clone), GitRepository(clone.root))


@pytest.fixture
def clock():
    return Patience()


def of_each_step(cases: Iterable[Any], in_gate: int = 1) -> Iterator[Any]:
    """Yield the cases, all but the first of each step left to the night."""
    seen: Counter[str] = Counter()
    for case in cases:
        seen[case[0]] += 1
        yield case if seen[case[0]] <= in_gate else pytest.param(*case, marks=pytest.mark.nightly)


PASSING = [
    *(("xet-write-token", kind, 1, []) for kind in (429, 503, HANG, RESET, CUT)),
    *(("cas-grant", kind, 1, []) for kind in (503, CUT)),
    *(("cas-xorb", kind, 1, []) for kind in (429, 500, HANG, RESET, CUT)),
    *(("cas-shard", kind, 1, []) for kind in (404, 503, HANG, RESET, CUT)),
    # What the client takes for final is tried again with a new token, and says so.
    *((step, 401, 1, [2]) for step in ("cas-grant", "cas-xorb", "cas-shard")),
    ("cas-shard", ALTERED, 1, [2]),
    # The client asks whether somebody has a chunk already; without an answer it sends it.
    *(("cas-dedup", kind, LASTING, []) for kind in (401, 404, 503)),
]


FINAL = [case for case in PASSING if case[-1]]
REST = [case for case in PASSING if not case[-1]]


@pytest.mark.parametrize(
    ("step", "kind", "times", "waits"), [*of_each_step(REST), *of_each_step(FINAL, 2)]
)
def test_a_fault_that_passes_costs_a_retry(
    hub, repo, space, newest, clock, step, kind, times, waits
):
    hub.faults = [Fault(step, kind)] * times
    done = push(space, newest, clock=clock)
    assert (done.outcome, clock.waits) == (PublishOutcome.PUBLISHED, waits)
    assert step in hub.calls
    assert_settled(repo, newest.built)


HUB, STORAGE = "the Hub (HOST)", "the Hub's storage (HOST)"
TIRED = [
    ("xet-write-token", 503, f"{HUB} answers 503 (Service Unavailable) when {TOKEN}"),
    ("xet-write-token", 429, f"{HUB} answers 429 (Too Many Requests) when {TOKEN}"),
    ("xet-write-token", RESET, f"{HUB} does not answer when {TOKEN}"),
    ("cas-grant", 500, f"{STORAGE} answers 500 (Internal Server Error) when {BYTES}"),
    ("cas-xorb", 503, f"{STORAGE} answers 503 (Service Unavailable) when {BYTES}"),
    ("cas-xorb", 401, f"{STORAGE} answers 401 (Unauthorized) when {BYTES}"),
    ("cas-xorb", HANG, f"{STORAGE} does not answer when {BYTES}"),
    ("cas-shard", 503, f"{STORAGE} answers 503 (Service Unavailable) when {FILES}"),
    ("cas-shard", RESET, f"{STORAGE} does not answer when {FILES}"),
]


@pytest.mark.parametrize(("step", "kind", "what"), [*of_each_step(TIRED)])
def test_a_fault_that_lasts_ends_after_six_tries(hub, repo, space, newest, clock, step, kind, what):
    hub.faults = [Fault(step, kind)] * LASTING
    answer: list[str] = []
    with pytest.raises(faults.RetriesExhausted) as end:
        push(space, newest, clock=clock, say=answer.append)
    assert without_ports(end.value.message) == f"6 tries failed; the last: {what}{CONCERNS}"
    assert end.value.fix == (
        "run the command again later; the command first reads whether an earlier try succeeded"
    )
    assert [without_ports(line) for line in answer] == [
        f"try {number} of 6 failed: {what}{CONCERNS}; next try in {wait} s"
        for number, wait in enumerate(WAITS, 1)
    ]
    assert clock.waits == WAITS
    assert (len(repo.commits), hub.calls.count("commit")) == (1, 0)


REFUSED = [
    (
        "xet-write-token",
        401,
        faults.HubTokenRefused,
        f"{HUB} answers 401 (Unauthorized) when {TOKEN}",
    ),
    ("xet-write-token", 403, faults.NoWriteRight, f"{HUB} answers 403 (Forbidden) when {TOKEN}"),
    ("xet-write-token", 404, faults.HubRefused, f"{HUB} answers 404 (Not Found) when {TOKEN}"),
    ("cas-grant", 403, faults.HubRefused, f"{STORAGE} answers 403 (Forbidden) when {BYTES}"),
    ("cas-xorb", 400, faults.HubRefused, f"{STORAGE} answers 400 (Bad Request) when {BYTES}"),
    ("cas-xorb", 403, faults.HubRefused, f"{STORAGE} answers 403 (Forbidden) when {BYTES}"),
    ("cas-shard", 403, faults.HubRefused, f"{STORAGE} answers 403 (Forbidden) when {FILES}"),
    ("cas-shard", 400, faults.HubRefused, f"{STORAGE} answers 400 (Bad Request) when {FILES}"),
]


@pytest.mark.parametrize(("step", "kind", "error", "what"), REFUSED)
def test_a_refusal_ends_at_once(hub, repo, space, newest, clock, step, kind, error, what):
    hub.faults = [Fault(step, kind)] * LASTING
    with pytest.raises(error) as end:
        push(space, newest, clock=clock)
    assert without_ports(end.value.message) == what + CONCERNS
    assert end.value.fix
    message = end.value.message + end.value.fix
    assert (WRITER in message, CAS_TOKEN in message) == (False, False)
    assert (clock.waits, len(repo.commits)) == ([], 1)


def test_a_token_that_has_expired_is_asked_for_anew(hub, repo, space, newest, clock):
    hub.shelf.lives_s = -60
    assert push(space, newest, clock=clock).outcome is PublishOutcome.PUBLISHED
    assert hub.calls.count("xet-write-token") > 1
    assert clock.waits == []
    assert_settled(repo, newest.built)


def test_somebody_elses_commit_after_the_upload(hub, repo, space, newest, clock):
    hub.faults = [Fault("commit", 412)]
    assert push(space, newest, clock=clock).outcome is PublishOutcome.PUBLISHED
    assert (clock.waits, hub.calls.count("cas-shard")) == ([], 2)
    assert_settled(repo, newest.built)


def test_a_storage_that_nobody_listens_for(hub, repo, space, newest, clock):
    hub.storage.endpoint = "http://127.0.0.1:1"
    with pytest.raises(faults.RetriesExhausted, match="does not answer when sent the bytes"):
        push(space, newest, clock=clock)
    assert len(repo.commits) == 1


@pytest.mark.parametrize("kind", [403, 503, CUT])
def test_a_large_file_that_cannot_be_read_back_at_once(hub, repo, space, newest, clock, kind):
    repo.lfs_over = 1  # so that the manifest, which is read back, lies in the storage, too
    hub.faults = [Fault("cas-bridge", kind)]
    assert push(space, newest, clock=clock).outcome is PublishOutcome.PUBLISHED
    assert clock.waits == [2]
    assert_settled(repo, newest.built)


def test_answers_that_hang_are_not_waited_for_six_times(monkeypatch, hub, newest, clock):
    monkeypatch.setattr("geneb_ci.publish.session.UNANSWERED_MAX_S", 0.3)
    hub.create(RESOURCE)
    hub.faults = [Fault("info")] * LASTING
    hasty = Space(NAME, token=WRITER, endpoint=hub.endpoint, timeout_s=0.2)
    with pytest.raises(
        faults.RetriesExhausted, match=r"^2 tries failed in \d s; the last: no usable answer"
    ):
        push(hasty, newest, clock=clock)
    assert clock.waits == [2]


TASK = "mini_tf"
MINI = benchmark.mini()
BENCH = replace(MINI, dataset=replace(MINI.dataset, repo_id="geneb/task-data"))


@pytest.fixture
def pull(hub, tmp_path):
    write_remote(mini.load(TASK), tmp_path / "there")
    tree = {
        path.relative_to(tmp_path / "there").as_posix(): path.read_bytes()
        for path in (tmp_path / "there").rglob("*.csv")
    }
    rule = {".gitattributes": b"*.csv filter=lfs -text\n"}
    data = hub.create("datasets/geneb/task-data", tree | rule)

    def pull():
        folder = tmp_path / "here"
        download.pull(BENCH, folder, revision=data.head.oid, endpoint=hub.endpoint)
        return {name: (folder / name).read_bytes() for name in tree} == tree

    return pull


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        *of_each_step(("cas-reconstruction", kind) for kind in (503, 429, HANG, RESET, CUT)),
        *of_each_step((("cas-fetch", kind) for kind in (403, HANG, 429, 503, RESET, CUT)), 2),
    ],
)
def test_a_download_outlives_a_fault_that_passes(hub, pull, step, kind):
    hub.faults = [Fault(step, kind)]
    assert pull()
    assert step in hub.calls


AGAIN = (
    "; run the command again: complete files are not downloaded again (2 of 2 files are missing)"
)
MADE = "when asked what the file is made of"
GIVEN = "when asked for the bytes"
DAMAGED = "the Hub's storage gave no usable answer"


@pytest.mark.parametrize(
    ("step", "kind", "what"),
    [
        ("cas-reconstruction", 401, f"{STORAGE} answers 401 (Unauthorized) {MADE}"),
        ("cas-reconstruction", 403, f"{STORAGE} answers 403 (Forbidden) {MADE}"),
        ("cas-reconstruction", 404, f"{STORAGE} answers 404 (Not Found) {MADE}"),
        ("cas-reconstruction", 503, f"{STORAGE} answers 503 (Service Unavailable) {MADE}"),
        ("cas-reconstruction", RESET, f"{STORAGE} does not answer {MADE}"),
        ("cas-fetch", 403, f"{STORAGE} answers 403 (Forbidden) {GIVEN}"),
        ("cas-fetch", 404, f"{STORAGE} answers 404 (Not Found) {GIVEN}"),
        ("cas-fetch", 503, f"{STORAGE} answers 503 (Service Unavailable) {GIVEN}"),
        ("cas-fetch", HANG, f"{STORAGE} does not answer {GIVEN}"),
        ("cas-reconstruction", 416, DAMAGED),
        ("cas-reconstruction", ALTERED, DAMAGED),
        ("cas-fetch", CUT, DAMAGED),
    ],
)
def test_a_download_that_fails_says_where_and_what_to_do(hub, pull, step, kind, what):
    hub.faults = [Fault(step, kind)] * LASTING
    with pytest.raises(DataError) as end:
        pull()
    message = without_ports(str(end.value))
    answer = re.escape(what) + (r" \(Task error: .*\)" if what == DAMAGED else "")
    assert re.fullmatch(
        rf"http://HOST/datasets/geneb/task-data at [0-9a-f]{{40}}: {answer}{re.escape(AGAIN)}",
        message,
    ), message
    assert (CAS_TOKEN in message, "signature" in message) == (False, False)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_no_token_to_download_with(hub, pull, status):
    hub.faults = [Fault("xet-read-token", status)] * LASTING
    with pytest.raises(DataError) as end:
        pull()
    assert f": the Hub answers {status} when asked for a token; check that" in str(end.value)
    assert hub.calls.count("xet-read-token") == 1, "one file comes first, so that one call is made"


def test_a_wrong_byte_is_noticed_and_fetched_anew(hub, pull):
    """The storage's client checks the size alone."""
    hub.faults = [Fault("cas-fetch", ALTERED)]
    with pytest.raises(DataError, match="the digest that the Hub lists: the copy was deleted"):
        pull()
    assert pull()


def test_weights_that_the_storage_does_not_give(hub, tmp_path):
    repo = hub.create("models/geneb/model", {"model.safetensors": b"w" * 50})
    repo.lfs_over = 1
    hub.faults = [Fault("cas-reconstruction", 404)] * LASTING
    weights = Weights(
        kind="huggingface",
        location="geneb/model",
        revision=repo.head.oid,
        files={"model.safetensors": "0" * 64},
    )
    with pytest.raises(WeightsRefused, match=r"geneb/model at .* cannot be fetched: the Hub's sto"):
        fetch_weights(weights, tmp_path / "w", endpoint=hub.endpoint)


def test_only_the_storages_client_is_read_so():
    for error in (RuntimeError("a bug"), OSError(28, "No space"), ValueError("x: error: y")):
        assert storage_failure(error) is None
    local = storage_failure(OSError("I/O error: x: No space left on device (os error 28)"))
    assert isinstance(local, OSError)
    assert local.errno == 28
    refused = storage_failure(ConnectionError("Network error: refused (os error 111)"))
    assert isinstance(refused, StorageFailure)
