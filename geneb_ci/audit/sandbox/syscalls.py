"""Numbers of the system calls that no extractor needs, on x86-64 and on AArch64.

From the kernel's own tables (arch/x86/entry/syscalls/syscall_64.tbl and
include/uapi/asm-generic/unistd.h); a test compares them with the headers of the machine.
"""

from typing import NamedTuple


class Numbers(NamedTuple):
    """One call's number on each machine; None where the machine lacks it."""

    x86_64: int | None
    aarch64: int | None


REFUSED: dict[str, Numbers] = {
    # Look into, or steer, another process: pid 1 of the sandbox could otherwise be stopped.
    "ptrace": Numbers(101, 117),
    "process_vm_readv": Numbers(310, 270),
    "process_vm_writev": Numbers(311, 271),
    "process_madvise": Numbers(440, 440),
    "process_mrelease": Numbers(448, 448),
    "kcmp": Numbers(312, 272),
    "pidfd_getfd": Numbers(438, 438),
    # Large parts of the kernel with a record of privilege escalations.
    "io_uring_setup": Numbers(425, 425),
    "io_uring_enter": Numbers(426, 426),
    "io_uring_register": Numbers(427, 427),
    "userfaultfd": Numbers(323, 282),
    "bpf": Numbers(321, 280),
    "perf_event_open": Numbers(298, 241),
    "add_key": Numbers(248, 217),
    "request_key": Numbers(249, 218),
    "keyctl": Numbers(250, 219),
    "vmsplice": Numbers(278, 75),
    "fanotify_init": Numbers(300, 262),
    "fanotify_mark": Numbers(301, 263),
    "name_to_handle_at": Numbers(303, 264),
    "open_by_handle_at": Numbers(304, 265),
    "lookup_dcookie": Numbers(212, 18),
    # Mounts and namespaces.
    "mount": Numbers(165, 40),
    "umount2": Numbers(166, 39),
    "pivot_root": Numbers(155, 41),
    "chroot": Numbers(161, 51),
    "move_mount": Numbers(429, 429),
    "open_tree": Numbers(428, 428),
    "open_tree_attr": Numbers(467, 467),
    "fsopen": Numbers(430, 430),
    "fsconfig": Numbers(431, 431),
    "fsmount": Numbers(432, 432),
    "fspick": Numbers(433, 433),
    "mount_setattr": Numbers(442, 442),
    "statmount": Numbers(457, 457),
    "listmount": Numbers(458, 458),
    "unshare": Numbers(272, 97),
    "setns": Numbers(308, 268),
    # The machine itself.
    "kexec_load": Numbers(246, 104),
    "kexec_file_load": Numbers(320, 294),
    "init_module": Numbers(175, 105),
    "finit_module": Numbers(313, 273),
    "delete_module": Numbers(176, 106),
    "swapon": Numbers(167, 224),
    "swapoff": Numbers(168, 225),
    "reboot": Numbers(169, 142),
    "sethostname": Numbers(170, 161),
    "setdomainname": Numbers(171, 162),
    "acct": Numbers(163, 89),
    "quotactl": Numbers(179, 60),
    "quotactl_fd": Numbers(443, 443),
    "settimeofday": Numbers(164, 170),
    "clock_settime": Numbers(227, 112),
    "adjtimex": Numbers(159, 171),
    "clock_adjtime": Numbers(305, 266),
    "syslog": Numbers(103, 116),
    "vhangup": Numbers(153, 58),
    "iopl": Numbers(172, None),
    "ioperm": Numbers(173, None),
    "modify_ldt": Numbers(154, None),
    "uselib": Numbers(134, None),
    "_sysctl": Numbers(156, None),
    "sysfs": Numbers(139, None),
    "ustat": Numbers(136, None),
    "nfsservctl": Numbers(180, 42),
    # Shared memory and queues of System V: memory that no process's resident size shows.
    "shmget": Numbers(29, 194),
    "shmat": Numbers(30, 196),
    "shmctl": Numbers(31, 195),
    "msgget": Numbers(68, 186),
    "semget": Numbers(64, 190),
}

CLONE = Numbers(56, 220)
CLONE3 = Numbers(435, 435)
SOCKET = Numbers(41, 198)
SOCKETPAIR = Numbers(53, 199)
IOCTL = Numbers(16, 29)
