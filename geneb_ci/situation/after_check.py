"""The next command after a check, derived from its report without another check."""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from geneb_ci.check.fixes import is_fixable
from geneb_ci.check.registry import CHANGES
from geneb_ci.check.report import CRASH_RULE, Report
from geneb_ci.common.config import Layout, find_layout
from geneb_ci.common.errors import GenebError
from geneb_ci.common.finding import Finding, Severity
from geneb_ci.publish.git import main_branch_of, repository_at
from geneb_ci.render.formats import is_complete
from geneb_ci.render.plain import visible
from geneb_ci.situation.table import (
    COMMAND_CHARACTERS_MAX,
    NextStep,
    Role,
    at_root,
    board_address,
    is_board,
    repository_name,
    step_of,
)
from geneb_ci.submission.reading import located
from reference_harness.formats.files import NotReadable, read_json, read_text, text_at
from reference_harness.formats.recognition import FOREIGN, POINTER
from reference_harness.formats.submission_terms import SUBMISSION_BYTES_MAX

CHANGE_RULE_IDS = frozenset(rule for rules in CHANGES.values() for rule in rules)
"""Ids of the rules about the set of files that a branch changes; no edit of a file fixes these."""
_COMMAND_IN_FIX = re.compile(r"`((?:geneb-ci|git) [^`]+)`")
"""Command that the fix of a finding quotes."""
_CHECK_WORDS = ("geneb-ci", "check")
_SITUATIONS_AFTER_VERDICT = frozenset({"not-pushed", "no-pull-request"})
"""Situations of a finished branch; its next command is to ask for the verdict on the branch."""


def command_after(report: Report, paths: Sequence[Path], folder: Path) -> str:
    """Return the next command after a check in a folder; "" if nothing is left to do.

    `paths` are the checked paths; empty after the check of a branch. Nothing is written, and no
    server is asked.
    """
    errors = [
        finding
        for finding in sorted(report.findings, key=Finding.sort_key)
        if finding.severity is Severity.ERROR and finding.rule != CRASH_RULE
    ]
    command = ""
    try:
        if report.proposal is not None:
            command = _after_branch(report, errors, folder)
        elif errors:
            command = _fix_command(errors, [*map(str, paths)] or report.files[:1], Path())
        elif is_complete(report) and len(report.files) == len(paths) == 1 and paths[0].is_file():
            command = _after_row(report, paths[0], folder)
    except (GenebError, OSError, NotReadable):  # the check has reported the cause
        return ""
    return visible(command, COMMAND_CHARACTERS_MAX)


def _after_branch(report: Report, errors: Sequence[Finding], folder: Path) -> str:
    """Return the next command after the server's verdict on a branch."""
    layout = find_layout(folder)
    model = report.proposal.model if report.proposal is not None else None
    if errors and errors[0].rule not in CHANGE_RULE_IDS:
        row = Path(str(layout.submissions), f"{model}.json").relative_to(layout.root)
        command = _fix_command(errors, [str(row)], layout.root)
    elif errors or is_complete(report):
        step = _contributor_step(layout, None if errors else report)
        command = step.command
        if step.situation == "verdict-with-errors":
            command = shlex.join(["geneb-ci", "explain", errors[0].rule])
    else:
        return ""
    return at_root(command, layout.root, folder)


def _after_row(report: Report, row: Path, folder: Path) -> str:
    """Return the next command after the check of a new or changed row without errors."""
    layout = find_layout(folder)
    if not is_board(layout):
        layout = find_layout(row.parent)
    path = located(row)
    if not is_board(layout):
        return f"git clone {shlex.quote(board_address(repository_name()))}"
    if not path.is_relative_to(layout.root):
        model_id = text_at(read_json(read_text(row, SUBMISSION_BYTES_MAX)), "model_id")
        copied_path = str(Path(os.path.relpath(str(layout.submissions)), f"{model_id}.json"))
        # Only its contributor may change a row of the board, so cp asks before it replaces one.
        copy = ["cp", "-i" if Path(copied_path).exists() else "-n", str(row), copied_path]
        return f"{shlex.join(copy)} && {shlex.join([*_CHECK_WORDS, copied_path])}"
    if not _differs_from_base(path, layout):
        return ""
    step = _contributor_step(layout, report)
    command = (
        shlex.join(_CHECK_WORDS) if step.situation in _SITUATIONS_AFTER_VERDICT else step.command
    )
    return at_root(command, layout.root, folder)


def _differs_from_base(row: Path, layout: Layout) -> bool:
    """Whether a row or its card differs from the branch that pull requests go to."""
    repository = repository_at(layout)
    paths = [str(path) for path in (row, layout.cards and layout.cards / f"{row.stem}.md") if path]
    status_command = ("status", "--porcelain", "--ignored", "--untracked-files=all", "--", *paths)
    if repository.run(*status_command):
        return True
    base = main_branch_of(repository)
    return bool(repository.run("diff", "--name-only", f"{base}...HEAD", "--", *paths))


def _contributor_step(layout: Layout, report: Report | None = None) -> NextStep:
    # Imported here: it takes 0.3 s, and checks of a board's rows do not need it.
    """Return the next step of a contributor."""
    from geneb_ci.situation.contributor import CONTRIBUTOR_SITUATIONS
    from geneb_ci.situation.read_branch import read_branch

    return step_of(Role.CONTRIBUTOR, read_branch(layout, report), CONTRIBUTOR_SITUATIONS)


def _fix_command(errors: Sequence[Finding], checked_paths: Sequence[str], root: Path) -> str:
    """Return the command that fixes the first error, or opens its file in an editor.

    The command then checks `checked_paths` again.
    """
    first_error = errors[0]
    if first_error.rule in {FOREIGN, POINTER} and (
        commands := _COMMAND_IN_FIX.findall(first_error.fix)
    ):
        parent = str(PurePosixPath(first_error.file).parent)
        path_by_word = {"FILE": first_error.file, "DIR": parent, "FOLDER": parent}
        return re.sub(
            rf"\b({'|'.join(path_by_word)})\b",
            lambda match: shlex.quote(path_by_word[match[0]]),
            commands[0],
        )
    if first_error.rule == "extractor-mismatch":
        return shlex.join(["geneb-ci", "explain", first_error.rule])  # editing would hide what ran
    if not (root / first_error.file).is_file():
        return ""  # standard input, or a file that the working tree lacks
    if [first_error.file] == [*checked_paths] and is_fixable(root / first_error.file, errors):
        return shlex.join([*_CHECK_WORDS, "--fix", *checked_paths])
    check = shlex.join([*_CHECK_WORDS, *checked_paths])
    return f"${{EDITOR:-vi}} {shlex.quote(first_error.file)} && {check}"
