"""Write the generated schemas: `python -m reference_harness.generate [--check]`."""

import sys
from pathlib import Path

from . import mini
from .formats.base import json_schema
from .formats.files import dumps, write_bytes
from .formats.receipt_cells import EqualEmbeddings, ReceiptCells, ReceiptRefit
from .formats.rescored import Rescored
from .formats.run_record import RunRecord
from .other_probes.report import Probes
from .schema_files import schema_path
from .worker_options import WorkerOptions

SCHEMAS: dict[str, tuple[type, str]] = {
    "run-record": (RunRecord, "Run record"),
    "rescored": (Rescored, "Rescoring of an audit"),
    "probes": (Probes, "Scores of receipts under other probes"),
    "receipt-cells": (ReceiptCells, "Cells of a receipt"),
    "receipt-equal": (EqualEmbeddings, "Embeddings of equal sequences of a receipt"),
    "receipt-refit": (ReceiptRefit, "Decisions of a receipt by a refitted probe"),
    "worker-options": (WorkerOptions, "Options of the sandboxed worker"),
}
"""The model or data class of the files of each schema, and its title, by the schema's name."""


def contents() -> dict[Path, bytes]:
    """Return the bytes of each file that this package generates, by path."""
    folder = schema_path("benchmark.json").parent
    return {folder / "benchmark-mini.json": dumps(mini.definition())} | {
        folder / f"{name}.schema.json": dumps(json_schema(kind, title))
        for name, (kind, title) in SCHEMAS.items()
    }


def main(arguments: list[str]) -> int:
    """Write and name the files that differ, and return 0.

    With --check, only name them, and return 1 if there are any.
    """
    stale = [p for p, b in contents().items() if not p.is_file() or p.read_bytes() != b]
    for path in stale:
        if "--check" not in arguments:
            write_bytes(path, contents()[path])
        sys.stdout.write(f"{path.name}: {'differs' if '--check' in arguments else 'written'}\n")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
