"""RULES.md: every rule, from the same text that `geneb-ci explain` and each finding use."""

from geneb_ci.check.registry import ALL, FAMILIES
from geneb_ci.check.rule import AnyRule
from geneb_ci.render.tables import Table

_HEAD = """# Rules

What `geneb-ci check` looks for in a submission, and `geneb-ci reconcile` in a pull request (the
family `pullrequest`). Generated from the rules themselves by `make generate`.

An error fails a submission, a warning asks for a human look, a note informs. A rule is chosen with
`--select` and left out with `--ignore`, by its name or its family's. Where a rule needs what is not
at hand, it is not run, and the report says so.
"""


def rules_markdown() -> str:
    """Return the text of RULES.md."""
    parts = [_HEAD]
    for family in FAMILIES:
        rules = [rule for rule in ALL if rule.family == family]
        lines = Table((family, "", ""), [_row(rule) for rule in rules]).markdown_lines()
        parts.append("".join(f"{line}\n" for line in lines))
    parts.extend(_section(rule) for rule in ALL)
    return "\n".join(parts)


def _row(rule: AnyRule) -> tuple[str, ...]:
    return (f"[{rule.id}](#{rule.id})", rule.severity, _escaped(rule.what))


def _section(rule: AnyRule) -> str:
    return (
        f"## {rule.id}\n\n{rule.severity} · {rule.family}{_needs(rule)}\n\n"
        f"{_escaped(rule.what)}\n\n"
        f"**Why.** {_escaped(rule.why)}\n\n**Fix.** {_escaped(rule.fix)}\n"
    )


def _needs(rule: AnyRule) -> str:
    """Name what must be at hand; of several things, the last one implies those before it."""
    return f" · needs {rule.needs[-1].text}" if rule.needs else ""


def _escaped(text: str) -> str:
    """Keep `<model_id>` from being read as a tag: outside code spans, where it would be one."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;").replace(">", "&gt;") for part in parts[::2]]
    return "`".join(parts)
