"""The next command after an audit record was signed."""

import os
import shlex
from pathlib import Path

from geneb_ci.audit.workflow import NEXT_COMMAND
from geneb_ci.common.config import find_layout
from geneb_ci.publish.git import BadRepository, GitRepository


def command_after_record(record: Path) -> str:
    """Return the command that commits a record and its statements, and then runs `geneb-ci next`.

    If the record is committed, the command is only `geneb-ci next`; outside of a clone, it is the
    one that verifies the record.
    """
    folder = record.parent
    row = (find_layout(folder).submissions or folder) / f"{folder.name}.json"
    try:
        is_record_uncommitted, is_row_uncommitted = (
            bool(GitRepository(folder).run("status", "--porcelain", "--", str(path)))
            for path in (folder, row)
        )
    except BadRepository:
        return shlex.join(["geneb-ci", "audit", "verify", os.path.relpath(record)])
    # Whoever has an uncommitted row is its contributor as well, so no role is given.
    next_command = "geneb-ci next" if is_row_uncommitted else NEXT_COMMAND
    if not is_record_uncommitted:
        return next_command
    relative_path = os.path.relpath(folder)
    commit = shlex.join(["git", "commit", "-m", f"Audit {folder.name}", relative_path])
    return f"{shlex.join(['git', 'add', relative_path])} && {commit} && {next_command}"
