"""The filter, run by an interpreter of its own, call by call, on both machines."""

import errno
import functools
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.sandbox import seccomp

MACHINES = sorted(seccomp.AUDIT_NUMBER_BY_MACHINE)
ALLOWED = seccomp.ALLOW
SPECIAL = ("CLONE", "CLONE3", "SOCKET", "SOCKETPAIR", "IOCTL")
STEPS_MAX = 4096  # BPF_MAXINSNS of linux/bpf_common.h


@functools.cache
def steps_of(machine: str) -> list[tuple[int, int, int, int]]:
    """Return the instructions of a machine's filter: code, jump if met, jump if not, value."""
    return list(struct.iter_unpack("<HBBI", seccomp.filter_program(machine)))


def verdict(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """Interpret classic BPF: the five instructions that the filter is made of."""
    steps = steps_of(machine)
    filled = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    arch = seccomp.AUDIT_NUMBER_BY_MACHINE[machine] if arch is None else arch
    data = struct.pack("<IIQ6Q", number, arch, 0, *filled)
    at, held = 0, 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        if code == seccomp.LOAD:
            (held,) = struct.unpack_from("<I", data, value)
        elif code == seccomp.RETURN:
            return int(value)
        else:
            met = {
                seccomp.EQUAL: held == value,
                seccomp.AT_LEAST: held >= value,
                seccomp.ANY_BIT: bool(held & value),
            }[code]
            at += yes if met else no


def refused(number: int) -> int:
    return seccomp.ERRNO | number


@pytest.mark.parametrize("machine", MACHINES)
def test_each_named_call_is_refused(machine):
    assert len(seccomp.filter_program(machine)) // 8 <= STEPS_MAX
    for name, numbers in seccomp.REFUSED_CALLS.items():
        number = getattr(numbers, machine)
        if number is not None:
            assert verdict(machine, number) == refused(errno.EPERM), name


@pytest.mark.parametrize("machine", MACHINES)
@given(number=st.integers(0, 500), first=st.integers(0, 2**64 - 1))
def test_all_other_calls_are_allowed(machine, number, first):
    named = {getattr(numbers, machine) for numbers in seccomp.REFUSED_CALLS.values()}
    named |= {getattr(getattr(seccomp, name), machine) for name in SPECIAL}
    if number not in named:
        assert verdict(machine, number, first) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
@given(number=st.integers(0, 2**32 - 1), arch=st.integers(0, 2**32 - 1))
def test_calls_of_another_architecture_are_killed(machine, number, arch):
    if arch != seccomp.AUDIT_NUMBER_BY_MACHINE[machine]:
        assert verdict(machine, number, arch=arch) == seccomp.KILL_PROCESS


@given(number=st.integers(0x40000000, 2**32 - 1))
def test_the_x32_numbers_are_refused(number):
    assert verdict("x86_64", number) == refused(errno.ENOSYS)


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_that_depend_on_their_arguments(machine):
    def call(name: str) -> int:
        return int(getattr(getattr(seccomp, name), machine))

    assert verdict(machine, call("CLONE3")) == refused(errno.ENOSYS)
    assert verdict(machine, call("CLONE"), 0x01200011) == ALLOWED  # as fork calls it
    assert verdict(machine, call("CLONE"), 0x003D0F00) == ALLOWED  # as a new thread is made
    for bit in (0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x00020000):
        assert verdict(machine, call("CLONE"), bit | 17) == refused(errno.EPERM)
    for name in ("SOCKET", "SOCKETPAIR"):
        domains = {d for d in range(64) if verdict(machine, call(name), d, 1) == ALLOWED}
        assert domains == {1, 2, 10}
        assert verdict(machine, call(name), 16) == refused(errno.EAFNOSUPPORT)
    assert verdict(machine, call("IOCTL"), 0, 0x5412) == refused(errno.EPERM)
    assert verdict(machine, call("IOCTL"), 0, 0x541C) == refused(errno.EPERM)
    assert verdict(machine, call("IOCTL"), 0, 0x5401) == ALLOWED


@pytest.mark.parametrize(
    ("machine", "file", "pattern"),
    [
        ("x86_64", "x86_64-linux-gnu/asm/unistd_64.h", r"#define __NR_(\w+) (\d+)"),
        ("aarch64", "asm-generic/unistd.h", r"#define __NR(?:3264)?_(\w+) (\d+)"),
    ],
)
def test_the_numbers_are_the_kernels(machine, file, pattern):
    header = Path("/usr/include") / file
    if not header.is_file():
        pytest.skip(f"{header} is missing: the kernel's headers are not installed")
    numbers_by_call = {m[1]: int(m[2]) for m in re.finditer(pattern, header.read_text())}
    special = {
        n.lower(): getattr(seccomp, n) for n in ("CLONE", "CLONE3", "SOCKET", "SOCKETPAIR", "IOCTL")
    }
    table = seccomp.REFUSED_CALLS | special
    ours = {
        name: getattr(numbers, machine)
        for name, numbers in table.items()
        if name in numbers_by_call
    }
    assert len(ours) > 50
    assert ours == {name: numbers_by_call[name] for name in ours}
