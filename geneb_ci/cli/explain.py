"""`geneb-ci explain`: what a rule looks for, why, and how to mend it; or the story of a row."""

import textwrap

import click

from geneb_ci.check.registry import BY_ID
from geneb_ci.errors import UsageProblem
from geneb_ci.read.structure import near

WIDTH = 88  # columns of a paragraph


@click.command()
@click.argument("name", metavar="RULE-OR-MODEL")
def command(name: str) -> None:
    """Explain a rule, or tell how a model's row came on the board and what became of it."""
    found = BY_ID.get(name)
    if found is None:
        # Imported here: a rule needs neither git nor the ledger.
        from geneb_ci.cli.row import tell  # noqa: PLC0415

        models = tell(name)
        if models is None:
            return
        what = "neither a rule nor a model of this repository" if models else "not a rule"
        raise UsageProblem(
            f"{name!r} is {what}{near(name, [*BY_ID, *models])}", "`geneb-ci rules` lists the rules"
        )
    click.echo(f"{click.style(found.id, bold=True)}  {found.severity} · {found.family}\n")
    for title, text in (("", found.what), ("Why: ", found.why), ("Fix: ", found.fix)):
        click.echo(textwrap.fill(title + text, WIDTH) + "\n")
