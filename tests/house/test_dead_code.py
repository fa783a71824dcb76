"""Nothing is left that nobody calls: vulture over the packages, and over their tests.

What a framework calls by name is listed with its reason; an entry that is no longer needed fails,
too. What only tests call is dead in the packages.
"""

import ast
from fnmatch import fnmatch
from pathlib import Path

import pytest
import vulture  # type: ignore[import-untyped]

from reference_harness.extractors import BUILTINS
from tests.house.tracked import python_files
from tests.paths import ROOT

pytestmark = pytest.mark.nightly  # and in `make lint`
PRODUCT = ("geneb_ci", "reference_harness")
LOADED_BY_NAME = (
    "tests/harness/faulty/*",
    "tests/sandbox/hostile/*",
    "tests/harness/extractors/remote/*",
)
"""Extractors that tests name as MODULE:CLASS, and code of models, which transformers calls."""
DECORATORS = ["@model_validator*", "@field_validator*", "@pytest.fixture*", "@extractors.command*"]
DECORATORS += ["@rule*", "@invariant*", "@initialize*"]
"""Who calls what they stand on: pydantic, pytest, click, hypothesis."""
ALLOWED_NAMES = {
    # geneb_ci
    "*_command": "commands: cli.main.COMMANDS names their modules",
    "_repr_html_": "notebooks call it",
    "to_csv": "docs/developer/python.md promises it of a comparison",
    "hold": "docs/developer/python.md promises it of a verification",
    "format_commands": "click calls it",
    "format_options": "click calls it",
    "list_directory": "http.server calls it",
    "handle_error": "socketserver calls it",
    "server_version": "http.server reads it",
    "sys_version": "http.server reads it",
    "extensions_map": "http.server reads it",
    "linkname": "tarfile reads it",
    "response_class": "http.client reads it",
    "http_open": "urllib calls it",
    "https_open": "urllib calls it",
    "_create_connection": "http.client calls it",
    "model_config": "pydantic reads it",
    "yes": "struct.pack takes the steps of a seccomp program as tuples",
    "no": "struct.pack takes the steps of a seccomp program as tuples",
    "colour": "the template of the badge reads it",
    "bibtex": "the template of every page reads it",
    "published_facts": "the templates of a task and of a category read it",
    "label_width": "the template of the badge reads it",
    "message_width": "the template of the badge reads it",
    "allow_tf32": "torch reads it",
    "handle_starttag": "HTMLParser calls it",
    "handle_data": "HTMLParser calls it",
    "plain_dict": "common/json_text.py calls it",
    "scores_sha256": "written to schemas/shipped-rows.json",
    "__getattr__": "called by Python for RULES and the like, which import every rule",
    "ErrorDetails": "named in an annotation",
    "teardown": "hypothesis calls it",
    # reference_harness
    "allow_bf16_reduced_precision_reduction": "torch reads it",
    "allow_fp16_reduced_precision_reduction": "torch reads it",
    "get_filename": "importlib calls it",
    "get_data": "importlib calls it",
    "__path__": "importlib reads it",
    "truncation_side": "the tokenizer reads it",
    "find_class": "pickle calls it",
    "intermediate": "the layer of BERT reads it",
    "length_median": "written to the report of `data audit`",
    # tools and tests
    "pytest_*": "pytest calls them",
    "pytestmark": "pytest reads it",
    "sort_label": "the page reads it of a column",
    "do_*": "http.server calls them",
    "log_message": "http.server calls it",
    "protocol_version": "http.server reads it",
    "wbufsize": "socketserver reads it",
    "close_connection": "http.server reads it",
    "daemon_threads": "socketserver reads it",
    "create_system": "zipfile reads it",
    "pre_tokenizer": "the tokenizer reads it",
    "post_processor": "the tokenizer reads it",
    "__array__": "NumPy calls it",
    "dont_write_bytecode": "the interpreter reads it",
    "peak_rss": "programs in texts import it: tests/harness/test_harness_memory.py",
} | {builtin.class_name: "extractors.BUILTINS names it" for builtin in BUILTINS.values()}
ROUTES = ("tests/publish/hub_answers.py", "tests/publish/hub_cas.py")
"""Answers of the stand-in Hub, looked up by the name of their route."""


def is_allowed(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in ALLOWED_NAMES)


def fields() -> set[tuple[str, str]]:
    """Return file and name of each member of a format: other programs read or write them."""
    classes = {}
    for path in python_files(*PRODUCT):
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
                classes[str(path), node.name] = bases, node
    formats = {"BaseModel", "ClosedObject", "_DefinitionPart"}
    while more := {name for (_, name), (bases, _) in classes.items() if bases & formats} - formats:
        formats |= more
    return {
        (path, line.target.id)
        for (path, name), (_, node) in classes.items()
        if name in formats
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    }


def unused(*folders: str) -> list[tuple[str, str]]:
    """Return file and name of what vulture finds no use of."""
    paths = [path for path in python_files(*folders) if path.name != "__init__.py"]
    scanner = vulture.Vulture(ignore_decorators=DECORATORS)
    scanner.scavenge([ROOT / path for path in paths])
    return [
        (str(Path(unused_item.filename).relative_to(ROOT)), unused_item.name)
        for unused_item in scanner.get_unused_code(min_confidence=60)
        if unused_item.typ != "unreachable_code"
    ]


@pytest.fixture(scope="module")
def unused_names() -> list[tuple[str, str]]:
    """Return what is unused in the packages, tests or not, and what is unused anywhere."""
    packages = [
        path_and_name
        for path_and_name in unused(*PRODUCT, "tools")
        if path_and_name[0].startswith(PRODUCT)
    ]
    others = [
        path_and_name for path_and_name in unused() if not path_and_name[0].startswith(PRODUCT)
    ]
    known = fields()
    return [package for package in [*packages, *others] if package not in known]


def test_nothing_is_unused(unused_names):
    left = [
        f"{path}: {name}"
        for path, name in unused_names
        if not is_allowed(name) and path not in ROUTES
        if not any(fnmatch(path, pattern) for pattern in LOADED_BY_NAME)
    ]
    assert left == [], "delete these, or say in ALLOWED_NAMES who uses them"


def test_the_allow_list_has_no_entry_too_many(unused_names):
    names = {name for _, name in unused_names}
    assert [p for p in ALLOWED_NAMES if not any(fnmatch(name, p) for name in names)] == []
