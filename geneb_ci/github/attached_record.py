"""Write a signed record into comments, if no token may open a pull request with it.

A maintainer proposes the record later, with his own token. Only comments by the account of our
token are read, and the signature and every step of the record are verified again.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from geneb_ci.common.errors import UsageProblem
from geneb_ci.github.api import GitHub
from geneb_ci.github.audits import RETRY_FIX, AuditOrder
from geneb_ci.github.one_line import decode, encode, joined_parts, numbered_parts
from geneb_ci.github.replies import Comment, is_account
from reference_harness.formats.base import StrictModel

RECORD_MARKER = "<!-- geneb-ci:record:1 "
"""Beginning of a comment that contains a part of a signed record."""
_RECORD_PART_LINE = re.compile(
    re.escape(RECORD_MARKER) + r"([0-9a-f]{64}) (\d{1,3}/\d{1,3} [A-Za-z0-9+/=:]{1,60000}) -->"
)
"""First line of a comment with a part of a record: digest of the record, number, and text."""
_RELATIVE_PATH_PATTERN = r"^([\w-][\w.-]*/)+[\w-][\w.-]*$"
"""Form of a relative path that stays below its folder."""
PART_CHARACTERS_MAX = 60_000
"""Maximum characters of the record in one comment, of the 65,536 that GitHub allows."""


class AttachedRecord(StrictModel):
    """A signed audit record in comments, from which a maintainer can open a pull request."""

    format_version: Literal["1.0"]
    order: AuditOrder
    """The order that the record answers."""
    record: str
    """Id of the audit."""
    verdict: Literal["agrees", "differs"]
    is_whole: bool
    """Whether the pull request of the record contains the row."""
    files: dict[Annotated[str, Field(pattern=_RELATIVE_PATH_PATTERN)], str]
    """Text of each signed file, by path."""

    @property
    def signed_files(self) -> dict[str, bytes]:
        """Bytes of each signed file, by path."""
        return {path: text.encode() for path, text in self.files.items()}


def attach(github: GitHub, record: AttachedRecord) -> None:
    """Write a record into comments, unless they have it; one write for each 60,000 characters."""
    number = record.order.number
    line = encode(record, RETRY_FIX)
    digest = hashlib.sha256(line.encode()).hexdigest()
    present_parts = _record_parts(github.comments(number), github.own_account_id).get(digest, [])
    for numbered_part in numbered_parts(line, PART_CHARACTERS_MAX):
        if numbered_part not in present_parts:
            position = numbered_part.partition(" ")[0].replace("/", " of ")
            github.add_comment(
                number,
                f"{RECORD_MARKER}{digest} {numbered_part} -->\nThe signed record "
                f"`{record.record}` is in this comment, part {position}. To propose "
                f"the record, run in a checkout of main: `geneb-ci audit propose {number}`.\n",
            )


def attached_record(github: GitHub, number: int) -> AttachedRecord:
    """Return the newest record in the comments of an issue or a pull request.

    Raises UsageProblem if there is none, and Tampered if it cannot be read.
    """
    lines = map(
        joined_parts, _record_parts(github.comments(number), github.own_account_id).values()
    )
    complete_lines = [line for line in lines if line is not None]
    if not complete_lines:
        raise UsageProblem(
            f"the comments on #{number} have no complete signed record",
            "pass the number of the pull request or issue whose comments have the record",
        )
    subject = f"the record in the comments on #{number}"
    return decode(complete_lines[-1], AttachedRecord, subject, RETRY_FIX)


def _record_parts(comments: Iterable[Comment], own_account_id: int) -> dict[str, list[str]]:
    """Return the parts of records in our comments, by the digest of the record."""
    parts_by_digest: dict[str, list[str]] = {}
    for comment in comments:
        match = _RECORD_PART_LINE.match(comment.body)
        if match is not None and is_account(comment.user, own_account_id):
            parts_by_digest.setdefault(match[1], []).append(match[2])
    return parts_by_digest
