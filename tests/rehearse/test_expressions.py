"""Expressions of workflows: what GitHub documents, and an error for all that is not known here."""

import pytest

from tests.each import each
from tools.rehearse.expressions import (
    ExpressionError,
    StrictContext,
    condition,
    evaluate,
    status_functions,
    substitute,
)

CONTEXTS = {
    "github": StrictContext({"ref": "refs/heads/main", "event": {"pull": {"number": 12}}}),
    "inputs": StrictContext({"pr": None}),
    "matrix": StrictContext({"python": "3.13"}),
    "steps": StrictContext({"build": {"outputs": {"generation": "ab"}}}),
} | status_functions(success=True)


@each(
    ("text", "value"),
    [
        ("github.ref == 'refs/heads/main'", True),
        ("github.ref == 'REFS/HEADS/MAIN'", True),
        ("github.ref != 'refs/heads/main'", False),
        ("github.event.pull.number", 12),
        ("github.event.other.number", None),
        ("github.event.workflow_run.event == 'pull_request'", False),
        ("steps.build.outputs.other != ''", False),
        ("inputs.pr == ''", True),
        ("null == ''", True),
        ("'a' == null", False),
        ("github.event.pull.number == '12'", True),
        ("'' || 'other'", "other"),
        ("inputs.pr || github.event.pull.number", 12),
        ("true && 'yes' || 'no'", "yes"),
        ("!inputs.pr == true", True),
        ("!(true && false) || null", True),
        ("true || false && false", True),
        ("startsWith(matrix.python, '3.')", True),
        ("format('{0}-{1}', matrix.python, 'it''s')", "3.13-it's"),
        ("success() && !failure() && always() && !cancelled()", True),
    ],
)
def test_value(text, value):
    assert evaluate(text, CONTEXTS) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("github.reff", "'reff' does not exist"),
        ("steps.bild.outputs.generation", "'bild' does not exist"),
        ("secrets.HF_TOKEN", "the context 'secrets' does not exist here"),
        ("hashFiles('**')", "does not know the function hashFiles()"),
        ("true || github.reff", "'reff' does not exist"),
        ("github.event.*", "unknown text '.*'"),
        ("github.ref < '3'", "unknown text \"< '3'\""),
        ("github.ref == github.ref == true", "does not know an operator"),
        ("github.ref ==", "is not complete"),
        ("(github.ref", "is not complete"),
        ("github.ref github.ref", "is not complete"),
        ('"double"', "unknown text '\"double\"'"),
    ],
)
def test_what_is_not_known_is_an_error(text, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, CONTEXTS)
    assert message in str(caught.value)


def test_text():
    text = "v${{ matrix.python }} of ${{ github.event.pull.number }}${{ inputs.pr }}"
    assert substitute(text, CONTEXTS) == "v3.13 of 12"
    assert substitute("${{ '' == null }} ${{ github.ref == null }}", CONTEXTS) == "true false"
    with pytest.raises(ExpressionError):
        substitute("${{ github.event }}", CONTEXTS)
    with pytest.raises(ExpressionError):
        substitute("${{ github.ref", CONTEXTS)


@pytest.mark.parametrize(
    ("text", "success", "value"),
    [
        (None, True, True),
        (None, False, False),
        ("github.ref == 'refs/heads/main'", False, False),
        ("${{ github.ref == 'refs/heads/main' }}", True, True),
        ("always()", False, True),
        ("always() && github.ref == 'x'", False, False),
    ],
)
def test_condition(text, success, value):
    assert condition(text, CONTEXTS, success=success) is value


def test_a_condition_that_is_half_an_expression_is_refused():
    """GitHub would take the text for true."""
    with pytest.raises(ExpressionError):
        condition("${{ false }} == true", CONTEXTS, success=True)
