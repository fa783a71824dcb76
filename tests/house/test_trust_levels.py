"""Every page and test that lists trust levels or evidence has all, in the order of the code."""

import ast
import enum
import inspect
import re

import pytest

from geneb_ci.audit.trust import level as trust
from geneb_ci.common.types import EVIDENCE_ORDER, Evidence, TrustLevel
from tests.paths import ROOT

OUTSIDE = set(map(str, Evidence)) - set(map(str, EVIDENCE_ORDER))
TABLE = r"^\| {} \|.*\n\|[-|]+\n((?:\|.*\n)+)"
CASES = "tests/audit/test_trust.py"


def text(page: str) -> str:
    """Return a page with every run of white space as one space, but for ends of lines in tables."""
    raw = (ROOT / page).read_text(encoding="utf-8")
    return re.sub(r"(?<!\|)\n(?!\|)", " ", raw)


@pytest.mark.parametrize(
    ("page", "head", "kind"),
    [
        ("docs/reader/verified.md", "evidence", Evidence),
        ("docs/maintainer/trust.md", "evidence", Evidence),
        ("docs/maintainer/trust.md", "trust level", TrustLevel),
    ],
)
def test_a_table_has_each_once(page: str, head: str, kind: type[enum.StrEnum]):
    table = re.search(TABLE.format(head), (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert table is not None, f"{page} has no table of {head}"
    matches = re.findall(r"^\| `([a-z-]+)` \|", table[1], re.MULTILINE)
    assert sorted(matches) == sorted(map(str, kind)), f"{page}: describe each {head} once"


@pytest.mark.parametrize(
    ("page", "between"),
    [
        ("docs/reader/verified.md", " < "),
        ("docs/maintainer/trust.md", " < "),
        ("docs/reader/diagnostics.md", ", "),
    ],
)
def test_a_page_gives_the_order_of_evidence(page: str, between: str):
    assert between.join(EVIDENCE_ORDER) in text(page), f"{page}: EVIDENCE_ORDER is another order"


@pytest.mark.parametrize("page", ["docs/reader/verified.md", "docs/maintainer/trust.md"])
def test_a_page_names_the_evidence_outside_the_order(page: str):
    (listed,) = re.findall(r"([^.]*) are not in (?:the|that) order", text(page))
    assert set(re.findall("`([a-z-]+)`", listed)) == OUTSIDE, (
        f"{page}: {', '.join(sorted(OUTSIDE))} are not in EVIDENCE_ORDER"
    )


def test_each_trust_level_is_decided_by_a_case_of_the_tests():
    tree = ast.parse((ROOT / CASES).read_text(encoding="utf-8"))
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    lacking = [level for level in TrustLevel if level not in words and level.name not in names]
    assert lacking == [], f"{CASES} has no case of {', '.join(lacking)}"


def test_the_order_in_which_evidence_is_decided_is_documented():
    source, document = inspect.getsource(trust.decide), inspect.getdoc(trust.decide)
    named = re.findall(r"Evidence\.([A-Z_]+)", source)
    decided = [Evidence[name] for name in dict.fromkeys(named)]
    assert document is not None
    assert f"decides: {', '.join(decided)};" in " ".join(document.split())
