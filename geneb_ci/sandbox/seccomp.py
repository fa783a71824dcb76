"""The filter of system calls (seccomp), as a classic BPF program."""

import errno
import platform
import struct
from collections.abc import Iterator
from typing import NamedTuple

from geneb_ci.common.errors import SandboxUnavailable


class CallNumbers(NamedTuple):
    """Number of a system call on each architecture; None if the architecture has no such call."""

    x86_64: int | None
    aarch64: int | None


REFUSED_CALLS: dict[str, CallNumbers] = {
    # Look into, or steer, another process: pid 1 of the sandbox could otherwise be stopped.
    "ptrace": CallNumbers(101, 117),
    "process_vm_readv": CallNumbers(310, 270),
    "process_vm_writev": CallNumbers(311, 271),
    "process_madvise": CallNumbers(440, 440),
    "process_mrelease": CallNumbers(448, 448),
    "kcmp": CallNumbers(312, 272),
    "pidfd_getfd": CallNumbers(438, 438),
    # Large parts of the kernel with a record of privilege escalations.
    "io_uring_setup": CallNumbers(425, 425),
    "io_uring_enter": CallNumbers(426, 426),
    "io_uring_register": CallNumbers(427, 427),
    "userfaultfd": CallNumbers(323, 282),
    "bpf": CallNumbers(321, 280),
    "perf_event_open": CallNumbers(298, 241),
    "add_key": CallNumbers(248, 217),
    "request_key": CallNumbers(249, 218),
    "keyctl": CallNumbers(250, 219),
    "vmsplice": CallNumbers(278, 75),
    "fanotify_init": CallNumbers(300, 262),
    "fanotify_mark": CallNumbers(301, 263),
    "name_to_handle_at": CallNumbers(303, 264),
    "open_by_handle_at": CallNumbers(304, 265),
    "lookup_dcookie": CallNumbers(212, 18),
    # Mounts and namespaces.
    "mount": CallNumbers(165, 40),
    "umount2": CallNumbers(166, 39),
    "pivot_root": CallNumbers(155, 41),
    "chroot": CallNumbers(161, 51),
    "move_mount": CallNumbers(429, 429),
    "open_tree": CallNumbers(428, 428),
    "open_tree_attr": CallNumbers(467, 467),
    "fsopen": CallNumbers(430, 430),
    "fsconfig": CallNumbers(431, 431),
    "fsmount": CallNumbers(432, 432),
    "fspick": CallNumbers(433, 433),
    "mount_setattr": CallNumbers(442, 442),
    "statmount": CallNumbers(457, 457),
    "listmount": CallNumbers(458, 458),
    "unshare": CallNumbers(272, 97),
    "setns": CallNumbers(308, 268),
    # The machine itself.
    "kexec_load": CallNumbers(246, 104),
    "kexec_file_load": CallNumbers(320, 294),
    "init_module": CallNumbers(175, 105),
    "finit_module": CallNumbers(313, 273),
    "delete_module": CallNumbers(176, 106),
    "swapon": CallNumbers(167, 224),
    "swapoff": CallNumbers(168, 225),
    "reboot": CallNumbers(169, 142),
    "sethostname": CallNumbers(170, 161),
    "setdomainname": CallNumbers(171, 162),
    "acct": CallNumbers(163, 89),
    "quotactl": CallNumbers(179, 60),
    "quotactl_fd": CallNumbers(443, 443),
    "settimeofday": CallNumbers(164, 170),
    "clock_settime": CallNumbers(227, 112),
    "adjtimex": CallNumbers(159, 171),
    "clock_adjtime": CallNumbers(305, 266),
    "syslog": CallNumbers(103, 116),
    "vhangup": CallNumbers(153, 58),
    "iopl": CallNumbers(172, None),
    "ioperm": CallNumbers(173, None),
    "modify_ldt": CallNumbers(154, None),
    "uselib": CallNumbers(134, None),
    "_sysctl": CallNumbers(156, None),
    "sysfs": CallNumbers(139, None),
    "ustat": CallNumbers(136, None),
    "nfsservctl": CallNumbers(180, 42),
    # Shared memory and queues of System V: memory that no process's resident size shows.
    "shmget": CallNumbers(29, 194),
    "shmat": CallNumbers(30, 196),
    "shmctl": CallNumbers(31, 195),
    "msgget": CallNumbers(68, 186),
    "semget": CallNumbers(64, 190),
}

# Calls that the filter refuses by their arguments.
CLONE = CallNumbers(56, 220)
CLONE3 = CallNumbers(435, 435)
SOCKET = CallNumbers(41, 198)
SOCKETPAIR = CallNumbers(53, 199)
IOCTL = CallNumbers(16, 29)


# linux/filter.h, linux/bpf_common.h
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# linux/seccomp.h
ALLOW, KILL_PROCESS, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
# struct seccomp_data: number, architecture, then six arguments of 64 bits after the pointer.
NUMBER, ARCH, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24
AUDIT_NUMBER_BY_MACHINE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's number of each architecture, from linux/audit.h."""

X32_BIT = 0x40000000
"""Numbers from this one on are those of the x32 ABI, which has the same calls (asm/unistd.h)."""
NEW_NAMESPACE = 0x7E020000
"""CLONE_NEW{CGROUP,UTS,IPC,USER,PID,NET,NS} of linux/sched.h, all in one mask."""
SOCKET_FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6, which reach only the sandbox, since the network namespace is empty.
Netlink, packet, vsock, Bluetooth and all others are refused."""
TERMINAL_REQUESTS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which put keystrokes into the terminal of whoever started the audit."""

_INSTRUCTION = struct.Struct("<HBBI")


class Instruction(NamedTuple):
    """A BPF instruction."""

    code: int
    """The operation, such as `EQUAL`."""
    yes: int
    """Number of instructions to skip if the test succeeds."""
    no: int
    """Number of instructions to skip if the test fails."""
    value: int
    """The operand."""


def filter_program(machine: str | None = None) -> bytes:
    """Return the bytes of the filter for a machine, such as "x86_64"; "" or None: this machine.

    Raises SandboxUnavailable for a machine whose numbers of system calls are not listed here.
    """
    machine = machine or platform.machine()
    if machine not in AUDIT_NUMBER_BY_MACHINE:
        raise SandboxUnavailable(
            f"there is no filter of system calls for {machine}, expected "
            f"{' or '.join(AUDIT_NUMBER_BY_MACHINE)}",
            f"run the audit on a machine of type {' or '.join(AUDIT_NUMBER_BY_MACHINE)}",
        )
    return b"".join(_INSTRUCTION.pack(*step) for step in filter_instructions(machine))


def filter_instructions(machine: str) -> Iterator[Instruction]:
    """Yield the instructions of the filter for a machine.

    A call for another architecture kills the process; a refused call returns an error.
    """
    yield Instruction(LOAD, 0, 0, ARCH)
    yield Instruction(EQUAL, 1, 0, AUDIT_NUMBER_BY_MACHINE[machine])
    yield _return_instruction(KILL_PROCESS)
    yield Instruction(LOAD, 0, 0, NUMBER)
    if machine == "x86_64":
        yield Instruction(AT_LEAST, 0, 1, X32_BIT)
        yield _refuse_call(errno.ENOSYS)
    for numbers in REFUSED_CALLS.values():
        number = _call_number(numbers, machine)
        if number is not None:
            yield Instruction(EQUAL, 0, 1, number)
            yield _refuse_call(errno.EPERM)
    # clone3 hides its flags behind a pointer; without it the C library falls back on clone.
    yield Instruction(EQUAL, 0, 1, _required_call_number(CLONE3, machine))
    yield _refuse_call(errno.ENOSYS)
    yield Instruction(EQUAL, 0, 4, _required_call_number(CLONE, machine))
    yield Instruction(LOAD, 0, 0, FIRST_ARGUMENT)
    yield Instruction(ANY_BIT, 0, 1, NEW_NAMESPACE)
    yield _refuse_call(errno.EPERM)
    yield _return_instruction(ALLOW)
    for call in (SOCKET, SOCKETPAIR):
        yield Instruction(EQUAL, 0, len(SOCKET_FAMILIES) + 3, _required_call_number(call, machine))
        yield Instruction(LOAD, 0, 0, FIRST_ARGUMENT)
        for index, socket_family in enumerate(SOCKET_FAMILIES):
            yield Instruction(EQUAL, len(SOCKET_FAMILIES) - index, 0, socket_family)
        yield _refuse_call(errno.EAFNOSUPPORT)
        yield _return_instruction(ALLOW)
    yield Instruction(EQUAL, 0, len(TERMINAL_REQUESTS) + 3, _required_call_number(IOCTL, machine))
    yield Instruction(LOAD, 0, 0, SECOND_ARGUMENT)
    for index, request in enumerate(TERMINAL_REQUESTS):
        yield Instruction(EQUAL, len(TERMINAL_REQUESTS) - index, 0, request)
    yield _return_instruction(ALLOW)
    yield _refuse_call(errno.EPERM)
    yield _return_instruction(ALLOW)


def _return_instruction(action: int) -> Instruction:
    """Return the instruction that ends the filter with an action, such as `ALLOW`."""
    return Instruction(RETURN, 0, 0, action)


def _refuse_call(error_number: int) -> Instruction:
    """Return the instruction that ends the filter: the call fails with this error number."""
    return _return_instruction(ERRNO | error_number)


def _call_number(numbers: CallNumbers, machine: str) -> int | None:
    """Return the number of a system call on a machine; None if there is no such call."""
    return numbers.x86_64 if machine == "x86_64" else numbers.aarch64


def _required_call_number(numbers: CallNumbers, machine: str) -> int:
    """Return the number of a system call that every machine has."""
    number = _call_number(numbers, machine)
    if number is None:
        msg = f"{machine} has no number for a call that the filter needs"
        raise AssertionError(msg)
    return number
