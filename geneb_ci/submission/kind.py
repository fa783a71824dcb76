"""Which kind of file a path names, for the message about a file of another kind."""

from enum import Enum
from pathlib import Path

import pydantic_core

from geneb_ci.common.errors import NothingChecked
from geneb_ci.submission.paths import files_in, is_folder


class FileKind(Enum):
    """A kind of file that a command reads: its name, some of its members, and how to get one."""

    SUBMISSION = (
        "a submission",
        ("results",),
        "name a submission, such as submissions/MODEL.json",
    )
    RUN_RECORD = (
        "a run record",
        ("probe", "tasks"),
        "make one with `geneb-harness run`",
    )
    COMMITMENT = (
        "a commitment",
        ("commitment", "sha256"),
        "make one with `geneb-ci audit commit SUBMISSION --output C.json`",
    )
    PLAN = (
        "a plan",
        ("commitment", "chosen"),
        "make one with `geneb-ci audit plan C.json --committed-at TIME --output PLAN.json`",
    )
    OUTCOME = (
        "an unsigned outcome",
        ("plan", "verdict"),
        "make one with `geneb-ci audit run PLAN.json --unsigned --json`",
    )
    RECORD = (
        "an audit record",
        ("payload", "signatures"),
        "name a record: leaderboard/audits/MODEL/ID.json",
    )

    def __init__(self, title: str, members: tuple[str, ...], fix: str) -> None:
        self.title = title
        self.members = members
        self.fix = fix

    def fits(self, value: object) -> bool:
        """Whether a parsed file has the members of this kind."""
        return isinstance(value, dict) and all(name in value for name in self.members)


def require_file(path: Path, kind: FileKind, command: str = "") -> None:
    """Raise NothingChecked if a path is a folder; `command` is what the user typed before it."""
    if not is_folder(path):
        return
    first = min(files_in(path), default=None) if kind is FileKind.SUBMISSION and command else None
    raise NothingChecked(
        f"{path}: this is a folder, expected {kind.title}",
        f"name a file in it: geneb-ci {command} {first}" if first is not None else kind.fix,
    )


def other_kind(value: object, kind: FileKind) -> str:
    """Return "this is a plan, not a commitment"; "" if the file fits, or no kind does."""
    if kind.fits(value):
        return ""
    found = next((one for one in FileKind if one.fits(value)), None)
    return f"this is {found.title}, not {kind.title}" if found is not None else ""


def other_kind_of(raw: bytes, kind: FileKind) -> str:
    """Return the same for the bytes of a file; "" also if they are not JSON."""
    try:
        # Unlike the standard library's parser, this one limits the nesting depth.
        return other_kind(pydantic_core.from_json(raw), kind)
    except ValueError:
        return ""
