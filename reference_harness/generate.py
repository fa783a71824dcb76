"""Writes the generated contracts: `python -m reference_harness.generate [--check]`."""

import sys
from pathlib import Path

from reference_harness.formats.files import dumps, write_bytes

from . import mini, worker_options
from .formats import receipt_cells, rescored, run_record
from .probes import report
from .shipped import schema


def contents() -> dict[Path, bytes]:
    """Return path to bytes of each file this package generates."""
    folder = schema("benchmark.json").parent
    return {
        folder / "benchmark-mini.json": dumps(mini.definition()),
        folder / "run-record.schema.json": dumps(run_record.json_schema()),
        folder / "rescored.schema.json": dumps(rescored.json_schema()),
        folder / "probes.schema.json": dumps(report.json_schema()),
        folder / "receipt-cells.schema.json": dumps(receipt_cells.cells_schema()),
        folder / "receipt-equal.schema.json": dumps(receipt_cells.equal_schema()),
        folder / "receipt-refit.schema.json": dumps(receipt_cells.refit_schema()),
        folder / "worker-options.schema.json": dumps(worker_options.json_schema()),
    }


def main(arguments: list[str]) -> int:
    """Write the files, or with --check say which differ: 0 when none does, else 1."""
    stale = [p for p, b in contents().items() if not p.is_file() or p.read_bytes() != b]
    for path in stale:
        if "--check" not in arguments:
            write_bytes(path, contents()[path])
        sys.stdout.write(f"{path.name}: {'differs' if '--check' in arguments else 'written'}\n")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
