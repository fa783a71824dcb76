"""From the content of pages to files."""

import functools
import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup, escape

from geneb_ci import __version__
from geneb_ci.board.page import POLICY, pages_style, write_page
from geneb_ci.board.parts import Parts, made, part_key
from geneb_ci.board.site.inputs import (
    Site,
    Standing,
    heat,
    range_text,
    score_cell,
    score_text,
    writable,
)
from geneb_ci.board.site.links import LICENCE, benchmark_links, mark_links
from geneb_ci.board.site.pages import (
    LISTED_MAX,
    Page,
    model_pages,
    other_pages,
    page,
    scores_path,
    scores_table,
)
from geneb_ci.check.kept import jobs_for
from geneb_ci.common.files import digest_of

FEED, STYLE = "feed.xml", "pages.css"
MARKER = b"<!-- scores for readers without scripts -->"
"""What index.html has where the table for readers without JavaScript is to be."""
INDEX_MODELS_MAX = 100
"""Models in the table of index.html; with more, the first load would grow by the whole board."""
INDEX_MODELS = 50
"""Models in that table on a board with more than INDEX_MODELS_MAX."""
EDITIONS = "v"
"""Folder of the pages that later generations leave in place."""


def site_files(site: Site) -> dict[str, bytes]:
    """Return the pages of a board, their style and, if there is a history, the feed."""
    environment = _environment()
    made_later = (*model_pages(site), *other_pages(site))
    files = {path: _rendered(environment, make()) for path, _, make in made_later}
    files[STYLE] = pages_style()
    if site.built.commit is not None:
        content = {"feed": feed_of(site), "site": site}
        files[FEED] = _rendered(environment, Page(FEED, "feed.xml", content))
    return dict(sorted(files.items()))


PAGES_AT_ONCE = 50
"""Pages that a process makes in one go: half a second of work."""


def write_site(folder: Path, site: Site, parts: Parts) -> None:
    """Write what `site_files` gives, of a board without a history, into a folder.

    `parts` keeps the digests of pages: one that follows from the same values, and whose file has
    that digest, is not made again. No process has more than a few pages in memory.
    Raises what `write_page` raises.
    """
    keyed = [
        (path, part_key(known) if known else "", make)
        for path, known, make in (*model_pages(site), *other_pages(site))
    ]
    groups = [keyed[k : k + PAGES_AT_ONCE] for k in range(0, len(keyed), PAGES_AT_ONCE)]
    makers: list[Callable[[], bytes]] = [
        functools.partial(_written, folder, [(*one, parts.kept(one[1])) for one in group])
        for group in groups
    ]
    jobs = parts.jobs or jobs_for(len(site.entries))
    for group, digests in zip(groups, made(makers, jobs, at_once=1), strict=True):
        for number, (_, key, _make) in enumerate(group):
            if key:
                parts.keep(key, digests[number * DIGEST : (number + 1) * DIGEST])
    write_page(folder, {STYLE: pages_style()})


DIGEST = hashlib.sha256().digest_size


def _written(folder: Path, pages: list[tuple[str, str, Callable[[], Page], bytes | None]]) -> bytes:
    """Write pages whose files lack the digest that is kept; return the digest of each."""
    found, files = [], {}
    for path, _, make, kept in pages:
        if kept is None or kept != digest_of(folder / path):
            files[path] = _rendered(_environment(), make())
            found.append(hashlib.sha256(files[path]).digest())
        else:
            found.append(kept)
    write_page(folder, files)
    return b"".join(found)


def with_scores(index: bytes, site: Site) -> bytes:
    """Return index.html with the scores for readers without JavaScript, where it has room for them.

    A page without the marker, such as a maintainer's own, is returned as it is.
    """
    if MARKER not in index:
        return index
    regime, metric = site.benchmark.regimes[0], site.benchmark.primary_metric
    most = INDEX_MODELS if len(site.names) > INDEX_MODELS_MAX else INDEX_MODELS_MAX
    content = {
        **scores_table(regime, metric, site, most),
        "is_whole": len(site.names) <= LISTED_MAX,
        "regime": regime,
        "metric": metric,
        "root": "",
        "site": site,
    }
    made = _rendered(_environment(), Page("index.html", "noscript.html", content))
    return index.replace(MARKER, made.strip(), 1)


def editions(
    site: Site, generation: str, files: Mapping[str, Mapping[str, Any]]
) -> dict[str, bytes]:
    """Return the pages that name a generation: one to stay, and one that names the newest.

    `files` are the files of the manifest, each with `bytes` and `sha256`.
    """
    data = {name: file for name, file in files.items() if name.endswith(".json")}
    metric, every = site.benchmark.primary_metric, len(site.names)
    found = {}
    for path in (f"{EDITIONS}/{generation}/index.html", f"{EDITIONS}/index.html"):
        one = page(
            path,
            "edition.html",
            site,
            title=f"Board {generation[:12]}",
            about=(
                f"The scores of generation {generation[:12]} of the board, of "
                f"{(site.built.when or '')[:10]}: this address keeps them when the board changes."
            ),
            generation=generation,
            tables={r: scores_table(r, metric, site, every) for r in site.benchmark.regimes},
            data_files=data,
        )
        found[path] = _rendered(_environment(), one)
    return found


def _rendered(environment: jinja2.Environment, one: Page) -> bytes:
    text = environment.get_template(one.template).render(one.content)
    return text.lstrip().encode("utf-8", "replace")


@functools.cache
def _environment() -> jinja2.Environment:
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
        "policy": POLICY,
        "version": __version__,
        "licence": LICENCE,
        "data_page": lambda benchmark: benchmark_links(benchmark)[1].address,
        "name_cell": name_cell,
        "task_rows": task_rows,
        "ranked_cells": ranked_cells,
        "plain_cells": plain_cells,
        "scores_path": scores_path,
        "balance": balance,
        "span_of": lambda means: span([s for _, _, standings in means for s in standings]),
        "span_of_rows": lambda rows: span([s for _, standings in rows for s in standings]),
    }
    return environment


def span(standings: Sequence[Standing | None]) -> tuple[float, float]:
    """Return the lowest and the highest score, for the colours of a table."""
    scores = [standing.score for standing in standings if standing is not None]
    return min(scores, default=0.0), max(scores, default=1.0)


# Cells are written in Python: a board has ten thousands, and a macro takes ten times as long.


def name_cell(model: str, root: str, site: Site) -> Markup:
    """Return the cell that names a model and links to its page; each page has it."""
    found = site.name_cells.get((model, root))
    if found is None:
        found = site.name_cells[model, root] = _name_cell(model, root, site)
    return found


def _name_cell(model: str, root: str, site: Site) -> Markup:
    name = escape(str(writable(site.names[model])))
    marks = ", ".join(
        f'<a href="{escape(link.address)}">{escape(link.text)}</a>'
        for link in mark_links(site.by_id[model], root)
    )
    marked = f'<small class="doubt">{marks}</small>' if marks else ""
    return Markup(  # noqa: S704 (escaped above)
        f'<th scope="row" class="name"><a href="{root}models/{escape(model)}.html">'
        f"<bdi>{name}</bdi></a>{marked}</th>"
    )


def task_rows(tasks: Sequence[str], cells: Sequence[Markup], root: str, site: Site) -> Markup:
    """Return the rows of tasks, each with a link to its page, and their cells."""
    heads = (_task_head(task, root, site) for task in tasks)
    rows = [f"<tr>{head}{own}</tr>" for head, own in zip(heads, cells, strict=True)]
    return Markup("\n".join(rows))  # noqa: S704 (_task_head escapes names; cells are Markup)


def _task_head(task: str, root: str, site: Site) -> str:
    found = site.task_heads.get((task, root))
    if found is None:
        name, label = (
            escape(str(writable(one))) for one in (task, site.benchmark.by_id[task].label)
        )
        found = f'<th scope="row"><a href="{root}tasks/{name}.html">{label}</a></th>'
        site.task_heads[task, root] = found
    return found


def ranked_cells(standings: Sequence[Standing | None], ends: tuple[float, float]) -> Markup:
    """Return the cells of scores with their intervals, each with the rank range beside it."""
    cells = "".join(score_cell(one, ends) + _rank_cell(one) for one in standings)
    return Markup(cells)  # noqa: S704 (numbers alone)


def plain_cells(scores: Sequence[float | None], ends: tuple[float, float]) -> Markup:
    """Return the cells of scores without intervals."""
    cells = [
        '<td class="none">none</td>'
        if score is None
        else f'<td class="heat {heat(score, ends)}">{score_text(score)}</td>'
        for score in scores
    ]
    return Markup("".join(cells))  # noqa: S704 (numbers alone)


def _rank_cell(standing: Standing | None) -> str:
    if standing is None or standing.rank_low is None or standing.rank_high is None:
        return '<td class="none">unknown</td>'
    return f'<td class="number">{range_text(standing.rank_low, standing.rank_high)}</td>'


def balance(counts: Sequence[int]) -> str:
    """Return the sizes of the classes of a task, and the share of the smallest."""
    return (
        f"{' and '.join(f'{count:,}' for count in counts)}: the smallest is "
        f"{min(counts) / sum(counts):.0%} of them"
    )


ENTRIES_MAX = 100
"""Newest events in the feed; `ledger.json` has all."""
_SPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://arxiv.org/abs/2606.04525")


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
    """Return the feed of a board that has a history."""
    events = list(site.built.events)
    newest = list(enumerate(events))[-ENTRIES_MAX:]
    entries = tuple(_entry(number, event, site) for number, event in reversed(newest))
    updated = entries[0].when if entries else site.built.when or ""
    return Feed(f"urn:uuid:{_SPACE}", updated, entries)


def _entry(number: int, event: Mapping[str, Any], site: Site) -> FeedEntry:
    model = event["model"]
    name = f"{number}/{event['commit']}/{event['kind']}/{model}".encode(errors="replace").decode()
    levels = " to ".join(level for level in (event["former_level"], event["level"]) if level)
    page = f"models/{model}.html" if model in site.names else "index.html"
    return FeedEntry(
        id=f"urn:uuid:{uuid.uuid5(_SPACE, name)}",
        title=f"{event['kind']}: {model} ({levels})" if levels else f"{event['kind']}: {model}",
        when=event["when"],
        who=event["who"],
        why=event["why"],
        address=site.address(page) or page,
    )
