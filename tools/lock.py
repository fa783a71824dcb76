"""Writes requirements/{dev,check,action,docs}.txt: run `make lock`, or `make lock UPGRADE=1`.

dev.txt is resolved anew from pyproject.toml; its versions stay unless it must be otherwise, or an
upgrade is asked for. What hosted jobs install is constrained to the same versions; docs.txt is
installed beside nothing, and resolved from docs.in alone. No hash is taken over from the files that
are there, and no folder, index or setting of the machine is used: a resolver that finds a release
in a local folder locks the files of that folder alone. Nothing is written unless every lock holds
the hash of every file that the package index lists.

Where dev.txt itself cannot be installed, this needs no more than
`pip install packaging requests uv` in an environment of its own.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from uv import find_uv_bin

from tools.locks.entries import HEADER, Entry, LockError, read_lock, without_hashes
from tools.locks.faults import hash_faults, target_faults
from tools.locks.index import IndexUnreachableError, bundle, releases
from tools.locks.targets import ARM_MACS, LINUX

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
OPTIONS = (
    *("--quiet", "--no-config", "--universal", "--python-version", "3.11", "--generate-hashes"),
    *("--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links"),
)
HOSTED_EXTRAS = ("build", "github", "hub", "records", "sigstore")
# Both programs take local folders, more indexes and other settings from variables of these names.
SETTINGS = ("UV_", "PIP_")


def main() -> int:
    """Compile, verify, and only then write."""
    parser = argparse.ArgumentParser(prog="make lock", description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    upgrade = parser.parse_args().upgrade
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        compiled = compile_locks(upgrade=upgrade)
        faults = verify(compiled, now)
    except subprocess.CalledProcessError:
        print("no lock was written: the resolver stopped with the message above", file=sys.stderr)
        return 1
    except (IndexUnreachableError, LockError) as error:
        print(f"no lock was written: {error}", file=sys.stderr)
        return 1
    if faults:
        print(*faults, "no lock was written", sep="\n", file=sys.stderr)
        return 1
    for path, text in compiled.items():
        write(path, text, now)
    return 0


def compile_locks(*, upgrade: bool) -> dict[Path, str]:
    """Resolve the four locks; the files that are there only tell which versions to keep."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dev, docs = folder / "dev.txt", folder / "docs.txt"
        for path in (dev, docs):
            if not upgrade and (FOLDER / path.name).exists():
                old = (FOLDER / path.name).read_text(encoding="utf-8")
                path.write_text(without_hashes(old), encoding="utf-8")
        needs = (FOLDER / "torch-needs.in", FOLDER / "build.in")
        resolve(dev, "--overrides", FOLDER / "overrides.txt", "--extra", "dev", *needs)
        resolve(folder / "check.txt", "--constraints", dev)
        extras = [word for extra in HOSTED_EXTRAS for word in ("--extra", extra)]
        resolve(folder / "action.txt", "--constraints", dev, *extras)
        resolve(docs, project=FOLDER / "docs.in")
        return {
            FOLDER / p.name: p.read_text(encoding="utf-8") for p in sorted(folder.glob("*.txt"))
        }


def resolve(output: Path, *arguments: str | Path, project: Path = ROOT / "pyproject.toml") -> None:
    """Run the resolver on the project; an output that is there tells which versions to keep."""
    cache = output.parent / "cache"  # not the machine's own, whose lists may be older
    subprocess.run(
        [
            *(find_uv_bin(), "pip", "compile", *OPTIONS, "--python", sys.executable),
            *("--cache-dir", cache, project, *arguments, "--output-file", output),
        ],
        cwd=output.parent,
        env=environment(),
        check=True,
        stdout=subprocess.DEVNULL,
    )


def environment() -> dict[str, str]:
    """Return the variables without any setting of an installer but the certificates."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    if certificates := bundle():
        kept["SSL_CERT_FILE"] = certificates
    return kept


def verify(compiled: dict[Path, str], until: str) -> list[str]:
    """Hold each lock against the package index."""
    locks: dict[str, list[Entry]] = {
        path.relative_to(ROOT).as_posix(): read_lock(text) for path, text in compiled.items()
    }
    published = releases((e.name, e.version) for entries in locks.values() for e in entries)
    return [
        fault
        for name, entries in locks.items()
        for fault in (
            *hash_faults(name, entries, published, until),
            *target_faults(name, entries, published, [*LINUX, *ARM_MACS]),
        )
    ]


def write(path: Path, text: str, now: str) -> None:
    """Write a lock whole, unless only its time would change."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if old.startswith(HEADER) and old.partition("\n")[2] == text:
        print(f"{path.relative_to(ROOT)}: unchanged")
        return
    part = path.with_suffix(".part")
    part.write_text(f"{HEADER}{now}\n{text}", encoding="utf-8")
    part.replace(path)
    print(f"{path.relative_to(ROOT)}: {len(read_lock(text))} releases")


if __name__ == "__main__":
    sys.exit(main())
