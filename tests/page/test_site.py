"""The pages that stand alone: what they say, where they lead, that nothing in them runs."""

import ast
import json
import re
import xml.etree.ElementTree as ET
from pathlib import PurePosixPath
from posixpath import normpath
from urllib.parse import unquote, urlsplit

import pytest

from geneb_ci.board.site.inputs import bibtex_text, file_names_of, range_text, score_text
from geneb_ci.board.site.links import citation, safe_address
from geneb_ci.board.site.model import snippet_of
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.models.entry import (
    ModelEntry,
)
from reference_harness.extractors.options import parse
from reference_harness.loading.constructor_arguments import converted_options as harness_values
from tests.board.board import attributes, entries
from tests.each import each
from tests.gate import gated
from tests.page.axe import violations
from tests.page.boards import EVENT, values
from tests.page.rows import FULL, MINUS
from tests.page.site import (
    ADDRESS,
    COMMIT,
    GENERATION,
    REPOSITORY,
    json_ld,
    public_site,
    tags_of,
)
from tests.page.tab import WIDTHS, opened
from tests.page.test_hostile_names import MARKUP

LINKS_MIN = 10


@pytest.fixture(scope="module")
def pages(folder) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in sorted(folder.rglob("*.html"))
    }


def test_every_model_task_and_category_has_a_page(folder, pages):
    benchmark = shipped_benchmark()
    names = file_names_of(benchmark.category_order).values()
    expected = {
        *(f"models/{e.submission.model_id}.html" for e in entries()),
        *(f"tasks/{task}.html" for task in benchmark.task_ids),
        *(f"categories/{name}.html" for name in names),
        *(f"scores/{r}-{m}.html" for r in benchmark.regimes for m in benchmark.metrics),
        *(
            "index.html",
            "marks.html",
            "v/index.html",
            f"v/{GENERATION}/index.html",
            f"v/{COMMIT}/index.html",
        ),
    }
    assert set(pages) == expected
    assert {path.stem for path in (folder / "badges").iterdir()} == {
        e.submission.model_id for e in entries()
    }


def test_every_page_says_what_it_is_and_what_it_was_built_from(pages):
    for name, text in pages.items():
        if name == "index.html":
            continue
        tags = tags_of(text)
        metas = {
            a.get("name", a.get("property")): a["content"]
            for t, a in tags.found
            if t == "meta" and "content" in a
        }
        described = json.loads(json_ld(text))
        address = f"{ADDRESS}/{name}"
        assert ("link", {"rel": "canonical", "href": address}) in tags.found
        assert (described["@type"], described["url"], described["version"]) == (
            "Dataset",
            address,
            COMMIT,
        )
        assert described["license"].startswith("https://www.apache.org/")
        assert 50 <= len(described["description"]) <= 5000
        assert metas["description"] == metas["og:description"] == described["description"]
        assert metas["og:image"] == f"{ADDRESS}/social.png"
        assert text.count("<h1>") == 1
        page_text = " ".join(tags.data)
        for fact in (COMMIT[:12], "2026-11-20T08:30:00Z", "Apache License 2.0", "4edd705be573"):
            assert fact in page_text, (name, fact)
        assert "@misc{geneb-" in page_text


def test_every_link_leads_somewhere(folder, pages):
    """Inside, the file is there; outside, the address is plain https and of a committed fact."""
    marks = {a["id"] for _, a in tags_of(pages["marks.html"]).found if "id" in a}
    for name, text in pages.items():
        tags = tags_of(text)
        addresses = {
            *tags.values("a", "href"),
            *tags.values("img", "src"),
            *tags.values("link", "href"),
        }
        ids = {a["id"] for _, a in tags.found if "id" in a}
        for address in addresses:
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            if parts.scheme:
                assert safe_address(address) == address, (name, address)
                continue
            path = (
                normpath(str(PurePosixPath(name).parent / unquote(parts.path)))
                if parts.path
                else name
            )
            assert (folder / path).is_file(), (name, address)
            if path == name and parts.fragment and name != "index.html":
                assert parts.fragment in ids, (name, address)
            if path == "marks.html" and parts.fragment:
                assert parts.fragment in marks, (name, address)


def test_a_model_page_has_many_links(pages):
    for entry in entries():
        tags = tags_of(pages[f"models/{entry.submission.model_id}.html"])
        outside = {a for a in tags.values("a", "href") if a.startswith("https://")}
        assert len(outside) >= LINKS_MIN, (entry.submission.model_id, sorted(outside))
    space = tags_of(pages["models/space.html"]).values("a", "href")
    assert {
        f"{REPOSITORY}/blob/{COMMIT}/submissions/space.json",
        f"{REPOSITORY}/pull/12",
        f"{REPOSITORY}/commit/{EVENT['commit']}",
        f"{REPOSITORY}/issues/new?template=dispute.yml",
        "https://arxiv.org/abs/2606.04525",
        "https://huggingface.co/yangyz1230/space",
        "../index.html#/model/space",
        "../feed.xml",
    } <= set(space)


def test_the_figures_are_those_of_the_board(pages):
    rows = {row["model"]: row for row in FULL}
    for name in ("index.html", "scores/full-MCC.html"):
        cells = re.findall(r'<td class="heat h\d+">([^<]+)</td>', pages[name])
        order = re.findall(r'<a href="(?:\.\./)?models/([^"]+)\.html"><bdi>', pages[name])
        assert order == sorted(rows, key=lambda m: -rows[m]["macro_MCC"])
        expected = [
            score_text(score)
            for row in (rows[model] for model in order)
            for score in (row["macro_MCC"], row["micro_MCC"], *row["cat_MCC"].values())
        ]
        assert cells == expected
    standing = values()["diagnostics.json"]["ranks"]["full"]["macro"]["space"]
    page = pages["models/space.html"]
    assert f"{standing['low']:.3f} to {standing['high']:.3f}" in page
    tasks = next(
        row
        for row in values()["leaderboard_tasks.json"]["data"]["1shot"]
        if row["model"] == "space"
    )
    for score in tasks["task_MCC"].values():
        assert f">{score_text(score)}<" in page


def test_each_mark_stands_on_its_row_everywhere_and_leads_to_what_it_means(pages):
    marks = tags_of(pages["marks.html"])
    ids = {a["id"] for _, a in marks.found if "id" in a}
    tables = [n for n in pages if n.startswith(("scores/", "tasks/", "categories/"))]
    marked = 0
    for entry in entries():
        model, defects, warnings = (
            entry.submission.model_id,
            entry.marks.defects,
            entry.marks.warnings,
        )
        expected = [f"defect-{defect.id}" for defect in defects]
        expected += [f"rule-{rule}" for rule, _ in warnings]
        own = tags_of(pages[f"models/{model}.html"]).values("a", "href")
        assert [a for a in own if a.startswith("../marks.html#")] == [
            f"../marks.html#{name}" for name in expected
        ]
        assert set(expected) <= ids
        marked += bool(expected)
        # A row has one link for its defects and one for its warnings, each to the first of them.
        firsts = expected[:1] if defects else []
        firsts += [f"rule-{warnings[0][0]}"] if warnings else []
        for name in (*tables, "index.html", f"v/{GENERATION}/index.html"):
            rows = re.findall(rf'models/{re.escape(model)}\.html"><bdi>.*?</th>', pages[name])
            assert rows, (name, model)
            for row in rows:
                assert re.findall(r'marks\.html#([^"]+)"', row) == firsts, (name, model)
    assert marked == 10
    listed = {a["href"] for t, a in marks.found if t == "a" and "models/" in a.get("href", "")}
    assert len(listed) == 10


@each("text", MARKUP, ids=ascii)
def test_a_citation_has_its_braces_in_pairs(text):
    made = citation("x", text, "models/x.html", public_site()).bibtex
    bare = re.sub(r"\\[{}&%$#_]", "", made)
    depth = 0
    for letter in bare:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        assert depth >= 0
    assert depth == 0
    assert "\n\n@misc{geneb," in made


def test_words_for_tex_numbers_and_files():
    assert bibtex_text("a_b & {c} 100% $x$ #1 ~^\\") == (
        r"a\_b \& \{c\} 100\% \$x\$ \#1 \textasciitilde{}\textasciicircum{}\textbackslash{}"
    )
    assert [score_text(s) for s in (0.0004, -0.0004, -0.5, None)] == [
        "0.000",
        "0.000",
        f"{MINUS}0.500",
        "",
    ]
    assert file_names_of(["Coding/NC", "coding nc", "\u00c9t\u00e9", "/"]) == {
        "Coding/NC": "coding-nc",
        "coding nc": "coding-nc-2",
        "\u00c9t\u00e9": "ete",
        "/": "category",
    }


def test_the_feed_is_atom_and_newest_first(folder):
    feed = ET.fromstring((folder / "feed.xml").read_bytes())  # noqa: S314 (our own)
    space = {"a": "http://www.w3.org/2005/Atom"}
    titles = [match.text for match in feed.findall("a:entry/a:title", space)]
    assert titles == ["relabel: space (checked to audited)", "include: space (audited)"]
    for part in ("id", "updated", "title", "author/a:name", "link"):
        assert all(
            match.find(f"a:{part}", space) is not None for match in feed.findall("a:entry", space)
        )
    ids = [match.text for match in feed.findall("a:entry/a:id", space)]
    assert len(set(ids)) == len(ids)


def test_the_badge_has_level_and_rank_range(folder):
    badge = (folder / "badges/GENERator-eukaryote-3b-base.svg").read_text("utf-8")
    assert "<title>GENEB: checked \u00b7 rank 1\u2013" in badge
    assert "of 41</title>" in badge


@each("model", sorted(attributes()))
def test_the_snippet_is_python_with_options_that_the_harness_takes(model):
    known = public_site().model_entry(model)
    assert isinstance(known, ModelEntry)
    made = snippet_of(known)
    assert made is not None
    if known.run is None or known.run.extractor is None:
        assert made.code == ""
        assert made.notes[0].startswith("Nothing runs this model yet")
        return
    _, assigned, used = ast.parse(made.code).body
    assert isinstance(assigned, ast.Assign)
    assert isinstance(assigned.value, ast.Call)
    assert isinstance(used, ast.Assign)
    values_by_argument = {
        k.arg: ast.literal_eval(k.value) for k in assigned.value.keywords if k.arg
    }
    assert values_by_argument.pop("device") == "cuda"
    parse(values_by_argument)
    values_by_argument.pop("revision", None)
    assert values_by_argument == harness_values(
        {k: v for k, v in known.options.items() if k != "revision"}
    )


def test_only_plain_https_addresses_are_links():
    for text in ("https://doi.org/10.5281/zenodo.7995778", "https://a.example/x?y=1#z"):
        assert safe_address(text) == text
    for text in (
        *("javascript:alert(1)", "http://a.example/", "//a.example", "https://u:p@a.example/"),
        *("https://", "https://a.example/ x", "https://a.example:x/", "https://[", "", *MARKUP),
    ):
        assert safe_address(text) == ""


PLACES = ("models/space.html", "tasks/leannmlindsey_GUE_mouse_0.html", "marks.html")
MORE = ("categories/splice-sites.html", "scores/full-MCC.html", f"v/{GENERATION}/index.html")
"""Tables that are built as that of a task is.

The gate has the page of a model, which has each kind of part."""


@pytest.mark.nightly  # in the gate, axe on the page itself
@pytest.mark.parametrize("page_path", gated([*PLACES, *MORE], PLACES[0]))
def test_axe_finds_nothing_at_any_width(browser, folder, page_path):
    with opened(browser, f"{folder.as_uri()}/") as tab:
        page = tab.page
        page.goto(f"{tab.home}{page_path}")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert (width, wide) == (width, width)
        assert violations(page) == []


def test_a_row_is_cited_with_author_year_rank_range_and_an_address_that_stays(pages):
    lasting = f"{ADDRESS}/v/{COMMIT}/index.html"
    site = public_site()
    for entry in entries()[:3]:
        model, name = entry.submission.model_id, entry.submission.meta.display
        standing = site.standing(model, "full", "macro")
        assert standing is not None
        assert standing.rank_low is not None
        assert standing.rank_high is not None
        ranks = range_text(standing.rank_low, standing.rank_high)
        page = tags_of(pages[f"models/{model}.html"])
        text = "".join(page.data)
        cited = f"{name}: rank {ranks} of 41 by macro MCC, full"
        version = f"Board of commit {COMMIT}, 2026-11-20"
        assert f"GENEB leaderboard (2026). {cited}. {version}. {lasting}" in text
        for line in (
            "author = {{GENEB leaderboard}}",
            f"title = {{{{{bibtex_text(cited)}}}}}",
            "year = {2026}",
            rf"howpublished = {{\url{{{lasting}}}}}",
        ):
            assert line in text
    # That address leads to the generation, which keeps its scores.
    own = pages[f"v/{COMMIT}/index.html"]
    assert f'href="../../v/{GENERATION}/index.html"' in own
    assert f"{ADDRESS}/v/{GENERATION}/index.html" in own
    assert "<table" not in own
