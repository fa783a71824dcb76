"""Options, output and progress that several commands share."""

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import click

from geneb_ci.check.report import Report, Verdict
from geneb_ci.cli.main import (
    SILENT_SECONDS,
    UNLIMITED_COLUMNS,
    echo,
    is_plain,
    print_expected_time,
    with_counted_progress,
)
from geneb_ci.common.errors import Exit, UsageProblem, unwritable
from geneb_ci.render.formats import DEFAULT_WIDTH, FORMATS, verdict_of
from geneb_ci.render.text import REPORT_LINES_MAX

if TYPE_CHECKING:
    from geneb_ci.audit.rerun.prepare import Machine
from geneb_ci.sandbox.limits import MEMORY_MIB, TASK_SECONDS, TOKEN_BUDGET, TOTAL_SECONDS
from reference_harness.formats.layered_help import LayeredHelp
from reference_harness.formats.old_options import earlier_name
from reference_harness.formats.submission_terms import DTYPES

STDOUT = "-"
"""Name of a file that stands for standard output."""
WIDTH_MIN, WIDTH_MAX = 60, 120
"""Minimum and maximum width of a report, in columns."""
PROSE_COLUMNS_MAX = 88
"""Maximum width of prose in columns; longer lines are hard to read."""


class Output(NamedTuple):
    """A format in which a report is written, and the file; "-" is standard output."""

    format: str
    path: str


class CommandWithOptionOrder(click.Command):
    """A command that records in which order its options were given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Record the order of the options, then parse as click does."""
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        ctx.meta["geneb_ci.order"] = [param.name for param in order]
        return super().parse_args(ctx, args)


class LayeredCommand(LayeredHelp, click.Command):
    """A command whose `--help` lists common options, and whose `--help-all` lists all options."""

    OPTION_CLASS = click.Option
    """Class of the option `--help-all`."""


FOLDER_ARGUMENT = click.argument(
    "folder", required=False, type=click.Path(path_type=Path, file_okay=False, exists=True)
)
"""The argument FOLDER of a command, which may be left out."""


def format_option(names: Iterable[str]) -> Callable[[Any], Any]:
    """Add `--format` to a command that writes one report; its parameter is `format_`."""
    return click.option(
        "--format",
        "format_",
        type=click.Choice(list(names), case_sensitive=False),
        default="text",
        show_default=True,
        help="What to print.",
    )


def old_option(
    old: str, option: str, name: str, value: str | tuple[str, ...] | None = None
) -> Callable[[Any], Any]:
    """Add `old`, the former name of an option, to a command.

    `option` is the present name, `name` its parameter. If `value` is given, `old` is a flag that
    sets the parameter to this value.
    """
    flag: dict[str, Any] = {} if value is None else {"flag_value": value}
    attributes = earlier_name(old, option, name)
    return click.option(
        old, f"earlier{old.replace('-', '_')}", type=click.UNPROCESSED, **attributes, **flag
    )


OLD_JSON_OPTION = old_option("--json", "--format json", "format_", "json")
"""The option `--json`, the former name of `--format json`."""


ALL_LINES_OPTION = click.option(
    "--all",
    "prints_all",
    is_flag=True,
    help=f"Print everything, not only {REPORT_LINES_MAX} lines.",
)
"""The option `--all`."""


def report_options(function: Any) -> Any:
    """Add `--format` and `--output` to a command."""
    output = click.option(
        "--output",
        "outputs",
        multiple=True,
        metavar="FILE",
        help="File for the report of the --format before it.",
    )
    descriptions = "; ".join(f"{name}: {format_.description}" for name, format_ in FORMATS.items())
    return click.option(
        "--format",
        "formats",
        multiple=True,
        type=click.Choice(list(FORMATS), case_sensitive=False),
        help=f"Repeatable; default: text. {descriptions}.",
    )(output(function))


def outputs_with_formats(formats: tuple[str, ...], outputs: tuple[str, ...]) -> list[Output]:
    """Return each output with the format before it; a format without output gets standard output.

    Raises UsageProblem if two reports would be written to the same file.
    """
    order = click.get_current_context().meta["geneb_ci.order"]
    format_names, paths = iter(formats), iter(outputs)
    pairs: list[Output] = []
    for parameter in order:
        if parameter == "formats":
            pairs.append(Output(next(format_names), STDOUT))
        elif parameter == "outputs":
            path = next(paths)
            if not pairs or pairs[-1].path != STDOUT:
                pairs.append(Output("text", path))
            else:
                pairs[-1] = Output(pairs[-1].format, path)
    pairs = pairs or [Output("text", STDOUT)]
    targets = [pair.path for pair in pairs]
    if len(set(targets)) < len(targets):
        raise UsageProblem(
            "two reports would be written to the same file",
            "pass --output for all but one: --format sarif --output x.sarif",
        )
    return pairs


def write(output: Output, text: str) -> None:
    """Write a report, and print its path if it is a file.

    Raises UsageProblem or MachineFault if the file cannot be written.
    """
    if output.path == STDOUT:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        Path(output.path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritable(output.path, error, "name another file") from error
    echo(f"wrote {output.path}", err=True)


def width(path: str = STDOUT, widest: int = WIDTH_MAX, unknown: int = DEFAULT_WIDTH) -> int:
    """Return the width of a report in columns: the terminal's, from `WIDTH_MIN` to `widest`.

    Without a terminal it is the variable COLUMNS or `unknown`; for a file it is `unknown`.
    """
    columns = shutil.get_terminal_size((unknown, 24)).columns if path == STDOUT else unknown
    return max(WIDTH_MIN, min(widest, columns))


def list_width(path: str = STDOUT) -> int:
    """Return the width in columns of a list with a line for each row; in a pipe it is unlimited."""
    return width(path, UNLIMITED_COLUMNS, UNLIMITED_COLUMNS)


class _NumberWithUnit(click.ParamType[int]):
    """A whole number from 1, which may be followed by a unit."""

    units: ClassVar[dict[str, int]]
    """Factor of each unit; "" is that of a number without a unit."""
    example: str
    """Examples of valid texts, for messages."""

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Return the number in the smallest unit; fail with a usage error for any other text."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"([1-9][0-9]{0,8})([a-zA-Z]?)", str(value))
        if match is None or match[2].lower() not in self.units:
            self.fail(f"{value!r} is not a {self.name.lower()}: pass {self.example}", param, ctx)
        return int(match[1]) * self.units[match[2].lower()]


class Seconds(_NumberWithUnit):
    """A time in seconds, given as their number or with the unit `s`, `m` or `h`."""

    name = "TIME"
    units: ClassVar[dict[str, int]] = {"": 1, "s": 1, "m": 60, "h": 3600}
    example = "600, 90m or 2h"


class Mebibytes(_NumberWithUnit):
    """A size in MiB, given as their number or with the unit `M` (MiB) or `G` (GiB)."""

    name = "SIZE"
    units: ClassVar[dict[str, int]] = {"": 1, "m": 1, "g": 1024}
    example = "512M or 24G"


MEASURED_BUDGET = "auto"
"""Value of --token-budget for a budget that is measured."""


class TokenBudget(_NumberWithUnit):
    """A token budget: a whole number from 1, or `auto` for a budget that is measured."""

    name = "token budget"
    units: ClassVar[dict[str, int]] = {"": 1}
    example = f"a number such as 2048, or {MEASURED_BUDGET}"

    def convert(  # type: ignore[override]  # a word beside the numbers
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Return the number, or `auto`; fail with a usage error for any other text."""
        return MEASURED_BUDGET if value == MEASURED_BUDGET else super().convert(value, param, ctx)


class Device(click.ParamType[str]):
    """A device: `cpu`, `cuda`, or `cuda:N` for one of several GPUs."""

    name = "device"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the name of the device; fail with a usage error for any other text."""
        if not re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", str(value), re.ASCII):
            self.fail(f"{value!r} is not a device: pass cpu, cuda, or cuda:1", param, ctx)
        return str(value)


def device_option(function: Any) -> Any:
    """Add `--device`, which alone decides whether the sandbox contains the GPUs."""
    function = old_option("--gpu", "--device cuda", "device", "cuda")(function)
    return click.option(
        "--device",
        type=Device(),
        default="cpu",
        show_default=True,
        metavar="D",
        help="cpu; or cuda, or cuda:1 for one of several: the sandbox then contains the GPUs.",
    )(function)


_FOLDER_PATH = click.Path(path_type=Path, file_okay=False)
"""Type of an option whose value is a folder, which may not exist yet."""
DATA_OPTION = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of task data; the practice benchmark needs none.",
)
"""The option `--data`."""
SCORING_TIME_OPTION = click.option(
    "--limit-scoring-time",
    type=Seconds(),
    help="Maximum CPU time to score one task; default: computed from the size of the task.",
)
"""The option `--limit-scoring-time`."""
SCORING_MEMORY_OPTION = click.option(
    "--limit-scoring-memory",
    type=Mebibytes(),
    help="Maximum memory to score one task; default: computed from the size of the task.",
)
"""The option `--limit-scoring-memory`."""


def machine_options(function: Any) -> Any:
    """Add the options of a rerun except `--device`; `machine_of` turns all into a Machine."""
    for option in reversed(_MACHINE_OPTIONS):
        function = option(function)
    return function


_MACHINE_OPTIONS = (
    DATA_OPTION,
    click.option(
        "--weights",
        type=_FOLDER_PATH,
        help="Folder of the weights; if it is empty, they are fetched into it.",
    ),
    click.option(
        "--noise",
        type=click.Choice(DTYPES, case_sensitive=False),
        help="For format 1.0: dtype in which the model computes, whose rounding is the noise.",
    ),
    click.option(
        "--copies",
        type=click.IntRange(16),
        default=16,
        show_default=True,
        metavar="N",
        help="Number of copies with added noise from which each tolerance is measured.",
    ),
    click.option(
        "--level",
        type=click.IntRange(0, 4),
        default=2,
        show_default=True,
        metavar="0-4",
        help="Sandbox level; `geneb-ci doctor` lists them, and which this machine supports.",
    ),
    click.option(
        "--throw-away-machine",
        "throw_away",
        is_flag=True,
        help="Level 4: declare that this machine is deleted after the audit.",
    ),
    click.option(
        "--i-wrote-this-code",
        "own_code",
        is_flag=True,
        help="Level 0: run your own code without a sandbox; such an audit gives no evidence.",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(1),
        metavar="N",
        help="Processes that fit probes; default: one per core.",
    ),
    old_option("--workers", "--jobs", "jobs"),
    click.option(
        "--limit-task-time",
        type=Seconds(),
        default=TASK_SECONDS,
        show_default=True,
        help="Maximum time of one task in the sandbox: seconds, or 90m, or 2h.",
    ),
    click.option(
        "--limit-time",
        type=Seconds(),
        default=TOTAL_SECONDS,
        show_default=True,
        help="Maximum time of all tasks together in the sandbox.",
    ),
    click.option(
        "--limit-memory",
        type=Mebibytes(),
        default=MEMORY_MIB,
        show_default=True,
        help="Maximum memory of the extractor: MiB, or 24G.",
    ),
    SCORING_TIME_OPTION,
    SCORING_MEMORY_OPTION,
    click.option(
        "--token-budget",
        type=TokenBudget(),
        metavar="N|auto",
        help="Padded tokens per batch; auto: as many as fit into memory, measured before each "
        f"task.  [default: {TOKEN_BUDGET}; on a GPU auto]",
    ),
    click.option(
        "--fresh",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        metavar="SET.csv",
        help="Fresh labelled sequences, which `geneb-ci audit fresh commit` committed to.",
    ),
    click.option(
        "--fresh-commitment",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        metavar="F.json",
        help="Commitment to the set of --fresh.",
    ),
)
"""Options of a rerun except `--device`."""


def machine_of(options: Mapping[str, Any]) -> "Machine":
    """Return the machine that the options of `device_option` and `machine_options` describe."""
    from geneb_ci.audit.rerun.prepare import Machine  # a heavy import for other commands
    from geneb_ci.harness.process import ScoringLimitOverrides
    from geneb_ci.sandbox.limits import Limits

    remaining_options = dict(options)
    limits = Limits(
        seconds=remaining_options.pop("limit_task_time"),
        total_seconds=remaining_options.pop("limit_time"),
        memory_mib=remaining_options.pop("limit_memory"),
    )
    scoring = ScoringLimitOverrides(
        remaining_options.pop("limit_scoring_time"), remaining_options.pop("limit_scoring_memory")
    )
    budget = remaining_options.pop("token_budget")
    if budget is None:
        budget = TOKEN_BUDGET if options["device"] == "cpu" else MEASURED_BUDGET
    return Machine(
        **remaining_options,
        scoring=scoring,
        token_budget=None if budget == MEASURED_BUDGET else budget,
        limits=limits,
    )


T = TypeVar("T")


def with_progress(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """Yield the items, with a progress bar on standard error after `SILENT_SECONDS` seconds."""
    if not sys.stderr.isatty():
        yield from items
        return
    start = time.monotonic()
    iterator = iter(items)
    for count, item in enumerate(iterator, 1):  # noqa: B007 (used below)
        yield item
        if time.monotonic() - start > SILENT_SECONDS:
            break
    else:
        return
    if is_plain():
        yield from with_counted_progress(iterator, count, total, label)
        return
    from rich.console import Console  # most runs need no progress bar
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total, completed=count)
        for item in iterator:
            yield item
            progress.advance(task)


def watch_checks(results: Iterable[Any], total: int) -> Iterator[Any]:
    """Yield the results of checks, and show progress as `with_progress` does."""
    return with_progress(results, total, "checking")


BUILD_SECONDS_PER_ROW = 0.015
"""Seconds per row that a build takes after the checks: 1,000 rows and an empty cache."""


def watch_build(results: Iterable[Any], total: int) -> Iterator[Any]:
    """Yield the results of checks and show their progress, then print how long the build takes."""
    yield from watch_checks(results, total)
    print_expected_time("building the board", total * BUILD_SECONDS_PER_ROW)


_EXIT_CODES = {
    Verdict.CLEAN: Exit.CLEAN,
    Verdict.WARNINGS: Exit.CLEAN,
    Verdict.NOT_CHECKED: Exit.NOT_CHECKED,
    Verdict.ERRORS: Exit.ERRORS,
}
"""Exit code of each verdict of a check."""


def require_pull_for_repository(repo: str | None, *, pulls: bool) -> None:
    """Raise UsageProblem where --repo is given without --pr."""
    if repo is not None and not pulls:
        raise UsageProblem("--repo has no effect without --pr", "add --pr N, or omit --repo")


def exit_code(report: Report, *, strict: bool) -> Exit:
    """Return the exit code of a report; with `strict`, warnings give 10."""
    result = verdict_of(report)
    return Exit.WARNINGS if strict and result is Verdict.WARNINGS else _EXIT_CODES[result]
