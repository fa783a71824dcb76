"""A signed record in comments, where no token may propose it; a maintainer's own token does later.

Its author is the account of our token, and its signature and every step are verified again: what a
comment says of itself is believed in nothing.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field

from geneb_ci.common.errors import UsageProblem
from geneb_ci.github.api import GitHub
from geneb_ci.github.audits import RETRY_FIX, AuditOrder
from geneb_ci.github.replies import Comment
from geneb_ci.github.transport import decode, encode
from reference_harness.formats.base import StrictModel

MARKER = "<!-- geneb-ci:record:1 "
_LINE = re.compile(
    re.escape(MARKER) + r"([0-9a-f]{64}) (\d{1,3})/(\d{1,3}) ([A-Za-z0-9+/=:]{1,60000}) -->"
)
_PATH = r"^([\w-][\w.-]*/)+[\w-][\w.-]*$"
"""A path that leads out of no folder."""
PART = 60_000
"""Characters of the record in one comment, of GitHub's 65,536."""


class AttachedRecord(StrictModel):
    """A signed record, with what proposing it takes."""

    format_version: Literal["1.0"]
    order: AuditOrder
    record: str
    """Id of the audit."""
    verdict: Literal["agrees", "differs"]
    is_whole: bool
    """Whether the row is proposed with it."""
    files: dict[Annotated[str, Field(pattern=_PATH)], str]
    """Text of each signed file by its path."""

    @property
    def signed_files(self) -> dict[str, bytes]:
        """The signed files."""
        return {path: text.encode() for path, text in self.files.items()}


def attach(github: GitHub, attached: AttachedRecord) -> None:
    """Write a record into comments, unless it is there; one write for each 60,000 characters."""
    number = attached.order.number
    line = encode(attached, RETRY_FIX)
    digest = hashlib.sha256(line.encode()).hexdigest()
    parts = [line[start : start + PART] for start in range(0, len(line), PART)]
    present = _parts(github.comments(number), github.author).get(digest, {})
    for index, part in enumerate(parts, 1):
        if index not in present:
            github.add_comment(
                number,
                f"{MARKER}{digest} {index}/{len(parts)} {part} -->\nThe signed record "
                f"`{attached.record}` is in this comment, part {index} of {len(parts)}. To propose "
                f"it, in a checkout of main: `geneb-ci audit propose {number}`.\n",
            )


def attached_record(github: GitHub, number: int) -> AttachedRecord:
    """Return the newest record in the comments of an issue or a pull request.

    Raises UsageProblem if there is none, and Tampered for one that cannot be read.
    """
    complete = [
        parts
        for parts in _parts(github.comments(number), github.author).values()
        if len(parts) == next(iter(parts.values()))[0]
    ]
    if not complete:
        raise UsageProblem(
            f"no comment on #{number} has a signed record",
            "name the pull request or the issue whose comment has it",
        )
    newest = complete[-1]
    line = "".join(newest[index][1] for index in sorted(newest))
    return decode(line, AttachedRecord, f"the record in the comments on #{number}", RETRY_FIX)


def _parts(comments: Iterable[Comment], author: int) -> Mapping[str, dict[int, tuple[int, str]]]:
    """Return the parts of records in our comments: digest to place to number of parts and text."""
    known: dict[str, dict[int, tuple[int, str]]] = {}
    for comment in comments:
        match = _LINE.match(comment.body)
        if match is not None and comment.user is not None and comment.user.id == author:
            known.setdefault(match[1], {})[int(match[2])] = (int(match[3]), match[4])
    return known
