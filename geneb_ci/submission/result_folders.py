"""Find the folder of a run's results; read facts about its model from MTEB's model_meta.json."""

import math
import re
from pathlib import Path
from typing import Any

from geneb_ci.common.errors import UsageProblem
from geneb_ci.common.finding import first_and_more
from geneb_ci.submission.result_files import BYTES_MAX, lenient_value
from reference_harness.formats.files import NotReadable, read_regular
from reference_harness.formats.submission_terms import MODEL_ID_PATTERN
from reference_harness.formats.text import quoted

MODEL_META_FILE = "model_meta.json"
"""File of MTEB with facts about the model."""
EXPERIMENTS_FOLDER = "experiments"
"""Folder in which MTEB stores the results of runs with non-default settings."""


def folder_of_results(folder: Path) -> Path:
    """Return the folder that contains the results: `folder`, or the only such folder in it.

    Folders with a model_meta.json are searched; without any (MTEB before version 1.11), folders
    with JSON files. Folders of experiments are ignored unless `folder` is one. Raises UsageProblem
    if several folders are found, and for a file.
    """
    if folder.is_file():
        raise UsageProblem(
            f"{folder} is a file, expected the folder of a model's results",
            f"pass the folder that contains it; `geneb-ci check {folder}` reports the kind of file",
        )
    if any(folder.glob("*.json")):
        return folder
    parents = {path.parent for path in folder.glob(f"*/**/{MODEL_META_FILE}")}
    parents = parents or {path.parent for path in folder.glob("*/**/*.json")}
    folders = [p for p in sorted(parents) if EXPERIMENTS_FOLDER not in p.relative_to(folder).parts]
    if len(folders) > 1:
        listed = [quoted(path.relative_to(folder).as_posix()) for path in folders]
        raise UsageProblem(
            f"{folder}: found results of {len(folders)} models or revisions, expected one: "
            f"{first_and_more(listed)}",
            "pass one of these folders",
        )
    return folders[0] if folders else folder


def model_meta(folder: Path) -> dict[str, Any]:
    """Return the members of MTEB's model_meta.json in a folder; empty without that file."""
    try:
        document = lenient_value(read_regular(folder / MODEL_META_FILE, BYTES_MAX, links=False))
    except (NotReadable, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def options_from(meta: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `geneb-ci pack` that a parsed model_meta.json has: name to value."""
    full_name, params, url = (meta.get(key) for key in ("name", "n_parameters", "reference"))
    options: dict[str, Any] = {}
    if isinstance(full_name, str) and full_name:
        model = full_name.rpartition("/")[2]
        options |= {"display": model}
        options |= {"model_id": model} if re.fullmatch(MODEL_ID_PATTERN, model) else {}
    if isinstance(params, int | float) and 0 <= params < math.inf:
        options["params"] = int(params)
    if isinstance(url, str) and url.startswith("https://"):
        options["url"] = url
    return options
