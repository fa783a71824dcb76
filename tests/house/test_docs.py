"""What the pages name exists: links, headings, files, commands, options; broken pages are found."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from benchmarks import bench_scale
from geneb_ci.common.config import LIST_SETTINGS, PATH_SETTINGS, find_layout
from geneb_ci.common.errors import Exit
from geneb_ci.common.types import Evidence
from geneb_ci.render.formats import FORMATS
from tests.house import pages
from tests.house.pages import INDEX
from tests.paths import ROOT

pytestmark = pytest.mark.nightly  # and in `make lint`

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
def test_each_test_that_is_named_exists(page):
    assert pages.wrong_tests(page, text_of(page)) == []


@pytest.mark.parametrize("page", PAGES)
def test_each_command_and_option_exists(page):
    assert pages.wrong_commands(page, text_of(page)) == []


def test_each_attack_has_an_outcome_and_what_shows_it():
    (table,) = re.findall(
        r"^\| attack \|.*\n\|[-|]+\n((?:\|.*\n)+)", text_of("docs/reader/verified.md"), re.MULTILINE
    )
    for line in table.splitlines():
        _, _, *outcomes, shown, _ = (cell.strip() for cell in line.split("|"))
        assert all(re.match("found|fresh set|not found|not tried|-$", one) for one in outcomes), (
            line
        )
        assert pages.TESTS.search(shown) or "research/" in shown or shown == "the same test", line


def test_the_pages_name_many_commands():
    assert sum(len(list(pages.commands(text_of(page)))) for page in PAGES) > 60


def test_the_index_links_every_page():
    assert pages.unlisted(text_of(INDEX.as_posix())) == []


def first_cells(page: str, header: str) -> list[str]:
    """Return the first column of the table with this header line."""
    lines = text_of(page).split(f"\n{header}\n")[1].splitlines()[1:]
    rows = lines[: lines.index("")] if "" in lines else lines
    return [row.split("|")[1].strip(" `") for row in rows]


def test_the_page_of_check_has_every_exit_code():
    codes = first_cells("docs/contributor/check.md", "| exit code | meaning |")
    assert list(map(int, codes)) == list(map(int, Exit))


def test_the_page_of_check_has_every_report_format():
    (formats,) = re.findall(r"`--format ([^`]+)`", text_of("docs/contributor/check.md"))
    assert formats.split("\\|") == list(FORMATS)


@pytest.mark.parametrize(
    ("page", "header"),
    [
        ("docs/reader/verified.md", "| evidence | meaning |"),
        ("docs/maintainer/trust.md", "| evidence | what it takes |"),
    ],
)
def test_a_table_has_all_evidence(page, header):
    assert sorted(first_cells(page, header)) == sorted(Evidence)


def test_the_settings_of_the_page_of_check_are_the_defaults():
    text = text_of("docs/contributor/check.md")
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    settings = tomllib.loads(block)["tool"]["geneb-ci"]
    assert list(settings) == [*PATH_SETTINGS, *LIST_SETTINGS]
    layout = find_layout(ROOT, isolated=True)
    paths_by_name = {name: getattr(layout, name) for name in PATH_SETTINGS}
    assert {name: ROOT / settings[name] for name, path in paths_by_name.items() if path} == {
        name: path for name, path in paths_by_name.items() if path
    }
    assert [settings[name] for name in LIST_SETTINGS] == [[], []]


@pytest.mark.parametrize("page", [page for page in PAGES if "ISSUE_TEMPLATE" in page])
def test_an_issue_form_has_what_github_needs(page):
    form = yaml.safe_load(text_of(page))
    if page.endswith("/config.yml"):
        assert form["blank_issues_enabled"] is True
        return
    assert sorted(form) == ["body", "description", "labels", "name", "title"]
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    for field in form["body"]:
        assert field["attributes"]["label"]
        options = field["attributes"].get("options")
        assert (field["type"] == "dropdown") == bool(options)
        assert options is None or all(isinstance(one, str) for one in options)


def test_each_issue_form_that_a_page_names_exists():
    forms = [page for page in PAGES if "ISSUE_TEMPLATE" in page and "/config." not in page]
    names = {yaml.safe_load(text_of(page))["name"] for page in forms}
    text = text_of("README.md") + text_of("docs/index.md")
    named = set(re.findall(r'forms? "([^"]+)"', text)) | set(
        re.findall(r'forms "[^"]+" and "([^"]+)"', text)
    )
    assert {"Ask for an audit", "Dispute a row", "Withdraw a row"} == named <= names


def test_the_page_of_speed_has_the_table_of_one_run_alone():
    before, table = text_of("docs/developer/scale.md").split(bench_scale.BEGIN)
    table, after = table.split(bench_scale.END)
    assert table.count("|---|") == 1
    assert "|---|" not in before + after


def test_the_table_of_speed_has_lines_that_the_bench_measures(monkeypatch):
    """Also its limits; what was measured of former code would stay for ever."""
    nothing = bench_scale.Cost(0, 0, b"")
    monkeypatch.setattr(bench_scale, "write_rows", lambda *_: None)
    for name in ("run_cost", "build_cost"):
        monkeypatch.setattr(bench_scale, name, lambda *_, **__: nothing)
    place = Path("nowhere")
    measured = [
        *bench_scale.small_measurements(place, 1),
        *bench_scale.large_measurements(place, bench_scale.ROWS[0]),
    ]
    known = {tuple(bench_scale.table_row(one).split(" | ")[::3]) for one in measured}
    table = text_of("docs/developer/scale.md").split(bench_scale.BEGIN)[1].split(bench_scale.END)[0]
    shown = [tuple(line.split(" | ")[::3]) for line in table.splitlines() if line[:3] == "| `"]
    assert shown
    assert set(shown) <= known


def test_the_readme_says_first_what_it_is_and_where_each_reader_begins():
    text = text_of("README.md")
    first, second = re.sub(r"\s+", " ", text.replace("\n\n", "\0")).split("\0")[1:3]
    assert first.startswith("geneb-ci checks, audits and publishes results for [GENEB](")
    assert second.startswith("A *submission* is one JSON file with the scores of a model.")
    doors = text.partition("## What do you want to do?")[2].partition("## ")[0]
    for page in (
        "contributor/tutorial",
        "reader/tutorial",
        "reader/verified",
        "maintainer/tutorial",
        "developer/python",
    ):
        assert f"(docs/{page}.md)" in doors


def test_the_pages_are_those_that_readers_see():
    assert {"README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/maintainer/trust.md"} <= set(PAGES)
    assert {f".github/ISSUE_TEMPLATE/{name}.yml" for name in ("audit", "dispute")} <= set(PAGES)
    assert not any("golden" in name or name.startswith("submissions/") for name in PAGES)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[a](nowhere.md)", ["docs/x.md: nowhere.md: there is no such file"]),
        (
            "[a](maintainer/trust.md#nothing)",
            ["docs/x.md: maintainer/trust.md#nothing: no heading makes this anchor"],
        ),
        ("[a](#here)\n\n## Not here", ["docs/x.md: #here: no heading makes this anchor"]),
        ("[a](#not-here)\n\n## Not here", []),
        ("[a](maintainer/trust.md#records) [b](https://example.org/x) [c](../README.md)", []),
        ("`[a](nowhere.md)`", []),
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
        ("`geneb_ci/check/rules/<family>.py`", []),
    ],
)
def test_a_file_that_does_not_exist_is_found(text, found):
    assert pages.wrong_places("x.md", text) == found


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("`tests/audit/test_fresh.py`: `test_nothing`", ["there is no test_nothing"]),
        ("`tests/nowhere.py`: `test_a`, `test_b`", ["there is no test_a", "there is no test_b"]),
        ("`tests/house/test_docs.py`: `test_a_test_that_does_not_exist_is_found`", []),
    ],
)
def test_a_test_that_does_not_exist_is_found(text, wrong):
    assert [line.rpartition(": ")[2] for line in pages.wrong_tests("x.md", text)] == wrong


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("`geneb-ci chekc FILE`", ["there is no command chekc"]),
        ("```console\n$ geneb-ci audit frobnicate x\n```", ["there is no command frobnicate"]),
        ("Run `geneb-ci check --stict x.json`.", ["there is no option --stict"]),
        ("$ geneb-harness run --resum", ["there is no option --resum"]),
        ("`geneb-harness extract check`", ["there is no command extract"]),
        ("`geneb-ci audit run PLAN --key key.pem` and `geneb-ci rules`", []),
        ("    geneb-ci trust | grep --color x", []),
    ],
)
def test_a_wrong_command_is_found(text, wrong):
    assert [line.rpartition(": ")[2] for line in pages.wrong_commands("x.md", text)] == wrong


def test_a_page_that_the_index_forgets_is_found():
    index = text_of(INDEX.as_posix())
    assert pages.unlisted(index.replace("(maintainer/trust.md", "(nowhere.md")) == [
        "maintainer/trust.md"
    ]
