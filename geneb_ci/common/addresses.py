"""Restrict the servers that a download may reach.

An address in a submission must be that of a public server. Its host is resolved once, every IP
address is checked, and the connection is made to a checked one, so that a name that resolves
differently a moment later (DNS rebinding) has no effect. An address that the user of this machine
named may be in the user's network; after a redirect to a public server, the rules for a submission
apply.

If a proxy is set (HTTPS_PROXY), the proxy resolves and connects. Hosts that are IP addresses are
still refused, but the proxy decides which names it resolves.
"""

import ipaddress
import socket
from urllib.parse import urlsplit

from geneb_ci.common.hosts import LOOPBACK, is_public

IP_ADDRESSES_OF_TESTS: frozenset[str] = frozenset()
"""IP addresses that may be reached although they are not public: tests add their servers."""
PORT_MAX = (1 << 16) - 1
_PUBLIC_IPV6 = ipaddress.ip_network("2000::/3")
"""Network of the public IPv6 addresses."""
_IPV4_IN_IPV6 = ipaddress.ip_network("64:ff9b::/96")
"""Network of IPv6 addresses whose last four bytes are an IPv4 address (NAT64)."""
_METADATA_NETWORKS = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.0.0.0/24")))
"""Networks of the metadata services of Azure, where Actions run, and of Oracle's cloud. Their IP
addresses count as public, at least in older versions of Python."""


class NotPublicError(OSError):
    """A host has no public IP address, or has other IP addresses as well."""


def is_public_ip_address(ip_address: str) -> bool:
    """Whether an IP address is on the public internet.

    For an IPv6 address that maps an IPv4 address, the latter decides. Addresses of tunnels (6to4,
    Teredo) can lead to any machine and are not public.
    """
    try:
        address = ipaddress.ip_address(ip_address)
    except ValueError:  # not an IP address, or with a zone, which only link-local ones have
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address in _IPV4_IN_IPV6:
            address = ipaddress.IPv4Address(address.packed[-4:])
        elif address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        elif (
            address not in _PUBLIC_IPV6
            or address.sixtofour is not None
            or address.teredo is not None
        ):
            return False
    is_metadata_service = any(address in network for network in _METADATA_NETWORKS)
    return address.is_global and not address.is_multicast and not is_metadata_service


def public_ip_addresses(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host whose IP addresses are all public.

    Raises NotPublicError for any other host, always with the same message, so that the message
    does not reveal which names and ports a private network has.
    """
    refusal = NotPublicError(f"this machine finds no public server named {host}")
    if not 0 < port <= PORT_MAX:
        raise refusal
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # ValueError: not a name, for instance too long
        raise refusal from error
    addresses = list(dict.fromkeys(str(address[0]) for *_, address in answers))
    is_allowed = [is_public_ip_address(text) or text in IP_ADDRESSES_OF_TESTS for text in addresses]
    if not addresses or not all(is_allowed):
        raise refusal
    return addresses


class AllowedServers:
    """The servers that a download may reach: that of its address, and those of redirects."""

    def __init__(self, *, is_user_named: bool) -> None:
        self.may_be_local = is_user_named
        """Whether the next server may be in the user's own network."""

    def allows(self, address: str, redirected_from: str = "") -> bool:
        """Whether an address may be requested; `redirected_from` is the address that led to it.

        The server's IP address is checked in `connect`.
        """
        if address.startswith(LOOPBACK):
            is_allowed = (
                self.may_be_local or (urlsplit(address).hostname or "") in IP_ADDRESSES_OF_TESTS
            )
            return is_allowed and (not redirected_from or redirected_from.startswith(LOOPBACK))
        return is_public(address) or (self.may_be_local and address.startswith("https://"))

    def connect(
        self,
        address: tuple[str, int],
        timeout: float | None = None,
        source: tuple[str, int] | None = None,
    ) -> socket.socket:
        """Return a connection to a host and port.

        Raises NotPublicError for a private address that is not allowed, and another OSError if the
        server cannot be reached.
        """
        host, port = address
        if self.may_be_local:
            connection = socket.create_connection(address, timeout, source)
            self.may_be_local = not is_public_ip_address(str(connection.getpeername()[0]))
            return connection
        failure: OSError | None = None
        for ip_address in public_ip_addresses(host, port):
            try:
                return socket.create_connection((ip_address, port), timeout, source)
            except OSError as error:
                failure = error
        raise failure or NotPublicError(host)
