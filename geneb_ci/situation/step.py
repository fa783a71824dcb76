"""Return the next step in a folder: determine the role, read the state, and find its situation."""

import dataclasses
import datetime as dt
import os
from pathlib import Path

from geneb_ci.audit.record.keys import KEY_VARIABLE, KEYS_FOLDER
from geneb_ci.common.config import Layout, LayoutKind, find_layout
from geneb_ci.github.verdict.checker import repository_folders
from geneb_ci.publish.git import BadRepository
from geneb_ci.situation import contributor
from geneb_ci.situation.read_branch import read_branch
from geneb_ci.situation.table import NextStep, Role, at_root, is_board, step_of
from geneb_ci.situation.work_tree import OpenClone, open_clone
from geneb_ci.submission.reading import files_in

NOTHING_CHANGED = "nothing-changed"
"""Name of the situation in which a branch changes nothing."""
SITUATIONS_WITHOUT_CHANGES = frozenset({NOTHING_CHANGED, "no-base-branch"})
"""Situations of a contributor without changes; a user with a key is then taken for a maintainer."""
MAINTAINER_COMMAND = "geneb-ci next --as maintainer"
NO_REMOTE_LINE = "the clone has no remote to send a pull request to: you are taken for a maintainer"
"""Line for a user with a key in a clone without a remote."""
OTHER_ROLE_LINE = f"you have a key as well: {MAINTAINER_COMMAND} shows a maintainer's next step"
"""Line for a contributor who also has a key."""


def step_in(
    folder: Path,
    role: Role | None,
    repository: str | None,
    space: str | None,
    now: dt.datetime,
) -> NextStep:
    """Return the next step in a folder, for `role` or for the role that the folder suggests.

    GitHub is asked only with `repository`, and the Hub only with `space`. Raises BadConfiguration
    if settings or policy are invalid, and the errors of these servers.
    """
    layout = find_layout(folder)
    step = _step_of(layout, role, repository, space, now)
    return dataclasses.replace(step, command=at_root(step.command, layout.root, folder))


def _step_of(
    layout: Layout,
    role: Role | None,
    repository: str | None,
    space: str | None,
    now: dt.datetime,
) -> NextStep:
    """Return the next step in a repository, with a command that runs in its root."""
    clone = _readable_clone(layout)
    if role is Role.MAINTAINER or (role is None and _has_uncommitted_statements(layout, clone)):
        return _maintainer_step(layout, clone, repository, space, now)
    branch = _branch_state(layout, clone, repository)
    step = step_of(Role.CONTRIBUTOR, branch, contributor.CONTRIBUTOR_SITUATIONS)
    has_key = role is None and _has_key(layout)
    is_local_board = role is None and _has_rows(layout) and not branch.tree.remotes
    if step.situation in SITUATIONS_WITHOUT_CHANGES and has_key:
        return _maintainer_step(layout, clone, repository, space, now)
    if step.situation == NOTHING_CHANGED and is_local_board:  # its rows can be submitted nowhere
        try:
            return _maintainer_step(layout, clone, repository, space, now)
        except ModuleNotFoundError:  # the extra `records`; this command says how to install it
            lines = (*step.lines[:1], NO_REMOTE_LINE)
            return dataclasses.replace(step, lines=lines, command=MAINTAINER_COMMAND)
    return dataclasses.replace(step, lines=(*step.lines, OTHER_ROLE_LINE)) if has_key else step


def _has_key(layout: Layout) -> bool:
    """Whether a private key is available in a repository of a board."""
    if layout.kind is LayoutKind.ALONE:
        return False
    keys_folder = layout.root / KEYS_FOLDER
    return bool(os.environ.get(KEY_VARIABLE)) or any(keys_folder.glob("*.pem"))


def _readable_clone(layout: Layout) -> OpenClone | None:
    """Return the clone of a board; None if this is none, or if git refuses it."""
    if not is_board(layout):
        return None
    try:
        return open_clone(layout)
    except BadRepository:
        return None


def _has_uncommitted_statements(layout: Layout, clone: OpenClone | None) -> bool:
    """Whether the working tree has signed statements that are not committed."""
    if clone is None:
        return False
    folder = repository_folders(layout).audits
    return any(path.startswith(f"{folder}/") for path in clone.tree.pending)


def _has_rows(layout: Layout) -> bool:
    """Whether a repository has submissions."""
    return layout.submissions is not None and any(files_in(layout.submissions))


def _branch_state(
    layout: Layout, clone: OpenClone | None, repository: str | None
) -> contributor.BranchState:
    """Return the state of the branch, with its pull request if `repository` is given."""
    branch = read_branch(layout, clone=clone)
    if repository is None or not branch.tree.head:
        return branch
    from geneb_ci.situation.servers import open_pull_of_commit  # the extra `github`

    pull = open_pull_of_commit(repository, branch.tree.head)
    return dataclasses.replace(branch, pull=pull, github_repository=repository)


def _maintainer_step(
    layout: Layout,
    clone: OpenClone | None,
    repository: str | None,
    space: str | None,
    now: dt.datetime,
) -> NextStep:
    # Imported here: they need the extra `records`, which a contributor does not.
    """Return the next step of a maintainer in a repository."""
    from geneb_ci.situation import maintainer
    from geneb_ci.situation.read_board import BoardReader, read_board

    board = read_board(layout, now, clone)
    if (repository, space) != (None, None) and clone is not None and not board.refusal:
        from geneb_ci.situation.servers import server_answers  # the extras `github` and `hub`

        answers = server_answers(repository, space, clone.repository, board.audits)
        reader = BoardReader(layout, *clone, now)
        board = dataclasses.replace(
            board,
            audits=reader.open_audits(answers.shown_at),
            pull=answers.pull,
            live=answers.live,
            is_github_known=answers.is_github_known,
            repository=repository or board.repository,
        )
    return step_of(Role.MAINTAINER, board, maintainer.MAINTAINER_SITUATIONS)
