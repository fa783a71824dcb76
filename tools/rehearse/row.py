"""The row that is submitted in the rehearsal, and one with an impossible score."""

import json
import zlib
from pathlib import Path
from typing import Any

from geneb_ci.common.benchmark import load_benchmark, shipped_benchmark
from tests.paths import SUBMISSIONS
from tests.rows import recorded_row, sha256
from tests.small import CARD, small_v11

MODEL = "rehearsed-row"
_EXTRACTOR = (
    '"""The extractor of the rehearsal: no job imports it."""\n\n\nclass Model:\n    pass\n'
)
_MEASURED = SUBMISSIONS / "splicebert-1024nt.json"

Files = dict[str, bytes]
"""Bytes of files by path in the repository."""


def sound(root: Path, model: str = MODEL) -> Files:
    """Return the three files of a submission without any error, for the benchmark of `root`."""
    benchmark = load_benchmark(root / "schemas/benchmark.json")
    document = small_v11(model, benchmark)
    if benchmark.sha256 == shipped_benchmark().sha256:
        measured = json.loads(_MEASURED.read_bytes())
        row = recorded_row(model, measured, zlib.crc32(model.encode()))
        document |= {"results": row["results"], "evidence": row["evidence"]}
    path = f"submissions/extractors/{model.replace('-', '_')}.py"
    document["run"]["extractor"] = {
        "path": path.removeprefix("submissions/"),
        "class_name": "Model",
        "sha256": sha256(_EXTRACTOR),
    }
    return {
        f"submissions/{model}.json": _encoded(document),
        f"submissions/cards/{model}.md": CARD.replace("A model", model).encode(),
        path: _EXTRACTOR.encode(),
    }


def impossible(root: Path, model: str) -> Files:
    """Return the files of `sound`, with one accuracy above 1."""
    files = sound(root, model)
    path = f"submissions/{model}.json"
    document = json.loads(files[path])
    cells = next(iter(document["results"].values()))
    next(iter(cells.values()))["Acc"] = 1.5
    return files | {path: _encoded(document)}


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1).encode() + b"\n"
