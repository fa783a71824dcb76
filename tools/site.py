"""Prepares the pages for the documentation site: `make site` runs this, then Zensical.

Pages are in several folders of the repository but in one folder of the site, so links between them
are rewritten. A link to a schema leads to a copy of it, a link to any other file to the repository.
This needs only the standard library, as a job that builds the site installs nothing but Zensical.
"""

import json
import os
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build/site/source"
RENAMED_PAGES = {
    "README.md": "index.md",
    "docs/index.md": "pages.md",
    "reference_harness/README.md": "harness.md",
    "geneb_ci/sandbox/README.md": "sandbox-levels.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/embedding.md": "benchmarks-of-embedding.md",
}
"""Pages with another name on the site."""
UNCHANGED_PAGES = ("RULES.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
COPIED = ("schemas/", "docs/pictures/")
"""Folders whose files are published unchanged, since pages show or link to them."""
SCHEMAS = "schemas.md"
PLACEHOLDER = "OWNER/geneb-ci"
# Matches code, which stays unchanged, or the target of a link.
_PARTS = re.compile(r"(^```.*?^```|`[^`\n]*`)|\]\(([^)\s]+)\)", re.MULTILINE | re.DOTALL)


def pages() -> dict[str, str]:
    """Return each page's name on the site by its path in the repository."""
    docs = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    page_by_path = {
        path: path.removeprefix("docs/").replace("/", "-") for path in (*docs, *UNCHANGED_PAGES)
    }
    return page_by_path | RENAMED_PAGES


def repository() -> str:
    """Return the address of the repository, which GitHub sets in a job."""
    return f"https://github.com/{os.environ.get('GITHUB_REPOSITORY', PLACEHOLDER)}"


def rewritten(page: str, page_text: str, page_by_path: dict[str, str]) -> str:
    """Return a page with its links changed to those of the site."""

    def link(match: re.Match[str]) -> str:
        if match[1] is not None:
            # In tables GitHub needs bars in code escaped, but Zensical would show the backslash.
            return match[1] if match[1].startswith("```") else match[1].replace("\\|", "|")
        return f"]({_site_link(page, match[2], page_by_path)})"

    return _PARTS.sub(link, page_text)


def _site_link(page: str, link: str, page_by_path: dict[str, str]) -> str:
    file, mark, anchor = link.partition("#")
    if not file or re.match(r"[a-z]+:", link):
        return link
    path = os.path.normpath(Path(page).parent / file)
    if path in page_by_path:
        return f"{page_by_path[path]}{mark}{anchor}"
    if path.startswith(COPIED):
        return path.removeprefix("docs/")
    view = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{repository()}/{view}/main/{path}{mark}{anchor}"


def schemas_page() -> str:
    """Return the page that lists every schema with its title."""
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
[What readers may rely on](reference-board-files.md).

| schema | describes |
|---|---|
"""


def main() -> None:
    """Write the pages, the schemas and the pictures into build/site/source."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    page_by_path = pages()
    SOURCE.mkdir(parents=True)
    for path, file in page_by_path.items():
        page_text = rewritten(path, (ROOT / path).read_text(encoding="utf-8"), page_by_path)
        (SOURCE / file).write_text(page_text, encoding="utf-8")
    (SOURCE / SCHEMAS).write_text(schemas_page(), encoding="utf-8")
    for folder in COPIED:
        shutil.copytree(ROOT / folder, SOURCE / folder.removeprefix("docs/"))
    print(f"{len(list(SOURCE.glob('*.md')))} pages in {SOURCE}")


if __name__ == "__main__":
    main()
