"""What the pages name exists: links, headings, files, commands, options; broken pages are found."""

import re

import pytest

from geneb_ci.common.errors import Exit
from geneb_ci.common.types import TrustLevel
from geneb_ci.render.formats import FORMATS
from tests.house import pages
from tests.house.pages import INDEX
from tests.paths import ROOT

PAGES = pages.pages()


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_each_link_leads_somewhere(page):
    assert pages.wrong_links(page, text_of(page)) == []


@pytest.mark.parametrize("page", PAGES)
def test_each_file_that_is_named_exists(page):
    assert pages.wrong_places(page, text_of(page)) == []


@pytest.mark.parametrize("page", PAGES)
def test_each_command_and_option_exists(page):
    assert pages.wrong_commands(page, text_of(page)) == []


def test_the_pages_name_many_commands():
    assert sum(len(list(pages.commands(text_of(page)))) for page in PAGES) > 60


def test_the_index_links_every_page():
    assert pages.unlisted(text_of(INDEX.as_posix())) == []


def first_cells(page: str, header: str) -> list[str]:
    """Return the first column of the table with this header line."""
    lines = text_of(page).split(f"\n{header}\n")[1].splitlines()[1:]
    rows = lines[: lines.index("")] if "" in lines else lines
    return [row.split("|")[1].strip(" `") for row in rows]


def test_the_readme_has_every_exit_code():
    codes = first_cells("README.md", "| exit code | meaning |")
    assert list(map(int, codes)) == list(map(int, Exit))


def test_the_readme_has_every_report_format():
    (formats,) = re.findall(r"`--format ([^`]+)`", text_of("README.md"))
    assert formats.split("\\|") == list(FORMATS)


@pytest.mark.parametrize(
    ("page", "header"),
    [
        ("README.md", "| trust level | meaning |"),
        ("docs/trust.md", "| trust level | what it takes |"),
    ],
)
def test_a_table_has_every_trust_level(page, header):
    assert sorted(first_cells(page, header)) == sorted(TrustLevel)


def test_the_readme_says_first_what_it_is():
    assert text_of("README.md").startswith(
        "# geneb-ci\n\ngeneb-ci validates, audits and publishes submissions to GENEB, "
        "a benchmark of DNA foundation models.\n"
    )


def test_the_pages_are_those_that_readers_see():
    assert {"README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/trust.md"} <= set(PAGES)
    assert ".github/ISSUE_TEMPLATE/dispute.yml" in PAGES
    assert not any("golden" in name or name.startswith("submissions/") for name in PAGES)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[a](nowhere.md)", ["docs/x.md: nowhere.md: there is no such file"]),
        ("[a](trust.md#nothing)", ["docs/x.md: trust.md#nothing: no heading makes this anchor"]),
        ("[a](#here)\n\n## Not here", ["docs/x.md: #here: no heading makes this anchor"]),
        ("[a](#not-here)\n\n## Not here", []),
        ("[a](trust.md#records) [b](https://example.org/x) [c](../README.md)", []),
        ("`[a](nowhere.md)`", []),
        ("[a](mutants.md)", []),
    ],
)
def test_a_dead_link_is_found(text, found):
    assert pages.wrong_links("docs/x.md", text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`geneb_ci/nowhere.py`", ["x.md: geneb_ci/nowhere.py: there is no such file"]),
        ("`docs/nowhere.md`", ["x.md: docs/nowhere.md: there is no such file"]),
        ("`geneb_ci/cli/main.py:COMMANDS` and `leaderboard/policy/`", []),
        ("`leaderboard/audits/` and `tests/hostile/cases_*.py`", []),
        ("`geneb_ci/check/rules/<family>/<rule_id>.py`", []),
    ],
)
def test_a_file_that_does_not_exist_is_found(text, found):
    assert pages.wrong_places("x.md", text) == found


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("`geneb-ci chekc FILE`", ["there is no command chekc"]),
        ("```console\n$ geneb-ci audit frobnicate x\n```", ["there is no command frobnicate"]),
        ("Run `geneb-ci check --stict x.json`.", ["there is no option --stict"]),
        ("$ geneb-harness run --resum", ["there is no option --resum"]),
        ("`geneb-harness extract check`", ["there is no command extract"]),
        ("`geneb-ci audit run PLAN --key key.pem` and `geneb-ci rules`", []),
        ("    geneb-ci label | grep --color x", []),
    ],
)
def test_a_wrong_command_is_found(text, wrong):
    assert [line.rpartition(": ")[2] for line in pages.wrong_commands("x.md", text)] == wrong


def test_a_page_that_the_index_forgets_is_found():
    index = text_of(INDEX.as_posix())
    assert pages.unlisted(index.replace("(trust.md", "(nowhere.md")) == ["trust.md"]
