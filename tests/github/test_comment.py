"""The comment and its first line: within GitHub's limit, whatever is in the verdict."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from geneb_ci.check.registry import ALL
from geneb_ci.github.comment import marker_line, read_verdict, verdict_comment
from geneb_ci.github.verdict.model import CategoryScores, Command, CommandName, RowComparison
from geneb_ci.render.markdown import CHARACTERS_MAX
from tests.github.conftest import ADDRESS
from tests.github.test_handover import made_up_findings, many, pull_of
from tests.github.text import calm
from tests.render.hostile import texts


@given(findings=st.lists(made_up_findings(), max_size=5), named=texts)
def test_no_comment_commands_moves_or_pings(findings, named):
    pull = pull_of(findings)
    # Past the schema: a category's name is ours, but the comment does not rely on it.
    table = RowComparison.model_construct(
        regime=named,
        metric=named,
        models=["model", named],
        best=named,
        categories=[CategoryScores.model_construct(category=named, scores=[0.1, 0.2])],
    )
    text = verdict_comment(pull.model_copy(update={"comparison": table}), ADDRESS)
    assert calm(text)
    assert len(text) <= CHARACTERS_MAX
    assert text.endswith("\n")


def test_a_comment_of_sixty_long_findings_is_cut_at_its_limit():
    long = "\u2603@x " * 150
    findings = [
        dataclasses.replace(f, file=long, pointer=long, rule=rule.id, severity=rule.severity)
        for f, rule in zip(many(60, long), ALL, strict=False)
    ]
    text = verdict_comment(pull_of(findings), ADDRESS)
    assert CHARACTERS_MAX - 3000 < len(text) <= CHARACTERS_MAX
    assert " more** are not listed here" in text


@given(body=texts)
def test_a_verdict_is_read_from_our_own_line_alone(body):
    pull = pull_of([])
    assert read_verdict(verdict_comment(pull, ADDRESS)) == pull.for_comment
    assert read_verdict(body) is None
    assert read_verdict(body + verdict_comment(pull, ADDRESS)) is None or body == ""


def test_a_verdict_with_a_rule_of_another_version_keeps_its_commands():
    """Read as none, an audit that was asked for once would begin again."""
    command = Command(comment=7, name=CommandName.AUDIT, login="maintainer", reason="")
    pull = pull_of([]).model_copy(update={"command": command})
    other = pull.model_copy(update={"places": {"rule-of-next-year": 1}})
    assert read_verdict(marker_line(other)) == pull.for_comment


def test_a_broken_verdict_is_none():
    assert read_verdict("<!-- geneb-ci:verdict:1 !!! -->\n") is None
    assert read_verdict("<!-- geneb-ci:verdict:1 e30= -->\n") is None
    assert read_verdict("<!-- geneb-ci:verdict:1 A -->\n") is None
