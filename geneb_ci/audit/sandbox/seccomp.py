"""The filter of system calls, as the classic BPF program that the kernel takes.

A second wall: the namespaces already keep host files and the network out. The filter takes away
what they leave open (tracing, netlink, nested namespaces, rarely used parts of the kernel).
"""

import errno
import platform
import struct
from collections.abc import Iterator
from typing import NamedTuple

from geneb_ci.audit.sandbox import syscalls
from geneb_ci.audit.sandbox.syscalls import Numbers
from geneb_ci.errors import SandboxUnavailable

# linux/filter.h, linux/bpf_common.h
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# linux/seccomp.h
ALLOW, KILL_PROCESS, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
# struct seccomp_data: number, architecture, then six arguments of 64 bits after the pointer.
NUMBER, ARCH, FIRST, SECOND = 0, 4, 16, 24
# linux/audit.h
ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

X32_BIT = 0x40000000
"""Numbers from here on are the x32 ABI: the same calls under other numbers (asm/unistd.h)."""
NEW_NAMESPACE = 0x7E020000
"""CLONE_NEW{CGROUP,UTS,IPC,USER,PID,NET,NS} of linux/sched.h, all in one mask."""
SOCKETS = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6: the network namespace is empty, so these reach the sandbox only.
Netlink, packet, vsock, Bluetooth and forty others are refused."""
TERMINAL_REQUESTS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX put keystrokes into the terminal of whoever started this."""

_INSTRUCTION = struct.Struct("<HBBI")


class Instruction(NamedTuple):
    """One step: `yes` and `no` are how many steps to skip."""

    code: int
    yes: int
    no: int
    value: int


def program(machine: str | None = None) -> bytes:
    """Give the program for a machine, by default this one.

    Raises SandboxUnavailable for a machine whose numbers are not known.
    """
    machine = machine or platform.machine()
    if machine not in ARCHES:
        raise SandboxUnavailable(
            f"no filter of system calls is known for {machine}",
            f"run the audit on one of {', '.join(ARCHES)}",
        )
    return b"".join(_INSTRUCTION.pack(*step) for step in instructions(machine))


def instructions(machine: str) -> Iterator[Instruction]:
    """Give the steps: another architecture is killed, what is refused gets an error number."""
    yield Instruction(LOAD, 0, 0, ARCH)
    yield Instruction(EQUAL, 1, 0, ARCHES[machine])
    yield _give(KILL_PROCESS)
    yield Instruction(LOAD, 0, 0, NUMBER)
    if machine == "x86_64":
        yield Instruction(AT_LEAST, 0, 1, X32_BIT)
        yield _refuse(errno.ENOSYS)
    for numbers in syscalls.REFUSED.values():
        number = _number(numbers, machine)
        if number is not None:
            yield Instruction(EQUAL, 0, 1, number)
            yield _refuse(errno.EPERM)
    # clone3 hides its flags behind a pointer; without it the C library falls back on clone.
    yield Instruction(EQUAL, 0, 1, _needed(syscalls.CLONE3, machine))
    yield _refuse(errno.ENOSYS)
    yield Instruction(EQUAL, 0, 4, _needed(syscalls.CLONE, machine))
    yield Instruction(LOAD, 0, 0, FIRST)
    yield Instruction(ANY_BIT, 0, 1, NEW_NAMESPACE)
    yield _refuse(errno.EPERM)
    yield _give(ALLOW)
    for call in (syscalls.SOCKET, syscalls.SOCKETPAIR):
        yield Instruction(EQUAL, 0, len(SOCKETS) + 3, _needed(call, machine))
        yield Instruction(LOAD, 0, 0, FIRST)
        for index, domain in enumerate(SOCKETS):
            yield Instruction(EQUAL, len(SOCKETS) - index, 0, domain)
        yield _refuse(errno.EAFNOSUPPORT)
        yield _give(ALLOW)
    yield Instruction(EQUAL, 0, len(TERMINAL_REQUESTS) + 3, _needed(syscalls.IOCTL, machine))
    yield Instruction(LOAD, 0, 0, SECOND)
    for index, request in enumerate(TERMINAL_REQUESTS):
        yield Instruction(EQUAL, len(TERMINAL_REQUESTS) - index, 0, request)
    yield _give(ALLOW)
    yield _refuse(errno.EPERM)
    yield _give(ALLOW)


def _give(value: int) -> Instruction:
    return Instruction(RETURN, 0, 0, value)


def _refuse(number: int) -> Instruction:
    return _give(ERRNO | number)


def _number(numbers: Numbers, machine: str) -> int | None:
    return numbers.x86_64 if machine == "x86_64" else numbers.aarch64


def _needed(numbers: Numbers, machine: str) -> int:
    number = _number(numbers, machine)
    if number is None:
        msg = f"{machine} lacks a call that the filter needs"
        raise AssertionError(msg)
    return number
