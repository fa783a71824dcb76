"""Inputs 55 to 57 of the hostile corpus: an extractor each, and the outcome it must meet."""

import dataclasses
import socket
from pathlib import Path

import pytest

from geneb_ci.common.errors import ExtractorFailed, LimitExceeded, ResultRefused
from geneb_ci.sandbox.launch import Sandbox
from geneb_ci.sandbox.run import run_in_sandbox
from tests.sandbox.conftest import SEQUENCES, SHORT, SMALL, hostile

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.mark.parametrize(
    ("name", "attempts"),
    [
        ("Dns", ["socket.getaddrinfo"]),
        ("MetadataService", ["socket.connect", "socket.getaddrinfo"]),
        ("DockerSocket", ["socket.connect"]),
        ("Environment", []),
        ("SymlinkOut", []),
        ("KernelSettings", []),
        ("Netlink", []),
        ("NewNamespace", []),
        ("X32Call", []),
    ],
)
def test_what_reaches_out_gets_nothing(sandbox: Sandbox, monkeypatch, name, attempts):
    monkeypatch.setenv("GENEB_TEST_SECRET", "a token")
    found = run_in_sandbox(SEQUENCES, hostile("reach_out", name), sandbox, SMALL)
    assert found.values.tolist() == [[0, 0, 0]] * 3
    assert found.attempts == attempts


def test_a_server_on_the_host_hears_nothing(sandbox: Sandbox):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        port = server.getsockname()[1]
        found = run_in_sandbox(
            SEQUENCES, hostile("reach_out", "Tcp", port=str(port)), sandbox, SMALL
        )
        with pytest.raises(BlockingIOError):
            server.accept()
    assert found.values.tolist() == [[0, 0, 0]] * 3
    assert found.attempts == ["socket.connect", "socket.getaddrinfo"]


def test_a_home_with_keys_is_not_there(sandbox: Sandbox, tmp_path: Path):
    keys = tmp_path / ".ssh"
    keys.mkdir()
    (keys / "id_ed25519").write_text("a key")
    spec = hostile("reach_out", "SshKeys", home=str(keys))
    assert run_in_sandbox(SEQUENCES, spec, sandbox, SMALL).values.tolist() == [[0, 0, 0]] * 3


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("ForkBomb", "processes"),
        ("ThreadBomb", "processes"),
        ("Terabyte", "memory_mib"),
        ("MemoryFile", "memory_mib"),
        ("Endless", "seconds"),
        ("Deaf", "seconds"),
        ("StopsPidOne", "seconds"),
        ("Flood", "log_kib"),
        ("ClosesEverything", "seconds"),
    ],
)
def test_what_takes_too_much_is_stopped_from_outside(sandbox: Sandbox, name, limit):
    limits = dataclasses.replace(SMALL, seconds=SHORT) if limit == "seconds" else SMALL
    with pytest.raises(LimitExceeded) as caught:
        run_in_sandbox(SEQUENCES, hostile("take_over", name), sandbox, limits)
    assert caught.value.limit == limit
    assert "attached" not in caught.value.log


def test_a_full_tmp_is_the_extractors_own_problem(sandbox: Sandbox):
    with pytest.raises(ExtractorFailed) as caught:
        run_in_sandbox(SEQUENCES, hostile("take_over", "FillTmp"), sandbox, SMALL)
    assert "No space left on device" in caught.value.message


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ReturnsObjects", "gave object, expected a NumPy or torch array"),
        ("ReturnsNan", "is not finite"),
        ("ReturnsTooFew", "an array of shape (2, 2), expected (3, d)"),
        ("ReturnsNoWidth", "an array of shape (3, 0), expected (3, d)"),
        ("ReturnsOneDimension", "an array of shape (3,), expected (3, d)"),
    ],
)
def test_the_worker_refuses_what_is_no_matrix(sandbox: Sandbox, name, said):
    with pytest.raises(ExtractorFailed) as caught:
        run_in_sandbox(SEQUENCES, hostile("wrong_results", name), sandbox, SMALL)
    assert caught.value.message.startswith("the extractor ended with code 3: ")
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("WritesNothing", "the result ended after 0 of 32 bytes"),
        ("WritesNan", "row 0 and 2 others contain NaN or infinity"),
        ("WritesWrongRows", "4 rows, expected 3: one a sequence"),
        ("WritesWide", "rows of width 1,099,511,627,776, expected 1 to 60,000"),
        ("WritesNoWidth", "rows of width 0, expected 1 to 60,000"),
        (
            "WritesOtherSize",
            "header of version 1 with numbers of 16 bytes, expected version 1 with 2, 4 or 8",
        ),
        ("WritesLarge", "a matrix of 1,440,000 bytes, more than the 1,048,576 allowed"),
        ("WritesTooLittle", "the result ended after 55 of 56 bytes"),
        ("WritesTooMuch", "the result has more than the 56 bytes that its header announces"),
        ("WritesForEver", "the result has more than the 56 bytes that its header announces"),
        (
            "WritesNpy",
            (
                "the result begins with b'\\x93NUMPY\\x01\\x00', not b'GENEBEMB' "
                "(a .npy file, which is never opened)"
            ),
        ),
    ],
)
def test_the_reader_outside_refuses_what_is_no_matrix(sandbox: Sandbox, name, message):
    with pytest.raises(ResultRefused) as caught:
        run_in_sandbox(SEQUENCES, hostile("wrong_results", name), sandbox, SMALL)
    assert caught.value.message == message


def test_a_pickle_is_refused_and_never_opened(sandbox: Sandbox):
    with pytest.raises(ResultRefused) as caught:
        run_in_sandbox(SEQUENCES, hostile("wrong_results", "WritesPickle"), sandbox, SMALL)
    assert "a pickle, which is never opened" in caught.value.message
    assert not Path("/tmp/geneb-ci-was-unpickled").exists()  # noqa: S108
