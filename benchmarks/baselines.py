"""Run the baselines and keep their scores in schemas/baselines.json.

    python -m benchmarks.baselines [--write] [FOLDER]

FOLDER keeps the run records, so that a second call runs only what is missing. All of GENEB-mini is
run, and the tasks of GENEB whose data are on this machine (`make real-tasks`).
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.paths import REAL_TASKS, ROOT

BASELINES = {
    "kmer-4": ("--extractor", "builtin:kmer", "--option", "k=4"),
    "kmer-6": ("--extractor", "builtin:kmer", "--option", "k=6"),
    "random-init": ("--extractor", "builtin:random_init"),
}
PATH = ROOT / "schemas/baselines.json"
DIGITS = 6


def run(name: str, data: tuple[str, ...], output: Path) -> dict[str, Any]:
    """Return the run record of a baseline, from the file `output` or by a run that writes it."""
    if not output.is_file():
        run_options = (
            *BASELINES[name],
            *data,
            "--model-id",
            name,
            "--output",
            str(output),
            "--quiet",
        )
        cache = ("--cache", str(output.parent / "cache"))
        command = [sys.executable, "-m", "reference_harness", "run", *run_options, *cache]
        subprocess.run(command, check=True, cwd=ROOT)
    record: dict[str, Any] = json.loads(output.read_bytes())
    return record


def scores_of(record: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the MCC by regime and task."""
    return {
        regime: {
            task: round(task_record["regimes"][regime]["scores"]["MCC"], DIGITS)
            for task, task_record in sorted(record["tasks"].items())
        }
        for regime in record["regimes"]
    }


def main() -> None:
    """Print the mean of each baseline, and with --write keep all scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("folder", nargs="?", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        available_tasks = sorted(path.name.partition(".")[0] for path in REAL_TASKS.glob("*.csv*"))
        data_options = {
            "mini": (),
            "real": ("--data", str(REAL_TASKS), "--tasks", ",".join(available_tasks)),
        }
        scores_by_benchmark: dict[str, Any] = {}
        for dataset, options_of_data in data_options.items():
            for name in BASELINES:
                record = run(name, options_of_data, folder / f"{dataset}-{name}.json")
                digest = record["benchmark"]["sha256"]
                scores_by_benchmark.setdefault(digest, {})[name] = scores_of(record)
                full_scores = scores_by_benchmark[digest][name]["full"]
                print(f"{record['benchmark']['name']}, {name}: {len(full_scores)} tasks, mean "
                      f"{sum(full_scores.values()) / len(full_scores):.4f}")  # fmt: skip
    if options.write:
        PATH.write_text(json.dumps(scores_by_benchmark, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
