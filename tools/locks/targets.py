"""The machines that a lock must install on, and the wheel that pip picks on each."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from packaging.specifiers import SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms

from tools.locks.entries import Entry
from tools.locks.index import File

PYTHONS = ((3, 11), (3, 12), (3, 13))
# The oldest glibc is that of the enterprise distributions still in use and of numpy's wheels; the
# newest is that of the hosted runner, where pip prefers wheels that older systems cannot load.
GLIBC = ((2, 28), (2, 39))
GLIBC_OLDEST_TAG = 5  # manylinux1; no wheel is tagged for an older one
MACOS = {"arm64": (14, 0), "x86_64": (13, 0)}  # hosted runners' oldest, and Intel's last
# Names from before wheels were tagged with glibc's version.
LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}


@dataclass(frozen=True)
class Target:
    """A Python on an operating system; `libc` is glibc's version, or macOS's own."""

    python: tuple[int, int]
    system: str
    machine: str
    libc: tuple[int, int]

    def __str__(self) -> str:
        system = "Linux with glibc" if self.system == "linux" else "macOS"
        return f"Python {_dotted(self.python)} on {system} {_dotted(self.libc)} {self.machine}"

    @property
    def environment(self) -> dict[str, str]:
        """Return what markers are evaluated with, instead of the machine at hand."""
        return {
            "implementation_name": "cpython",
            "implementation_version": f"{_dotted(self.python)}.0",
            "os_name": "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": {"linux": "Linux", "darwin": "Darwin"}[self.system],
            "platform_version": "",
            "python_full_version": f"{_dotted(self.python)}.0",
            "python_version": _dotted(self.python),
            "sys_platform": self.system,
            "extra": "",
        }

    def tags(self) -> Iterator[Tag]:
        """Yield the tags of usable wheels, best first."""
        platforms = list(self._platforms())
        interpreter = f"cp{self.python[0]}{self.python[1]}"
        yield from cpython_tags(self.python, platforms=platforms)
        yield from compatible_tags(self.python, interpreter, platforms)

    def _platforms(self) -> Iterator[str]:
        if self.system == "darwin":
            yield from mac_platforms(self.libc, self.machine)
            return
        yield f"linux_{self.machine}"
        major, newest = self.libc
        for minor in range(newest, GLIBC_OLDEST_TAG - 1, -1):
            yield f"manylinux_{major}_{minor}_{self.machine}"
            if minor in LEGACY and (minor == max(LEGACY) or self.machine == "x86_64"):
                yield f"{LEGACY[minor]}_{self.machine}"


LINUX = [Target(p, "linux", m, g) for p in PYTHONS for m in ("x86_64", "aarch64") for g in GLIBC]
ARM_MACS = [Target(python, "darwin", "arm64", MACOS["arm64"]) for python in PYTHONS]
# Some projects no longer publish wheels for these: what a lock needs there may have to be built.
INTEL_MACS = [Target(python, "darwin", "x86_64", MACOS["x86_64"]) for python in PYTHONS]


def entries_for(target: Target, entries: list[Entry]) -> list[Entry]:
    """Select the entries that pip installs on the target."""
    return [e for e in entries if e.marker is None or e.marker.evaluate(target.environment)]


def best_wheel(target: Target, files: list[File]) -> File | None:
    """Return the wheel that pip picks of one release: the best tag, then the highest build."""
    ranks = _ranks(target)
    usable = [
        (min(ranks[tag] for tag in file.tags & ranks.keys()), file)
        for file in files
        if file.tags & ranks.keys() and fits(target, file)
    ]
    return min(usable, key=lambda one: (one[0], *_descending(one[1])), default=(0, None))[1]


def fits(target: Target, file: File) -> bool:
    """Tell whether the file's own statement about Python includes the target's."""
    return SpecifierSet(file.requires_python).contains(target.environment["python_full_version"])


@cache
def _ranks(target: Target) -> dict[Tag, int]:
    return {tag: rank for rank, tag in reversed(list(enumerate(target.tags())))}


def _descending(file: File) -> tuple[int, ...]:
    number, letters = file.build or (-1, "")
    return (-number, *(-ord(letter) for letter in letters))


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
