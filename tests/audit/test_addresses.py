"""Addresses that strangers name lead to public servers alone: by name, by number, at each hop."""

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from geneb_ci.audit.rerun.fetching import WEIGHTS_DOWNLOAD
from geneb_ci.audit.sampling.beacon_source import BeaconUnavailable, fetch_round
from geneb_ci.common import addresses
from geneb_ci.common.addresses import AllowedServers, NotPublicError, is_public_ip_address
from geneb_ci.common.download import served_length
from geneb_ci.common.errors import WeightsRefused
from geneb_ci.common.hosts import is_public
from tests.each import each
from tests.loopback import as_public, loopback
from tests.models.publishers import Shelf

__all__ = ["as_public"]  # a fixture: pytest finds it by its name here

NUMBERS = (
    *("127.0.0.1", "127.1", "0x7f.1", "0X7F.1", "0177.0.0x1", "0xa9.254.169.254", "2130706433"),
    *("0x7f000001", "017700000001", "10.0x8", "169.254.43518", "1.1.1.1", "0", "0x", "127.0.0.0x1"),
)
NAMES = (
    *("localhost", "LOCALHOST", "rows.localhost", "localhost.", "rows.LocalHost", "127.0.0.1."),
    *(
        "user@example.org",
        "example.org@127.0.0.1",
        "user:word@example.org",
        "[::1]",
        "[fe80::1%1]",
        "[::1",
    ),
    *(
        "127\uff0e0\uff0e0\uff0e1",
        "\u2460\u2461\u2466.0.0.1",
        "%31%32%37.0.0.1",
        "example.org\\@a.b",
    ),
    *("\uff11\uff12\uff17.0.0.1", "example.org:\uff18\uff10", "example.org:", "example.org:123456"),
)


@each("host", [*NUMBERS, *NAMES])
def test_a_host_that_a_stranger_may_not_name(host: str) -> None:
    for address in (f"https://{host}/x", f"https://{host}:8443/x"):
        assert not is_public(address)
        assert not AllowedServers(is_user_named=False).allows(address)


def test_the_systems_reader_of_numbers_knows_no_other_spelling() -> None:
    parts = ("0", "1", "00", "017", "0x", "0x1f", "0XF", "255", "a", "0x1g", "08")
    hosts = [f"{part}.{two}" for part in parts for two in parts]
    hosts += [f"1.{host}" for host in hosts] + [f"1.0x1.{host}" for host in hosts]
    for host in hosts:
        try:
            socket.inet_aton(host)
        except OSError:
            continue
        assert not is_public(f"https://{host}/"), host


@pytest.mark.parametrize("host", ["example.org", "a-b.example.org:8443", "0x7f.example", "7.org"])
def test_a_name_of_a_server(host: str) -> None:
    assert is_public(f"https://{host}/x?token=a")


@each(
    "number",
    [
        *("0.0.0.1", "127.0.0.1", "10.0.0.1", "100.64.0.1", "169.254.169.254", "192.168.0.1"),
        *("224.0.0.1", "255.255.255.255", "168.63.129.16", "192.0.0.192"),
        *("::", "::1", "::127.0.0.1"),
        "0.0.0.0",  # noqa: S104 (nobody listens there)
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe"),
        *("64:ff9b:1::808:808", "2002:7f00:1::", "2002:808:808::", "2001:0:4136:e378::1"),
        *("fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "ff02::1", "2001:db8::1", "", "name"),
    ],
)
def test_a_number_of_no_public_machine(number: str) -> None:
    assert not is_public_ip_address(number)


@pytest.mark.parametrize(
    "number", ["8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::808:808", "2606:4700:4700::1111"]
)
def test_a_number_of_a_public_machine(number: str) -> None:
    assert is_public_ip_address(number)


BoardAnswers = dict[str, list[list[str]]]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> BoardAnswers:
    """Return a table of names: what the resolver says of each, call by call."""
    board_answers: BoardAnswers = {}
    real = socket.getaddrinfo

    def resolve(host: str, port: Any, *arguments: Any, **named: Any) -> Any:
        if host not in board_answers:
            return real(host, port, *arguments, **named)
        answers = board_answers[host]
        numbers = answers.pop(0) if len(answers) > 1 else answers[0]
        return [answer for number in numbers for answer in real(number, port, *arguments, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return board_answers


@pytest.fixture
def listening() -> Iterator[int]:
    """Listen on this machine, on every number of it; yield the port."""
    with socket.create_server(("", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed() -> int:
    """Return a port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_name_is_resolved_once(
    monkeypatch: pytest.MonkeyPatch, names: BoardAnswers, listening: int
) -> None:
    monkeypatch.setattr(addresses, "IP_ADDRESSES_OF_TESTS", frozenset({"127.0.0.1"}))
    names["rows.example.org"] = [["127.0.0.1"], ["127.0.0.2"]]
    with AllowedServers(is_user_named=False).connect(
        ("rows.example.org", listening), 5
    ) as connection:
        assert connection.getpeername()[0] == "127.0.0.1"
    with pytest.raises(NotPublicError):
        AllowedServers(is_user_named=False).connect(("rows.example.org", listening), 5)


def test_every_answer_is_checked(names: BoardAnswers, listening: int) -> None:
    names["rows.example.org"] = [["8.8.8.8", "127.0.0.1"]]
    with pytest.raises(NotPublicError):
        AllowedServers(is_user_named=False).connect(("rows.example.org", listening), 5)


def message_of(address: str) -> str:
    with pytest.raises(WeightsRefused) as caught:
        served_length(address, WEIGHTS_DOWNLOAD)
    return caught.value.message


def test_nobody_learns_which_ports_are_open(
    names: BoardAnswers, listening: int, closed: int
) -> None:
    names["rows.example.org"] = [["127.0.0.1"]]
    messages = [
        message_of(f"https://{host}:{port}/a").replace(str(port), "P").replace(host, "H")
        for host in ("rows.example.org", "no-such-name.invalid", f"{'a' * 64}.example.org")
        for port in (listening, closed, 99999)
    ]
    assert set(messages) == {
        "https://H:P/a cannot be fetched: this machine finds no public server named H"
    }


@pytest.mark.usefixtures("as_public")
@pytest.mark.parametrize("host", ["0x7f.1", "[::1]", "rows.example.org"])
def test_nor_by_a_redirect(host: str, names: BoardAnswers, listening: int, closed: int) -> None:
    names["rows.example.org"] = [["127.0.0.2"]]
    reasons = set()
    for port in (listening, closed):
        with loopback(Shelf(redirect=f"https://{host}:{port}/x").handler()) as server:
            reasons.add(message_of(f"{server}/a").replace(str(port), "P").partition("fetched: ")[2])
    (message,) = reasons
    assert "public server" in message


@pytest.mark.usefixtures("as_public")
@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "ftp://example.org/x", "http://example.org/x", "data:,x"]
)
def test_a_redirect_to_another_scheme(address: str) -> None:
    with loopback(Shelf(redirect=address).handler()) as server:
        message = message_of(f"{server}/a")
    assert "not an https address of a public server" in message or "not allowed" in message


def test_what_follows_on_a_public_server_is_a_strangers(
    monkeypatch: pytest.MonkeyPatch, listening: int
) -> None:
    reach = AllowedServers(is_user_named=True)
    assert reach.allows("https://10.0.0.1/x")
    with reach.connect(("127.0.0.1", listening), 5):
        assert reach.allows("https://10.0.0.1/x")
    monkeypatch.setattr(addresses, "is_public_ip_address", lambda _: True)
    with reach.connect(("127.0.0.1", listening), 5):
        assert not reach.allows("https://10.0.0.1/x")


def test_a_relay_leads_nowhere_else(listening: int) -> None:
    with (
        loopback(Shelf(redirect=f"http://example.org:{listening}/").handler()) as relay,
        pytest.raises(BeaconUnavailable, match="not an https address of a public server"),
    ):
        fetch_round(1, [relay], pause=lambda _: None)


def test_the_proxy_connects_where_one_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be in the user's network; it is asked for names alone."""
    requests: list[str] = []

    class Proxy(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

        def do_CONNECT(self) -> None:
            requests.append(self.path)
            self.send_error(502)

    with loopback(Proxy) as proxy:
        monkeypatch.setenv("https_proxy", proxy)
        monkeypatch.setenv("no_proxy", "")
        assert "502" in message_of("https://rows.example.org/a")
        message_of("https://0x7f.1/a")
    assert requests == ["rows.example.org:443"]
