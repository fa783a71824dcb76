"""Load the benchmark definition of a run, or make a new definition."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from reference_harness.errors import OptionError
from reference_harness.formats.benchmark import (
    DEFINITION_BYTES_MAX,
    Benchmark,
    UnusableBenchmarkError,
    parse,
)
from reference_harness.formats.files import NotReadable, read_text
from reference_harness.schema_files import schema_path

BOARD_DEFINITION = "schemas/benchmark.json"
"""Path of the definition in a board's repository, which has a folder `submissions`."""
DEFINITION_HINT = "geneb-harness data define DIR writes a definition for the task files in DIR"


def load(path: Path) -> Benchmark:
    """Return the benchmark definition in a file.

    Raise OptionError, which names the file and, for each missing or invalid key, the expected
    value.
    """
    try:
        raw = read_text(path, DEFINITION_BYTES_MAX)
    except NotReadable as error:
        msg = f"{path}: {error.reason}; {DEFINITION_HINT}"
        raise OptionError(msg) from error
    return parsed_definition(raw, str(path))


def parsed_definition(raw: bytes, file: str) -> Benchmark:
    """Return the definition in `raw`. Raise OptionError, whose lines begin with `file`."""
    try:
        return parse(raw, example=lambda: schema_path("benchmark.json").read_bytes())
    except UnusableBenchmarkError as error:
        lines = (f"{file}: {line}" for line in (*error.faults, DEFINITION_HINT))
        raise OptionError("\n".join(lines)) from error


def of_board() -> Benchmark | None:
    """Return the benchmark of the board that contains the current folder; None outside of a board.

    Raise OptionError if the board's definition is invalid.
    """
    current_folder = Path.cwd()
    for folder in (current_folder, *current_folder.parents):
        if (folder / "submissions").is_dir() and (folder / BOARD_DEFINITION).is_file():
            return load(folder / BOARD_DEFINITION)
    return None


def default() -> Benchmark:
    """Return the default benchmark: that of the board with the current folder, else GENEB."""
    return of_board() or geneb()


def geneb() -> Benchmark:
    """Return GENEB, with 100 tasks."""
    return load(schema_path("benchmark.json"))


def new_definition(
    *,
    name: str,
    harness_version: str,
    repo_id: str,
    revision: str,
    made_by: str,
    category_order: list[str],
    sources: dict[str, str],
    tasks: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return the content of a definition as JSON values: GENEB's protocol with other tasks.

    `made_by` is the source of the data in words, such as "a folder of task files".
    """
    original = geneb()
    return {
        "schema_version": original.schema_version,
        "name": name,
        "harness_version": harness_version,
        "regimes": original.regimes,
        "metrics": original.metrics,
        "primary_metric": original.primary_metric,
        "protocol": asdict(original.protocol) | {"pooling": "left to each extractor"},
        "dataset": {
            "repo_id": repo_id,
            "revision": revision,
            "remote_layout": f"none: {made_by}",
            "local_layout": "<task_id>.csv with text,label,split",
        },
        "category_order": category_order,
        "sources": sources,
        "tasks": tasks,
    }


def mini() -> Benchmark:
    """Return GENEB-mini, with 13 synthetic tasks."""
    return load(schema_path("benchmark-mini.json"))
