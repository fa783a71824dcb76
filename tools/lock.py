"""Resolves requirements/*.txt by uv: run `make lock`, or `make lock UPGRADE=1` for newer versions.

Versions stay unless they must change or an upgrade is asked for. What hosted jobs install has the
versions of dev.txt. No hash is taken over from the files that are there, and no folder, index or
setting of the machine is used: a resolver that finds a release in a local folder would lock the
files of that folder alone. Nothing is written unless uv finds a wheel of each package on each
Python and system. `--check`, which `make lint` runs, resolves each lock again, as the index was
when it was written; tests/house/test_locks.py looks for the wheels each night.

Where dev.txt itself cannot be installed, `pip install uv` in another environment is enough.
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
HOSTED = ("build", "github", "hub", "records", "sigstore")
LINUX = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")
# glibc of the enterprise distributions still in use; macOS of the oldest hosted runner.
SYSTEMS = (*LINUX, "aarch64-apple-darwin")
PYTHONS = ("3.11", "3.12", "3.13")
# Both installers take folders, other indexes and other settings from variables of these names.
SETTINGS = ("UV_", "PIP_")
# Where pip, requests, curl and uv look for the certificates of a network's own authority.
BUNDLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


class Lock(NamedTuple):
    """A file of pins: what it is resolved from, and where it must install from wheels."""

    name: str
    arguments: tuple[str, ...]
    systems: tuple[str, ...] = SYSTEMS
    pythons: tuple[str, ...] = PYTHONS
    options: tuple[str, ...] = ("--require-hashes",)

    def read(self) -> str:
        """Return the text of a lock, empty where the file does not exist."""
        path = ROOT / self.name
        return path.read_text(encoding="utf-8") if path.exists() else ""


PROJECT = "pyproject.toml"
NEEDS = ("requirements/torch-needs.in", "requirements/build.in")
DEV = ("--overrides", "requirements/overrides.txt", "--extra", "dev")
AS_DEV = ("--constraints", "requirements/dev.txt")
LOCKS = (
    Lock("requirements/dev.txt", (PROJECT, *DEV, *NEEDS)),
    # On Intel Macs neither cryptography nor torch has a wheel, and the check alone installs.
    Lock("requirements/check.txt", (PROJECT, *AS_DEV), (*SYSTEMS, "x86_64-apple-darwin")),
    Lock("requirements/action.txt", (PROJECT, *AS_DEV, *(f"--extra={extra}" for extra in HOSTED))),
    Lock("requirements/docs.txt", ("requirements/docs.in",)),
    # A package of each of these has no wheel.
    Lock("requirements/mutants.txt", ("requirements/mutants.in",), ()),
    Lock("requirements/validators.txt", ("requirements/validators.in",), ()),
)


def main() -> int:
    """Write the locks, or check them."""
    parser = argparse.ArgumentParser(prog="make lock", description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    parser.add_argument("--check", action="store_true", help="write nothing, and say what differs")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = copy(Path(name))
            if options.check:
                faults = [*changes(folder)]
            else:
                now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                for lock in LOCKS:
                    resolve(folder, lock, now, upgrade=options.upgrade)
                faults = missing_wheels(folder, LOCKS)
                if not faults:
                    write(folder)
    except subprocess.CalledProcessError as error:
        faults = [f"uv stopped:\n{error.stderr}"]
    print(*faults, sep="\n", file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


def copy(folder: Path) -> Path:
    """Copy all that a lock is resolved from, and return the folder."""
    shutil.copytree(ROOT / "requirements", folder / "requirements")
    shutil.copy(ROOT / PROJECT, folder)
    return folder


def resolve(folder: Path, lock: Lock, until: str, *, upgrade: bool) -> str:
    """Resolve one lock of a copy anew, as the index was at a time, and return its text."""
    path = folder / lock.name
    path.write_text("" if upgrade else without_hashes(lock.read()), encoding="utf-8")
    uv(
        *("pip", "compile", "--universal", "--python-version", PYTHONS[0], "--generate-hashes"),
        *("--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links"),
        *("--exclude-newer", until, *lock.arguments, "--output-file", lock.name),
        folder=folder,
    )
    text = f"{HEADER}{until}\n{path.read_text(encoding='utf-8')}"
    path.write_text(text, encoding="utf-8")
    return text


def without_hashes(text: str) -> str:
    """Return the pins alone: uv then keeps the versions, and asks for hashes anew."""
    return re.sub(r" --hash=sha256:[0-9a-f]{64}", "", text.replace("\\\n", " "))


def changes(folder: Path) -> Iterator[str]:
    """Name each lock that is not what it was resolved from, in a copy that may be changed."""
    for lock in LOCKS:
        until = lock.read().partition("\n")[0].removeprefix(HEADER)
        if not TIME.fullmatch(until) or lock.read() != resolve(folder, lock, until, upgrade=False):
            yield f"{lock.name}: uv resolves it to something else: run `make lock`"


def missing_wheels(folder: Path, locks: Iterable[Lock]) -> list[str]:
    """Return which locks lack a wheel, or a needed package, on a Python and a system."""
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
    """Have uv plan an installation on another machine; return what it lacks, or ""."""
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
    """Return the variables without any setting of an installer but the certificates."""
    variables = {key: os.environ[key] for key in os.environ if not key.startswith(SETTINGS)}
    if bundle := next((os.environ[name] for name in BUNDLES if os.environ.get(name)), None):
        variables["SSL_CERT_FILE"] = bundle
    return variables


def write(folder: Path) -> None:
    """Write each lock whole, unless only its time would change."""
    for lock in LOCKS:
        text, old = (folder / lock.name).read_text(encoding="utf-8"), lock.read()
        if old.startswith(HEADER) and old.partition("\n")[2] == text.partition("\n")[2]:
            print(f"{lock.name}: unchanged")
            continue
        part = ROOT / f"{lock.name}.part"
        part.write_text(text, encoding="utf-8")
        part.replace(ROOT / lock.name)
        print(f"{lock.name}: {text.count('==')} releases")


if __name__ == "__main__":
    sys.exit(main())
