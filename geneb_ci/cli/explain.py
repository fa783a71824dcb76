"""`geneb-ci explain`: what a rule looks for, why, and how to mend it."""

import textwrap

import click

from geneb_ci.check.registry import BY_ID
from geneb_ci.errors import UsageProblem
from geneb_ci.read.structure import near

WIDTH = 88  # columns of a paragraph


@click.command()
@click.argument("rule")
def command(rule: str) -> None:
    """Explain RULE."""
    found = BY_ID.get(rule)
    if found is None:
        raise UsageProblem(
            f"{rule!r} is not a rule{near(rule, list(BY_ID))}", "`geneb-ci rules` lists them"
        )
    click.echo(f"{click.style(found.id, bold=True)}  {found.severity} · {found.family}\n")
    for title, text in (("", found.what), ("Why: ", found.why), ("Fix: ", found.fix)):
        click.echo(textwrap.fill(title + text, WIDTH) + "\n")
