"""`geneb-ci rules` and `explain`: explain rules, and the trust levels of rows."""

import json
import textwrap

import click

from geneb_ci.check.registry import ALL, BY_ID
from geneb_ci.check.rule import AnyRule
from geneb_ci.cli.shared import PARAGRAPH, width
from geneb_ci.common.finding import plural
from geneb_ci.render.text import Table, fitted


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rules_command(as_json: bool) -> None:
    """List every rule, by family."""
    if as_json:
        rows = [
            {
                "id": r.id,
                "family": r.family,
                "severity": r.severity,
                "what": r.what,
                "why": r.why,
                "fix": r.fix,
                "needs": list(r.needs),
            }
            for r in ALL
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    columns = ("rule", "severity", "what it looks for")
    cells = [(rule.id, rule.severity, rule.what) for rule in ALL]
    lines_of = Table(columns, cells).fitted_rows(width() - len(_INDENT), head=False)
    family = ""
    for rule, lines in zip(ALL, lines_of, strict=True):
        if rule.family != family:
            family = rule.family
            click.echo(("\n" if rule is not ALL[0] else "") + click.style(family, bold=True))
        for line in lines:
            click.echo(f"{_INDENT}{line}")


_INDENT = "  "


@click.command()
@click.argument("name", metavar="RULE|FAMILY|MODEL")
def explain_command(name: str) -> None:
    """Explain a rule, a family of rules, or the trust level and history of a model's row."""
    found = BY_ID.get(name.casefold())
    if found is not None:
        _explain(found)
        return
    family = [rule for rule in ALL if rule.family == name.casefold()]
    if family:
        _list(family)
        return
    from geneb_ci.cli.repository import tell  # a rule needs neither evidence nor git

    tell(name)


def _list(rules: list[AnyRule]) -> None:
    click.echo(f"{click.style(rules[0].family, bold=True)}  {plural(len(rules), 'rule')}\n")
    columns = ("rule", "severity", "what it looks for")
    cells = [(rule.id, rule.severity, rule.what) for rule in rules]
    for lines in Table(columns, cells).fitted_rows(width(), head=False):
        for line in lines:
            click.echo(line)
    hint = "`geneb-ci explain RULE` says why each matters, and how to fix it"
    click.echo("\n" + fitted(hint, width()), nl=False)


def _explain(rule: AnyRule) -> None:
    columns = width(widest=PARAGRAPH)
    click.echo(f"{click.style(rule.id, bold=True)}  {rule.severity} · {rule.family}\n")
    for title, text in (("", rule.what), ("Why: ", rule.why), ("Fix: ", rule.fix)):
        click.echo(textwrap.fill(title + text, columns) + "\n")
    if rule.needs:
        need = rule.needs[-1]
        click.echo(textwrap.fill(f"Needs {need.text}. If unavailable: {need.fix}.", columns) + "\n")
