"""The escape suite, a script that attempts from inside a sandbox to get out.

`python -I escape_suite.py FILE`: FILE is JSON of the things planted outside the sandbox. The script
prints one line of JSON: name of an attempt to [refused, detail]. A successful attempt does no harm.
"""

import contextlib
import ctypes
import errno
import json
import os
import re
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Outcome = tuple[bool, str]
"""Result of an attempt: whether the sandbox refused it, and a detail."""
CONNECT_SECONDS = 0.5
"""Time limit of an attempt to connect."""
METADATA_ADDRESS = ("169.254.169.254", 80)
"""Address at which clouds answer with credentials. It is link-local: nothing leaves the machine."""
UNRESOLVABLE_NAME = "canary.invalid"
"""A name that never resolves (RFC 6761)."""
RESOLVER_ADDRESS = ("192.0.2.53", 53)
"""An address for documentation (RFC 5737); connecting a datagram socket sends nothing."""
CANARY_PATTERN = re.compile(rb"geneb-canary-[0-9a-f]{32}")
"""A secret or label that was planted outside the sandbox."""
SEARCHED_BYTES_MAX = 1 << 20
"""Number of bytes of each file that are searched for the planted label."""
SEARCHED_FOLDERS = ("/etc", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv",
                    "/tmp", "/var")  # fmt: skip # noqa: S108
"""Folders in which the planted label is searched for."""
SKIPPED_FOLDERS = ("/mnt/python", "/mnt/packages", "/mnt/harness", "/mnt/weights")
"""Large folders of the sandbox in which the planted label cannot be."""
WRITE_TARGETS = (
    "/",
    "/usr",
    "/etc",
    "/mnt",
    "/mnt/input",
    "/mnt/harness/reference_harness",
    "/dev",
    "/var",
)
"""Folders in which the suite attempts to create a file."""
DAEMON_SOCKETS = ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock",
           "/run/systemd/private", "/run/dbus/system_bus_socket")  # fmt: skip
"""Sockets of daemons by which a process could control the host."""
FILLING_FILES = 4
"""Number of files that fill a folder completely."""
PR_GET_NO_NEW_PRIVS, PTRACE_TRACEME, PTRACE_SEIZE = 39, 0, 0x4206
CAPABILITY_VERSION = 0x20080522
"""Version 3 of the kernel's interface to capabilities."""
NEW_USER, NEW_NET = 0x10000000, 0x40000000
AF_NETLINK, AF_VSOCK, AF_PACKET, AF_ALG = 16, 40, 17, 38
CALL_NUMBERS = {
    "x86_64": {"io_uring_setup": 425, "bpf": 321, "userfaultfd": 323, "keyctl": 250,
               "perf_event_open": 298, "process_vm_readv": 310, "setns": 308, "clone3": 435},
    "aarch64": {"io_uring_setup": 425, "bpf": 280, "userfaultfd": 282, "keyctl": 219,
                "perf_event_open": 241, "process_vm_readv": 270, "setns": 268, "clone3": 435},
}  # fmt: skip
"""Numbers of the system calls that the suite attempts, by machine."""

_libc = ctypes.CDLL(None, use_errno=True)
"""The C library."""
_facts: dict[str, Any] = {}
"""Facts about what was planted outside: ports, paths, process ids; not the secrets."""


def _refusal_by_error(action: Callable[..., object], *arguments: object) -> Outcome:
    """Call an action, and return whether it raised OSError, as it should, and the error's name."""
    try:
        action(*arguments)
    except OSError as error:
        return True, errno.errorcode.get(error.errno or 0, str(error.errno))
    return False, "it succeeded"


def _refusal_by_result(return_code: int) -> Outcome:
    """Return whether a call of the C library failed, as it should, and the error's name."""
    if return_code >= 0:
        return False, f"it returned {return_code}"
    return True, errno.errorcode.get(ctypes.get_errno(), "")


def _connect(address: Any, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM) -> None:
    with socket.socket(family, kind) as connection:
        connection.settimeout(CONNECT_SECONDS)
        connection.connect(address)


def tcp_to_the_host() -> Outcome:
    """Connect to a server that the suite opened on the loopback interface of the host."""
    return _refusal_by_error(lambda: _connect(("127.0.0.1", _facts["port"])))


def dns() -> Outcome:
    """Connect a datagram socket to a resolver, and resolve a name."""
    refused, detail = _refusal_by_error(lambda: _connect(RESOLVER_ADDRESS, kind=socket.SOCK_DGRAM))
    return (
        (refused, detail)
        if not refused
        else _refusal_by_error(lambda: socket.getaddrinfo(UNRESOLVABLE_NAME, 80))
    )


def metadata_service() -> Outcome:
    """Connect to the address at which cloud machines can request credentials."""
    return _refusal_by_error(lambda: _connect(METADATA_ADDRESS))


def abstract_socket() -> Outcome:
    """Connect to an abstract socket of the host."""
    return _refusal_by_error(lambda: _connect("\0" + _facts["abstract"], socket.AF_UNIX))


def daemon_sockets() -> Outcome:
    """Connect to the sockets of container and system daemons."""
    outcomes = [_refusal_by_error(_connect, path, socket.AF_UNIX) for path in DAEMON_SOCKETS]
    return all(refused for refused, _ in outcomes), outcomes[0][1]


def network_interfaces() -> Outcome:
    """Look for a network interface other than loopback."""
    try:
        lines = Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines()
    except OSError as error:
        return True, f"not visible: {errno.errorcode.get(error.errno or 0, '')}"
    interfaces = sorted(line.split(":")[0].strip() for line in lines if ":" in line)
    others = [name for name in interfaces if name != "lo"]
    return not others, ", ".join(others) or "only lo"


def exotic_sockets() -> Outcome:
    """Open netlink, vsock, packet and kernel-crypto sockets."""
    opened_sockets = []
    for family in (AF_NETLINK, AF_VSOCK, AF_PACKET, AF_ALG):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_RAW):
            opened_sockets.append(str(family))
    return not opened_sockets, ", ".join(opened_sockets) or "all refused"


def home_folders() -> Outcome:
    """List the home folders."""
    folders = [name for parent in ("/home", "/root") for name in _listed_names(parent)]
    return not folders, ", ".join(folders[:5]) or "none"


def ssh_keys() -> Outcome:
    """List the SSH keys of whoever runs the audit."""
    folders = [str(p) for p in (Path(_facts["home"]) / ".ssh", Path("~/.ssh").expanduser())
             if _listed_names(str(p))]  # fmt: skip
    return not folders, ", ".join(folders) or "none"


def planted_secret() -> Outcome:
    """Look for the secret of the launcher's environment in this and other processes.

    Their environments and command lines are searched.
    """
    contents = [os.environb.get(key, b"") for key in os.environb]
    for pid in ("self", "1", str(os.getppid()), str(_facts["pid"])):
        for file_name in ("environ", "cmdline"):
            with contextlib.suppress(OSError):
                contents.append(Path(f"/proc/{pid}/{file_name}").read_bytes())
    is_readable = any(CANARY_PATTERN.search(text) for text in contents)
    return not is_readable, f"{len(contents)} places read"


def planted_label() -> Outcome:
    """Find the label that was planted in a file outside, by its path and in all readable files."""
    with contextlib.suppress(OSError):
        Path(_facts["label_file"]).read_bytes()
        return False, "read by its path"
    count = 0
    for file in _searched_files():
        with contextlib.suppress(OSError), file.open("rb") as stream:
            count += 1
            if CANARY_PATTERN.search(stream.read(SEARCHED_BYTES_MAX)):
                return False, f"found in {file}"
    return True, f"{count} files read"


def symlink_out() -> Outcome:
    """Read the planted file through a symbolic link made here."""
    link = Path("/tmp/out")  # noqa: S108
    link.symlink_to(_facts["label_file"])
    return _refusal_by_error(link.read_bytes)


def host_files() -> Outcome:
    """Read the host's password hashes and host keys."""
    outcomes = [
        _refusal_by_error(Path(name).read_bytes) for name in ("/etc/shadow", "/etc/ssh/sshd_config")
    ]
    return all(refused for refused, _ in outcomes), outcomes[0][1]


def host_processes() -> Outcome:
    """See or signal a process of the host."""
    visible_count = len([name for name in _listed_names("/proc") if name.isdigit()])
    refused, detail = _refusal_by_error(lambda: os.kill(_facts["pid"], 0))
    return refused and visible_count <= _facts["processes"], f"{visible_count} seen, {detail}"


def write_system() -> Outcome:
    """Create files in the system, Python, the harness and the input."""
    written_folders = [
        folder for folder in WRITE_TARGETS if not _refusal_by_error(_write_file, folder)[0]
    ]
    return not written_folders, ", ".join(written_folders) or "all refused"


def _write_file(folder: str) -> None:
    with Path(folder, "written-by-the-escape-suite").open("x", encoding="ascii"):
        pass


def write_kernel_settings() -> Outcome:
    """Open kernel settings for writing, among them the program started for core dumps."""
    opened = [str(f) for f in Path("/proc/sys/kernel").glob("*") if _is_writable(f)]
    return not opened, ", ".join(opened[:5]) or "all refused"


def _is_writable(file: Path) -> bool:
    with contextlib.suppress(OSError):
        os.close(os.open(file, os.O_WRONLY))
        return True
    return False


def fill_tmp() -> Outcome:
    """Fill /tmp and /dev/shm beyond their size, with files of permitted sizes."""
    for folder in ("/tmp", "/dev/shm"):  # noqa: S108
        files = [Path(folder, f"filled-{index}") for index in range(FILLING_FILES + 1)]
        refused, detail = _refusal_by_error(_fill_files, files)
        for file in files:
            file.unlink(missing_ok=True)
        if not refused:
            return False, f"{folder} accepted it"
    return True, detail


def _fill_files(files: list[Path]) -> None:
    for file in files:
        with file.open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, _facts["tmp_bytes"] // FILLING_FILES)


def new_namespaces() -> Outcome:
    """Make a user and a network namespace, with which most kernel exploits begin."""
    return _refusal_by_result(_libc.unshare(NEW_USER | NEW_NET))


def mount() -> Outcome:
    """Mount a file system of memory."""
    return _refusal_by_result(_libc.mount(b"tmpfs", b"/tmp", b"tmpfs", ctypes.c_ulong(0), None))


def trace() -> Outcome:
    """Trace pid 1 of the sandbox, which could stop it; let the parent trace this process."""
    # Seizing does not stop pid 1, as attaching would, so a suite that succeeds still ends.
    refused, _ = _refusal_by_result(_libc.ptrace(PTRACE_SEIZE, 1, None, None))
    if not refused:
        return False, "pid 1 was seized"
    return _refusal_by_result(_libc.ptrace(PTRACE_TRACEME, 0, None, None))


def rare_system_calls() -> Outcome:
    """Make calls that no extractor needs: io_uring, bpf, keys, performance events."""
    numbers = CALL_NUMBERS[os.uname().machine]
    buffer = ctypes.create_string_buffer(128)
    opened = []
    for call, number in numbers.items():
        ctypes.set_errno(0)
        return_code = _libc.syscall(number, 1, buffer, 0, 0, 0, 0)
        if return_code >= 0 or ctypes.get_errno() not in {errno.EPERM, errno.ENOSYS}:
            opened.append(call)
    return not opened, ", ".join(opened) or "all refused"


def new_privileges() -> Outcome:
    """Check whether a set-user-id program could get the rights of its owner."""
    flag = _libc.prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
    return flag == 1, f"NoNewPrivs {flag}"


def capabilities() -> Outcome:
    """Check whether this process has any capability."""
    header, capability_sets = (
        struct.pack("<Ii", CAPABILITY_VERSION, 0),
        ctypes.create_string_buffer(24),
    )
    if _libc.capget(header, capability_sets) != 0:
        return False, "capget failed"
    words = struct.unpack("<6I", capability_sets.raw)
    return not any(words), f"CapEff {words[3]:08x}{words[0]:08x}"


def inherited_descriptors() -> Outcome:
    """Look for an open descriptor other than 0, 1 and 2."""
    numbers = [n for n in range(3, 4096) if not _refusal_by_error(os.fstat, n)[0]]
    return not numbers, ", ".join(map(str, numbers)) or "0, 1 and 2 only"


def terminal() -> Outcome:
    """Open the terminal of whoever started the audit."""
    return _refusal_by_error(lambda: os.close(os.open("/dev/tty", os.O_RDWR)))


def devices() -> Outcome:
    """Open disks and memory of the host."""
    devices = ("mem", "kmsg", "kvm", "fuse", "sda", "vda", "nvme0n1", "net/tun")
    opened = [name for name in devices if not _refusal_by_error(_open_device, name)[0]]
    return not opened, ", ".join(opened) or "none"


def _open_device(device: str) -> None:
    os.close(os.open(f"/dev/{device}", os.O_RDONLY | os.O_NONBLOCK))


ATTEMPTS: dict[str, Callable[[], Outcome]] = {
    # First, before anything here opens a file of its own.
    "inherited-descriptors": inherited_descriptors,
    "tcp-to-the-host": tcp_to_the_host,
    "dns": dns,
    "metadata-service": metadata_service,
    "abstract-socket": abstract_socket,
    "daemon-sockets": daemon_sockets,
    "network-interfaces": network_interfaces,
    "exotic-sockets": exotic_sockets,
    "home-folders": home_folders,
    "ssh-keys": ssh_keys,
    "planted-secret": planted_secret,
    "planted-label": planted_label,
    "symlink-out": symlink_out,
    "host-files": host_files,
    "host-processes": host_processes,
    "write-system": write_system,
    "write-kernel-settings": write_kernel_settings,
    "fill-tmp": fill_tmp,
    "new-namespaces": new_namespaces,
    "mount": mount,
    "trace": trace,
    "rare-system-calls": rare_system_calls,
    "new-privileges": new_privileges,
    "capabilities": capabilities,
    "terminal": terminal,
    "devices": devices,
}


def _listed_names(folder: str) -> list[str]:
    """Return the names in a folder; [] if it cannot be read."""
    with contextlib.suppress(OSError):
        return sorted(os.listdir(folder))  # noqa: PTH208
    return []


def _searched_files() -> Iterator[Path]:
    """Yield every file outside the system, Python, the harness and the weights."""
    for start in SEARCHED_FOLDERS:
        for folder, inner, files in os.walk(start):
            inner[:] = [name for name in inner if str(Path(folder, name)) not in SKIPPED_FOLDERS]
            yield from (Path(folder, name) for name in files)


def main() -> None:
    """Make every attempt; one that raises an unexpected error counts as not refused."""
    _facts.update(json.loads(Path(sys.argv[1]).read_bytes()))
    outcomes: dict[str, Outcome] = {}
    for attempt_name, attempt in ATTEMPTS.items():
        try:
            outcomes[attempt_name] = attempt()
        except Exception as error:  # noqa: BLE001 (an attempt that fails proves nothing)
            outcomes[attempt_name] = False, f"could not be made: {type(error).__name__}: {error}"
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    main()
