"""Writes RULES.md from the texts that `geneb-ci explain` and the findings show."""

from geneb_ci.check.registry import ALL, FAMILIES
from geneb_ci.check.rule import AnyRule
from geneb_ci.render.table import Table

_HEAD = """# Rules

The rules of `geneb-ci check` for submissions, and of `geneb-ci reconcile` for pull requests (the
family `pullrequest`). Generated from the rules: edits made here are overwritten.

An error fails a submission, a warning asks for a maintainer's review, a note is information only.
Use `--select` and `--ignore` with the name of a rule or family. A rule that needs something
unavailable, such as other rows, is skipped, and the report says so.
"""


def rules_markdown() -> str:
    """Return the text of RULES.md."""
    sections = [_HEAD]
    for family in FAMILIES:
        rules = [rule for rule in ALL if rule.family == family]
        lines = Table((family, "", ""), [_row(rule) for rule in rules]).markdown_lines()
        sections.append("".join(f"{line}\n" for line in lines))
    sections.extend(_section(rule) for rule in ALL)
    return "\n".join(sections)


def _row(rule: AnyRule) -> tuple[str, ...]:
    return (f"[{rule.id}](#{rule.id})", rule.severity, _escaped(rule.what))


def _section(rule: AnyRule) -> str:
    return (
        f"## {rule.id}\n\n{rule.severity} · {rule.family}{_needs(rule)}\n\n"
        f"{_escaped(rule.what)}\n\n"
        f"**Why.** {_escaped(rule.why)}\n\n**Fix.** {_escaped(rule.fix)}\n"
    )


def _needs(rule: AnyRule) -> str:
    """Return a clause with the last need of a rule, which implies the others; "" without needs."""
    return f" · needs {rule.needs[-1].text}" if rule.needs else ""


def _escaped(text: str) -> str:
    """Escape `<` outside code spans, where Markdown would read `<model_id>` as a tag."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;").replace(">", "&gt;") for part in parts[::2]]
    return "`".join(parts)
