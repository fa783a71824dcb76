"""The site of the pages: links are rewritten, every page is in its navigation, nothing is lost."""

import re
import tomllib

import pytest

from tests.house import pages as readers
from tests.paths import ROOT
from tools import site

CONFIG = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
MAIN = "https://github.com/OWNER/geneb-ci/{}/main"


def named(entries: list[dict[str, object]]) -> list[str]:
    """Return the pages of a navigation, in order."""
    page_names: list[str] = []
    for entry in entries:
        for target in entry.values():
            page_names += named(target) if isinstance(target, list) else [str(target)]
    return page_names


def test_every_page_is_in_the_navigation_once():
    assert sorted(named(CONFIG["nav"])) == sorted({*site.pages().values(), site.SCHEMAS})


def test_the_site_has_every_page_that_readers_see():
    others = re.compile(r"\.github/|leaderboard/|tests/(public|github)/")
    seen = {page for page in readers.pages() if not others.match(page)}
    assert seen - set(site.pages()) == set()
    assert [name for name in site.pages() if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("docs/contributor/check.md", "[a](../../RULES.md#x) [b](#y)", "[a](RULES.md#x) [b](#y)"),
        ("README.md", "![a](docs/pictures/check.svg)", "![a](pictures/check.svg)"),
        ("README.md", "[a](docs/index.md)", "[a](pages.md)"),
        ("docs/x.md", "[a](research/draw.md#tables)", "[a](research-draw.md#tables)"),
        (
            "docs/research/draw.md",
            "[a](../maintainer/audits.md) [b](forgery.md)",
            "[a](maintainer-audits.md) [b](research-forgery.md)",
        ),
        ("docs/reader/page.md", "[a](../../README.md#the-board)", "[a](index.md#the-board)"),
        ("docs/x.md", "[a](../schemas/benchmark.json)", "[a](schemas/benchmark.json)"),
        (
            "docs/x.md",
            "[a](../geneb_ci/api.py) [b](../tests/page)",
            f"[a]({MAIN.format('blob')}/geneb_ci/api.py) [b]({MAIN.format('tree')}/tests/page)",
        ),
        ("docs/x.md", "[a](https://example.org/x.md)", "[a](https://example.org/x.md)"),
        ("docs/x.md", "`[a](trust.md)` `a\\|b`", "`[a](trust.md)` `a|b`"),
        ("docs/x.md", "```\n[a](../RULES.md)\n```\n", "```\n[a](../RULES.md)\n```\n"),
    ],
)
def test_links_lead_to_where_a_page_is_on_the_site(page, text, expected, monkeypatch):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    assert site.rewritten(page, text, site.pages()) == expected


def test_every_link_between_pages_has_a_target_on_the_site(tmp_path, monkeypatch):
    """Zensical holds this too, with every heading; here it needs no other environment."""
    monkeypatch.setattr(site, "SOURCE", tmp_path / "source")
    site.main()
    files = {path.relative_to(site.SOURCE).as_posix() for path in site.SOURCE.rglob("*")}
    lost = [
        f"{page.name}: {target}"
        for page in site.SOURCE.glob("*.md")
        for target in readers.LINK.findall(
            re.sub(r"`[^`]*`", "", readers.without_blocks(page.read_text(encoding="utf-8")))
        )
        if not re.match(r"[a-z]+:|#", target) and target.partition("#")[0] not in files
    ]
    assert lost == []


def test_the_list_of_schemas_is_whole():
    text = site.schemas_page()
    for path in (ROOT / "schemas").glob("*.schema.json"):
        assert f"(schemas/{path.name})" in text


def test_nothing_is_fetched_from_another_server():
    assert CONFIG["theme"]["font"] is False
