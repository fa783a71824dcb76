"""Write the repository of a new board with a key and a first row; set up GitHub and the Hub."""

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from geneb_ci.audit.canonical import current_moment
from geneb_ci.audit.record.keys import (
    KeyFile,
    TrustedKey,
    key_entry_of,
    new_key,
    private_key,
)
from geneb_ci.common.errors import UsageProblem
from geneb_ci.github.api import connect
from geneb_ci.github.errors import UnreadableSetting
from geneb_ci.github.settings import diagnosis, hub
from geneb_ci.github.settings.apply import AppliedSettings, set_wrong_settings
from geneb_ci.github.settings.check_files import KEYS_PATH
from geneb_ci.github.settings.client import SettingsClient
from geneb_ci.github.settings.diagnosis import Diagnosis
from geneb_ci.github.settings.features import Feature, features_of
from geneb_ci.github.settings.required import SETTINGS, Setting
from geneb_ci.init.new_repository import (
    PRACTICE_ROW,
    BoardAnswers,
    FileStatus,
    PlannedFile,
    benchmark_bytes,
    file_plan,
    filled_template,
    has_commit,
    outdated_files,
    path_inside,
    plan_lines,
    push_first_commit,
    refuse_organisation,
    remote_of,
    repository_files,
    run_git,
    write_planned,
)
from reference_harness.formats.text import Say

AFTER_PUSH_PREFIX = "main-"
"""Beginning of the ids of settings that would refuse the first push, so they are set after it."""

PRIVATE_KEY_PATH, KEYS_GITIGNORE_PATH = "keys/audit.pem", "keys/.gitignore"
PRACTICE_ROW_PATH, PRACTICE_CARD_PATH = (
    f"submissions/{PRACTICE_ROW}.json",
    f"submissions/cards/{PRACTICE_ROW}.md",
)
MEASURING_MODULES = ("numpy", "scipy", "sklearn", "threadpoolctl")
"""Modules of the extra `mini`, which measuring the practice row needs."""
NO_ROW_FIX = (
    "pip install 'geneb-ci[mini]' and run this command again, or put your own row into submissions/"
)
HARNESS_SECONDS_MAX = 600
"""Time limit for measuring the practice row, which usually takes 5 seconds."""


@dataclass(frozen=True)
class NewBoard:
    """The plan of a new board: the files, the key and the first row to write into a folder."""

    folder: Path
    """Folder into which the board is written."""
    answers: BoardAnswers
    """The user's answers: repository, Space and maintainers."""
    plan: list[PlannedFile]
    """Each file of the new board, compared with the folder's file."""
    outdated_files: list[str]
    """Paths of files in the folder that only another version of the toolkit has."""
    needs_key: bool
    """Whether a key for audits is made, because the folder has no list of keys."""
    needs_row: bool
    """Whether a row is measured: on the practice benchmark, if the folder has no row."""

    def lines(self, *, force: bool) -> Iterator[str]:
        """Yield the plan as lines: the folder, then the files to write, overwrite and keep."""
        yield f"{self.folder.resolve()}: a board for {self.answers.repository}, Space " + (
            self.answers.space
        )
        yield from plan_lines(self.plan, force=force)
        yield from (
            f"  delete yourself, not part of this version  {name}" for name in self.outdated_files
        )
        if self.needs_key:
            yield f"  write  {KEYS_PATH}; private key in keys/, which git ignores"
        if self.needs_row:
            yield f"  write  {PRACTICE_ROW_PATH}, which the harness measures on this machine"

    @property
    def has_differing_files(self) -> bool:
        """Whether an existing file differs from the file of the plan."""
        return any(planned.status is FileStatus.DIFFERS for planned in self.plan)

    def check_before_writing(self) -> None:
        """Raise the errors that would make `write` fail halfway, before anything is written.

        Raises UsageProblem without git or an author's name for commits, for a folder that cannot be
        written, and if the practice row cannot be measured.
        """
        resolved = self.folder.resolve()
        existing = next(path for path in (resolved, *resolved.parents) if path.exists())
        if not os.access(existing, os.W_OK | os.X_OK):
            raise UsageProblem(f"{existing}: cannot be written to", "name another folder")
        if (self.folder / ".git").exists():
            run_git(self.folder, "rev-parse", "--git-dir")
        if not has_commit(self.folder):
            for identity in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
                run_git(existing, "var", identity)
        missing_modules = [name for name in MEASURING_MODULES if find_spec(name) is None]
        if self.needs_row and missing_modules:
            message = f"{missing_modules[0]} is not installed, but measuring the first row needs it"
            raise UsageProblem(message, NO_ROW_FIX)

    def write(self, *, force: bool) -> None:
        """Write the missing files, key and row, with `force` also files that differ.

        Raises UsageProblem.
        """
        write_planned(self.folder, self.plan, force=force)
        if self.needs_key:
            _write_key(self.folder, self.answers)
        if self.needs_row:
            _write_row(self.folder)


def new_board(folder: Path, answers: BoardAnswers, benchmark: Path | None = None) -> NewBoard:
    """Return the plan of a board in a folder; `benchmark` is the file of a benchmark definition.

    By default it is the folder's own file, or the practice benchmark, which comes with a row.
    Raises UsageProblem for a folder or a definition that cannot be used.
    """
    definition_file = folder / "schemas/benchmark.json"
    definition = benchmark_bytes(
        definition_file if benchmark is None and definition_file.is_file() else benchmark
    )
    files = repository_files(answers, definition)
    return NewBoard(
        folder,
        answers,
        file_plan(folder, files),
        outdated_files(folder, files),
        needs_key=not (folder / KEYS_PATH).exists(),
        needs_row=definition == benchmark_bytes(None) and not has_rows(folder),
    )


def apply_settings(
    folder: Path,
    answers: BoardAnswers,
    say: Say,
    say_setting: Say,
    say_error: Say,
    *,
    dry_run: bool,
) -> tuple[list[Diagnosis], list[Feature]]:
    """Push the first commit and set the settings that the tokens allow.

    Return the diagnoses of all settings and the features; both are empty after a dry run. Raises
    UsageProblem if there is nothing to push.
    """
    if not has_commit(folder):
        raise UsageProblem(
            f"{folder.resolve()}: there is no commit to push", "run geneb-ci init first"
        )
    with connect(answers.repository) as github:
        client = SettingsClient(github.connection, answers.space, dry_run=dry_run)
        _check_before_applying(client, folder, answers)
        _create_space(client, say, say_error)
        _apply_and_report(
            client,
            [setting for setting in SETTINGS if not setting.id.startswith(AFTER_PUSH_PREFIX)],
            say_setting,
        )
        if client.has_main:
            pass
        elif dry_run:
            say(f"would push the first commit to {answers.repository}")
        else:
            say(f"pushed the first commit to {push_first_commit(folder, answers.repository)}")
        client_after_push = SettingsClient(github.connection, answers.space, dry_run=dry_run)
        _apply_and_report(
            client_after_push,
            [setting for setting in SETTINGS if setting.id.startswith(AFTER_PUSH_PREFIX)],
            say_setting,
        )
        if dry_run:
            say("nothing was changed: this was a dry run")
            return [], []
        fresh_client = SettingsClient(github.connection, answers.space)
        diagnoses, features = diagnosis.diagnoses_of(fresh_client), list(features_of(fresh_client))
    if not client.sent and not client_after_push.sent:
        say("no setting had to be changed")
    return diagnoses, features


def _apply_and_report(client: SettingsClient, settings: list[Setting], say: Say) -> None:
    """Set those of the settings that are wrong, and print a line about each group."""
    for change in set_wrong_settings(client, diagnosis.diagnoses_of(client, settings)):
        say(_change_line(client, change))


def _change_line(client: SettingsClient, applied: AppliedSettings) -> str:
    """Return the line about a group of settings: what was set, would be, or could not be."""
    ids = ", ".join(applied.ids)
    if applied.error:
        return f"not set: {ids}: {applied.error}"
    return f"{'would set' if client.is_dry_run else 'set'}: {ids} ({', '.join(applied.requests)})"


def _create_space(client: SettingsClient, say: Say, say_error: Say) -> None:
    """Create the Space if it is missing and there is a token of the Hub."""
    token = os.environ.get("HF_TOKEN")
    try:
        if not token or hub.space_problem(client) is None:
            return
    except UnreadableSetting:
        return  # the final report has it
    if client.is_dry_run:
        say(f"would create the Space {client.space}")
        return
    try:
        hub.create_space(client.space, token)
    except OSError as error:
        say_error(f"the Space was not created: {type(error).__name__}")
    else:
        say(f"created the Space {client.space}")


def _check_before_applying(client: SettingsClient, folder: Path, answers: BoardAnswers) -> None:
    """Raise the errors of GitHub, the Hub or git that can be foreseen before anything is sent.

    Raises NotFound without the repository, and UsageProblem for another remote or a token that
    lacks a right. Some missing rights appear only when the token is used.
    """
    repository = client.connection.repository
    refuse_organisation(answers, client.repository.get("owner") or {})
    rights = client.repository.get("permissions")
    if not client.has_main:
        remote_of(folder, repository)
        for right in ("push", "admin"):
            if isinstance(rights, dict) and rights.get(right) is False:
                raise UsageProblem(
                    f"{repository}: the owner of GH_TOKEN has no right to {right}",
                    "use a token of an administrator of the repository, with the permissions that "
                    "`geneb-ci init` lists",
                )
    if os.environ.get("HF_TOKEN"):
        hub.require_writing_token(os.environ["HF_TOKEN"])


def require_no_link_loop(folder: Path) -> None:
    """Raise UsageProblem for a path whose symbolic links form a loop."""
    try:
        folder.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UsageProblem(
                f"{folder}: the symbolic links of this path form a loop", "name another folder"
            ) from error


def has_rows(folder: Path) -> bool:
    """Whether a folder has a submission."""
    return any((folder / "submissions").glob("*.json"))


def _write_key(folder: Path, answers: BoardAnswers) -> None:
    """Write a private key for audits, and the list of trusted keys that contains its public key."""
    gitignore = path_inside(
        folder, KEYS_GITIGNORE_PATH
    )  # independent of the .gitignore of the folder
    gitignore.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    gitignore.write_text("*\n", encoding="utf-8")
    now = current_moment()
    owner = answers.maintainers.split()[0].removeprefix("@")
    trusted = _trusted_key(folder, PRIVATE_KEY_PATH, owner, now)
    key_file = KeyFile(note="Ed25519 keys whose signatures on audit records count.", keys=[trusted])
    key_list = json.dumps(key_file.model_dump(mode="json", exclude_none=True), indent=1) + "\n"
    path_inside(folder, KEYS_PATH).write_text(key_list, encoding="utf-8")


def _trusted_key(folder: Path, path: str, owner: str, now: str) -> TrustedKey:
    """Write a private key unless an earlier run did, and return its entry in the list of keys."""
    key_path = path_inside(folder, path)
    if not key_path.exists():
        return new_key(key_path, owner, now)
    raw = private_key(key_path).public_key().public_bytes_raw()
    return key_entry_of(raw, owner, now)


def _write_row(folder: Path) -> None:
    """Measure the first row on the practice benchmark, and write it with its card.

    Raises UsageProblem if the harness is not installed or fails.
    """
    row, card = path_inside(folder, PRACTICE_ROW_PATH), path_inside(folder, PRACTICE_CARD_PATH)
    card.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as scratch:
        _measure_row(row, Path(scratch) / "record.json")
    card.write_bytes(filled_template("card.md.in", {}))


def _measure_row(row: Path, record: Path) -> None:
    """Have the harness write a row and its run record.

    The harness runs in the folder of the record, since it refuses to run in that of another board.
    """
    command = [sys.executable, "-P", "-m", "reference_harness", "run", "--extractor", "kmer"]
    command += ["--quiet", "--model-id", PRACTICE_ROW, "--display", "k-mer baseline", "--zero-shot"]
    command += ["--training-data", "none", "--submitted-by", "geneb-ci init"]
    command += ["--output", str(record), "--submission", str(row.resolve())]
    process = subprocess.run(  # noqa: S603 (our own program, fixed arguments)
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=HARNESS_SECONDS_MAX,
        cwd=record.parent,
    )
    if process.returncode:
        message = " ".join(process.stderr.split())
        raise UsageProblem(
            f"the harness ended with exit code {process.returncode} while it measured the first "
            f"row (k-mers on the practice benchmark): {message}",
            NO_ROW_FIX,
        )
