"""The task data to their repository on the Hub: one commit, whose id is the revision to pin."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from geneb_ci.publish.faults import Unknown, Unverified
from geneb_ci.publish.remote import Listing, Remote
from geneb_ci.publish.retry import Clock, attempt

# Folders of the repository that hold task data: what lies there and was not staged is deleted.
OURS = ("tasks/", "flat/")
MESSAGE = "Task data in both layouts"


class Uploaded(NamedTuple):
    """The revision that holds the staged files, and whether it was made for them."""

    revision: str
    new: bool


def staged(folder: Path) -> dict[str, Path]:
    """Give every file of a staged folder by its name in the repository."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def upload(
    remote: Remote,
    files: dict[str, Path],
    *,
    clock: Clock = time,
    say: Callable[[str], None] = lambda _: None,
) -> Uploaded:
    """Make the repository hold just these data with one commit, or find that it does.

    The files are large: those that were uploaded by a try that failed are not sent again.
    Raises PublishFault.
    """
    perhaps = False

    def once() -> Uploaded:
        nonlocal perhaps
        here = remote.listing()
        changed, gone = _difference(here, files)
        if not changed and not gone:
            return Uploaded(here.head, perhaps)
        try:
            commit = remote.commit(here.head, changed, gone, MESSAGE)
        except Unknown:
            perhaps = True
            raise
        perhaps = True
        changed, gone = _difference(remote.listing(commit), files)
        if changed or gone:
            raise Unverified(
                f"{remote.resource} at {commit} differs from what was sent: "
                f"{', '.join([*changed, *gone])}",
                "look for a .gitignore in the repository that names them, then push again",
            )
        return Uploaded(commit, new=True)

    return attempt(once, clock=clock, say=say)


def _difference(here: Listing, files: dict[str, Path]) -> tuple[dict[str, Path], list[str]]:
    changed = {
        name: path
        for name, path in files.items()
        if name not in here.files or not here.files[name].are_of(path)
    }
    gone = sorted(name for name in here.files if name.startswith(OURS) and name not in files)
    return changed, gone
