"""Links from pages to other sites, and the citation and schema.org description of a page."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from geneb_ci.board.columns import Row
from geneb_ci.board.site.inputs import Site, bibtex_text
from geneb_ci.models.entry import DEFAULT_HOSTS, ModelEntry, WeightsSource, addresses
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.text import plural

HUB_ADDRESS = "https://huggingface.co"
"""Address of the Hugging Face Hub."""
HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
"""Id of a repository on the Hugging Face Hub, as OWNER/NAME."""
GITHUB_ADDRESS = "https://github.com"
"""Address of GitHub."""
GUIDE_PATH = "submissions/README.md"
"""Path of the guide to submitting a model, in the repository of submissions."""
LINKED_FILES_MAX = 8
"""Maximum number of weights files that a page links to; the registry's entry lists all."""
LINKED_SOURCES_MAX = 8
"""Maximum number of sources of facts that a page links to."""

_SOURCE_PATTERN = re.compile(r"([A-Za-z0-9-]+/[A-Za-z0-9._-]+):([A-Za-z0-9._/-]+)")
"""A file on GitHub, as the registry names it: OWNER/NAME:PATH."""
_PULL_REQUEST_PATTERN = re.compile(r"(?:^Merge pull request |\()#([0-9]{1,9})\b")
"""The number of a pull request in the subject of a commit."""


MARKS_PAGE = "marks.html"
"""Path of the page that explains the marks of rows."""
LICENCE = "https://www.apache.org/licenses/LICENSE-2.0"
"""Licence of the figures and of the pages, the same as of this repository."""
DESCRIPTION_MAX = 5000
"""Maximum characters of a description in search engines' guidelines for data sets."""
DATA_FILES = ("leaderboard.json", "leaderboard_tasks.json")
"""The files of the board that a page's description names as its data."""


class Link(NamedTuple):
    """An address and the text of the link to it."""

    text: str
    address: str


def safe_address(address: str) -> str:
    """Return an address that a page may link to; "" unless it is an https address of plain ASCII.

    Addresses come from contributors, so scripts, user names and passwords are refused.
    """
    try:
        url = urlsplit(address)
        _ = url.port
    except ValueError:
        return ""
    is_plain = url.scheme == "https" and bool(url.hostname) and "@" not in url.netloc
    is_text = address.isascii() and not re.search(r"[\s\x00-\x1f\x7f\\]", address)
    return address if is_plain and is_text else ""


class RepositoryLinks:
    """Links to the repository of submissions; if its address is unknown, methods yield none."""

    def __init__(self, site: Site) -> None:
        self._layout = site.layout
        self._base = site.layout.repository
        self._commit = site.built.commit or "HEAD"

    def file(self, label: str, path: Path | None) -> Iterator[Link]:
        """Yield the link to a file, if it is a file of the repository."""
        root = self._layout.root
        if self._base and path is not None and path.is_relative_to(root) and path.is_file():
            relative_path = path.relative_to(root).as_posix()
            yield Link(label, f"{self._base}/blob/{self._commit}/{quote(relative_path)}")

    def path(self, label: str, path: str) -> Iterator[Link]:
        """Yield the link to a path in the repository, which may have an anchor."""
        if self._base:
            yield Link(label, f"{self._base}/blob/{self._commit}/{path}")

    def event(self, event: Mapping[str, Any]) -> Iterator[Link]:
        """Yield links to the commit of an event and, if its reason names one, to a pull request."""
        if not self._base:
            return
        if match := _PULL_REQUEST_PATTERN.search(event["why"]):
            yield Link(f"Pull request #{match[1]}", f"{self._base}/pull/{match[1]}")
        commit = event["commit"]
        yield Link(f"Commit {commit[:12]}", f"{self._base}/commit/{commit}")

    def issue(self, label: str, template: str) -> Iterator[Link]:
        """Yield the link that opens a new issue with a template."""
        if self._base:
            yield Link(label, f"{self._base}/issues/new?template={template}")


def mark_links(row: Row, root: str) -> list[Link]:
    """Return links to the explanation of a row's defects and of its warnings, if there are any."""
    links = []
    if defects := row.marks.defects:
        label = plural(len(defects), "published defect")
        links.append(Link(label, f"{root}{MARKS_PAGE}#defect-{defects[0].id}"))
    if warnings := row.marks.warnings:
        label = f"warnings of {plural(len(warnings), 'rule')}"
        links.append(Link(label, f"{root}{MARKS_PAGE}#rule-{warnings[0][0]}"))
    return links


def row_links(
    model: str, site: Site, repository: RepositoryLinks, events: list[Mapping[str, Any]]
) -> list[Link]:
    """Return links to the files and commits from which a row is made."""
    links_of_row: list[Link] = []
    layout = site.layout
    for label, folder, ending in (
        ("Submission", layout.submissions, "json"),
        ("Model card", layout.cards, "md"),
        ("Entry in the model registry", layout.policy and layout.policy / "models", "toml"),
    ):
        links_of_row += repository.file(label, folder / f"{model}.{ending}" if folder else None)
    for path in site.records.get(model, ()):
        links_of_row += repository.file(f"Audit record {path.stem[:12]}", path)
    for event in events:
        links_of_row += repository.event(event)
    links_of_row += repository.issue("Dispute this row", "dispute.yml")
    return list(dict.fromkeys(links_of_row))


def model_links(model_entry: ModelEntry | None, url: str) -> list[Link]:
    """Return links to the model's papers, weights and code, and to the sources of its facts."""
    links: list[Link] = []
    if model_entry is not None:
        links += (Link(f"Paper: {paper.title}", paper.address) for paper in model_entry.papers)
        if model_entry.weights is not None:
            links += weight_links(model_entry.weights)
        if model_entry.code is not None:
            tree = f"/tree/{model_entry.code.commit}" if model_entry.code.commit else ""
            links.append(Link("Code of the authors", f"{model_entry.code.repository}{tree}"))
        if model_entry.sources is not None:
            links += source_links(model_entry.sources.loading)
    if address := safe_address(url):
        links.append(Link("Link in the submission", address))
    return [link for link in dict.fromkeys(links) if safe_address(link.address)]


def weight_links(weights: WeightsSource) -> Iterator[Link]:
    """Yield links to the folder of the weights and to their files."""
    location = weights.location
    if weights.kind == "huggingface":
        yield Link(f"Weights: {location}", f"{HUB_ADDRESS}/{quote(location)}")
        yield Link(
            "Weights at the pinned commit",
            f"{HUB_ADDRESS}/{quote(location)}/tree/{weights.revision}",
        )
        for path in list(weights.files)[:LINKED_FILES_MAX]:
            yield Link(
                path, f"{HUB_ADDRESS}/{quote(location)}/blob/{weights.revision}/{quote(path)}"
            )
        return
    host = weights.host or DEFAULT_HOSTS.get(weights.kind, "")
    folder_address = {
        "zenodo": f"{host}/records/{quote(location)}",
        "gdrive": f"https://drive.google.com/drive/folders/{quote(location)}",
        "dataverse": f"{host}/dataset.xhtml?persistentId={quote(location)}",
        "url": location,
    }.get(weights.kind)
    if folder_address:
        yield Link("Weights", folder_address)
    for file_name, address in list(addresses(weights).items())[:LINKED_FILES_MAX]:
        yield Link(file_name, address)


def source_links(sources: list[str]) -> Iterator[Link]:
    """Yield links to files on GitHub that the registry names as OWNER/NAME:PATH."""
    matches = [match for source in sources if (match := _SOURCE_PATTERN.fullmatch(source))]
    for match in matches[:LINKED_SOURCES_MAX]:
        yield Link(
            f"{match[1]}: {match[2].rpartition('/')[2]}",
            f"{GITHUB_ADDRESS}/{match[1]}/blob/HEAD/{quote(match[2])}",
        )


def benchmark_links(site: Site) -> list[Link]:
    """Return links to the benchmark: its paper, its harness and, if on the Hub, its task data."""
    origin = site.publication
    links = (
        Link("Paper of the benchmark", origin.paper.address if origin.paper else ""),
        Link("Task data at the pinned commit", data_page(site.benchmark)),
        Link("Harness of the benchmark", origin.code or ""),
    )
    return [link for link in links if link.address]


def board_links(site: Site) -> list[Link]:
    """Return the links in the header of the board: paper, code, data, and how to submit a model."""
    layout, origin = site.layout, site.publication
    links = (
        Link("Paper", origin.paper.address if origin.paper else ""),
        Link("Code", layout.repository or origin.code or ""),
        Link("Task data", data_page(site.benchmark)),
        *RepositoryLinks(site).path("Submit a model", GUIDE_PATH),
    )
    return [link for link in links if link.address]


def data_page(benchmark: Benchmark) -> str:
    """Return the address of the task data at the pinned commit; "" if they are not on the Hub."""
    task_data = benchmark.dataset
    is_on_hub = HUB_ID.fullmatch(task_data.repo_id) is not None
    return (
        f"{HUB_ADDRESS}/datasets/{task_data.repo_id}/tree/{task_data.revision}" if is_on_hub else ""
    )


def data_links(benchmark: Benchmark, task: str) -> list[Link]:
    """Return the link to the data of a task at the pinned commit; [] if they are not on the Hub."""
    page, folder = data_page(benchmark), benchmark.dataset.remote_layout.partition("<task_id>")[0]
    return [Link("Data of the task", f"{page}/{quote(folder + task)}")] if page else []


class Citation(NamedTuple):
    """Citation of a page, as text and as BibTeX."""

    text: str
    bibtex: str
    """An entry for the page, and one for the paper of the benchmark if that is known."""


def citation(page_name: str, title: str, page: str, site: Site) -> Citation:
    """Return the citation of a page; `page` is its permanent path relative to the board's root."""
    built, origin, address = site.built, site.publication, site.address(page)
    day, year = (built.when or "")[:10], (built.when or "")[:4]
    version = f"Board of commit {built.commit}, {day}" if built.commit else ""
    sentences = (f"{site.name} ({year})" if year else site.name, title, version, address)
    fields = {
        "author": f"{{{bibtex_text(site.name)}}}",
        "title": f"{{{bibtex_text(title)}}}",
        "year": year,
        "howpublished": rf"\url{{{address}}}" if address else "",
        "note": version,
    }
    bibtex_entries = [_bibtex_entry(f"{site.benchmark.name}-{page_name}", fields)]
    if paper := origin.paper:
        archive, _, eprint = paper.address.partition("https://arxiv.org/abs/")
        address_fields = (
            {"url": paper.address} if archive else {"eprint": eprint, "archivePrefix": "arXiv"}
        )
        fields = {
            "author": f"{{{bibtex_text(origin.authors)}}}" if origin.authors else "",
            "title": f"{{{bibtex_text(paper.title)}}}",
            "year": str(origin.year or ""),
        }
        bibtex_entries.append(_bibtex_entry(origin.name, fields | address_fields))
    return Citation(". ".join(filter(None, sentences)), "\n\n".join(bibtex_entries))


def _bibtex_entry(entry_key: str, fields: Mapping[str, str]) -> str:
    """Return an entry of BibTeX."""
    citation_key = re.sub(r"[^A-Za-z0-9]+", "-", entry_key).strip("-").lower()
    lines = (f"  {field} = {{{value}}},\n" for field, value in fields.items() if value)
    return f"@misc{{{citation_key},\n{''.join(lines)}}}"


def dataset_description(
    title: str, description: str, page: str, site: Site, **members_of_page: Any
) -> dict[str, Any]:
    """Return the schema.org description of a page as a data set; unknown addresses are left out."""
    members: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "name": title,
        "description": description[:DESCRIPTION_MAX],
        "license": LICENCE,
        "isAccessibleForFree": True,
        "measurementTechnique": "logistic regression on frozen embeddings",
        "creator": {"@type": "Organization", "name": site.name},
        **members_of_page,
    }
    if site.publication.paper:
        members["citation"] = site.publication.paper.address
    if site.built.when:
        members["dateModified"] = site.built.when
    if site.built.commit:
        members["version"] = site.built.commit
    if site.address(page):
        members["url"] = site.address(page)
        members["distribution"] = [
            {
                "@type": "DataDownload",
                "encodingFormat": "application/json",
                "contentUrl": site.address(file),
            }
            for file in DATA_FILES
        ]
    return members
