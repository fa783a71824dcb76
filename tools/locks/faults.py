"""What a lock lacks, holding it against what the index publishes."""

from collections.abc import Iterable

from tools.locks.entries import Entry
from tools.locks.index import File, Releases
from tools.locks.targets import Target, best_wheel, entries_for, fits

# What hosted jobs install, where nothing may be built from source.
WHEELS_ONLY = ("check.txt", "action.txt")


def hash_faults(lock: str, entries: list[Entry], published: Releases, until: str) -> list[str]:
    """List every published file without its hash, and every hash that is of no published file.

    Files uploaded after `until`, the time the lock was made, are no fault of the lock's.
    """
    found: list[str] = []
    for entry in entries:
        files = published[entry.name, entry.version]
        if not files:
            found.append(
                f"{lock}: {entry} is not on the package index: take another version,"
                " with `make lock UPGRADE=1`"
            )
            continue
        due = [file for file in files if not is_later(file, until)]
        found += [
            f"{lock}: {entry} lacks the hash of {file.name}, sha256:{file.sha256}: run `make lock`"
            for file in sorted(due, key=lambda file: file.name)
            if file.sha256 not in entry.hashes
        ]
        found += [
            f"{lock}: {entry} has the hash sha256:{one}, which is of none of its {len(files)}"
            " published files: run `make lock`, and find out where the hash came from"
            for one in sorted(entry.hashes - {file.sha256 for file in files})
        ]
    return found


def target_faults(
    lock: str, entries: list[Entry], published: Releases, targets: Iterable[Target]
) -> list[str]:
    """List what the targets cannot install: no wheel, or one whose hash the lock lacks."""
    found: list[str] = []
    for target in targets:
        for entry in entries_for(target, entries):
            files = published[entry.name, entry.version]
            if fault := _fault(target, entry, files, wheels_only=lock.endswith(WHEELS_ONLY)):
                found.append(f"{lock}: {entry} {fault}")
    return found


def _fault(target: Target, entry: Entry, files: list[File], *, wheels_only: bool) -> str | None:
    wheel = best_wheel(target, files)
    if wheel is None and wheels_only:
        return f"has no wheel for {target}: pin a version that has, or drop the dependency"
    sdists = [file for file in files if not file.tags and fits(target, file)]
    if wheel is None and not sdists:
        return f"has no file for {target}: pin a version that has, or drop the dependency"
    picked = wheel or sdists[0]
    if picked.sha256 in entry.hashes:
        return None
    return (
        f"lacks the hash of {picked.name}, sha256:{picked.sha256}, which {target} installs:"
        " run `make lock`"
    )


def is_later(file: File, until: str) -> bool:
    """Say whether a file was uploaded after a time; both are ISO 8601 in UTC, to the second."""
    return file.uploaded[: len("2026-01-01T00:00:00")] > until[: len("2026-01-01T00:00:00")]
