"""The lock file of packages that an extractor needs beside the harness's, and their installation.

A lock is the output of `uv pip compile --generate-hashes`: one version of each package, with the
hashes of its files. A submitted lock is next to the extractor, `<module>.lock.txt`; one of the
model registry is in the policy folder. As the language of requirements can also name an index, a
folder, or another file, the installer gets only the pins that were parsed. Wheels are unpacked into
their own folder and nothing is built, so that no code of a package runs outside the sandbox.
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
"""Ending of a lock file, which replaces the `.py` of the extractor's module."""
LOCK_BYTES_MAX = 2_000_000
"""Maximum size of a lock file, in bytes; one of 90 packages for every platform has 400 kB."""
PACKAGES_MAX = 300
"""Maximum number of packages of a lock; the largest of the registry has a third as many."""
HARNESS_PACKAGES = frozenset(
    {"geneb-ci", "joblib", "numpy", "scikit-learn", "scipy", "threadpoolctl"}
)
"""Packages that a submitted lock must not name, as the harness scores with its own."""
INSTALL_COMMAND = (
    *("pip", "install", "--quiet", "--no-config", "--no-deps", "--require-hashes"),
    *("--only-binary", ":all:"),
)
"""The installer's command: wheels only, as a source distribution would run its author's code."""
STDERR_CHARACTERS_MAX = 2000
"""Maximum number of characters of the installer's message that are shown."""


class LockRefused(Exception):  # noqa: N818 (named after what became of it)
    """A lock contains something else than packages with versions and hashes.

    `reason` is what was found and what was expected; `line` is the number of the line, from 1.
    """

    def __init__(self, reason: str, line: int = 1) -> None:
        """Store the reason and the number of the line."""
        super().__init__(reason)
        self.reason = reason
        self.line = line


class NotInstalled(Exception):  # noqa: N818 (named after what became of them)
    """The packages could not be installed; `fix` is what to do next."""

    def __init__(self, reason: str, fix: str) -> None:
        """Store the reason and what to do next."""
        super().__init__(reason)
        self.reason = reason
        self.fix = fix


class Lock(NamedTuple):
    """A valid lock file: packages with exact versions and hashes."""

    name: str
    """File name, for messages."""
    sha256: str
    """Digest of the file."""
    pins: tuple[str, ...]
    """One line per package and version: `name==version ; marker --hash=sha256:...`."""
    packages: frozenset[str]
    """Names in lower case, with hyphens."""


def lock_beside(module: Path) -> Path:
    """Return the path at which an extractor's module may have a lock."""
    return module.with_suffix(LOCK_SUFFIX)


def read_lock(raw: bytes, file: str, refused: Collection[str] = ()) -> Lock:
    """Return the lock in `raw`; `refused` are packages that it must not contain.

    Raise LockRefused for any line that is not `name==version` with hashes, and for a lock that is
    empty or too large.
    """
    if len(raw) > LOCK_BYTES_MAX:
        raise LockRefused(f"has {len(raw):,} bytes; the limit is {LOCK_BYTES_MAX:,}")
    pins, packages = [], set()
    for number, line in _statements(raw):
        package = _pinned_package(line, number)
        if package in refused:
            raise LockRefused(
                f"names {package}, which the harness installs: write the lock again with "
                f"`uv pip compile --no-emit-package {package}`",
                number,
            )
        pins.append(line)
        packages.add(package)
        if len(packages) > PACKAGES_MAX:
            raise LockRefused(f"names more than {PACKAGES_MAX} packages, the limit", number)
    if not packages:
        raise LockRefused("names no package, expected at least one")
    return Lock(file, hashlib.sha256(raw).hexdigest(), tuple(pins), frozenset(packages))


def _statements(raw: bytes) -> Iterator[tuple[int, str]]:
    """Yield the line number and text of each statement, joined and without comments."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line_number = raw.count(b"\n", 0, error.start) + 1
        raise LockRefused("is not text in UTF-8", line_number) from error
    line_parts: list[str] = []
    first_line = 1
    for line_number, line in enumerate(text.split("\n"), 1):
        text_of_line = "" if line.lstrip().startswith("#") else line.partition(" #")[0].strip()
        if not line_parts:
            first_line = line_number
        line_parts.append(text_of_line.removesuffix("\\"))
        if not text_of_line.endswith("\\"):
            statement = " ".join(" ".join(line_parts).split())
            line_parts = []
            if statement:
                yield first_line, statement
    if any(line_parts):
        raise LockRefused(
            "ends in the middle of a statement, as its last line ends with a backslash", first_line
        )


_PIN_PATTERN = re.compile(
    r"([A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?)"
    r"(?:==([A-Za-z0-9][A-Za-z0-9.+!_-]{0,98}))?"
    r"(?: ?;[A-Za-z0-9 _.,'\"()<>=!~+-]+)?"
)
"""A package with its exact version, and possibly a condition on the platform."""
_HASH_PATTERN = re.compile(r"--hash=sha256:[0-9a-f]{64}")
"""An option with the hash of a wheel."""


def _pinned_package(statement: str, line: int) -> str:
    """Return the package that a statement pins. Raise LockRefused for any other statement."""
    requirement, *options = re.split(r" (?=--)", statement)
    requirement_text = quoted(requirement)
    if requirement.startswith("-"):
        raise LockRefused(
            f"has the option {requirement_text}, expected packages and their hashes", line
        )
    match = _PIN_PATTERN.fullmatch(requirement)
    if match is None:
        raise LockRefused(f"has {requirement_text}, expected name==version", line)
    if match[2] is None:
        raise LockRefused(f"has {requirement_text} without a version, expected name==version", line)
    unknown_options = [option for option in options if _HASH_PATTERN.fullmatch(option) is None]
    if unknown_options:
        raise LockRefused(
            f"has {quoted(unknown_options[0])} for {requirement_text}, expected --hash=sha256:<64 "
            "hex digits>",
            line,
        )
    if not options:
        raise LockRefused(
            f"has no hash of {requirement_text}, expected one for each of its wheels", line
        )
    return re.sub(r"[-_.]+", "-", match[1]).lower()


def install(lock: Lock, cache: Path, say: Say = silent) -> Path:
    """Install the packages of a lock below `cache`, if necessary; return their folder.

    `say` receives a line of progress. Raise NotInstalled.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder_name = f"{lock.sha256}-{platform.python_implementation()}{version}-{platform.machine()}"
    folder = cache / folder_name
    if folder.is_dir():
        return folder
    say(f"installing the {plural(len(lock.packages), 'package')} of {lock.name}")
    uv_path = shutil.which("uv") or _packaged_uv()
    if uv_path is None:
        raise NotInstalled(
            f"{lock.name} has to be installed, but uv was not found",
            "run `pip install uv`, then repeat the command",
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as temporary_folder:
        # The folder is renamed when it is complete.
        lock_copy, packages = (
            Path(temporary_folder) / "lock.txt",
            Path(temporary_folder) / "packages",
        )
        lock_copy.write_text("".join(f"{pin}\n" for pin in lock.pins), encoding="ascii")
        completed = subprocess.run(  # noqa: S603 (our own words, no shell)
            [
                uv_path,
                *INSTALL_COMMAND,
                "--python",
                sys.executable,
                "--target",
                str(packages),
                "-r",
                str(lock_copy),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if completed.returncode:
            raise NotInstalled(
                f"{lock.name} cannot be installed: "
                f"{completed.stderr.strip()[-STDERR_CHARACTERS_MAX:]}",
                "check the connection to the package index, and that the lock has hashes for "
                "this platform",
            )
        try:
            packages.rename(folder)
        except OSError:
            # Another process has installed the same packages meanwhile.
            if not folder.is_dir():
                raise
    return folder


def _packaged_uv() -> str | None:
    """Return the path of the program uv in the package uv; None if that is not installed."""
    try:
        return str(importlib.import_module("uv").find_uv_bin())  # seldom needed
    except (ImportError, FileNotFoundError):
        return None
