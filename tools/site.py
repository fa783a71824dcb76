"""Lays out the pages as the site has them, and checks the links of the built site.

`make site` runs it before Zensical and, with --check, after it: Zensical 0.0's own check of
anchors (`--strict`) misses a heading now and then on a busy machine.

Pages lie in several folders of the repository and in one folder of the site, so links between them
are rewritten. A link to a schema leads to a copy of it, a link to any other file to the repository.
Needs nothing but the standard library: a job that builds the site installs Zensical alone.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build/site/source"
PUBLIC = ROOT / "build/site/public"
OTHERS = {
    "README.md": "index.md",
    "docs/index.md": "pages.md",
    "reference_harness/README.md": "harness.md",
    "geneb_ci/sandbox/README.md": "sandbox-levels.md",
    "tests/bench/README.md": "benchmarks.md",
    "tests/bench/embedding.md": "benchmarks-of-embedding.md",
}
"""Pages that have another name there."""
OWN = ("RULES.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
COPIED = ("schemas/", "docs/pictures/")
"""Files that pages show or link to, and that are published as they are."""
SCHEMAS = "schemas.md"
PLACEHOLDER = "OWNER/geneb-ci"
# Code, which is left as it is, or the target of a link.
_PARTS = re.compile(r"(^```.*?^```|`[^`\n]*`)|\]\(([^)\s]+)\)", re.MULTILINE | re.DOTALL)


def pages() -> dict[str, str]:
    """Return the name on the site of each page, by its path in the repository."""
    docs = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
    named = {path: Path(path).name for path in (*docs, *OWN)}
    return named | OTHERS


def repository() -> str:
    """Return the address of the repository, where GitHub names it in a job."""
    return f"https://github.com/{os.environ.get('GITHUB_REPOSITORY', PLACEHOLDER)}"


def rewritten(page: str, text: str, named: dict[str, str]) -> str:
    """Return a page with its links as they have to be on the site."""

    def link(match: re.Match[str]) -> str:
        if match[1] is not None:
            # In a table GitHub wants the bars of code escaped, and Zensical shows the escape.
            return match[1] if match[1].startswith("```") else match[1].replace("\\|", "|")
        return f"]({_target(page, match[2], named)})"

    return _PARTS.sub(link, text)


def _target(page: str, target: str, named: dict[str, str]) -> str:
    file, mark, anchor = target.partition("#")
    if not file or re.match(r"[a-z]+:", target):
        return target
    path = os.path.normpath(Path(page).parent / file)
    if path in named:
        return f"{named[path]}{mark}{anchor}"
    if path.startswith(COPIED):
        return path.removeprefix("docs/")
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{repository()}/{kind}/main/{path}{mark}{anchor}"


def schemas_page() -> str:
    """Return the page that lists every schema with its title and what it describes."""
    rows = []
    for path in sorted((ROOT / "schemas").glob("*.schema.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        about = schema.get("title") or path.name
        rows.append(
            f"| [{path.name.removesuffix('.schema.json')}](schemas/{path.name}) | {about} |"
        )
    return _SCHEMAS_HEAD + "".join(f"{row}\n" for row in rows)


_SCHEMAS_HEAD = """# Schemas

Each file that the programs exchange or publish has a JSON Schema (2020-12).
[What readers may rely on](board-files.md).

| schema | of |
|---|---|
"""


def main() -> None:
    """Write the pages, the schemas and the pictures into build/site/source."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    named = pages()
    SOURCE.mkdir(parents=True)
    for path, name in named.items():
        if (ROOT / path).is_file():  # docs/mutants.md is written by `make mutants`
            text = rewritten(path, (ROOT / path).read_text(encoding="utf-8"), named)
            (SOURCE / name).write_text(text, encoding="utf-8")
    (SOURCE / SCHEMAS).write_text(schemas_page(), encoding="utf-8")
    for folder in COPIED:
        shutil.copytree(ROOT / folder, SOURCE / folder.removeprefix("docs/"))
    print(f"{len(list(SOURCE.glob('*.md')))} pages in {SOURCE}")


class _Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names and where it leads."""
        for name, value in attrs:
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value or "")
            elif name in {"href", "src"} and tag != "base":
                self.links.append(value or "")


def broken(public: Path) -> Iterator[str]:
    """Yield each link of a built site that leads to no file, or to no anchor of its page."""
    pages = {
        path: _Page(path.read_text(encoding="utf-8")) for path in sorted(public.rglob("*.html"))
    }
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            name = unquote(parts.path)
            target = path
            if name:
                target = public / name[1:] if name[0] == "/" else path.parent / name
                target = Path(os.path.normpath(target))
            if target.is_dir():
                target /= "index.html"
            if not target.is_relative_to(public) or not target.is_file():
                yield f"{path.relative_to(public)}: {link} leads to no file of the site"
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].anchors
            ):
                yield f"{path.relative_to(public)}: {link}: its page has no such anchor"


def check() -> None:
    """Hold that every link of the built site leads somewhere; exit with 1 where one does not."""
    if not (PUBLIC / "index.html").is_file():
        sys.exit(f"{PUBLIC} has no site: build it first, `make site`")
    if found := list(broken(PUBLIC)):
        sys.exit("\n".join([*found, f"{len(found)} broken links: mend the pages they stand on"]))
    print("every link of the site leads somewhere")


if __name__ == "__main__":
    check() if sys.argv[1:] == ["--check"] else main()
