"""Make the pages for visitors without JavaScript: the template of each, and its variables."""

import functools
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from geneb_ci.board.columns import Row
from geneb_ci.board.site.cells import mean_cells, model_cells, plain_cells, score_range, task_cells
from geneb_ci.board.site.inputs import MACRO, MICRO, RankedScore, Site, score_text
from geneb_ci.board.site.links import (
    MARKS_PAGE,
    Link,
    RepositoryLinks,
    benchmark_links,
    citation,
    data_links,
    dataset_description,
    model_links,
    row_links,
    safe_address,
)
from geneb_ci.board.site.model import (
    INSTALL_COMMAND,
    Badge,
    badge_of,
    baseline_facts,
    evidence_words,
    facts_of_model,
    rank_words,
    snippet_of,
)
from geneb_ci.check.registry import BY_ID
from reference_harness.formats.benchmark import Task
from reference_harness.formats.text import plural

LISTED_MODELS_MAX = 500
"""Maximum number of models in the table of a page, which then has 150 kB; the board has all."""


class TaskPageFacts(NamedTuple):
    """Facts about a task that its page shows; all fields are empty if the policy has none."""

    description: str = ""
    published_facts: Mapping[str, Any] = MappingProxyType({})
    """Values of `models.tasks.TaskNotes.facts` for the task."""
    links: tuple[Link, ...] = ()


def task_facts(site: Site) -> Mapping[str, TaskPageFacts]:
    """Return the facts of tasks by id, from the policy's tasks.toml."""
    notes = site.notes
    facts_by_task, facts = notes.facts(site.benchmark.tasks), {}
    for task in site.benchmark.task_ids:
        note = notes.of(task)
        if note is not None:
            paper = notes.papers[note.paper] if note.paper else None
            is_link = paper is not None and safe_address(paper.address)
            links = (Link(f"Paper: {paper.title}", paper.address),) if paper and is_link else ()
            facts[task] = TaskPageFacts(note.asks, facts_by_task[task], links)
    return facts


class Page(NamedTuple):
    """One page: its path, its template and the template's variables."""

    path: str
    template: str
    content: Mapping[str, Any]


def page_of(
    path: str, template: str, site: Site, *, title: str, about: str, **variables: Any
) -> Page:
    """Return a page; its template gets the variables that all templates have, and `variables`."""
    content = {
        "path": path,
        "root": "../" * path.count("/"),
        "title": title,
        "about": about,
        "site": site,
        "canonical": site.address(path),
        "data": dataset_description(title, about, path, site, **variables.pop("described", {})),
        "cite": citation(
            variables.pop("key", title),
            variables.pop("cited", title),
            variables.pop("permanent", site.permanent or path),
            site,
        ),
        **variables,
    }
    return Page(path, template, content)


class LazyPage(NamedTuple):
    """A page that is made when it is written."""

    path: str
    make: Callable[[], Page]


def model_pages(site: Site) -> Iterator[LazyPage]:
    """Yield the page and the badge of each model."""
    partial = functools.partial
    for row in site.rows:
        model = row.submission.model_id
        yield LazyPage(f"models/{model}.html", partial(model_page, row, site))
        path = f"badges/{model}.svg"
        badge = partial(badge_of, model, site)
        yield LazyPage(path, partial(_badge_page, path, badge))


def _badge_page(path: str, badge: Callable[[], Badge]) -> Page:
    """Return the badge of a model as a page."""
    return Page(path, "badge.svg", {"badge": badge()})


def other_pages(site: Site) -> Iterator[LazyPage]:
    """Yield the pages of a board that are not about a single model."""
    facts, partial = task_facts(site), functools.partial
    for task in site.benchmark.tasks:
        known_facts = facts.get(task.id, TaskPageFacts())
        yield LazyPage(f"tasks/{task.id}.html", partial(task_page, task, known_facts, site))
    for category in site.benchmark.category_order:
        path = f"categories/{site.category_files[category]}.html"
        yield LazyPage(path, partial(category_page, category, facts, site))
    for regime in site.benchmark.regimes:
        for metric in site.benchmark.metrics:
            make = partial(scores_page, regime, metric, site)
            yield LazyPage(scores_path(regime, metric), make)
    yield LazyPage(MARKS_PAGE, partial(marks_page, site))


def model_page(row: Row, site: Site) -> Page:
    """Return the page of a model."""
    submission = row.submission
    model, display_name = submission.model_id, submission.meta.display
    model_entry = site.model_entry(model)
    events = site.events.get(model, [])
    repository = RepositoryLinks(site)
    standing = site.standing(model, site.benchmark.regimes[0], MACRO)
    about = (
        f"{display_name}: scores of its frozen embeddings on "
        f"{plural(len(site.benchmark.tasks), 'classification task')} in "
        f"{plural(len(site.benchmark.category_order), 'category')}. "
        f"{_rank_sentence(model, standing, site)} {evidence_words(row).capitalize()}."
    )
    return page_of(
        f"models/{model}.html",
        "model.html",
        site,
        title=display_name,
        about=about,
        key=model,
        cited=_citation_title(display_name, model, site),
        described={"identifier": model},
        row=row,
        known=model_entry,
        facts=[*facts_of_model(row, model_entry), *baseline_facts(row, site.benchmark)],
        means=list(zip(*[site.standings(model, r) for r in site.benchmark.regimes], strict=True)),
        tasks=task_cells(
            [site.task_columns(model, regime) for regime in site.benchmark.regimes],
            site.page_task_indices,
        ),
        snippet=snippet_of(model_entry),
        install=INSTALL_COMMAND,
        links=(
            ("This row", row_links(model, site, repository, events)),
            ("The model", model_links(model_entry, submission.meta.url)),
            ("The benchmark", benchmark_links(site)),
        ),
        records={
            path.stem: list(repository.file("Signed record", path))
            for path in site.records.get(model, ())
        },
        events=events,
        event_links=repository.event,
    )


def _citation_title(display_name: str, model: str, site: Site) -> str:
    """Return the title under which a row is cited: its name and its rank range."""
    metric, regime = site.benchmark.primary_metric, site.benchmark.regimes[0]
    rank = rank_words(model, site)
    basis = f" by macro {metric}" if rank.startswith("rank") else ""
    return f"{display_name}: {rank}{basis}, {regime}"


def _rank_sentence(model: str, standing: RankedScore | None, site: Site) -> str:
    """Return score and rank of a model as a sentence."""
    if standing is None:
        return "It is not ranked."
    metric, regime = site.benchmark.primary_metric, site.benchmark.regimes[0]
    rank = rank_words(model, site)
    rank_text = f", {rank}" if rank.startswith("rank") else ""
    return f"Macro {metric} {score_text(standing.score)} with {regime} training data{rank_text}."


def _category_tasks(category: str, site: Site) -> list[Task]:
    """Return the tasks of a category."""
    return [site.benchmark.by_id[task] for task in site.benchmark.categories[category]]


def task_page(task: Task, facts: TaskPageFacts, site: Site) -> Page:
    """Return the page of a task: its question, and the scores of models."""
    models, regimes = site.best_in(task.id, LISTED_MODELS_MAX), site.benchmark.regimes
    cells = model_cells(
        models, (site.scores_in_task(task.id, models, regime) for regime in regimes)
    )
    about = (
        f"{task.label}: {facts.description or 'a classification task'} in the category "
        f"{task.category} of the benchmark {site.benchmark.name}. Scores of {len(site.names)} "
        "models, with intervals."
    )
    return page_of(
        f"tasks/{task.id}.html",
        "task.html",
        site,
        title=task.label,
        about=about,
        key=task.id,
        described={"identifier": task.id},
        task=task,
        facts=facts,
        links=[
            *data_links(site.benchmark, task.id),
            *facts.links,
            *benchmark_links(site),
        ],
        rows=list(zip(models, cells, strict=True)),
        left_out=max(0, len(site.names) - LISTED_MODELS_MAX),
    )


def category_page(category: str, facts: Mapping[str, TaskPageFacts], site: Site) -> Page:
    """Return the page of a category: its tasks, and the scores and ranks of models."""
    first_regime, tasks = site.benchmark.regimes[0], _category_tasks(category, site)
    scores = [
        site.mean(m, first_regime, category, site.benchmark.primary_metric) for m in site.names
    ]
    best_models = site.best_first(scores, LISTED_MODELS_MAX)
    standings = [
        [site.standing(m, r, category) for r in site.benchmark.regimes] for m in best_models
    ]
    about = (
        f"{category}: {plural(len(tasks), 'classification task')} of the benchmark "
        f"{site.benchmark.name}, with intervals and rank ranges of "
        f"{plural(len(site.names), 'model')}."
    )
    return page_of(
        f"categories/{site.category_files[category]}.html",
        "category.html",
        site,
        title=category,
        about=about,
        described={"identifier": category},
        category=category,
        tasks=[(task, facts.get(task.id, TaskPageFacts())) for task in tasks],
        rows=list(zip(best_models, mean_cells(standings), strict=True)),
        left_out=len(site.names) - len(best_models),
        links=benchmark_links(site),
    )


def scores_page(regime: str, metric: str, site: Site) -> Page:
    """Return the page with the scores of all categories in a regime, by a metric."""
    return page_of(
        scores_path(regime, metric),
        "scores.html",
        site,
        title=f"All scores: {metric}, {regime}",
        about=(
            f"{metric} of {len(site.names)} {site.publication.models} in "
            f"{plural(len(site.benchmark.category_order), 'category')} with {regime} training data."
        ),
        regime=regime,
        metric=metric,
        **scores_table(regime, metric, site, LISTED_MODELS_MAX),
    )


def scores_path(regime: str, metric: str) -> str:
    """Return the path of the page with the scores in a regime and a metric."""
    return f"scores/{regime}-{metric}.html"


def scores_table(regime: str, metric: str, site: Site, maximum: int) -> dict[str, Any]:
    """Return the variables of a table of all categories with at most `maximum` rows, best first."""
    columns = (MACRO, MICRO, *site.benchmark.category_order)
    order = site.best_first([site.mean(m, regime, MACRO, metric) for m in site.names], maximum)
    rows = [(m, [site.mean(m, regime, column, metric) for column in columns]) for m in order]
    table_range = score_range(score for _, scores in rows for score in scores)
    return {
        "columns": columns,
        "rows": [
            (
                m,
                plain_cells(
                    scores, table_range, site.by_id[m].attestation.evidence_in_regime(regime)
                ),
            )
            for m, scores in rows
        ],
        "left_out": len(site.names) - len(rows),
    }


def marks_page(site: Site) -> Page:
    """Return the page that explains each mark of a row: published defects and warnings."""
    defects = {defect.id: defect for row in site.rows for defect in row.marks.defects}
    models_by_defect: dict[str, list[str]] = {name: [] for name in sorted(defects)}
    warnings_by_rule: dict[str, list[tuple[str, int]]] = {}
    for row in site.rows:
        model = row.submission.model_id
        for defect in row.marks.defects:
            models_by_defect[defect.id].append(model)
        for rule, count in row.marks.warnings:
            warnings_by_rule.setdefault(rule, []).append((model, count))
    links = RepositoryLinks(site)
    return page_of(
        MARKS_PAGE,
        "marks.html",
        site,
        title="Warnings and known defects",
        about=(
            "What the marks of a row on this board mean: published defects of the extractor that "
            "computed it, and warnings of the checks that its submission passed."
        ),
        defects=[
            (defects[name], models, list(links.path("Documentation", defects[name].explained)))
            for name, models in models_by_defect.items()
        ],
        rules=[(BY_ID[name], warnings_by_rule[name]) for name in sorted(warnings_by_rule)],
        most=LISTED_MODELS_MAX,
    )
