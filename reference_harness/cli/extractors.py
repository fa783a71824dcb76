"""`geneb-harness extractors`: list the built-in extractors, and check an extractor."""

import itertools
import json
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from reference_harness.errors import OptionError, known_name
from reference_harness.extractors import BUILTINS
from reference_harness.formats.old_options import earlier_name
from reference_harness.loading.built_in import built_in_identity

if TYPE_CHECKING:
    from reference_harness.conformance import PropertyResult

ERRORS_EXIT_CODE = 11
"""Exit code if a property that scores depend on does not hold, as of `geneb-ci check`."""


AUTO_BUDGET = "auto"
"""Value of --token-budget with which the budget is measured."""


class TokenBudget(click.ParamType[int | str]):
    """A token budget: a whole number from 1, or `auto`."""

    name = "N|auto"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Return the number or "auto"; anything else is a usage error."""
        if value == AUTO_BUDGET:
            return AUTO_BUDGET
        if re.fullmatch(r"[1-9][0-9]{0,8}", str(value)) is None:
            fix = "pass a number such as 2048, or auto"
            self.fail(f"{value!r} is not a token budget: {fix}", param, ctx)
        return int(str(value))


def budget_of(budget: int | str | None, device: str) -> tuple[int, bool]:
    """Return the token budget, and whether it is to be measured: with "auto", or on a GPU."""
    from reference_harness.embedding.batching import (
        DEFAULT_TOKEN_BUDGET,  # numpy, after worker threads are set
    )

    is_measured = budget == AUTO_BUDGET or (budget is None and device.partition(":")[0] == "cuda")
    return (budget if isinstance(budget, int) else DEFAULT_TOKEN_BUDGET), is_measured


@click.group()
def extractors() -> None:
    """List the built-in extractors, or check your own."""


@extractors.command("list")
def list_() -> None:
    """List the built-in extractors and the properties that `check` tries."""
    from reference_harness.conformance import PROPERTIES  # numpy, after worker threads are set

    click.echo("built in")
    width = max(map(len, BUILTINS))
    for name, builtin in BUILTINS.items():
        click.echo(f"  {name:<{width}}  {builtin.summary}")
    click.echo("yours\n  MODULE:CLASS, for example submissions/extractors/mine.py:MyExtractor")
    click.echo("properties")
    width = max(len(p.slug) for p in PROPERTIES)
    for checked_property in PROPERTIES:
        click.echo(f"  {checked_property.slug:<{width}}  {checked_property.sentence}")


@extractors.command()
@click.argument("name")
def digest(name: str) -> None:
    """Print path, class and digest of the built-in extractor NAME, as in submissions."""
    short_name = name.removeprefix("builtin:")
    try:
        exact_name = known_name(f"no built-in extractor {name!r}", short_name, tuple(BUILTINS))
    except OptionError as error:
        raise click.UsageError(str(error)) from error
    click.echo(json.dumps(built_in_identity(exact_name)._asdict()))


@extractors.command()
@click.argument("spec", metavar="NAME|MODULE:CLASS")
@click.option("--model", "name_model", default="", help="Hub repository or folder of the weights.")
@click.option("--device", default="cpu", show_default=True, help="Torch device of the extractor.")
@click.option(
    "--folder",
    help="Folder with a dotted MODULE; default: submissions/extractors, "
    "harness/extractors, then the current folder.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="Keyword argument of the extractor's constructor; repeatable.",
)
@click.option(
    "--select", multiple=True, metavar="PROPERTY", help="Check only this property; repeatable."
)
@click.option(
    "--quick/--full",
    "quick",
    default=True,
    help="quick: short sequences, about a minute; full: also a run's batches over 2,111 sequences "
    "of every length, before GPU time.  [default: quick]",
)
@click.option(
    "--batching",
    type=click.Choice(["budget", "exact", "file"], case_sensitive=False),
    default="budget",
    show_default=True,
    help="Batches that the full check repeats, as in `run`.",
)
@click.option(
    "--token-budget", type=TokenBudget(), help="Maximum of padded tokens per batch, as in `run`."
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    help="Time limit per property; in the full check, without progress.",
)
@click.option("--letters", type=click.IntRange(min=64), help="Longest sequence to try.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json"], case_sensitive=False),
    default="text",
    show_default=True,
    help="What to print.",
)
@click.option(
    "--json",
    "earlier__json",
    flag_value="json",
    **earlier_name("--json", "--format json", "format_"),
)
def check(
    spec: str,
    name_model: str,
    device: str,
    folder: str | None,
    options: tuple[str, ...],
    select: tuple[str, ...],
    batching: str,
    token_budget: int | str | None,
    seconds: float | None,
    letters: int | None,
    *,
    quick: bool,
    format_: str,
) -> None:
    """Check the properties of an extractor that scores depend on.

    It runs in a child process with a time limit, which is not a sandbox: only check code that you
    would run. A property that cannot be observed is "not verified", which is neither a failure nor
    a success.

    Exit codes: 0 no property fails, 11 one fails or could not be tried, 2 usage error, 1
    internal error.
    """
    from reference_harness import conformance  # numpy, after worker threads are set
    from reference_harness.embedding.extractor_calls import Batching
    from reference_harness.extractors.base import ExtractorError
    from reference_harness.loading.constructor_arguments import keywords, parsed_options
    from reference_harness.loading.packages import lock_of, start_with_packages
    from reference_harness.run.progress import listener

    try:
        start_with_packages([lock_of(spec, folder)])
        budget, is_measured = budget_of(token_budget, device)
        plan = Batching(mode=batching, token_budget=budget)  # type: ignore[arg-type]
        arguments = keywords(spec, parsed_options(options, "--option"), plan)
        properties = conformance.QUICK if quick else conformance.PROPERTIES
        with listener(len(select or properties), quiet=quick) as progress:
            results = conformance.check(
                spec,
                name_model,
                device,
                folder=folder,
                options=arguments,
                seconds=conformance.PROPERTY_SECONDS_MAX if seconds is None else seconds,
                letters=conformance.SEQUENCE_LETTERS_MAX if letters is None else letters,
                select=select,
                full=not quick,
                batching=plan,
                measures_budget=is_measured,
                listener=progress,
            )
    except (ExtractorError, OptionError, conformance.UnknownPropertyError) as error:
        raise click.UsageError(str(error)) from error
    if format_ == "json":
        counts = {str(outcome): _count(results, outcome) for outcome in conformance.Outcome}
        result_objects = [r.as_dict() for r in results]
        report = {"version": 2, "extractor": spec, "counts": counts, "results": result_objects}
        click.echo(json.dumps(report, indent=2))
    else:
        _print_table(spec, results)
    if any(r.is_refused() for r in results):
        sys.exit(ERRORS_EXIT_CODE)


def _count(results: list["PropertyResult"], outcome: str) -> int:
    """Return the number of results with an outcome."""
    return sum(r.outcome == outcome for r in results)


def _print_table(spec: str, results: list["PropertyResult"]) -> None:
    """Print one line per property; texts of the extractor are printed without markup."""
    from rich.console import Console  # 30 ms that JSON does not need
    from rich.table import Table
    from rich.text import Text

    from reference_harness.conformance import Outcome  # numpy, after worker threads are set

    outcome_texts = {
        Outcome.HOLDS: Text("ok", "green"),
        Outcome.FAILS: Text("FAIL", "red"),
        Outcome.NOT_VERIFIED: Text("not verified", "yellow"),
    }
    table = Table(box=None, pad_edge=False, show_edge=False)
    has_measurements = any(r.measured is not None for r in results)
    for title in (
        "",
        "property",
        "what was seen",
        *(("difference", "allowed") if has_measurements else ()),
    ):
        table.add_column(title, justify="right" if title in ("difference", "allowed") else "left")
    for result, further_text in _results_to_print(results):
        outcome_text = outcome_texts[result.outcome] if result.ran else Text("not run", "red")
        result_text = Text(_printable(result.sentence))
        if result.example:
            result_text.append(f"\n{_printable(result.example)}", "dim")
        numbers = (
            (_distance_text(result.measured), _distance_text(result.tolerance))
            if has_measurements
            else ()
        )
        table.add_row(outcome_text, f"{result.property}{further_text}", result_text, *numbers)
    console = Console()
    console.print(table)
    not_run_count = sum(not r.ran for r in results)
    counts = {
        "hold": _count(results, Outcome.HOLDS),
        "do not hold": _count(results, Outcome.FAILS),
        "could not be tried": not_run_count,
        "not verified": _count(results, Outcome.NOT_VERIFIED) - not_run_count,
    }
    count = f"{len(results)} properties"
    (first_count, outcome), *other_counts = ((n, outcome) for outcome, n in counts.items() if n)
    sentence = (
        f"all {count} {outcome}"
        if first_count == len(results)
        else f"{first_count} of {count} {outcome}"
    )
    singular = {"do not hold": "does not hold"}
    phrases = [
        f"{n} {singular.get(outcome, outcome) if n == 1 else outcome}"
        for n, outcome in other_counts
    ]
    sentence = "; ".join([sentence, *phrases])
    console.print(Text(f"{_printable(spec)}:\n{sentence}"), soft_wrap=True)


def _results_to_print(results: list["PropertyResult"]) -> Iterator[tuple["PropertyResult", str]]:
    """Yield the results to print, each with a text after the name of its property.

    Of successive results that were not run for the same reason, only the first is printed; its text
    is the number of the others.
    """
    for reason, group in itertools.groupby(results, lambda r: "" if r.ran else r.sentence):
        first_result, *further_results = group
        yield (
            first_result,
            f" and {len(further_results)} more" if reason and further_results else "",
        )
        yield from ((result, "") for result in further_results if not reason)


def _printable(text: str) -> str:
    """Replace control characters, as the text comes from untrusted code."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _distance_text(measured: float | None) -> str:
    """Return a measured distance as a number for the table; "" if there is none."""
    return "" if measured is None else f"{measured:.1e}"
