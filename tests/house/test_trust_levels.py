"""Every page and test that lists the trust levels has all of them, in the order of the code."""

import ast
import inspect
import re

import pytest

from geneb_ci.audit import trust
from geneb_ci.common.types import TRUST_ORDER, TrustLevel
from tests.paths import ROOT

LEVELS = {str(level) for level in TrustLevel}
OUTSIDE = LEVELS - set(map(str, TRUST_ORDER))
TABLE = re.compile(r"^\| trust level \|.*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
CASES = "tests/audit/test_trust.py"


def text(page: str) -> str:
    """Return a page with every run of white space as one space, but for ends of lines in tables."""
    raw = (ROOT / page).read_text(encoding="utf-8")
    return re.sub(r"(?<!\|)\n(?!\|)", " ", raw)


@pytest.mark.parametrize("page", ["README.md", "docs/trust.md"])
def test_a_table_of_trust_levels_has_each_once(page: str):
    table = TABLE.search((ROOT / page).read_text(encoding="utf-8"))
    assert table is not None, f"{page} has no table of trust levels"
    found = re.findall(r"^\| `([a-z-]+)` \|", table[1], re.MULTILINE)
    assert sorted(found) == sorted(LEVELS), f"{page}: describe each trust level once"


@pytest.mark.parametrize(
    ("page", "between"),
    [("README.md", " < "), ("docs/trust.md", " < "), ("docs/diagnostics.md", ", ")],
)
def test_a_page_gives_the_order_of_trust(page: str, between: str):
    assert between.join(TRUST_ORDER) in text(page), f"{page}: TRUST_ORDER is another order"


@pytest.mark.parametrize("page", ["README.md", "docs/trust.md"])
def test_a_page_names_the_trust_levels_outside_the_order(page: str):
    (listed,) = re.findall(r"([^.]*) are not in (?:the|that) order", text(page))
    assert set(re.findall("`([a-z-]+)`", listed)) == OUTSIDE, (
        f"{page}: {', '.join(sorted(OUTSIDE))} are not in TRUST_ORDER"
    )


def test_each_trust_level_is_decided_by_a_case_of_the_tests():
    tree = ast.parse((ROOT / CASES).read_text(encoding="utf-8"))
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    lacking = [level for level in TrustLevel if level not in words and level.name not in names]
    assert lacking == [], f"{CASES} has no case of {', '.join(lacking)}"


def test_the_order_in_which_levels_are_decided_is_documented():
    source, document = inspect.getsource(trust.decide), inspect.getdoc(trust.decide)
    named = re.findall(r"TrustLevel\.([A-Z_]+)", source)
    decided = [TrustLevel[name] for name in dict.fromkeys(named)]
    assert document is not None
    assert f"decides: {', '.join(decided)};" in " ".join(document.split())
