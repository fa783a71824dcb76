"""Inputs 55 to 57 of the hostile corpus: an extractor each, and the outcome it must meet."""

import dataclasses
import socket
from pathlib import Path

import pytest

from geneb_ci.common.errors import ExtractorFailed, LimitExceeded, ResultRefused
from geneb_ci.sandbox.launch import Sandbox
from geneb_ci.sandbox.run import run_in_sandbox
from tests.gate import gated
from tests.sandbox.conftest import SEQUENCES, SHORT, SMALL, hostile

pytestmark = pytest.mark.usefixtures("nothing_left")


QUIET = "NewNamespace Environment SymlinkOut KernelSettings Netlink X32Call"
"""What is refused without an attempt that the worker notes."""
LEVELS = pytest.mark.parametrize(
    "sandbox", [2, pytest.param(1, marks=pytest.mark.nightly)], indirect=True
)
"""What the worker or the reader refuses does not depend on the level."""


@pytest.mark.parametrize(
    ("names", "attempts"),
    [
        (f"{QUIET} Dns", ["socket.getaddrinfo"]),
        ("MetadataService", ["socket.connect", "socket.getaddrinfo"]),
        ("DockerSocket", ["socket.connect"]),
    ],
)
def test_what_reaches_out_gets_nothing(sandbox: Sandbox, monkeypatch, names, attempts):
    monkeypatch.setenv("GENEB_TEST_SECRET", "a token")
    spec = hostile("reach_out", "Several", names=names)
    result = run_in_sandbox(SEQUENCES, spec, sandbox, SMALL)
    assert result.values.tolist() == [[0] * len(names.split())] * 3
    assert result.attempts == attempts


def test_a_server_on_the_host_hears_nothing(sandbox: Sandbox):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        port = server.getsockname()[1]
        sandbox_run = run_in_sandbox(
            SEQUENCES, hostile("reach_out", "Tcp", port=str(port)), sandbox, SMALL
        )
        with pytest.raises(BlockingIOError):
            server.accept()
    assert sandbox_run.values.tolist() == [[0, 0, 0]] * 3
    assert sandbox_run.attempts == ["socket.connect", "socket.getaddrinfo"]


def test_a_home_with_keys_is_not_there(sandbox: Sandbox, tmp_path: Path):
    keys = tmp_path / ".ssh"
    keys.mkdir()
    (keys / "id_ed25519").write_text("a key")
    spec = hostile("reach_out", "SshKeys", home=str(keys))
    assert run_in_sandbox(SEQUENCES, spec, sandbox, SMALL).values.tolist() == [[0, 0, 0]] * 3


TOO_MUCH = (
    ("ForkBomb", "processes"),
    ("ThreadBomb", "processes"),
    ("Terabyte", "memory_mib"),
    ("MemoryFile", "memory_mib"),
    ("Endless", "seconds"),
    ("Deaf", "seconds"),
    ("StopsPidOne", "seconds"),
    ("Flood", "log_kib"),
    ("ClosesEverything", "seconds"),
    ("Stays", "seconds"),
)
"""Extractor and the limit that ends it. Whoever watches is outside and the same at both levels; a
level has a way of its own to end processes."""
PARTS_OF_STAYS = ("Deaf", "StopsPidOne", "ClosesEverything")


@pytest.mark.parametrize(
    ("sandbox", "name", "limit"),
    gated(
        [(level, *case) for case in TOO_MUCH for level in (2, 1)],
        *((2, *case) for case in TOO_MUCH if case[0] not in PARTS_OF_STAYS),
        (1, "ForkBomb", "processes"),
    ),
    indirect=["sandbox"],
)
def test_what_takes_too_much_is_stopped_from_outside(sandbox: Sandbox, name, limit):
    seconds = {"Endless": 1}.get(name, SHORT if limit == "seconds" else SMALL.seconds)
    limits = dataclasses.replace(SMALL, seconds=seconds, memory_mib=256)
    with pytest.raises(LimitExceeded) as caught:
        run_in_sandbox(SEQUENCES, hostile("take_over", name), sandbox, limits)
    assert caught.value.limit == limit
    assert "attached" not in caught.value.log
    assert name != "Stays" or "refused" in caught.value.log


@LEVELS
def test_a_full_tmp_is_the_extractors_own_problem(sandbox: Sandbox):
    with pytest.raises(ExtractorFailed) as caught:
        run_in_sandbox(SEQUENCES, hostile("take_over", "FillTmp"), sandbox, SMALL)
    assert "No space left on device" in caught.value.message


NO_MATRIX = (
    ("ReturnsObjects", "returned object, expected a NumPy or torch array"),
    ("ReturnsNan", "has NaN or infinity"),
    ("ReturnsTooFew", "an array of shape (2, 2), expected (3, d)"),
    ("ReturnsNoWidth", "an array of shape (3, 0), expected (3, d)"),
    ("ReturnsOneDimension", "an array of shape (3,), expected (3, d)"),
)
"""In the gate, all but the first are refused without a sandbox: test_harness_embed.py."""


@pytest.mark.parametrize(
    ("sandbox", "name", "message"),
    gated([(level, *case) for case in NO_MATRIX for level in (2, 1)], (2, *NO_MATRIX[0])),
    indirect=["sandbox"],
)
def test_the_worker_refuses_what_is_no_matrix(sandbox: Sandbox, name, message):
    with pytest.raises(ExtractorFailed) as caught:
        run_in_sandbox(SEQUENCES, hostile("wrong_results", name), sandbox, SMALL)
    assert caught.value.message.startswith("the extractor ended with code 3: ")
    assert message in caught.value.message


NO_RESULT = (
    ("WritesNothing", "the result ended after 0 of 32 bytes"),
    ("WritesTooLittle", "the result ended after 55 of 56 bytes"),
    ("WritesForEver", "the result has more than the 56 bytes that its header announces"),
)
"""In the gate, those that end are refused without a sandbox: test_receiver.py."""


@pytest.mark.parametrize(
    ("sandbox", "name", "message"),
    gated([(level, *case) for case in NO_RESULT for level in (2, 1)], (2, *NO_RESULT[2])),
    indirect=["sandbox"],
)
def test_the_reader_outside_refuses_what_is_no_matrix(sandbox: Sandbox, name, message):
    with pytest.raises(ResultRefused) as caught:
        run_in_sandbox(SEQUENCES, hostile("wrong_results", name), sandbox, SMALL)
    assert caught.value.message == message


@LEVELS
def test_a_pickle_is_refused_and_never_opened(sandbox: Sandbox):
    with pytest.raises(ResultRefused) as caught:
        run_in_sandbox(SEQUENCES, hostile("wrong_results", "WritesPickle"), sandbox, SMALL)
    assert "a pickle, which geneb-ci never loads" in caught.value.message
    assert not Path("/tmp/geneb-ci-was-unpickled").exists()  # noqa: S108
