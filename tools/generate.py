"""Writes each generated file: schemas, RULES.md, shipped rows. With --check it only compares."""

import ast
import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from geneb_ci.audit import commitment, envelope, events, keys, log, outcome, plan, withdrawal
from geneb_ci.board import columns, recommend
from geneb_ci.board import files as board_files
from geneb_ci.board.diagnostics import shape as diagnostics_shape
from geneb_ci.check import place
from geneb_ci.common import benchmark as benchmark_models
from geneb_ci.common import types
from geneb_ci.common.benchmark import Benchmark, shipped_benchmark
from geneb_ci.common.config import find_layout
from geneb_ci.common.types import LEVEL_MEANING, TRUST_ORDER
from geneb_ci.github import verdict
from geneb_ci.models.registry import ModelRegistry
from geneb_ci.publish import manifest as published
from geneb_ci.render.findings_json import findings_schema
from geneb_ci.render.formats import FORMATS
from geneb_ci.render.rules_md import rules_markdown
from geneb_ci.sandbox import launch
from geneb_ci.submission import models
from reference_harness import generate as harness
from reference_harness.extractors import BUILTINS
from tools.contract import rescored_module

ROOT = Path(__file__).resolve().parent.parent
DIALECT = "https://json-schema.org/draft/2020-12/schema"
BASE = "urn:geneb-ci:schema"


def attribute_docs(*modules: ModuleType) -> dict[str, dict[str, str]]:
    """Read the text under each attribute; pydantic could, at the cost of every start."""
    found: dict[str, dict[str, str]] = {}
    for node in (node for one in modules for node in ast.parse(inspect.getsource(one)).body):
        if isinstance(node, ast.ClassDef):
            docs = found.setdefault(node.name, {})
            for before, after in zip(node.body, node.body[1:], strict=False):
                if (
                    isinstance(before, ast.AnnAssign)
                    and isinstance(before.target, ast.Name)
                    and isinstance(after, ast.Expr)
                    and isinstance(after.value, ast.Constant)
                ):
                    docs[before.target.id] = inspect.cleandoc(str(after.value.value))
    return found


def model_schema(
    model: type[BaseModel], modules: ModuleType | tuple[ModuleType, ...], name: str, title: str
) -> dict[str, Any]:
    """Return the schema of a model, with the text under its attributes as descriptions."""
    schema = model.model_json_schema(by_alias=True)
    docs = attribute_docs(*(modules if isinstance(modules, tuple) else (modules,)))
    classes = [base.__name__ for base in model.__mro__]
    for owner, part in [*schema.get("$defs", {}).items(), *((base, schema) for base in classes)]:
        for attribute, text in docs.get(owner, {}).items():
            entry = part["properties"].get("$schema" if attribute == "schema_" else attribute)
            if entry is not None:
                entry.setdefault("description", text)
    _drop_titles(schema)
    return {
        "$schema": DIALECT,
        "$id": f"{BASE}:{name.removesuffix('.schema.json')}",
        "title": title,
    } | schema


def _drop_titles(node: Any) -> None:  # noqa: ANN401 (JSON has no narrower type)
    if isinstance(node, dict):
        if isinstance(node.get("title"), str):
            del node["title"]
        for value in node.values():
            _drop_titles(value)
    elif isinstance(node, list):
        for value in node:
            _drop_titles(value)


def submission_schema(version: str, benchmark: Benchmark) -> dict[str, Any]:
    """Return the schema of a submission, with names of regimes and tasks for editors to offer."""
    name = f"submission-{version}.schema.json"
    schema = model_schema(
        models.MODELS[version],
        (models, types),
        name,
        f"{benchmark.name} submission, format {version}",
    )
    complete = version == "1.0"
    for table in ("results", "evidence", "gaps"):
        if table not in schema["properties"]:
            continue
        entry = schema["properties"][table]
        cell = entry["additionalProperties"]["additionalProperties"]
        holder = f"{table.capitalize()}ByTask"
        schema["$defs"][holder] = _named(
            {t.id: cell | {"description": t.label} for t in benchmark.tasks}, complete
        )
        regimes = _named(
            {regime: {"$ref": f"#/$defs/{holder}"} for regime in benchmark.regimes}, complete
        )
        kept = {key: entry[key] for key in ("description", "default") if key in entry}
        schema["properties"][table] = kept | regimes
    return schema


def _named(properties: dict[str, Any], complete: bool) -> dict[str, Any]:
    required = {"required": list(properties)} if complete else {}
    return {
        "type": "object",
        "x-names": True,
        "properties": properties,
        "additionalProperties": False,
    } | required


def generated() -> dict[str, str]:
    """Return the text of every generated file by its path."""
    benchmark = shipped_benchmark()
    schemas = {
        "benchmark": model_schema(
            Benchmark, benchmark_models, "benchmark.schema.json", "Benchmark definition"
        ),
        "submission-1.0": submission_schema("1.0", benchmark),
        "submission-1.1": submission_schema("1.1", benchmark),
        "submission-1.2": submission_schema("1.2", benchmark),
        "findings-1.0": findings_schema(),
        "audit": model_schema(
            outcome.Statement,
            (outcome, plan, commitment, launch, types),
            "audit.schema.json",
            "Audit record: the signed in-toto statement, payload of a DSSE envelope",
        ),
        "withdrawal": model_schema(
            withdrawal.WithdrawalStatement,
            (withdrawal, outcome),
            "withdrawal.schema.json",
            "Withdrawal of an audit: the signed in-toto statement, payload of a DSSE envelope",
        ),
        "commitment": model_schema(
            events.CommitmentStatement,
            (events, commitment, outcome),
            "commitment.schema.json",
            "Commitment to an audit: the signed in-toto statement",
        ),
        "start": model_schema(
            events.StartStatement,
            (events, plan, commitment, outcome),
            "start.schema.json",
            "Start of an audit, with its draw: the signed in-toto statement",
        ),
        "aborted": model_schema(
            events.AbortStatement,
            (events, plan, commitment, launch, outcome),
            "aborted.schema.json",
            "Aborted run of an audit: the signed in-toto statement",
        ),
        "log-entry": model_schema(
            log.LogEntry, log, "log-entry.schema.json", "Entry of the log of audits"
        ),
        "envelope": model_schema(
            envelope.Envelope, envelope, "envelope.schema.json", "DSSE envelope of one signature"
        ),
        "keys": model_schema(
            keys.KeyFile, keys, "keys.schema.json", "Keys that may sign audits: keys.json"
        ),
        "verdict-1.0": model_schema(
            verdict.Verdicts,
            (verdict, types),
            "verdict-1.0.schema.json",
            "Verdicts on pull requests, format 1.0",
        ),
        "leaderboard": model_schema(
            board_files.Leaderboard,
            (board_files, columns, types),
            "leaderboard.schema.json",
            "leaderboard.json: category scores",
        ),
        "leaderboard-tasks": model_schema(
            board_files.TaskLeaderboard,
            board_files,
            "leaderboard-tasks.schema.json",
            "leaderboard_tasks.json: task scores",
        ),
        "diagnostics-1.0": model_schema(
            diagnostics_shape.Diagnostics,
            diagnostics_shape,
            "diagnostics-1.0.schema.json",
            "diagnostics.json: what the board says beyond one rank",
        ),
        "recommendations-1.0": model_schema(
            recommend.Recommendations,
            recommend,
            "recommendations-1.0.schema.json",
            "recommendations.json: which model to take",
        ),
        "ledger": model_schema(
            published.Ledger, published, "ledger.schema.json", "ledger.json: the story of every row"
        ),
        "manifest": model_schema(
            published.Manifest,
            published,
            "manifest.schema.json",
            "manifest.json: what is published",
        ),
    }
    files = {
        f"schemas/{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in schemas.items()
    }
    rows = f"schemas/{place.FILE}"
    numbers = place.population_text(
        (ROOT / rows).read_text(encoding="utf-8"), ROOT / "submissions", benchmark
    )
    modules = [path.relative_to(ROOT) for path in sorted((ROOT / "geneb_ci").rglob("*.py"))]
    by_harness = {
        f"schemas/{path.name}": content.decode() for path, content in harness.contents().items()
    }
    return (
        files
        | by_harness
        | {
            "RULES.md": rules_markdown(),
            **lists(),
            rows: numbers,
            "ARCHITECTURE.md": architecture(modules),
            "geneb_ci/audit/rescored.py": rescored_module(),
            "leaderboard/src/pure/levels.js": levels_script(),
            BOARD_FILES: with_columns(),
            MODELS: models_page(),
        }
    )


def lists() -> dict[str, str]:
    """Return the pages that list what a table of the code has: formats, built-in extractors."""
    names = r"\|".join(FORMATS)
    extractors = "\n".join(f"- `{name}`: {one.what}" for name, one in BUILTINS.items())
    return {
        "README.md": between("README.md", "formats", f"`--format {names}`"),
        "reference_harness/README.md": between(
            "reference_harness/README.md", "extractors", f"\n{extractors}\n"
        ),
    }


def between(page: str, name: str, text: str) -> str:
    """Return a page with the text between its marks `<!-- name -->` and `<!-- /name -->`.

    Raises ValueError unless both marks stand there once.
    """
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    found = (ROOT / page).read_text(encoding="utf-8")
    if not found.count(begin) == found.count(end) == 1:
        raise ValueError(f"{page} lacks {begin}...{end}: put both marks where the list belongs")
    head, _, rest = found.partition(begin)
    return f"{head}{begin}{text}{end}{rest.partition(end)[2]}"


def levels_script() -> str:
    """Return the trust levels for the page."""
    lines = (f"  {json.dumps(line)},\n" for line in LEVEL_MEANING.items())
    return (
        "// Generated by `make generate` from TrustLevel in geneb_ci/common/types.py.\n"
        "\n/** Each level and its meaning, in the order of explanation. */\n"
        f"export const LEVELS = [\n{''.join(lines)}];\n"
        "\n/** From least to most trust. */\n"
        f"export const TRUST = {json.dumps(TRUST_ORDER)};\n"
    )


BOARD_FILES = "docs/board-files.md"


def with_columns() -> str:
    """Return docs/board-files.md with its table of columns, in the order of the rows."""
    rows = ["| key | meaning | in | on the page |", "|---|---|---|---|"]
    for column in columns.COLUMNS:
        files = ["`leaderboard.json`"] if column.is_published else []
        files += ["`leaderboard_tasks.json`"] if column.is_by_task else []
        about = column.about if column.is_required else f"{column.about} May be missing."
        shown = [f'"{column.label}"'] if column.label else []
        shown += ["table"] if column.table else []
        shown += [f"download `{column.download}`"] if column.download else []
        where = ", ".join(files) or "the page alone"
        rows.append(f"| `{column.key}` | {about} | {where} | {', '.join(shown)} |")
    return between(BOARD_FILES, "columns", "\n" + "\n".join(rows) + "\n")


LAYERS = (
    ("cli", "one function for each command, imported when it is called"),
    ("github", "pull requests: what they change, verdicts, one comment, the queue"),
    ("render", "findings, audits and boards in every format that they are read in"),
    ("publish", "git history, ledger, generations of the board, one commit to the Space"),
    ("board", "rows, intervals, ranks, diagnostics, advice, the page and its data"),
    ("audit", "commitment, draw, rerun, comparison, signed record, verification, trust levels"),
    ("sandbox", "runs an untrusted extractor and takes only a matrix of numbers from it"),
    ("check", "the input of a rule, the runner, the list of rules, the rules by family"),
    ("receipt", "files of embeddings that a submission commits to: their rows and their root"),
    ("statistics", "which scores are possible, and how a row compares with the others"),
    ("models", "the model registry: how each model is loaded, and where its weights are"),
    ("submission", "untrusted bytes to a document with positions, to typed models; cards, logs"),
    ("common", "errors, findings, settings, the benchmark, shared types"),
)


def architecture(modules: Sequence[Path]) -> str:
    """Return ARCHITECTURE.md with its table of layers, highest first."""
    rows = [
        f"| `{name}` | {text} | {sum(path.parts[1] == name for path in modules)} |"
        for name, text in LAYERS
    ]
    table = "\n".join(["| package | what it does | modules |", "|---|---|---:|", *rows])
    return between("ARCHITECTURE.md", "layers", f"\n{table}\n")


MODELS = "docs/models.md"


def models_page() -> str:
    """Return docs/models.md with its table of the registry's entries."""
    registry = ModelRegistry(find_layout(ROOT))
    rows = [
        "| model | run by | environment | what was tried, or what is missing |",
        "|---|---|---|---|",
    ]
    for name in registry:
        found = registry.entry(name)
        run = found.entry.run if found is not None else None
        if run is not None:
            lock = run.environment.lock.removesuffix(".txt") if run.environment else ""
            how = f"`{run.extractor}`" if run.extractor else "nothing yet"
            rows.append(f"| {name} | {how} | {lock} | {run.exercised or run.missing or ''} |")
    return between(MODELS, "models", "\n" + "\n".join(rows) + "\n")


def main() -> int:
    """Write what differs, or with --check name it, and return the exit code."""
    stale = []
    for name, text in generated().items():
        path = ROOT / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{'stale' if '--check' in sys.argv else 'wrote'}: {name}")
    if stale and "--check" in sys.argv:
        print("run `make generate` and commit the result")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
