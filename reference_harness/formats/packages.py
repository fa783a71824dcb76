"""Packages that an extractor needs beside the harness's own: the lock that names them, installed.

A lock is what `uv pip compile --generate-hashes` writes: each package at one version, with the
hashes of its files. A submitted one lies beside the extractor, `<module>.lock.txt`; one of the
model registry in the policy folder. The language of requirements can also name an index, a folder,
or another file: an installer is given what was understood of a lock, never its bytes. Wheels are
unpacked into a folder of their own and nothing is built, so that no code of a package runs outside
the sandbox.
"""

import hashlib
import importlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from .text import Say, plural, quoted, silent

LOCK_SUFFIX = ".lock.txt"
"""End of the name of a lock that lies beside an extractor, in the place of `.py`."""
LOCK_BYTES_MAX = 2_000_000
"""A lock of 90 packages for every platform has 400 kB."""
PACKAGES_MAX = 300
"""Packages of a lock: the largest of the registry has a third."""
OF_THE_HARNESS = frozenset(
    {"geneb-ci", "joblib", "numpy", "scikit-learn", "scipy", "threadpoolctl"}
)
"""Packages that a submitted lock may not name: scores are those of the harness's own."""
INSTALL = (
    *("pip", "install", "--quiet", "--no-config", "--no-deps", "--require-hashes"),
    *("--only-binary", ":all:"),
)
"""No building: a source distribution runs its author's code outside the sandbox."""
STDERR_SHOWN = 2000
"""Characters of the installer's message that are shown."""


class LockRefused(Exception):  # noqa: N818 (named after what became of it)
    """A lock says more, or less, than packages with versions and hashes.

    `reason` says what was found and what was expected; `line` is where, from 1.
    """

    def __init__(self, reason: str, line: int = 1) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class NotInstalled(Exception):  # noqa: N818 (named after what became of them)
    """The packages could not be installed; `fix` says what to do next."""

    def __init__(self, reason: str, fix: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fix = fix


class Lock(NamedTuple):
    """A lock that may be installed."""

    name: str
    """File name, for messages."""
    sha256: str
    """Digest of the file."""
    pins: tuple[str, ...]
    """A line for each package and version: `name==version ; marker --hash=sha256:...`."""
    packages: frozenset[str]
    """Names in lower case, with hyphens."""


def lock_beside(module: Path) -> Path:
    """Return where the lock of an extractor's module lies, if it has one."""
    return module.with_suffix(LOCK_SUFFIX)


def read_lock(raw: bytes, name: str, refused: Collection[str] = ()) -> Lock:
    """Return a lock; `refused` are packages that it may not name.

    Raises LockRefused for any line that is not `name==version` with hashes, and for a lock that is
    empty or too large.
    """
    if len(raw) > LOCK_BYTES_MAX:
        raise LockRefused(f"has {len(raw):,} bytes; the limit is {LOCK_BYTES_MAX:,}")
    pins, packages = [], set()
    for number, line in _statements(raw):
        package = _package(line, number)
        if package in refused:
            raise LockRefused(
                f"names {package}, whose version is that of the harness: leave it out, "
                f"`--no-emit-package {package}`",
                number,
            )
        pins.append(line)
        packages.add(package)
        if len(packages) > PACKAGES_MAX:
            raise LockRefused(f"names more than {PACKAGES_MAX} packages", number)
    if not packages:
        raise LockRefused("names no package")
    return Lock(name, hashlib.sha256(raw).hexdigest(), tuple(pins), frozenset(packages))


def _statements(raw: bytes) -> Iterator[tuple[int, str]]:
    """Yield each statement, with the line on which it begins: comments left out, lines joined."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        raise LockRefused("is not text in UTF-8", number) from error
    parts: list[str] = []
    first = 1
    for number, line in enumerate(text.split("\n"), 1):
        plain = "" if line.lstrip().startswith("#") else line.partition(" #")[0].strip()
        if not parts:
            first = number
        parts.append(plain.removesuffix("\\"))
        if not plain.endswith("\\"):
            statement = " ".join(" ".join(parts).split())
            parts = []
            if statement:
                yield first, statement
    if any(parts):
        raise LockRefused("ends in the middle of a statement", first)


_PIN = re.compile(
    r"([A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?)"
    r"(?:==([A-Za-z0-9][A-Za-z0-9.+!_-]{0,98}))?"
    r"(?: ?;[A-Za-z0-9 _.,'\"()<>=!~+-]+)?"
)
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def _package(statement: str, line: int) -> str:
    """Return the package that a statement pins. Raises LockRefused where it says anything else."""
    requirement, *options = re.split(r" (?=--)", statement)
    requirement_text = quoted(requirement)
    if requirement.startswith("-"):
        raise LockRefused(
            f"has the option {requirement_text}, expected packages and their hashes", line
        )
    match = _PIN.fullmatch(requirement)
    if match is None:
        raise LockRefused(f"has {requirement_text}, expected name==version", line)
    if match[2] is None:
        raise LockRefused(f"has {requirement_text} without a version, expected name==version", line)
    unknown_options = [option for option in options if _HASH.fullmatch(option) is None]
    if unknown_options:
        raise LockRefused(
            f"has {quoted(unknown_options[0])} for {requirement_text}, expected --hash=sha256:<64 "
            "hex digits>",
            line,
        )
    if not options:
        raise LockRefused(
            f"has no hash of {requirement_text}, expected one of each of its wheels", line
        )
    return re.sub(r"[-_.]+", "-", match[1]).lower()


def install(lock: Lock, cache: Path, say: Say = silent) -> Path:
    """Install the packages of a lock below `cache`, unless they are there; return their folder.

    `say` gets a line of progress. Raises NotInstalled.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    kind = f"{lock.sha256}-{platform.python_implementation()}{version}-{platform.machine()}"
    folder = cache / kind
    if folder.is_dir():
        return folder
    say(f"installing the {plural(len(lock.packages), 'package')} of {lock.name}")
    program = shutil.which("uv") or _packaged()
    if program is None:
        raise NotInstalled(
            f"{lock.name} has to be installed, and uv is not", "pip install uv, then repeat"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as folder_made:
        # It gets its name when it is complete.
        copy, target = Path(folder_made) / "lock.txt", Path(folder_made) / "packages"
        copy.write_text("".join(f"{pin}\n" for pin in lock.pins), encoding="ascii")
        completed = subprocess.run(  # noqa: S603 (our own words, no shell)
            [
                program,
                *INSTALL,
                "--python",
                sys.executable,
                "--target",
                str(target),
                "-r",
                str(copy),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if completed.returncode:
            raise NotInstalled(
                f"{lock.name} cannot be installed: {completed.stderr.strip()[-STDERR_SHOWN:]}",
                "check the connection to the package index, and that the lock has the hashes of "
                "this platform",
            )
        try:
            target.rename(folder)
        except OSError:
            # Another process was faster: the same packages, by their hashes.
            if not folder.is_dir():
                raise
    return folder


def _packaged() -> str | None:
    """Return the program of the package uv, where that is installed."""
    try:
        return str(importlib.import_module("uv").find_uv_bin())  # seldom needed
    except (ImportError, FileNotFoundError):
        return None
