"""Install the packages of an extractor's lock, a file of versions, and put them first on the path.

As a package that this process has imported cannot be replaced, a command whose extractor has a lock
starts itself again with another path, which its processes inherit. In an audit, the sandbox sets
the path.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from reference_harness.embedding.cache import user_cache
from reference_harness.errors import OptionError
from reference_harness.extractors import BUILTINS
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.package_lock import (
    HARNESS_PACKAGES,
    LOCK_BYTES_MAX,
    Lock,
    LockRefused,
    NotInstalled,
    install,
    lock_beside,
    read_lock,
)
from reference_harness.text import echo

from .loader import locate

_ROOT = Path(__file__).parents[2]
"""Folder that contains both programs."""


def lock_of(spec: str, folder: str | None = None) -> Lock | None:
    """Return the lock of package versions next to an extractor's module; None if it has none.

    Raise OptionError for an invalid lock, ExtractorError if there is no such module.
    """
    if spec.removeprefix("builtin:") in BUILTINS:
        return None
    path = lock_beside(locate(spec, folder))
    try:
        return read_lock(read_regular(path, LOCK_BYTES_MAX), path.name, HARNESS_PACKAGES)
    except NotReadable as error:
        if error.missing:
            return None
        raise OptionError(f"{path}: {error.reason}") from error
    except LockRefused as error:
        raise OptionError(f"{path}:{error.line}: the lock {error.reason}") from error


def start_with_packages(locks: Iterable[Lock | None], engine: str = "local") -> None:
    """Return if there is no lock, or its packages are on the path; else restart the command.

    Raise OptionError if extractors of one command have different locks, for a lock on a cluster,
    and if packages cannot be installed.
    """
    lock_by_sha256 = {lock.sha256 if lock else "": lock for lock in locks}
    if len(lock_by_sha256) > 1:
        msg = (
            "the extractors of one command have different locks of packages: run each in a command "
            "of its own"
        )
        raise OptionError(msg)
    lock = next(iter(lock_by_sha256.values()), None)
    if lock is None:
        return
    if engine != "local":
        msg = f"{lock.name}: the packages of a lock are installed only on this machine: leave "
        msg += f"--engine {engine} out, or install them on the cluster and remove the lock"
        raise OptionError(msg)
    try:
        folder = install(lock, user_cache("geneb-ci") / "environments", _print_progress)
    except NotInstalled as error:
        raise OptionError(f"{error.reason}: {error.fix}") from error
    if str(folder) in sys.path:
        return
    paths = [str(folder), str(_ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-P", "-m", "reference_harness", *sys.argv[1:]]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, environment)  # noqa: S606 (our own command again)


def _print_progress(line: str) -> None:
    """Print a line of progress to standard error."""
    echo(line, err=True)
