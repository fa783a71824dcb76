"""`make lock` resolves requirements/*.txt with uv; `make lock UPGRADE=1` takes newer versions.

Versions stay the same unless they must change or an upgrade is asked for. Packages that hosted jobs
install have the versions of dev.txt. Hashes are never copied from the existing files, and local
folders, other indexes and settings of the machine are ignored: a resolver that finds a release in a
local folder would lock only the files in that folder. Nothing is written unless uv finds a wheel of
each package for each Python and system.

With `--check`, which `make lint` runs, each lock is resolved again with the index as it was when
the lock was written; tests/house/test_locks.py looks for the wheels each night. If dev.txt itself
cannot be installed, `pip install uv` in another environment is enough.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from uv import find_uv_bin

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Written by `make lock`. Hashes of all files that each release had by "
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# Extras that hosted jobs install.
HOSTED = ("build", "github", "hub", "records", "sigstore")
LINUX = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")
# The glibc of enterprise distributions in use, and the macOS of the oldest hosted runner.
SYSTEMS = (*LINUX, "aarch64-apple-darwin")
PYTHONS = ("3.11", "3.12", "3.13")
# Beginnings of names of variables that set folders, other indexes and options of the installers.
SETTINGS = ("UV_", "PIP_")
# Variables in which pip, requests, curl and uv look for certificates of a private authority.
BUNDLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


class Lock(NamedTuple):
    """A file of pinned packages, and the systems and Pythons on which it must be installable."""

    name: str
    arguments: tuple[str, ...]
    """Arguments of uv: the files and extras from which the lock is resolved."""
    systems: tuple[str, ...] = SYSTEMS
    pythons: tuple[str, ...] = PYTHONS
    options: tuple[str, ...] = ("--require-hashes",)

    def read(self) -> str:
        """Return the text of the lock; "" if the file does not exist."""
        path = ROOT / self.name
        return path.read_text(encoding="utf-8") if path.exists() else ""


PROJECT = "pyproject.toml"
NEEDS = ("requirements/torch-needs.in", "requirements/build.in")
DEV = ("--overrides", "requirements/overrides.txt", "--extra", "dev")
AS_DEV = ("--constraints", "requirements/dev.txt")
LOCKS = (
    Lock("requirements/dev.txt", (PROJECT, *DEV, *NEEDS)),
    # Intel Macs have wheels neither of cryptography nor of torch, so only the check is installable.
    Lock("requirements/check.txt", (PROJECT, *AS_DEV), (*SYSTEMS, "x86_64-apple-darwin")),
    Lock("requirements/action.txt", (PROJECT, *AS_DEV, *(f"--extra={extra}" for extra in HOSTED))),
    Lock("requirements/docs.txt", ("requirements/docs.in",)),
    # In each of these, one package has no wheel.
    Lock("requirements/mutants.txt", ("requirements/mutants.in",), ()),
    Lock("requirements/validators.txt", ("requirements/validators.in",), ()),
)


def main() -> int:
    """Write the locks, or check them."""
    parser = argparse.ArgumentParser(prog="make lock", description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    parser.add_argument(
        "--check", action="store_true", help="write nothing, and name the locks that differ"
    )
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder_name:
            folder = copy(Path(folder_name))
            if options.check:
                faults = [*changes(folder)]
            else:
                resolved_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                for lock in LOCKS:
                    resolve(folder, lock, resolved_at, upgrade=options.upgrade)
                faults = missing_wheels(folder, LOCKS)
                if not faults:
                    write(folder)
    except subprocess.CalledProcessError as error:
        faults = [f"uv failed:\n{error.stderr}"]
    print(*faults, sep="\n", file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


def copy(folder: Path) -> Path:
    """Copy everything that locks are resolved from into a folder, and return the folder."""
    shutil.copytree(ROOT / "requirements", folder / "requirements")
    shutil.copy(ROOT / PROJECT, folder)
    return folder


def resolve(folder: Path, lock: Lock, until: str, *, upgrade: bool) -> str:
    """Resolve one lock in the copy `folder`, with the index as of `until`, and return its text."""
    path = folder / lock.name
    path.write_text("" if upgrade else without_hashes(lock.read()), encoding="utf-8")
    uv(
        *("pip", "compile", "--universal", "--python-version", PYTHONS[0], "--generate-hashes"),
        *("--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links"),
        *("--exclude-newer", until, *lock.arguments, "--output-file", lock.name),
        folder=folder,
    )
    locked = f"{HEADER}{until}\n{path.read_text(encoding='utf-8')}"
    path.write_text(locked, encoding="utf-8")
    return locked


def without_hashes(locked: str) -> str:
    """Return the text of a lock without hashes: uv keeps the versions and looks the hashes up."""
    return re.sub(r" --hash=sha256:[0-9a-f]{64}", "", locked.replace("\\\n", " "))


def changes(folder: Path) -> Iterator[str]:
    """Yield a message for each lock that differs when resolved again, which is done in `folder`."""
    for lock in LOCKS:
        until = lock.read().partition("\n")[0].removeprefix(HEADER)
        if not TIME.fullmatch(until) or lock.read() != resolve(folder, lock, until, upgrade=False):
            yield f"{lock.name} is out of date: run `make lock`"


def missing_wheels(folder: Path, locks: Iterable[Lock]) -> list[str]:
    """Return a message for each lock, Python and system for which a wheel is missing."""
    machines = [
        (lock, python, system)
        for lock in locks
        for python in lock.pythons
        for system in lock.systems
    ]
    with ThreadPoolExecutor() as pool:
        return [
            fault
            for fault in pool.map(lambda machine: install(folder, *machine), machines)
            if fault
        ]


def install(folder: Path, lock: Lock, python: str, system: str) -> str:
    """Let uv plan an installation for another machine; return a message if it fails, else ""."""
    try:
        uv(
            *("pip", "install", "--dry-run", *lock.options, "--only-binary", ":all:"),
            *("--python-platform", system, "--python-version", python, "--target", "installed"),
            *("--requirement", lock.name),
            folder=folder,
        )
    except subprocess.CalledProcessError as error:
        return f"{lock.name}: Python {python} on {system} cannot install it:\n{error.stderr}"
    return ""


def uv(*arguments: str, folder: Path) -> None:
    """Run uv in a folder. Raises CalledProcessError."""
    command = [find_uv_bin(), *arguments, "--no-config", "--quiet", "--python", sys.executable]
    subprocess.run(
        command, cwd=folder, env=environment(), check=True, capture_output=True, text=True
    )


def environment() -> dict[str, str]:
    """Return the environment variables without settings of installers, except certificates."""
    variables = {key: os.environ[key] for key in os.environ if not key.startswith(SETTINGS)}
    if bundle := next((os.environ[name] for name in BUNDLES if os.environ.get(name)), None):
        variables["SSL_CERT_FILE"] = bundle
    return variables


def write(folder: Path) -> None:
    """Write each lock atomically, unless nothing but its time would change."""
    for lock in LOCKS:
        locked, old = (folder / lock.name).read_text(encoding="utf-8"), lock.read()
        if old.startswith(HEADER) and old.partition("\n")[2] == locked.partition("\n")[2]:
            print(f"{lock.name}: unchanged")
            continue
        temporary = ROOT / f"{lock.name}.part"
        temporary.write_text(locked, encoding="utf-8")
        temporary.replace(ROOT / lock.name)
        print(f"{lock.name}: {locked.count('==')} releases")


if __name__ == "__main__":
    sys.exit(main())
