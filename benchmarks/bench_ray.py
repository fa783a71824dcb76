"""Measure the cost of Ray on one machine, and check records after killed processes and machines.

Two models on the 13 tasks of GENEB-mini with more rows, by the local engine, by Ray, by Ray with an
embedder and a probe killed, and by Ray on eight simulated machines that leave and come. The records
must be equal but for times. `--write` puts the table into docs/contributor/cluster.md.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from reference_harness import mini
from tests.harness.support import timeless, write_flat
from tests.paths import ROOT

ROWS = 24_000
"""Training sequences of each task, with which the local engine takes more than two minutes."""
MACHINES = 8
LEAVE_INTERVAL_SECONDS = 10.0
BEGIN, END = "<!-- ray -->\n", "<!-- /ray -->"
PAGE = ROOT / "docs/contributor/cluster.md"
MODELS = "".join(
    f'[[run]]\noutput = "{k}-mer.json"\nmodel-id = "{k}-mer"\noption = ["k={k}"]\n' for k in (5, 6)
)

Disturbance = Callable[[subprocess.Popen[str]], None]


class BothModels(NamedTuple):
    """The measurements of one call for both models."""

    seconds: float
    records: dict[str, Any]
    stderr: str


def write_task_data(folder: Path, rows: int) -> None:
    """Write the task data, their definition and the list of models."""
    data = folder / "data"
    for task in mini.TASKS:
        write_flat(mini.generate(replace(task, n_train=rows)), data)
    subprocess.run(
        [sys.executable, "-m", "reference_harness", "data", "define", data],
        check=True, capture_output=True, cwd=ROOT,
    )  # fmt: skip
    (folder / "models.toml").write_text(MODELS, encoding="utf-8")


def run_both_models(
    folder: Path, *arguments: str, address: str = "", disturb: Disturbance | None = None
) -> Any:
    """Run both models with an empty cache in a process of its own."""
    command = [sys.executable, "-m", "reference_harness", "run", "--from", "models.toml"]
    command += ["--data", "data", "--benchmark", "data/benchmark.json", "--jobs", "2", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)} | {"RAY_ADDRESS": address}
    if not address:
        del environment["RAY_ADDRESS"]
    with tempfile.TemporaryDirectory() as cache:
        start = time.perf_counter()
        with subprocess.Popen(
            [*command, "--cache", cache],
            cwd=folder, env=environment, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            if disturb:
                disturb(process)
            _, stderr = process.communicate()
        seconds = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"{' '.join(arguments)}: {stderr}")
    records_by_file = {
        path.name: timeless(json.loads(path.read_bytes())) for path in records(folder)
    }
    for path in records(folder):
        path.unlink()
    return BothModels(seconds, records_by_file, stderr)


def records(folder: Path) -> list[Path]:
    """Return the files of the records of a call."""
    return sorted(folder.glob("*-mer.json"))


def kill_embedder_and_probe(process: subprocess.Popen[str]) -> None:
    """Kill the first embedder and the first probe that run."""
    for name in ("RemoteEmbedder.embed", "ray::probe"):
        while process.poll() is None and not kill_process(name):
            time.sleep(0.05)


def kill_process(name: str) -> bool:
    """Kill a process of Ray by the work in its title; return whether there was one."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            title = (folder / "cmdline").read_text()
        except OSError:
            continue
        if title.startswith("ray::") and name in title:
            os.kill(int(folder.name), signal.SIGKILL)
            return True
    return False


class Churn:
    """A cluster of simulated machines, of which the oldest leaves and another comes."""

    def __init__(self, machines: int) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "include_dashboard": False}
        self.cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        self.machines = [self.cluster.add_node(num_cpus=1) for _ in range(machines - 1)]
        self.leave_count = 0

    def __call__(self, process: subprocess.Popen[str]) -> None:
        """Let machines leave and come until the process ends."""
        while process.poll() is None:
            time.sleep(LEAVE_INTERVAL_SECONDS)
            self.cluster.remove_node(self.machines.pop(0), allow_graceful=False)
            self.machines.append(self.cluster.add_node(num_cpus=1))
            self.leave_count += 1


def table(folder: Path) -> str:
    """Measure each way, and return the table. Raise SystemExit if a record differs."""
    local = run_both_models(folder)
    ray_alone = run_both_models(folder, "--engine", "ray")
    with_kills = run_both_models(folder, "--engine", "ray", disturb=kill_embedder_and_probe)
    churn = Churn(MACHINES)
    with_churn = run_both_models(
        folder, "--engine", "ray", address=churn.cluster.address, disturb=churn
    )
    churn.cluster.shutdown()
    rows = {
        "local engine, `--jobs 2`": local,
        "Ray, two CPUs": ray_alone,
        "Ray, an embedder and a probe killed": with_kills,
        f"Ray, {MACHINES} simulated machines, {churn.leave_count} left and came": with_churn,
    }
    lines = [
        "| 13 tasks, 2 models | time | beside local | deaths | record |",
        "|---|---:|---:|---:|---|",
    ]
    for way, result in rows.items():
        if result.records != local.records:
            sys.exit(f"{way}: the records differ from those of the local engine")
        deaths = result.stderr.count("the task continues elsewhere")
        relative_time = f"{result.seconds / local.seconds - 1:+.0%}"
        lines.append(f"| {way} | {result.seconds:.0f} s | {relative_time} | {deaths} | equal |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and with --write keep the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/contributor/cluster.md"
    )
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        write_task_data(Path(scratch), options.rows)
        text = table(Path(scratch))
    text += (
        f"\n{options.rows:,} rows for training in each task; Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, of a machine whose load was {load:.1f} before.\n"
    )
    print(text)
    if options.write:
        before, after_begin = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + after_begin.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
