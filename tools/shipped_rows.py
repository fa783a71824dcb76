"""The file of the public rows that ship with the package: `make generate` writes it.

`geneb_ci.check.folder_context` reads it.
"""

import binascii
import hashlib
import json
import math
import struct
from pathlib import Path
from typing import Any, NamedTuple

from geneb_ci.submission.peers import results_digest
from reference_harness.formats.benchmark import Benchmark

_NOTE = (
    "Scores of the public rows that `geneb-ci check --against shipped` compares a lone file with: "
    "the primary metric of each cell, regime by regime, as doubles, little-endian, in base64, NaN "
    "where there is none. A neighbour with the same file is not parsed. Written by "
    "`make generate`; a row is never replaced when its submission changes."
)


class ShippedRow(NamedTuple):
    """One row of the file."""

    file_sha256: str
    scores_sha256: str
    display: str
    scores: str
    """Little-endian doubles in base64, which are read 50 times as fast as decimals."""


def shipped_rows_text(earlier_text: str, submissions: Path, benchmark: Benchmark) -> str:
    """Return the new text of `shipped-rows.json`, from its old text and the submissions.

    The set of models does not change. A row is kept as it was if its submission has changed or no
    longer exists.
    """
    old_rows = json.loads(earlier_text)["rows"]
    rows: dict[str, Any] = {}
    for model in sorted(old_rows, key=lambda name: f"{name}.json"):
        path = submissions / f"{model}.json"
        raw = path.read_bytes() if path.is_file() else b""
        unchanged = hashlib.sha256(raw).hexdigest() == old_rows[model]["file_sha256"]
        rows[model] = row_of(raw, benchmark)._asdict() if unchanged else old_rows[model]
    head = {
        "note": _NOTE,
        "metric": benchmark.primary_metric,
        "regimes": benchmark.regimes,
        "tasks": benchmark.task_ids,
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    rows_text = ",\n".join(
        f"  {json.dumps(model)}: {json.dumps(row, separators=(',', ':'))}"
        for model, row in rows.items()
    )
    return "{\n" + ",\n".join([*lines, f' "rows": {{\n{rows_text}\n }}']) + "\n}\n"


def row_of(raw: bytes, benchmark: Benchmark) -> ShippedRow:
    """Return the row of one submission, from the bytes of its file."""
    document = json.loads(raw)
    results: dict[str, Any] = document["results"]
    scores = [
        results.get(regime, {}).get(task, {}).get(benchmark.primary_metric)
        for regime in benchmark.regimes
        for task in benchmark.task_ids
    ]
    digest = results_digest(results) or ""
    doubles = [math.nan if score is None else score for score in scores]
    packed = binascii.b2a_base64(struct.pack(f"<{len(doubles)}d", *doubles), newline=False).decode()
    return ShippedRow(hashlib.sha256(raw).hexdigest(), digest, document["meta"]["display"], packed)
