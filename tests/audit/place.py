"""A repository of the benchmark of three tasks, with one audited submission in it."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from geneb_ci.common.config import find_layout
from tests.small import BENCHMARK_FILE, CARD, small, small_v11

MODULE = b"class Model:\n    pass\n"
HELPER = b"WINDOW = 512\n"
POLICY = """\
[audit]
drawn = 2
stratified = false
regimes = ["full", "10shot", "1shot"]
minimum_drawn = 2
minimum_level = 2
"""
Change = Callable[[dict[str, Any]], None]


def unchanged(_: dict[str, Any]) -> None:
    """Leave a document as it is."""


def put(*path: Any) -> Change:
    """Return a change that sets a member: path and value."""

    def change(document: dict[str, Any]) -> None:
        node: Any = document
        for key in path[:-2]:
            node = node[key]
        node[path[-2]] = path[-1]

    return change


def repository(root: Path, change: Change = unchanged, *, version: str = "1.1") -> Path:
    """Write the repository; return the submission, which differs from a sound one by one change."""
    for folder in ("schemas", "submissions/cards", "submissions/extractors", "leaderboard/policy"):
        (root / folder).mkdir(parents=True)
    shutil.copy(BENCHMARK_FILE, root / "schemas/benchmark.json")
    (root / "submissions/cards/model.md").write_text(CARD, encoding="utf-8")
    (root / "submissions/extractors/model.py").write_bytes(MODULE)
    (root / "submissions/extractors/helper.py").write_bytes(HELPER)
    policy = root / "leaderboard/policy"
    (policy / "policy.toml").write_text(POLICY, encoding="utf-8")
    (policy / "official.json").write_text('{"files": {}}', encoding="utf-8")
    document = small_v11("model") if version == "1.1" else small("model")
    if version == "1.1":
        document["run"]["extractor"] = {
            "path": "submissions/extractors/model.py",
            "class_name": "Model",
            "sha256": hashlib.sha256(MODULE).hexdigest(),
        }
    change(document)
    file = root / "submissions/model.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    find_layout.cache_clear()
    return file
