"""Writes every generated file, such as schemas and RULES.md; --check only compares them."""

import ast
import functools
import inspect
import itertools
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

from pydantic import TypeAdapter

from geneb_ci.audit import defences
from geneb_ci.audit.compare import embedding_outcome as row_outcome
from geneb_ci.audit.compare import outcome
from geneb_ci.audit.record import envelope, events, keys
from geneb_ci.audit.record import published as statements
from geneb_ci.board import rows as board_files
from geneb_ci.board.diagnostics import document as diagnostics_document
from geneb_ci.check import folder_context
from geneb_ci.common import shipped
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.config import PRACTICE_BENCHMARK
from geneb_ci.github.settings import required
from geneb_ci.github.verdict import model as verdict
from geneb_ci.models.entry import parse_entry
from geneb_ci.publish import manifest as published
from geneb_ci.render.findings_json import findings_schema
from geneb_ci.statistics import reference
from reference_harness import generate as harness
from reference_harness.formats import submission
from reference_harness.formats.benchmark import Benchmark, BenchmarkFile, parse
from reference_harness.formats.submission_terms import ENTRY_MEMBER
from tools.generated_pages import (
    BOARD_FILES,
    MODELS,
    SETUP,
    TRUST,
    between,
    board_files_page,
    evidence_script,
    models_page,
    pages_with_lists,
    situations_page,
    trust_page,
)
from tools.man_page import PAGE, man_page
from tools.rules_md import rules_markdown
from tools.shipped_rows import shipped_rows_text

ROOT = Path(__file__).resolve().parent.parent
DIALECT = "https://json-schema.org/draft/2020-12/schema"
BASE = "urn:geneb-ci:schema"
PACKAGES = ("geneb_ci", "reference_harness")


def own_classes(model: type[Any]) -> dict[str, type[Any]]:
    """Return the classes of this repository that a model consists of, by name."""
    classes: dict[str, type[Any]] = {}
    pending: list[Any] = list(model.__mro__)
    while pending:
        annotation = pending.pop()
        pending += get_args(annotation)
        if not inspect.isclass(annotation) or annotation.__name__ in classes:
            continue
        if annotation.__module__.partition(".")[0] in PACKAGES:
            classes[annotation.__name__] = annotation
            pending += get_type_hints(annotation).values()
    return classes


@functools.cache
def class_bodies(module: str) -> dict[str, list[ast.stmt]]:
    """Return the statements of each class of a module by its qualified name."""
    bodies: dict[str, list[ast.stmt]] = {}
    pending = [("", node) for node in ast.parse(inspect.getsource(sys.modules[module])).body]
    while pending:
        outer, node = pending.pop()
        if isinstance(node, ast.ClassDef):
            bodies[outer + node.name] = node.body
            pending += ((f"{outer}{node.name}.", inner) for inner in node.body)
    return bodies


def attribute_docs(class_: type[Any]) -> dict[str, str]:
    """Return docstrings by attribute. Pydantic could read them, but at every start."""
    body = class_bodies(class_.__module__).get(class_.__qualname__, [])
    return {  # of a class made by pydantic nothing: it has the descriptions in its fields
        attribute.target.id: inspect.cleandoc(str(docstring.value.value))
        for attribute, docstring in itertools.pairwise(body)
        if isinstance(attribute, ast.AnnAssign)
        and isinstance(attribute.target, ast.Name)
        and isinstance(docstring, ast.Expr)
        and isinstance(docstring.value, ast.Constant)
    }


def model_schema(name: str, model: type[Any], title: str) -> dict[str, Any]:
    """Return the schema of a model, in which attribute docstrings become descriptions."""
    schema = TypeAdapter(model).json_schema(by_alias=True)
    docs = {owner: attribute_docs(class_) for owner, class_ in own_classes(model).items()}
    owners = [parent.__name__ for parent in model.__mro__]
    for owner, part in [*schema.get("$defs", {}).items(), *((owner, schema) for owner in owners)]:
        for attribute, text in docs.get(owner, {}).items():
            member = part["properties"].get("$schema" if attribute == "schema_" else attribute)
            if member is not None:
                member.setdefault("description", text)
    _drop_titles(schema)
    return {
        "$schema": DIALECT,
        "$id": f"{BASE}:{name}",
        "title": title,
    } | schema


def _drop_titles(node: Any) -> None:
    if isinstance(node, dict):
        if isinstance(node.get("title"), str):
            del node["title"]
        for inner in node.values():
            _drop_titles(inner)
    elif isinstance(node, list):
        for inner in node:
            _drop_titles(inner)


def submission_schema(version: str, benchmark: Benchmark) -> dict[str, Any]:
    """Return the schema of a submission; names of regimes and tasks allow completion in editors."""
    schema_name = f"submission-{version}"
    title = f"Submission, format {version}"
    schema = model_schema(schema_name, submission.MODELS[version], title)
    if version == "1.1":
        _with_entries(schema, model_schema(schema_name, submission.SubmissionByEntry, ""))
    is_complete = version == "1.0"
    for table in ("results", "evidence", "gaps"):
        if table not in schema["properties"]:
            continue
        member = schema["properties"][table]
        cell = member["additionalProperties"]["additionalProperties"]
        holder = f"{table.capitalize()}ByTask"
        schema["$defs"][holder] = _named_members(
            {t.id: cell | {"description": t.label} for t in benchmark.tasks}, is_complete
        )
        regimes = _named_members(
            {regime: {"$ref": f"#/$defs/{holder}"} for regime in benchmark.regimes}, is_complete
        )
        described = {key: member[key] for key in ("description", "default") if key in member}
        schema["properties"][table] = described | regimes
    return schema


def _with_entries(schema: dict[str, Any], with_entry: dict[str, Any]) -> None:
    """Allow an entry of the model registry in the place of a run."""
    required, required_by_both = (
        set(schema["required"]),
        set(with_entry["required"]) & set(schema["required"]),
    )
    schema["$defs"] |= with_entry["$defs"]
    schema["properties"][ENTRY_MEMBER] = with_entry["properties"][ENTRY_MEMBER]
    schema["required"] = [member for member in schema["required"] if member in required_by_both]
    schema["if"] = {"required": [ENTRY_MEMBER]}
    schema["then"] = {
        "properties": dict.fromkeys(with_entry["properties"], True),
        "additionalProperties": False,
    }
    schema["else"] = {"required": sorted(required - required_by_both, reverse=True)}


def _named_members(properties: dict[str, Any], complete: bool) -> dict[str, Any]:
    required = {"required": list(properties)} if complete else {}
    return {
        "type": "object",
        "x-names": True,
        "properties": properties,
        "additionalProperties": False,
    } | required


class Described(NamedTuple):
    """A model whose schema is written."""

    model: type[Any]
    title: str


SCHEMAS = {
    "benchmark": Described(BenchmarkFile, "Benchmark definition"),
    "audit": Described(
        outcome.Statement,
        "Audit record: the signed in-toto statement, payload of a DSSE envelope",
    ),
    "row-audit": Described(
        row_outcome.EmbeddingStatement,
        "Record of an audit by receipt: the signed in-toto statement",
    ),
    "withdrawal": Described(
        events.WithdrawalStatement,
        "Withdrawal of an audit: the signed in-toto statement, payload of a DSSE envelope",
    ),
    "commitment": Described(
        events.CommitmentStatement,
        "Commitment to an audit: the signed in-toto statement",
    ),
    "start": Described(
        events.StartStatement,
        "Start of an audit, with its draw: the signed in-toto statement",
    ),
    "aborted": Described(
        events.AbortStatement,
        "Aborted run of an audit: the signed in-toto statement",
    ),
    "statements": Described(
        statements.PublishedStatements, "audits/statements.json: what was signed"
    ),
    "envelope": Described(envelope.Envelope, "DSSE envelope of one signature"),
    "keys": Described(keys.KeyFile, "Keys that may sign audits: keys.json"),
    "verdict-1.0": Described(verdict.Verdicts, "Verdicts on pull requests, format 1.0"),
    "leaderboard": Described(
        board_files.Leaderboard,
        "leaderboard.json: category scores",
    ),
    "leaderboard-tasks": Described(
        board_files.TaskLeaderboard, "leaderboard_tasks.json: task scores"
    ),
    "diagnostics-2.0": Described(
        diagnostics_document.Diagnostics,
        "diagnostics.json: what the board says beyond one rank",
    ),
    "ledger": Described(published.Ledger, "ledger.json: the history of every row"),
    "manifest": Described(published.Manifest, "manifest.json: what is published"),
}


def generated() -> dict[str, str]:
    """Return the text of every generated file by its path."""
    benchmark = shipped_benchmark()
    schemas = {
        "findings-1.0": findings_schema(),
        **{
            f"submission-{version}": submission_schema(version, benchmark)
            for version in ("1.0", "1.1", "1.2")
        },
        **{name: model_schema(name, *described) for name, described in SCHEMAS.items()},
    }
    files = {
        f"schemas/{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in schemas.items()
    }
    rows = f"schemas/{folder_context.SHIPPED_ROWS_FILE}"
    numbers = shipped_rows_text(
        (ROOT / rows).read_text(encoding="utf-8"), ROOT / "submissions", benchmark
    )
    by_harness = {
        f"schemas/{path.name}": content.decode() for path, content in harness.contents().items()
    }
    return (
        files
        | by_harness
        | {
            "RULES.md": rules_markdown(),
            **pages_with_lists(),
            **situations_page(),
            rows: numbers,
            f"schemas/{shipped.FIT_FILE}": fit_of(numbers, benchmark),
            f"schemas/{shipped.KNOWN_FILES_LIST}": known_files(),
            "docs/reference/defences.md": defences_page(),
            "leaderboard/src/pure/evidence.js": evidence_script(),
            BOARD_FILES: board_files_page(),
            TRUST: trust_page(),
            MODELS: models_page(),
            PAGE: man_page(),
            SETUP: between(SETUP, "settings", f"\n{required.settings_table()}\n"),
        }
    )


DEFENCES_PAGE = """\
# Defences of an audit

What an audit does against forgery, and why a [sample](../reader/verified.md) of tasks or of
embeddings does without. `geneb_ci/audit/defences.py` has the list, with the function of each.

| defence | against | needs | not for | tried by |
|---|---|---|---|---|
"""


def defences_page() -> str:
    """Return the page of the defences: one row for each, and which samples do not need it."""

    def without(defence: defences.Defence) -> str:
        uses = (("tasks", defence.tasks), ("embeddings", defence.embeddings))
        return "; ".join(f"{name}: {use}" for name, use in uses if isinstance(use, str))

    def attacks(defence: defences.Defence) -> str:
        uses = (
            use
            for use in (defence.tasks, defence.embeddings)
            if isinstance(use, defences.DefenceUse)
        )
        files = dict.fromkeys(use.test.partition("::")[0] for use in uses)
        return ", ".join(f"[{Path(file).stem}](../../{file})" for file in files)

    rows = (
        (each.name, each.attack, each.needs, without(each), attacks(each))
        for each in defences.DEFENCES
    )
    return DEFENCES_PAGE + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def fit_of(rows_text: str, benchmark: Benchmark) -> str:
    """Return the fitted reference of the shipped rows, as text."""
    rows = folder_context.rows_by_file(json.loads(rows_text)).values()
    return reference.fit_text(reference.score_table_of(rows, benchmark))


def known_files() -> str:
    """Return the digests of valid shipped files, and the facts in each registry entry."""
    files = ("benchmark.json", PRACTICE_BENCHMARK)
    benchmarks = []
    for file in files:
        raw = (ROOT / "schemas" / file).read_bytes()
        benchmarks.append(parse(raw).sha256)
    facts_of = {}
    for path in sorted((ROOT / "leaderboard/policy/models").glob("*.toml")):
        read_entry = parse_entry(path.read_bytes(), path.name)
        facts_of[read_entry.sha256] = read_entry.entry.attributes
    note = "Shipped files that `make generate` found valid. A file of other bytes is read in full."
    head = {"note": note, "benchmarks": benchmarks}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    facts = ",\n".join(f"  {json.dumps(key)}: {json.dumps(facts_of[key])}" for key in facts_of)
    return "{\n" + ",\n".join([*lines, f' "models": {{\n{facts}\n }}']) + "\n}\n"


def main() -> int:
    """Write and name the files that differ, with --check only name them; return the exit code."""
    stale = []
    for file, content in generated().items():
        path = ROOT / file
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            stale.append(file)
            if "--check" not in sys.argv:
                path.write_text(content, encoding="utf-8")
    for file in stale:
        print(f"{'stale' if '--check' in sys.argv else 'wrote'}: {file}")
    if stale and "--check" in sys.argv:
        print("run `make generate` and commit the result")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
