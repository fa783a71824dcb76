"""`geneb-ci init`: a new repository of a board, and its settings."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import click

from geneb_ci.audit.canonical import FORMAT
from geneb_ci.audit.record.keys import (
    KEYS_FILE,
    KeyFile,
    TrustedKey,
    entry_of,
    new_key,
    private_key,
)
from geneb_ci.cli.main import echo
from geneb_ci.cli.shared import STDOUT, Output, width, write
from geneb_ci.common.errors import Exit, UsageProblem
from geneb_ci.github.api import connect
from geneb_ci.github.errors import Unseen
from geneb_ci.github.new_repository import (
    PRACTICE_ROW,
    Answers,
    Placing,
    answers,
    benchmark_bytes,
    files_of,
    first_commit,
    git,
    has_commit,
    is_changed,
    left_over,
    path_inside,
    plan_lines,
    plan_of,
    push_first,
    refuse_organisation,
    remote_of,
    template,
    write_planned,
)
from geneb_ci.github.settings import diagnosis, hub
from geneb_ci.github.settings.apply import AppliedSettings, settings_applied
from geneb_ci.github.settings.client import SettingsClient
from geneb_ci.github.settings.diagnosis import SettingState
from geneb_ci.github.settings.features import features_of
from geneb_ci.github.settings.wanted import SETTINGS, Setting
from geneb_ci.render.table import wrapped_text
from reference_harness.formats.text import next_line

AFTER_PUSH = "main-"
"""Beginning of the ids of settings that would refuse the first push."""
KEYS = f"leaderboard/policy/{KEYS_FILE}"
AUDIT_KEY, KEYS_IGNORED = "keys/audit.pem", "keys/.gitignore"
ROW, CARD = f"submissions/{PRACTICE_ROW}.json", f"submissions/cards/{PRACTICE_ROW}.md"
MEASURING = ("numpy", "scipy", "sklearn", "threadpoolctl")
"""Modules of the extra `mini`, by which the practice row is measured."""
INSTALL_MINI = "pip install 'geneb-ci[mini]'"
HARNESS_SECONDS = 600  # the practice benchmark takes 5


def apply_settings(folder: Path, given: Answers, *, dry_run: bool) -> Exit:
    """Push the first commit, set what the tokens allow, and print the rest as a checklist.

    Raises UsageProblem where there is nothing to push.
    """
    if not has_commit(folder):
        raise UsageProblem(f"{folder.resolve()}: there is no commit", "run geneb-ci init first")
    with connect(given.repository) as github:
        client = SettingsClient(github.wire, given.space, dry=dry_run)
        _refuse_apply(client, folder, given)
        _create_space(client)
        _apply(client, [setting for setting in SETTINGS if not setting.id.startswith(AFTER_PUSH)])
        if client.has_main:
            pass
        elif dry_run:
            echo(f"would push the first commit to {given.repository}")
        else:
            echo(f"pushed the first commit to {push_first(folder, given.repository)}")
        later = SettingsClient(github.wire, given.space, dry=dry_run)
        _apply(later, [setting for setting in SETTINGS if setting.id.startswith(AFTER_PUSH)])
        if dry_run:
            echo("nothing was changed: this was a dry run")
            return Exit.CLEAN
        after = SettingsClient(github.wire, given.space)
        left, able = diagnosis.diagnoses_of(after), list(features_of(after))
    if not client.sent and not later.sent:
        echo("no setting had to be changed")
    write(Output("text", STDOUT), diagnosis.as_text(given.repository, left, width(), able))
    wrong = any(diagnosis.state is SettingState.WRONG for diagnosis in left)
    return Exit.ERRORS if wrong else Exit.CLEAN


def _refuse_apply(client: SettingsClient, folder: Path, given: Answers) -> None:
    """Refuse what GitHub, the Hub or git would refuse later, before anything is sent.

    Raises NotFound without the repository, UsageProblem for another remote or a token that lacks a
    right. What a token does not say of its rights is found when it is used.
    """
    name = client.wire.repository
    refuse_organisation(given, client.repository.get("owner") or {})
    rights = client.repository.get("permissions")
    if not client.has_main:
        remote_of(folder, name)
        for right in ("push", "admin"):
            if isinstance(rights, dict) and rights.get(right) is False:
                raise UsageProblem(
                    f"{name}: the owner of GH_TOKEN has no right to {right}",
                    "use a token of an administrator of the repository; `geneb-ci init` lists "
                    "the permissions that it needs",
                )
    if os.environ.get("HF_TOKEN"):
        hub.refuse_token(os.environ["HF_TOKEN"])


def _apply(client: SettingsClient, settings: list[Setting]) -> None:
    for change in settings_applied(client, diagnosis.diagnoses_of(client, settings)):
        click.echo(wrapped_text(_line(client, change), width()), nl=False)


def _line(client: SettingsClient, applied: AppliedSettings) -> str:
    names = ", ".join(applied.ids)
    if applied.error:
        return f"not set: {names}: {applied.error}"
    return f"{'would set' if client.dry else 'set'}: {names} ({', '.join(applied.sent)})"


def _create_space(client: SettingsClient) -> None:
    """Create the Space where it is missing and there is a token of the Hub."""
    token = os.environ.get("HF_TOKEN")
    try:
        if not token or hub.space_fault(client) is None:
            return
    except Unseen:
        return  # the report at the end says so
    if client.dry:
        echo(f"would create the Space {client.space}")
        return
    try:
        hub.create_space(client.space, token)
    except OSError as error:
        echo(f"the Space was not created: {type(error).__name__}", err=True)
    else:
        echo(f"created the Space {client.space}")


@click.command()
@click.argument(
    "folder", default=".", type=click.Path(path_type=Path, file_okay=False), metavar="[DIR]"
)
@click.option("--repo", metavar="OWNER/NAME", help="The repository on GitHub; it may be empty.")
@click.option("--space", metavar="OWNER/NAME", help="The Space; default: the name of --repo.")
@click.option(
    "--maintainers",
    multiple=True,
    metavar="@ORG/TEAM",
    help="Code owner: a team, or @ACCOUNT twice, of whom one approves what the other changes.",
)
@click.option(
    "--alone",
    is_flag=True,
    help="Weaker: the one account of --maintainers merges its own pull requests.",
)
@click.option(
    "--benchmark",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Benchmark definition; default: the practice benchmark GENEB-mini, with one row.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--force", is_flag=True, help="Overwrite files that differ.")
@click.option("--apply", is_flag=True, help="Push the first commit, and set up GitHub and the Hub.")
def init_command(
    folder: Path,
    repo: str | None,
    space: str | None,
    maintainers: tuple[str, ...],
    alone: bool,
    benchmark: Path | None,
    dry_run: bool,
    force: bool,
    apply: bool,
) -> int:
    """Write the repository of a new board into DIR, then with --apply set up GitHub and the Hub.

    Without --apply nothing leaves this machine. With it, the tokens are GH_TOKEN and HF_TOKEN.
    Both may be run again: what is there is not written twice, and a file that differs is kept.
    """
    _require_path(folder)
    given = answers(folder, repo, space, maintainers, is_alone=alone)
    if apply:
        return apply_settings(folder, given, dry_run=dry_run)
    definition = _definition(folder, benchmark)
    files = files_of(given, definition)
    plan = plan_of(folder, files)
    practice = definition == benchmark_bytes(None) and not _has_rows(folder)
    keys = not (folder / KEYS).exists()
    for line in (
        f"{folder.resolve()}: a board for {given.repository}, Space {given.space}",
        *plan_lines(plan, force=force),
        *(f"  not of this version, delete it  {name}" for name in left_over(folder, files)),
        *([f"  write  {KEYS}; private key in keys/, which git ignores"] if keys else []),
        *([f"  write  {ROW}, measured here by the harness"] if practice else []),
    ):
        echo(line)
    _refuse_early(folder, practice=practice)
    if dry_run:
        echo("nothing was written: this was a dry run")
        return Exit.CLEAN
    write_planned(folder, plan, force=force)
    if keys:
        _write_key(folder, given)
    if practice:
        _write_row(folder)
    if first_commit(folder):
        echo("made the first commit")
    elif is_changed(folder):
        echo("merge the changes by pull request; none of them counts before")
    if not force and any(planned.placing is Placing.DIFFERS for planned in plan):
        echo("  fix: compare what was kept, or overwrite it: geneb-ci init --force", err=True)
    _print_next_step(folder, given)
    return Exit.CLEAN


def _require_path(folder: Path) -> None:
    """Raise UsageProblem for a path that leads to no folder: symbolic links in a loop."""
    try:
        folder.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError until Python 3.12
        raise UsageProblem(
            f"{folder}: its symbolic links form a loop", "name another folder"
        ) from error


def _definition(folder: Path, benchmark: Path | None) -> bytes:
    """Return the benchmark that is named, or the one that the folder has, or the practice one."""
    own = folder / "schemas/benchmark.json"
    return benchmark_bytes(own if benchmark is None and own.is_file() else benchmark)


def _refuse_early(folder: Path, *, practice: bool) -> None:
    """Refuse what would stop this command after the first file was written.

    Raises UsageProblem without git or a name to commit by, for a folder that cannot be written to,
    and where the practice row cannot be measured.
    """
    existing = next(
        ancestor for ancestor in (folder.resolve(), *folder.resolve().parents) if ancestor.exists()
    )
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UsageProblem(f"{existing}: cannot be written to", "name another folder")
    if (folder / ".git").exists():
        git(folder, "rev-parse", "--git-dir")
    if not has_commit(folder):
        for who in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
            git(existing, "var", who)
    lacking = [name for name in MEASURING if practice and find_spec(name) is None]
    if lacking:
        raise UsageProblem(
            f"{lacking[0]} is not installed, and the practice row is measured with it",
            f"{INSTALL_MINI}, then run this again; or put a row of your own into submissions/",
        )


def _has_rows(folder: Path) -> bool:
    return any((folder / "submissions").glob("*.json"))


def _write_key(folder: Path, given: Answers) -> None:
    """Write a key of audits, and the list that names it."""
    ignored = path_inside(folder, KEYS_IGNORED)  # whatever the .gitignore of the folder says
    ignored.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    ignored.write_text("*\n", encoding="utf-8")
    now = datetime.now(UTC).strftime(FORMAT)
    owner = given.maintainers.split()[0].removeprefix("@")
    entry = _key(folder, AUDIT_KEY, owner, now)
    key_file = KeyFile(note="Ed25519 keys whose signatures on audit records count.", keys=[entry])
    text = json.dumps(key_file.model_dump(mode="json", exclude_none=True), indent=1) + "\n"
    path_inside(folder, KEYS).write_text(text, encoding="utf-8")


def _key(folder: Path, path: str, owner: str, now: str) -> TrustedKey:
    """Return the entry of a new private key, or of the one that an interrupted run left."""
    key_path = path_inside(folder, path)
    if not key_path.exists():
        return new_key(key_path, owner, now)
    raw = private_key(key_path).public_key().public_bytes_raw()
    return entry_of(raw, owner, now)


def _write_row(folder: Path) -> None:
    """Write the first row, measured here on the practice benchmark, and its card.

    Raises UsageProblem where the harness is not installed or fails.
    """
    row, card = path_inside(folder, ROW), path_inside(folder, CARD)
    card.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="geneb-ci-") as scratch:
        _measure(row, Path(scratch) / "record.json")
    card.write_bytes(template("card.md.in", {}))


def _measure(row: Path, record: Path) -> None:
    command = [sys.executable, "-P", "-m", "reference_harness", "run", "--extractor", "kmer"]
    command += ["--quiet", "--model-id", PRACTICE_ROW, "--display", "k-mer baseline", "--zero-shot"]
    command += ["--training-data", "none", "--submitted-by", "geneb-ci init"]
    command += ["--output", str(record), "--submission", str(row)]
    process = subprocess.run(  # noqa: S603 (our own program, fixed arguments)
        command, capture_output=True, text=True, check=False, timeout=HARNESS_SECONDS
    )
    if process.returncode:
        message = " ".join(process.stderr.split())
        raise UsageProblem(
            f"the practice row was not measured: {message}",
            f"{INSTALL_MINI}, then run this again; or put a row of your own into submissions/",
        )


def _print_next_step(folder: Path, given: Answers) -> None:
    """Print what is left to do, and the one command that comes next."""
    if is_changed(folder):
        where = [] if folder == Path() else ["-C", str(folder)]
        add, save = (["git", *where, verb] for verb in ("add", "commit"))
        echo(next_line(f"{shlex.join([*add, '--all'])} && {shlex.join(save)}"))
        return
    if not _has_rows(folder):
        echo("add a first row to submissions/: without one no board can be built")
        echo(next_line("geneb-ci new OWNER/MODEL"))
        return
    rights = (
        "  GH_TOKEN: a token of an administrator with Administration, Actions, Contents, "
        "Environments, Issues, Secrets, Variables and Workflows (write); HF_TOKEN: one that may "
        "write to the Space"
    )
    lines = (
        f"create {given.repository} on GitHub, empty, if it does not exist; then set it up, and",
        f"publish the board: HF_TOKEN=... geneb-ci publish --space {given.space}",
        rights,
    )
    click.echo(wrapped_text("\n".join(lines), width()), nl=False)
    echo(next_line("GH_TOKEN=... HF_TOKEN=... geneb-ci init --apply"))
