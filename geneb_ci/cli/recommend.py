"""The commands `recommend` and `figures`, which read submissions or a built board."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geneb_ci.api import recommend
from geneb_ci.board.advice import (
    DEFAULT_MARGIN,
    has_built_board,
    read_built_files,
)
from geneb_ci.board.rows import DIAGNOSTICS, LEADERBOARD, TASKS
from geneb_ci.cli.shared import (
    FOLDER_ARGUMENT,
    STDOUT,
    Output,
    format_option,
    watch_checks,
    width,
    write,
)
from geneb_ci.common.errors import Exit, GenebError, UsageProblem
from geneb_ci.common.finding import exact_name
from geneb_ci.common.types import EVIDENCE_ORDER
from geneb_ci.render.advice import ADVICE_WRITERS, FIGURE_WRITERS
from reference_harness.formats.text import quoted

if TYPE_CHECKING:
    from geneb_ci.board.diagnostics.document import Figure
    from geneb_ci.board.diagnostics.findings import FigureDefinition, ParameterValue

WIDTH_WITHOUT_TERMINAL = 80
"""Columns of a report without a terminal."""


@click.command()
@FOLDER_ARGUMENT
@click.option("--category", help="A category of the benchmark's tasks; default: any.")
@click.option("--species", help="Species or kingdom of the tasks; default: any.")
@click.option(
    "--regime",
    default="full",
    show_default=True,
    help="Labelled examples: full, 10shot or 1shot, or hundreds for those between.",
)
@click.option(
    "--max-params", metavar="COUNT", help="Maximum number of parameters, such as 500M or 1.2B."
)
@click.option(
    "--memory",
    type=float,
    metavar="GB",
    help="Memory of the GPU, of which the weights in fp16 take at most half.",
)
@click.option(
    "--evidence",
    type=click.Choice(list(map(str, EVIDENCE_ORDER[1:])), case_sensitive=False),
    help="Minimum evidence for the scores.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 1),
    default=DEFAULT_MARGIN,
    show_default=True,
    help="Loss of MCC that is accepted for a smaller model.",
)
@format_option(("text", "json"))
@click.option("--output", default=STDOUT, metavar="FILE", help="File to write.")
def recommend_command(
    folder: Path | None,
    category: str | None,
    species: str | None,
    regime: str,
    max_params: str | None,
    memory: float | None,
    evidence: str | None,
    margin: float,
    format_: str,
    output: str,
) -> int:
    """List models of FOLDER by their mean over the matching tasks, and what smaller models lose.

    FOLDER contains submissions, which are checked first, or a board that `build` wrote. A smaller
    model is listed if it loses at most --margin with 95 % confidence
    (docs/research/uncertainty.md). The exit code is 3 if no task matches, or if no model meets size
    and evidence.
    """
    try:
        advice = recommend(
            folder,
            category=category,
            species=species,
            regime=regime,
            max_params=max_params,
            memory=memory,
            evidence=evidence,
            margin=margin,
            progress=watch_checks,
        )
    except GenebError as error:
        report = getattr(error, "report", None)
        if report is None:
            raise
        from geneb_ci.cli.repository import print_refusal  # 0.3 s

        return print_refusal(report, "nothing was recommended")
    advice_text = ADVICE_WRITERS[format_](advice, width(output, unknown=WIDTH_WITHOUT_TERMINAL))
    write(Output(format_, output), advice_text)
    return Exit.CLEAN if advice.regimes else Exit.NOT_CHECKED


@click.command()
@FOLDER_ARGUMENT
@click.option(
    "--scope",
    type=click.Choice(["paper", "board", "exclusions"], case_sensitive=False),
    default="paper",
    show_default=True,
    help="Rows and parameter counts: of the paper, of the board, or of the paper without rows "
    "whose extractor has a published defect.",
)
@click.option("--figure", "name", help="One figure, such as hard-tasks; default: all.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Replace a parameter of --figure, such as threshold=0.3; may be repeated.",
)
@click.option(
    "--exclude", multiple=True, metavar="MODEL", help="Leave out a model; may be repeated."
)
@format_option(("text", "json"))
@click.option("--output", default=STDOUT, metavar="FILE", help="File to write.")
def figures_command(
    folder: Path | None,
    scope: str,
    name: str | None,
    settings: tuple[str, ...],
    exclude: tuple[str, ...],
    format_: str,
    output: str,
) -> int:
    """Compute the figures of the paper from FOLDER, with their definitions and parameters.

    FOLDER contains submissions, which are checked first, or is the DIR of `build --output DIR`.
    docs/reader/diagnostics.md lists the figures.
    """
    if settings and name is None:
        raise UsageProblem("--set is given without --figure", "name the figure with --figure")
    from geneb_ci.board.diagnostics.findings import figure_definitions_on, figure_of, figure_rows

    parsed_files = (
        read_built_files(folder, DIAGNOSTICS, LEADERBOARD, TASKS)
        if folder is not None and has_built_board(folder)
        else _computed_files(folder)
    )
    if isinstance(parsed_files, Exit):
        return parsed_files
    regimes = list(parsed_files[LEADERBOARD]["data"])
    models = {row.model for row in figure_rows(parsed_files, "board")}
    available_kinds = figure_definitions_on(regimes, models)
    figure_ids = list(dict.fromkeys(kind.id for kind in available_kinds))
    exact_id = None if name is None else exact_name(name, figure_ids, "figure")
    figure_kinds = [kind for kind in available_kinds if exact_id in {None, kind.id}]
    rows = figure_rows(parsed_files, scope)  # type: ignore[arg-type]  # click offers the scopes alone
    exclude = _models_of(exclude, parsed_files)
    figures: list[Figure] = []
    for kind in figure_kinds:
        parameters = _parameters(settings, kind, regimes)
        figures.append(figure_of(kind, rows, scope, parameters, exclude))  # type: ignore[arg-type]
    write(
        Output(format_, output),
        FIGURE_WRITERS[format_](figures, width(output, unknown=WIDTH_WITHOUT_TERMINAL)),
    )
    return Exit.CLEAN


def _models_of(exclude: tuple[str, ...], files: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """Return names of models as the board writes them. Raises UsageProblem for an unknown name."""
    rows = (row for regime_rows in files[LEADERBOARD]["data"].values() for row in regime_rows)
    models = sorted({row["model"] for row in rows})
    fix = "name a model that `geneb-ci trust` lists"
    return tuple(exact_name(name, models, "model of the board", fix) for name in exclude)


def _parameters(
    settings: tuple[str, ...], kind: "FigureDefinition", regimes: list[str]
) -> "dict[str, ParameterValue]":
    """Return the parameters that `settings` replace, by name.

    Raises UsageProblem for an unknown name, or a value that is not a number.
    """
    parameters: dict[str, ParameterValue] = {}
    for setting in settings:
        word, _, text = setting.partition("=")
        fix = f"name one of the parameters {', '.join(kind.defaults)}: --set NAME=VALUE"
        name = exact_name(word, list(kind.defaults), f"parameter of {kind.id}", fix)
        if isinstance(kind.defaults[name], str):
            if kind.defaults[name] in regimes:
                text = exact_name(text, regimes, "regime of the benchmark")
            parameters[name] = text
            continue
        try:
            parameters[name] = float(text)
        except ValueError as error:
            raise UsageProblem(
                f"{quoted(text)} is not a number", f"pass a number: --set {name}=NUMBER"
            ) from error
    return parameters


def _computed_files(folder: Path | None) -> dict[str, dict[str, Any]] | Exit:
    """Return the parsed files of the board of a folder of submissions, by file name.

    If a submission has an error, print the report and return the exit code instead.
    """
    from geneb_ci.board.rows import figure_inputs
    from geneb_ci.cli.repository import CheckedRows, load_rows  # 0.3 s
    from geneb_ci.common.config import benchmark_of

    loaded = load_rows(folder, "nothing was computed", "geneb-ci figures FOLDER")
    if not isinstance(loaded, CheckedRows):
        return loaded
    return figure_inputs(loaded.rows, benchmark_of(loaded.layout))
