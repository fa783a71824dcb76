"""Which servers a download may reach: public ones, by the number that was checked.

An address that a stranger names leads to public servers alone. Its host is resolved once, every
answer is checked, and the connection is made to a checked number: a name that leads elsewhere a
moment later leads nowhere. What the user of this machine names may be in his own network; once
that leads to a public server, what follows is a stranger's.

Where a proxy is set (HTTPS_PROXY), the proxy resolves and connects. Hosts that are numbers are
refused all the same; names are the proxy's to refuse.
"""

import ipaddress
import socket
from urllib.parse import urlsplit

from geneb_ci.common.hosts import LOOPBACK, is_public

ALLOWED: frozenset[str] = frozenset()
"""Numbers that may be reached beside the public ones: tests put that of their servers here."""
PORT_MAX = (1 << 16) - 1
_UNICAST = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PLATFORM = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.0.0.0/24")))
"""Of the machine's own surroundings, and public by their number, or for older Pythons: what Azure,
where Actions run, and Oracle's cloud tell a machine of itself."""


class NotPublicError(OSError):
    """A host has no public number, or has others as well."""


def is_global(number: str) -> bool:
    """Whether a number is of a machine on the public internet.

    A number of version 6 that stands for one of version 4 is judged by that. Those of tunnels
    (6to4, Teredo) lead to any machine and are none.
    """
    try:
        address = ipaddress.ip_address(number)
    except ValueError:  # of no kind known here, or with a zone, which only a link's own have
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            address = ipaddress.IPv4Address(address.packed[-4:])
        elif address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        elif address not in _UNICAST or address.sixtofour is not None or address.teredo is not None:
            return False
    is_near = any(address in network for network in _PLATFORM)
    return address.is_global and not address.is_multicast and not is_near


def public_numbers(host: str, port: int) -> list[str]:
    """Return the numbers of a host, all of which are public.

    Raises NotPublicError, which says the same of every host without them: nobody learns from it
    which names and ports a private network has.
    """
    refused = NotPublicError(f"{host} is not a public server that can be found from here")
    if not 0 < port <= PORT_MAX:
        raise refused
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # ValueError: no name at all, such as one too long
        raise refused from error
    numbers = list(dict.fromkeys(str(address[0]) for *_, address in answers))
    if not numbers or not all(is_global(number) or number in ALLOWED for number in numbers):
        raise refused
    return numbers


class AllowedServers:
    """The servers that one download may reach, from its address through every redirect."""

    def __init__(self, *, is_user_named: bool) -> None:
        self.may_be_local = is_user_named
        """Whether the next server may be in the network of this machine's user."""

    def allows(self, address: str, before: str = "") -> bool:
        """Whether an address may be asked, after the one that redirects to it.

        Its server is checked when it is connected to.
        """
        if address.startswith(LOOPBACK):
            is_named = self.may_be_local or (urlsplit(address).hostname or "") in ALLOWED
            return is_named and (not before or before.startswith(LOOPBACK))
        return is_public(address) or (self.may_be_local and address.startswith("https://"))

    def connect(
        self,
        address: tuple[str, int],
        timeout: float | None = None,
        source: tuple[str, int] | None = None,
    ) -> socket.socket:
        """Return a connection to a host's port. Raises OSError, and NotPublicError."""
        host, port = address
        if self.may_be_local:
            connection = socket.create_connection(address, timeout, source)
            self.may_be_local = not is_global(str(connection.getpeername()[0]))
            return connection
        failure: OSError | None = None
        for number in public_numbers(host, port):
            try:
                return socket.create_connection((number, port), timeout, source)
            except OSError as error:
                failure = error
        raise failure or NotPublicError(host)
