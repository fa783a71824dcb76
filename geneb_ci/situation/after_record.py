"""The one command that comes next after a signed record."""

import os
import shlex
from pathlib import Path

from geneb_ci.audit.workflow import LOOK
from geneb_ci.common.config import find_layout
from geneb_ci.publish.git import BadRepository, GitRepository


def command_after_record(record: Path) -> str:
    """Return the command that commits a record and what it names, and then looks what is next.

    Of a record that is committed it only looks; outside of a clone, the record is verified.
    """
    folder = record.parent
    row = (find_layout(folder).submissions or folder) / f"{folder.name}.json"
    try:
        is_pending, is_row_pending = (
            bool(GitRepository(folder).run("status", "--porcelain", "--", str(path)))
            for path in (folder, row)
        )
    except BadRepository:
        return shlex.join(["geneb-ci", "audit", "verify", os.path.relpath(record)])
    # Whose row is not committed yet is its contributor as well.
    look = "geneb-ci next" if is_row_pending else LOOK
    if not is_pending:
        return look
    name = os.path.relpath(folder)
    commit = shlex.join(["git", "commit", "-m", f"Audit {folder.name}", name])
    return f"{shlex.join(['git', 'add', name])} && {commit} && {look}"
