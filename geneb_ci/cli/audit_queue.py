"""The command `geneb-ci audit queue`: one worker per device runs audits, each in a process."""

import datetime as dt
import json
import os
import queue
import subprocess
import tempfile
import threading
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from geneb_ci.audit.canonical import TIME_FORMAT
from geneb_ci.cli.audit_draw import source_options
from geneb_ci.cli.audit_file import (
    QUEUE_REPORT_VARIABLE,
    check_options,
    file_command,
    record_options,
)
from geneb_ci.cli.main import echo
from geneb_ci.cli.shared import Device, LayeredCommand, machine_options, old_option
from geneb_ci.common.errors import Exit, NothingChecked, UsageProblem
from geneb_ci.render.plain import visible
from geneb_ci.render.table import Table
from reference_harness.formats.files import NotReadable, read_text
from reference_harness.formats.processes import module_command
from reference_harness.formats.text import next_line, plural, quoted

LIST_BYTES_MAX = 1_000_000
"""Maximum bytes of a list of audits: 1,000 audits take 200 kB."""
POLL_SECONDS = 0.2
"""Seconds between two checks for Ctrl-C."""
PROGRESS_LINE_MAX = 400
"""Maximum characters of a line of progress."""
_QUEUE_OPTIONS = frozenset({"device", "report"})
"""Options of `audit FILE` that only the queue sets, so that no two audits use one device."""


class QueuedAudit(NamedTuple):
    """An audit that a queue runs."""

    file: str
    arguments: tuple[str, ...]
    """Options of this audit, as words of a command line."""


class QueuedAuditResult(NamedTuple):
    """Result of an audit of a queue."""

    file: str
    code: int
    """Exit code of the audit's process."""
    state: str
    """Verdict, `to be published`, or why the audit failed."""
    commitment: str = ""
    """Digest that has to be published now; empty when there is none."""
    next: str = ""
    """Command that continues after the publication; empty when there is none."""
    cost: str = ""
    """Cost estimate as lines of text; empty after a rerun."""


def listed_audits(path: Path) -> list[QueuedAudit]:
    """Return the audits in a TOML file: tables `[[audit]]` with `file` and options of `audit FILE`.

    Raises NothingChecked for a file that cannot be read, and UsageProblem for a key that is not an
    option.
    """
    fix = (
        'write each audit as [[audit]] with file = "submissions/M.json" and options such as '
        "committed-at"
    )
    try:
        document = tomllib.loads(read_text(path, LIST_BYTES_MAX).decode("utf-8"))
    except NotReadable as error:
        raise NothingChecked(f"{path}: {error.reason}", fix) from error
    except ValueError as error:
        raise NothingChecked(f"{path}: not a TOML file: {error}", fix) from error
    tables = document.get("audit")
    if not isinstance(tables, list) or document.keys() != {"audit"}:
        raise UsageProblem(
            f"{path}: found {', '.join(map(quoted, document)) or 'no table'}, expected tables "
            "[[audit]] and nothing else",
            fix,
        )
    return [
        _listed_audit(table, f"{path}: audit {number}") for number, table in enumerate(tables, 1)
    ]


def _listed_audit(table: Any, position: str) -> QueuedAudit:  # of a TOML file
    """Return the audit that a table `[[audit]]` describes; error messages begin with `position`.

    Raises UsageProblem for a table without `file`, or with a wrong option.
    """
    if not isinstance(table, dict) or not isinstance(table.get("file"), str):
        raise UsageProblem(
            f"{position}: the key file is missing", 'add file = "submissions/M.json"'
        )
    options = {
        name.removeprefix("--"): option
        for option in file_command.params
        if isinstance(option, click.Option)
        for name in option.opts
    }
    words: list[str] = []
    for option_name, option_value in table.items():
        if option_name == "file":
            continue
        option = options.get(option_name.replace("_", "-"))
        if option is None:
            raise UsageProblem(
                f"{position}: {option_name!r} is not an option of `geneb-ci audit FILE`",
                "see the options in `geneb-ci audit file --help`",
            )
        if option.name in _QUEUE_OPTIONS:
            raise UsageProblem(
                f"{position}: the queue itself sets {option_name!r} for each audit",
                f"remove {option_name!r} from the list"
                + ("; `audit queue --device` sets the devices" if option.name == "device" else ""),
            )
        words += _option_as_words(option, option_value, f"{position}: {option_name}")
    return QueuedAudit(table["file"], tuple(words))


def _option_as_words(option: click.Option, value: Any, position: str) -> list[str]:  # of TOML
    """Return an option in the TOML list of audits as words of a command line.

    Raises UsageProblem for a value that the option cannot have.
    """
    name = option.opts[0]
    if option.is_flag:
        if not isinstance(value, bool):
            raise UsageProblem(
                f"{position}: {value!r} is neither true nor false",
                f"write {name[2:]} = true, or leave out {name[2:]}",
            )
        return [name] if value else []
    elements = value if isinstance(value, list) and option.multiple else [value]
    return [word for element in elements for word in (name, _value_as_word(element, position))]


def _value_as_word(element: Any, position: str) -> str:  # of a TOML file
    """Return a value in the TOML list of audits as a word of a command line.

    Raises UsageProblem unless it is text, a whole number, or a time in UTC.
    """
    if isinstance(element, dt.datetime):
        if element.tzinfo is None or element.microsecond:
            raise UsageProblem(
                f"{position}: {element.isoformat()} is not a time in UTC, to the second",
                "write the time with its time zone: 2026-11-20T08:30:00Z",
            )
        return element.astimezone(dt.UTC).strftime(TIME_FORMAT)
    if isinstance(element, bool) or not isinstance(element, str | int):
        raise UsageProblem(
            f"{position}: {element!r} is neither a text nor a whole number",
            'write the value as on a command line: limit-task-time = "2h", copies = 32',
        )
    return str(element)


class _Queue:
    """The audits that wait and those that run, at most one on each device."""

    def __init__(
        self,
        audits: Sequence[QueuedAudit],
        arguments: Sequence[str],
        folder: Path,
        *,
        cluster: bool,
    ) -> None:
        self.results: dict[int, QueuedAuditResult] = {}
        """Result of each finished audit, by its position in the list."""
        self._waiting: queue.SimpleQueue[tuple[int, QueuedAudit]] = queue.SimpleQueue()
        for numbered_audit in enumerate(audits):
            self._waiting.put(numbered_audit)
        self._arguments = arguments
        self._folder = folder
        self._cluster = cluster
        self._running: dict[int, subprocess.Popen[str]] = {}
        self._stopped = threading.Event()

    def work(self, device: str | None) -> None:
        """Run audits on a device until none is left."""
        while not self._stopped.is_set():
            try:
                number, audit = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self.results[number] = self._run(number, audit, device)
            except OSError as error:  # no process can be started: the others are tried all the same
                reason = f"cannot be started: {error.strerror}"
                self.results[number] = QueuedAuditResult(audit.file, Exit.OWN_FAULT, reason)

    def _run(self, number: int, audit: QueuedAudit, device: str | None) -> QueuedAuditResult:
        """Run an audit in a process of its own, print its messages, and return the result."""
        report = self._folder / f"{number}.json"
        words = [*self._arguments, *audit.arguments, *(["--device", device] if device else [])]
        command = [*module_command("geneb_ci"), "audit", "file", audit.file, *words]
        if self._cluster:
            gpu_options = ["--gpu"] if (device or "").startswith("cuda") else []
            command[:0] = [*module_command("reference_harness"), "elsewhere", *gpu_options, "--"]
        last_message = ""
        environment = os.environ | {QUEUE_REPORT_VARIABLE: str(report)}
        with subprocess.Popen(  # noqa: S603 (our own module)
            command,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.PIPE,
            text=True, errors="backslashreplace", env=environment,
        ) as process:  # fmt: skip
            self._running[number] = process
            for line in process.stderr or ():
                message = line.rstrip()
                last_message = message if message.startswith("geneb-ci: ") else last_message
                echo(f"{Path(audit.file).stem}: {visible(message, PROGRESS_LINE_MAX)}", err=True)
        del self._running[number]
        ending = last_message.removeprefix("geneb-ci: ") or f"ended with code {process.returncode}"
        if not report.is_file():
            return QueuedAuditResult(audit.file, process.returncode, ending)
        members = {name: str(member) for name, member in json.loads(report.read_bytes()).items()}
        del members["exit_code"]
        return QueuedAuditResult(audit.file, process.returncode, **members)

    def stop(self) -> None:
        """Terminate the running audits and start no more; finished results are kept."""
        self._stopped.set()
        for process in list(self._running.values()):
            process.terminate()


def run_queue(
    audits: Sequence[QueuedAudit],
    arguments: Sequence[str],
    devices: Sequence[str],
    *,
    cluster: bool = False,
) -> list[QueuedAuditResult]:
    """Run audits, one at a time on each device, and return their results in the order of `audits`.

    `arguments` are options for every audit. An audit that fails does not stop the others.
    """
    # On a cluster only the current folder is certain to exist on every machine.
    parent = Path.cwd() if cluster else None
    with tempfile.TemporaryDirectory(prefix=".geneb-ci-queue-", dir=parent) as folder:
        audit_queue = _Queue(audits, arguments, Path(folder), cluster=cluster)
        workers = [
            threading.Thread(target=audit_queue.work, args=(device,))
            for device in devices or (None,)
        ]
        for worker in workers:
            worker.start()
        try:
            while any(worker.is_alive() for worker in workers):
                for worker in workers:
                    worker.join(POLL_SECONDS)
        except BaseException:  # Ctrl-C and SIGTERM, too: no audit outlives its queue
            audit_queue.stop()
            raise
        finally:
            for worker in workers:
                worker.join()
    return [audit_queue.results[number] for number in sorted(audit_queue.results)]


def results_table(audit_results: Sequence[QueuedAuditResult]) -> str:
    """Return the table printed at the end of a queue: a line for each audit, then the counts."""
    rows = [
        (str(result.code), result.file, visible(result.state, PROGRESS_LINE_MAX))
        for result in audit_results
    ]
    lines = Table(("code", "file", ""), rows, frozenset({"code"})).text_lines()
    clean_count, differing_count = (
        sum(result.code == code for result in audit_results) for code in (Exit.CLEAN, Exit.ERRORS)
    )
    counts = (
        f"{plural(len(audit_results), 'audit')}: {clean_count} without an error, {differing_count} "
        "that differ or are refused, "
        f"{len(audit_results) - clean_count - differing_count} not carried out"
    )
    return "\n".join([*lines, counts]) + "\n"


def results_details(audit_results: Sequence[QueuedAuditResult]) -> str:
    """Return cost, digest to publish and next command of each audit that ended before its draw."""
    details = ((result.file, f"{result.cost}{_next_step(result)}") for result in audit_results)
    return "".join(f"\n{file}:\n{detail}" for file, detail in details if detail)


def _next_step(audit_result: QueuedAuditResult) -> str:
    """Return the digest to publish and the next command; "" if the audit has none."""
    if not audit_result.commitment:
        return ""
    return (
        f"commitment {audit_result.commitment}\n"
        "publish this digest; then continue with the time at which it became public, in UTC\n"
        f"{next_line(audit_result.next)}\n"
    )


def queue_exit_code(audit_results: Sequence[QueuedAuditResult]) -> Exit:
    """Return 11 where an audit differs or is refused, else 3 where one failed, else 0."""
    codes = {result.code for result in audit_results}
    if Exit.ERRORS in codes:
        return Exit.ERRORS
    return Exit.CLEAN if codes <= {Exit.CLEAN} else Exit.NOT_CHECKED


@click.command(
    cls=LayeredCommand,
    common=(
        *("--from", "--device", "--engine", "--dry-run", "--key", "--unsigned"),
        *("--data", "--weights"),
    ),
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--from",
    "list_file",
    metavar="FILE.toml",
    type=click.Path(path_type=Path),
    help="List of audits: [[audit]] with file and the options of `audit FILE`.",
)
@click.option(
    "--device",
    "devices",
    type=Device(),
    multiple=True,
    metavar="D",
    help="cpu, cuda or cuda:N, which gets one worker. Repeatable; default: one worker on the CPU.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"], case_sensitive=False),
    default="local",
    show_default=True,
    help="Where audits run: on this machine, or on a Ray cluster.",
)
@old_option("--gpu", "--device cuda", "devices", ("cuda",))
@record_options
@source_options
@machine_options
@click.pass_context
def queue_command(
    ctx: click.Context,
    /,
    files: tuple[Path, ...],
    list_file: Path | None,
    devices: tuple[str, ...],
    engine: str,
    **options: Any,
) -> int:
    """Audit FILES one after another, each as `geneb-ci audit FILE` does, all with these options.

    An audit that fails does not stop the others. A table of the results is printed at the end. To
    continue after an interruption, run the same command again. The exit code is 11 when a claim
    differs or a file is refused, 3 when an audit could not be carried out.
    """
    audits = [QueuedAudit(str(file), ()) for file in files]
    audits += listed_audits(list_file) if list_file is not None else []
    if not audits:
        raise NothingChecked("there is nothing to audit", "name files, or pass --from FILE.toml")
    paths = [Path(audit.file).resolve() for audit in audits]
    if repeated_files := [
        audit.file for audit, path in zip(audits, paths, strict=True) if paths.count(path) > 1
    ]:
        raise UsageProblem(f"{repeated_files[0]} is listed more than once", "list each file once")
    arguments = _option_words(ctx, options)
    for audit in audits:
        _require_valid_options(audit, arguments)
    audit_results = run_queue(audits, arguments, devices, cluster=engine == "ray")
    echo((results_table(audit_results) + results_details(audit_results)).removesuffix("\n"))
    return queue_exit_code(audit_results)


def _require_valid_options(audit: QueuedAudit, arguments: Sequence[str]) -> None:
    """Raise UsageProblem for an audit whose options are wrong."""
    try:
        with file_command.make_context(
            "file", [audit.file, *arguments, *audit.arguments]
        ) as parsed:
            options = {name: parsed.params[name] for name in _CHECKED_OPTIONS}
        check_options(**options)
    except click.UsageError as error:
        fix = "see `geneb-ci audit file --help`"
        raise UsageProblem(f"{audit.file}: {error.format_message()}", fix) from error
    except UsageProblem as error:
        raise UsageProblem(f"{audit.file}: {error.message}", error.fix) from error


_CHECKED_OPTIONS = ("committed_at", "key", "output", "unsigned")
"""Options that `check_options` checks."""


def _option_words(ctx: click.Context, options: Mapping[str, Any]) -> list[str]:
    """Return the options that the user typed, as words of a command line."""
    words: list[str] = []
    for option in ctx.command.params:
        option_name = str(option.name)
        is_given = ctx.get_parameter_source(option_name) is ParameterSource.COMMANDLINE
        if option_name not in options or not is_given or not isinstance(option, click.Option):
            continue
        if option.is_flag:
            words.append(option.opts[0])
            continue
        option_value = options[option_name]
        values = option_value if isinstance(option_value, tuple) else (option_value,)
        words += [word for value in values for word in (option.opts[0], str(value))]
    return words
