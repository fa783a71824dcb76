"""One name in many places: a rule's slug is its function, its id, its fixtures, its heading."""

import importlib
import re

import pytest

from geneb_ci.check import registry
from geneb_ci.check.registry import ALL, FAMILIES, RULES, select
from geneb_ci.check.rule import AnyRule
from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import Severity
from tests.each import each
from tests.house.tracked import python_files
from tests.paths import ROOT
from tests.rules.fixtures import FAMILIES as FIXTURES
from tests.rules.fixtures import lacking

IDS = [rule.id for rule in ALL]
HELD = {
    path.stem: importlib.import_module(f"geneb_ci.check.rules.{path.stem}")
    for path in python_files("geneb_ci")
    if path.parts[1:3] == ("check", "rules") and path.name != "__init__.py"
}
TEXT_ONLY = {rule for module in HELD.values() for rule in getattr(module, "REPORTED", ())}
"""Rules whose faults are found while a file is read: each family has one table of them."""
SENTENCE_MAX, TEXT_MAX = 120, 300
# Findings show it in one line beside a place.
FIX_MIN = 20


def test_each_rule_stands_once_in_the_registry():
    assert len(set(IDS)) == len(IDS)
    assert list(registry.BY_ID) == IDS
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name) for name in IDS)


def test_each_rule_with_logic_is_a_constant_of_a_module_of_its_family():
    rules_held = {
        (module.split("_")[0], name, rule.check.__name__)
        for module, held in HELD.items()
        for name, rule in vars(held).items()
        if isinstance(rule, AnyRule) and rule not in TEXT_ONLY
    }
    slugs = {
        (registered.family, registered.id.replace("-", "_"))
        for registered in ALL
        if registered not in TEXT_ONLY
    }
    assert rules_held == {
        (family, slug.upper(), slug) for family, slug in slugs if family != "internal"
    }


def test_the_registry_names_each_module_once():
    modules = [
        module_name
        for name in FAMILIES
        for module_name in registry.MODULES_BY_FAMILY.get(name, (name,))
    ]
    assert sorted({*modules}) == sorted(HELD)


def test_rules_of_a_family_stand_together():
    families = [rule.family for rule in ALL]
    assert families == [name for family in FAMILIES for name in families if name == family]


@each("rule", ALL, ids=IDS)
def test_a_rule_has_its_texts(rule):
    assert registry.rule_of(rule.id) is rule
    assert isinstance(rule.severity, Severity)
    for text in (rule.what, rule.why, rule.fix):
        assert text == text.strip()
        assert text.endswith(".")
        assert "\n" not in text
        assert len(text) <= TEXT_MAX
    assert len(rule.what) <= SENTENCE_MAX
    assert rule.what.count(". ") == 0
    assert len(rule.fix) >= FIX_MIN
    assert len({rule.what, rule.why, rule.fix}) == 3


@each("rule", ALL, ids=IDS)
def test_a_rule_has_its_fixtures_in_the_table_of_its_family(rule):
    pair = FIXTURES.get(rule.family, {}).get(rule.id)
    assert pair, lacking(rule)
    assert pair[0] != pair[1] or rule.family == "internal", f"{rule.id}: both fixtures are the same"


@pytest.mark.parametrize("family", FIXTURES)
def test_no_fixture_is_left_of_a_rule_that_is_gone(family):
    left = sorted(set(FIXTURES[family]) - {rule.id for rule in ALL if rule.family == family})
    assert left == [], f"remove these from tests/rules/fixtures/{family}.py"


def test_each_rule_has_its_heading_in_rules_md():
    headings = re.findall(
        r"^#+ `?([a-z0-9-]+)`?", (ROOT / "RULES.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [name for name in headings if name in registry.BY_ID] == IDS


def test_each_rule_of_plausibility_has_its_threshold_in_the_documentation():
    text = (ROOT / "docs/contributor/plausibility.md").read_text(encoding="utf-8")
    table = text.split("\n## Thresholds")[1].split("\n## ")[0]
    listed = dict.fromkeys(re.findall(r"^\| `([a-z-]+)`", table, re.MULTILINE))
    assert set(listed) == {rule.id for rule in ALL if rule.family == "plausibility"}


def test_select_by_id_and_family():
    assert select((), ()) == RULES
    assert [r.id for r in select(["missing-task"], [])] == ["missing-task", "check-crashed"]
    assert {r.family for r in select(["card", "ranges"], [])} == {"card", "ranges", "internal"}
    ranges = [rule.id for rule in RULES if rule.family == "ranges"]
    assert "percent-scores" in ranges
    assert [r.id for r in select(["ranges"], ["percent-scores"])] == [
        *(name for name in ranges if name != "percent-scores"),
        "check-crashed",
    ]
    assert [r.id for r in select([], ["internal", "structure"])] == [
        rule.id for rule in RULES if rule.family != "structure"
    ]


@pytest.mark.parametrize(
    ("expected", "unwanted", "message"),
    [
        (
            ["mising-task"],
            [],
            "'mising-task' is not a rule or a family; did you mean \"missing-task\"?",
        ),
        ([], ["structur"], "'structur' is not a rule or a family; did you mean \"structure\"?"),
        (["zzz"], [], "'zzz' is not a rule or a family"),
        (["card"], ["card"], "these options leave no rule to run"),
        (["pullrequest"], [], "these options leave no rule to run"),
        ([], FAMILIES, "these options leave no rule to run"),
    ],
)
def test_select_refuses_what_does_not_exist_and_what_leaves_nothing(expected, unwanted, message):
    with pytest.raises(UsageProblem) as caught:
        select(expected, unwanted)
    assert caught.value.message == message
