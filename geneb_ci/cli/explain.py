"""`geneb-ci explain`: what a rule looks for and how to mend it; or why a row has its level."""

import textwrap
from pathlib import Path

import click

from geneb_ci.check.registry import BY_ID
from geneb_ci.config import find_layout
from geneb_ci.errors import UsageProblem
from geneb_ci.read.paths import files_in
from geneb_ci.read.structure import near

WIDTH = 88  # columns of a paragraph


@click.command()
@click.argument("name", metavar="RULE-OR-MODEL")
def command(name: str) -> None:
    """Explain a rule, or why the row of a model has its trust level."""
    found = BY_ID.get(name)
    if found is None:
        explain_level(name)
        return
    click.echo(f"{click.style(found.id, bold=True)}  {found.severity} · {found.family}\n")
    for title, text in (("", found.what), ("Why: ", found.why), ("Fix: ", found.fix)):
        click.echo(textwrap.fill(title + text, WIDTH) + "\n")


def explain_level(name: str) -> None:
    """Print why a model's row has its level. Raises UsageProblem when there is no such model."""
    # Imported here: a rule needs no evidence.
    from geneb_ci.label.reasons import story  # noqa: PLC0415
    from geneb_ci.report.text import escape  # noqa: PLC0415

    layout = find_layout(Path.cwd())
    lines = story(name, layout)
    if lines is None:
        models = [path.stem for path in files_in(layout.submissions)] if layout.submissions else []
        raise UsageProblem(
            f"{name!r} is neither a rule nor a model here{near(name, [*BY_ID, *models])}",
            "`geneb-ci rules` lists the rules, `geneb-ci label` the models",
        )
    first, *others = lines
    click.echo(f"{click.style(name, bold=True)}  {escape(first)}")
    for line in others:
        click.echo(f"  {escape(line)}")
