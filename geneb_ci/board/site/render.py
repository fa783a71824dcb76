"""Render the pages of a board to files."""

import functools
import itertools
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup, escape

from geneb_ci import __version__
from geneb_ci.board.page import SECURITY_POLICY, pages_style, write_page
from geneb_ci.board.site.cells import (
    fact_rows,
    link_rows,
    mean_cells,
    model_rows,
    outward_link,
)
from geneb_ci.board.site.inputs import Site, score_text, writable
from geneb_ci.board.site.links import LICENCE, board_links, data_page
from geneb_ci.board.site.pages import (
    LISTED_MODELS_MAX,
    Page,
    model_pages,
    other_pages,
    page_of,
    scores_path,
    scores_table,
)
from geneb_ci.common.parallel import in_processes, jobs_for
from geneb_ci.common.types import level_word

FEED, STYLE = "feed.xml", "pages.css"
SCORES_MARK = b"<!-- scores for readers without scripts -->"
"""The comment in index.html that the table for readers without JavaScript replaces."""
BENCHMARK_NAME_MARK = b"<!-- name of the benchmark -->"
"""The comment in index.html that the name of the benchmark replaces."""
MODEL_WORD_MARK = b"<!-- kind of models -->"
"""The comment in index.html that the word for rows, such as "models", replaces."""
HEADER_MARK = b"<!-- date, version and links of the board -->"
"""The comment in index.html that date, version and links replace."""
SPACE_ATTRIBUTE = b'data-space=""'
"""Attribute in index.html for the address of the Space that shows the board in a frame."""
INDEX_MODELS_MAX = 100
"""Maximum number of models that the table of index.html shows completely."""
INDEX_MODELS = 50
"""Number of models in that table on a board with more than INDEX_MODELS_MAX."""
EDITIONS_FOLDER = "v"
"""Folder of the permanent pages of all generations, which later generations keep."""
PAGES_AT_ONCE = 100
"""Number of pages that a process makes in one go, which takes a tenth of a second."""
TEMPLATE_SLOT = "\0"
"""Placeholder in a template for text that differs between pages; no page may contain it."""
FEED_ENTRIES_MAX = 100
"""Maximum number of events in the feed, the newest ones; `ledger.json` has all."""
_FEED_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://arxiv.org/abs/2606.04525")
"""Namespace of the ids of feed entries."""


def site_files(site: Site) -> dict[str, bytes]:
    """Return the pages of a board, their style and, if there is a ledger, the feed."""
    environment = _environment()
    lazy_pages = (*model_pages(site), *other_pages(site))
    files = {path: _rendered_page(environment, make()) for path, make in lazy_pages}
    files[STYLE] = pages_style()
    if site.built.commit is not None:
        content = {"feed": feed_of(site), "site": site}
        files[FEED] = _rendered_page(environment, Page(FEED, "feed.xml", content))
    return dict(sorted(files.items()))


def write_site(folder: Path, site: Site, jobs: int | None = None) -> None:
    """Write the files that `site_files` returns for a board without a ledger into a folder.

    `jobs` is the number of processes; None chooses it by the number of rows. A process has only
    PAGES_AT_ONCE pages in memory. Raises what `write_page` raises.
    """
    lazy_pages = [*model_pages(site), *other_pages(site)]
    groups = [lazy_pages[k : k + PAGES_AT_ONCE] for k in range(0, len(lazy_pages), PAGES_AT_ONCE)]

    def write(number: int) -> None:
        environment = _environment()
        write_page(
            folder, {path: _rendered_page(environment, make()) for path, make in groups[number]}
        )

    for _ in in_processes(write, range(len(groups)), jobs or jobs_for(len(site.rows)), 1):
        pass
    write_page(folder, {STYLE: pages_style()})


def completed_index(index: bytes, site: Site) -> bytes:
    """Return index.html with its comments replaced by facts about the board and by its scores.

    The scores are for readers without JavaScript. A page without these marks, such as one by a
    maintainer, is returned unchanged.
    """
    about = {"links": board_links(site), "root": "", "site": site}
    header = _rendered_page(_environment(), Page("index.html", "about.html", about))
    index = index.replace(HEADER_MARK, header.strip(), 1)
    title, benchmark = b"<title>", str(escape(site.benchmark.name)).encode()
    index = index.replace(title, b"%s%s " % (title, benchmark), 1)
    index = index.replace(BENCHMARK_NAME_MARK, benchmark, 1)
    index = index.replace(MODEL_WORD_MARK, str(escape(site.publication.models)).encode())
    index = index.replace(
        SPACE_ATTRIBUTE, SPACE_ATTRIBUTE.replace(b'""', f'"{site.layout.space}"'.encode()), 1
    )
    return index.replace(SCORES_MARK, _plain_scores(site), 1) if SCORES_MARK in index else index


def _plain_scores(site: Site) -> bytes:
    """Return the table of scores for readers without JavaScript."""
    regime, metric = site.benchmark.regimes[0], site.benchmark.primary_metric
    maximum = INDEX_MODELS if len(site.names) > INDEX_MODELS_MAX else INDEX_MODELS_MAX
    content = {
        **scores_table(regime, metric, site, maximum),
        "is_whole": len(site.names) <= LISTED_MODELS_MAX,
        "regime": regime,
        "metric": metric,
        "root": "",
        "site": site,
    }
    return _rendered_page(_environment(), Page("index.html", "noscript.html", content)).strip()


def editions(
    site: Site, generation: str, files: Mapping[str, Mapping[str, Any]]
) -> dict[str, bytes]:
    """Return the permanent page of a generation, and the pages that lead to it, by path.

    `files` maps the names of files in the manifest to their `bytes` and `sha256`.
    """
    json_files = {name: file for name, file in files.items() if name.endswith(".json")}
    metric, model_count = site.benchmark.primary_metric, len(site.names)
    page_bytes = {}
    permanent = f"{EDITIONS_FOLDER}/{generation}/index.html"
    # The digest of a generation covers its pages, so these cannot contain it. They name the commit
    # instead, whose page (site.permanent) leads to that of the generation.
    for path in (permanent, f"{EDITIONS_FOLDER}/index.html", site.permanent):
        is_whole = path != site.permanent
        edition = page_of(
            path,
            "edition.html",
            site,
            title=f"Board {generation[:12]}",
            about=(
                f"The scores of generation {generation[:12]} of the board, of "
                f"{(site.built.when or '')[:10]}: this address keeps them when the board changes."
            ),
            key=generation[:12],
            cited=f"Generation {generation}",
            permanent=permanent,
            generation=generation,
            tables={
                regime: scores_table(regime, metric, site, model_count)
                for regime in (site.benchmark.regimes if is_whole else ())
            },
            data_files=json_files if is_whole else {},
        )
        page_bytes[path] = _rendered_page(_environment(), edition)
    return page_bytes


def _rendered_page(environment: jinja2.Environment, page: Page) -> bytes:
    """Return the HTML of a page."""
    html = environment.get_template(page.template).render(page.content)
    return html.lstrip().encode("utf-8", "replace")


@functools.cache
def _environment() -> jinja2.Environment:
    """Return the settings of Jinja2 with which all templates are rendered."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=writable,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals |= {
        "policy": SECURITY_POLICY,
        "version": __version__,
        "licence": LICENCE,
        "data_page": data_page,
        "framed": render_frame,
        "fact_rows": fact_rows,
        "link_rows": link_rows,
        "outward_link": outward_link,
        "mean_cells": mean_cells,
        "model_rows": model_rows,
        "score_text": score_text,
        "scores_path": scores_path,
        "balance": class_balance_text,
        "level_word": level_word,
    }
    return environment


def render_frame(template: str, root: str, site: Site, inner: Sequence[str] = ()) -> Markup:
    """Return the HTML of a template that depends only on the site, with `inner` in its slots.

    The template is rendered once for all pages with the same root.
    """
    frame_parts = site.frames.get((template, root))
    if frame_parts is None:
        content = {"root": root, "site": site, "slot": Markup(TEMPLATE_SLOT)}  # noqa: S704 (a constant)
        frame_parts = _environment().get_template(template).render(content).split(TEMPLATE_SLOT)
        site.frames[template, root] = frame_parts
    pairs = zip(frame_parts, (*inner, ""), strict=True)
    return Markup("".join(itertools.chain.from_iterable(pairs)))  # noqa: S704 (of templates)


def class_balance_text(counts: Sequence[int]) -> str:
    """Return in words the sizes of a task's classes, and the share of the smallest."""
    return (
        f"{' and '.join(f'{count:,}' for count in counts)}: the smallest is "
        f"{min(counts) / sum(counts):.0%} of them"
    )


class FeedEntry(NamedTuple):
    """One event as an entry of the feed."""

    id: str
    title: str
    when: str
    who: str
    why: str
    address: str


class Feed(NamedTuple):
    """A feed, newest entry first."""

    id: str
    updated: str
    entries: tuple[FeedEntry, ...]


def feed_of(site: Site) -> Feed:
    """Return the feed of a board that has a ledger."""
    events = list(site.built.events)
    newest = list(enumerate(events))[-FEED_ENTRIES_MAX:]
    entries = tuple(_feed_entry(number, event, site) for number, event in reversed(newest))
    updated = entries[0].when if entries else site.built.when or ""
    return Feed(f"urn:uuid:{_FEED_NAMESPACE}", updated, entries)


def _feed_entry(number: int, event: Mapping[str, Any], site: Site) -> FeedEntry:
    """Return an event as an entry of the feed; `number` tells events of one commit apart."""
    model = event["model"]
    name = f"{number}/{event['commit']}/{event['kind']}/{model}".encode(errors="replace").decode()
    levels = " to ".join(level_word(event[key]) for key in ("former_level", "level") if event[key])
    path = f"models/{model}.html" if model in site.names else "index.html"
    return FeedEntry(
        id=f"urn:uuid:{uuid.uuid5(_FEED_NAMESPACE, name)}",
        title=f"{event['kind']}: {model} ({levels})" if levels else f"{event['kind']}: {model}",
        when=event["when"],
        who=event["who"],
        why=event["why"],
        address=site.address(path) or path,
    )
