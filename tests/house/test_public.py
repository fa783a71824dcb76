"""Each package says what others may use of it, and pages import nothing else."""

import ast
import importlib
import re
import textwrap
from pathlib import Path

import pytest

from tests.house.pages import pages
from tests.house.tracked import python_files
from tests.paths import ROOT

pytestmark = pytest.mark.nightly  # and in `make lint`

INTERNAL = "\n\nInternal"
"""How the paragraph of a docstring begins that says so."""
PACKAGES = [
    path.parent
    for path in python_files("geneb_ci", "reference_harness")
    if path.name == "__init__.py"
]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
OURS = ("geneb_ci", "reference_harness")


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_a_package_names_what_others_may_use_or_is_internal(package):
    module = importlib.import_module(".".join(package.parts))
    names = getattr(module, "__all__", None)
    says = "name in __all__ what others may use, or end the docstring with a line `Internal: ...`"
    assert (names is not None) != (INTERNAL in str(module.__doc__)), says
    assert [name for name in names or () if not hasattr(module, name)] == []


def private(text: str) -> list[str]:
    """Return what the Python of a page imports of ours though it is not public."""
    results = []
    for node in (
        n for block in BLOCK.findall(text) for n in ast.walk(ast.parse(textwrap.dedent(block)))
    ):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            results += [name for name in names if "." in name and name.startswith(OURS)]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OURS):
            public = getattr(importlib.import_module(str(node.module)), "__all__", ())
            names = [alias.name for alias in node.names]
            results += [f"{node.module}.{name}" for name in names if name not in public]
    return results


@pytest.mark.parametrize(
    "page", [page for page in pages() if page.endswith(".md") and not page.startswith(OURS)]
)
def test_a_page_imports_what_is_public(page):
    assert private(Path(ROOT / page).read_text(encoding="utf-8")) == []


def test_an_import_that_is_not_public_is_found():
    block = "```python\nimport geneb_ci\nimport geneb_ci.api\n{}\n```\n"
    line = "from geneb_ci.board.uncertainty import scores_by_regime"
    assert private(block.format("from geneb_ci import check")) == ["geneb_ci.api"]
    assert private(block.format(line))[1:] == ["geneb_ci.board.uncertainty.scores_by_regime"]
