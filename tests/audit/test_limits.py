"""Every number that decides a verdict is in the digest that commitments and records contain."""

import ast
import importlib
import inspect
from typing import Any

import pytest

from geneb_ci.audit.compare.limits import are_current_limits, limits_digest
from geneb_ci.audit.compare.tolerance import tolerance_digest
from geneb_ci.audit.defences import DEFENCES, DefenceUse

JUDGING = {
    "geneb_ci.audit.compare.joint",
    "geneb_ci.audit.compare.regime_bounds",
    "geneb_ci.audit.compare.tolerance",
    "geneb_ci.receipt.raise_bound",
    *(
        use.function.partition(":")[0]
        for defence in DEFENCES
        for use in (defence.tasks, defence.embeddings)
        if isinstance(use, DefenceUse)
    ),
}
"""The modules of all defences, and those that they judge with."""
NOT_DECIDING = {
    "sizes of files, texts and blocks": """
        verify_embeddings.RERUN_BYTES_MAX outcome.HEADS_MAX outcome.HEAD_NAME_MAX
        statement.ID_DIGITS
        receipt_variants.REFIT_BYTES_MAX draw.TEST_EMBEDDINGS_MAX direction.RELABELLINGS_AT_ONCE
        embeddings.BLOCK_BYTES influence.BLOCK_EMBEDDINGS influence.FEATURE_MAX
    """,
    "the format of a receipt": """
        submission_terms.FLOAT16_BYTES submission_terms.FLOAT16_MAX submission_terms.UNSCALED_MIN
        submission_terms.SCALED_MAGNITUDE_LOG2 embeddings.SCALED_MAGNITUDE embeddings.EXPONENT
        embeddings.NEGATIVE_ZERO
        honesty.SIGNIFICAND_BITS
    """,
    "names for a value": """
        receipt_variants.UNDECIDED alteration_power.BINARY_CLASSES
    """,
    "arithmetic": """
        joint.SERIES_ARGUMENT_MAX regime_bounds.BOUND_SCALE
    """,
    "what a plan contains": """
        draw.STANDARD_TEST_DRAWS draw.STANDARD_TRAINING_DRAWS task_draw.LED_TASKS_MAX
        task_draw._TASK_POINTER_PARTS
        commitment.CLAIM_SCALE commitment.COARSE_STEP commitment.COARSE_SHARE_MIN
        commitment.CLOSE_DISTANCE commitment.CLOSE_SHARE_MIN neighbours.COPY_CELLS_MIN
        neighbours.NEAR_DISTANCE
    """,
    "levels, by the limits of the day": """
        joint.LUCKY_DEVIATIONS joint.HIDDEN_RAISE_MAX joint.HIDDEN_RAISE_TASKS
    """,
    "earlier records alone": """
        embeddings.TAU joint.EARLIER_RECORD_LIMIT
    """,
}
"""Why a number of these modules is not in the digest."""
HARMLESS = {name for names in NOT_DECIDING.values() for name in names.split()}


def is_table(value: Any) -> bool:
    return isinstance(value, dict)


def is_number(value: Any) -> bool:
    values = value.values() if is_table(value) else [value]
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)


def origin(module: str, name: str) -> str:
    """Return the module that defines a name, which another may import."""
    for node in ast.parse(inspect.getsource(importlib.import_module(module))).body:
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            assert node.module is not None
            return origin(node.module, name)
    return module


def constants() -> dict[tuple[str, str], set[str]]:
    """Return the numbers of the judging modules: where each is defined, and all that have it."""
    modules_by_constant: dict[tuple[str, str], set[str]] = {}
    for module in JUDGING:
        for name, value in vars(importlib.import_module(module)).items():
            if name.isupper() and is_number(value):
                defined = origin(module, name)
                modules_by_constant.setdefault((defined, name), {defined}).add(module)
    return modules_by_constant


def test_every_number_of_the_judging_modules_is_in_the_digest_or_has_a_reason(monkeypatch):
    before, missing, numbers = limits_digest(), [], constants()
    for (defined, name), modules in numbers.items():
        value = getattr(importlib.import_module(defined), name)
        with monkeypatch.context() as patch:
            for module in modules:
                patch.setattr(f"{module}.{name}", {"float32": 9} if is_table(value) else value + 9)
            if limits_digest() == before:
                missing.append(f"{defined.rpartition('.')[2]}.{name}")
    assert sorted(missing) == sorted(HARMLESS)


@pytest.mark.parametrize(
    ("digest", "expected"),
    [
        (limits_digest, "9b7a1ecc1753a8e08e59d1eaff3cae8321887d9c682e1c459b0ee5489a433ae9"),
        (tolerance_digest, "ef28092c1db6f7890e27d159f6abd033de5b0125da4212a1b915db3eea11f238"),
    ],
)
def test_the_digest_of_published_commitments_stays(digest, expected):
    """A constant with another name, and the same value, would reject every signed record."""
    assert digest() == expected


def test_limits_of_now_and_the_tolerance_alone_of_before_are_current():
    assert are_current_limits(limits_digest())
    assert are_current_limits(tolerance_digest())
    assert not are_current_limits("0" * 64)
