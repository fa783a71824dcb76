"""The harness on a Ray cluster of this machine: workers and machines die, the record does not."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ray.cluster_utils import Cluster

from reference_harness import mini
from tests.harness.support import Harness, counts_of_calls, timeless

MINE = """
import os, signal, time
from pathlib import Path
import numpy as np
import reference_harness.embedding.cache
from .base import BaseEmbeddingExtractor

reference_harness.embedding.cache.FLUSH_SECONDS = 0

class Mine(BaseEmbeddingExtractor):
    layer, pooling, max_length, truncation, dtype = "none", "mean", None, "none", "float32"
    source = {"kind": "none", "location": "", "revision": None, "weights": {}}
    calls = 0

    def extract_embeddings(self, sequences, batch_size=8):
        self.calls += 1
        time.sleep(float(os.environ.get("SLOW", 0)))
        if self.calls == 4 and Path("kill").exists():
            Path("kill").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        with Path("asked").open("a") as stream:
            stream.write(" ".join(sequences) + "\\n")
        return np.array([[s.count(c) / len(s) for c in "ACGT"] for s in sequences], "float32")
"""
LIST = """
[[run]]
output = "kmer.json"

[[run]]
output = "mine.json"
extractor = "mine.py:Mine"
token-budget = 4096
"""
RUN = ("run", "--from", "models.toml", "--limit", 40, "--jobs", 2, "--cache", "cache")
SECONDS = 120  # a run on the cluster takes 15 on an idle machine


MESSAGE_SECONDS = 10  # Ray's message of a dead machine came after 1 to 5


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Start a cluster of one machine with two CPUs."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0"}
    head = {"num_cpus": 2, "include_dashboard": False}
    made: Any = Cluster(initialize_head=True, head_node_args=head)
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the records of both models on this machine alone."""
    harness = laid(Harness(tmp_path_factory.mktemp("local")))
    done = harness.alone(*RUN)  # with the packages loaded that a run loads
    assert done.returncode == 0, done.stderr
    return records(harness.folder)


def laid(harness: Harness) -> Harness:
    (harness.folder / "mine.py").write_text(MINE)
    (harness.folder / "models.toml").write_text(LIST)
    return harness


def records(folder: Path) -> dict[str, Any]:
    return {name: timeless(json.loads((folder / name).read_text())) for name in NAMES}


NAMES = ("kmer.json", "mine.json")


def started(harness: Harness, cluster: Cluster) -> subprocess.Popen[str]:
    harness.environment["RAY_ADDRESS"] = cluster.address
    return harness.started_alone(*RUN, "--engine", "ray")


@pytest.mark.nightly
def test_a_killed_embedder_changes_no_record(
    cluster: Cluster, local: dict[str, Any], harness: Harness
) -> None:
    laid(harness)
    (harness.folder / "kill").touch()
    _, message = (process := started(harness, cluster)).communicate(timeout=SECONDS)
    assert process.returncode == 0, message
    assert not (harness.folder / "kill").exists()
    assert message.count("an embedder died: its process was killed, or its machine left") == 1
    assert records(harness.folder) == local
    log = harness.folder / "asked"
    counts = counts_of_calls(log, (task.id for task in mini.TASKS))
    repeated = {sequence for sequence, count in counts.items() if count > 1}
    # The embeddings that were being written when the process was killed are computed again.
    assert not repeated or repeated in [set(line.split()) for line in log.read_text().splitlines()]
    assert max(counts.values()) <= 2


@pytest.mark.nightly
def test_machines_that_leave_and_come_change_no_record(
    cluster: Cluster, local: dict[str, Any], harness: Harness
) -> None:
    laid(harness)
    harness.environment["SLOW"] = "0.1"
    leaves = [cluster.add_node(num_cpus=1) for _ in range(2)]
    process = started(harness, cluster)
    until = time.monotonic() + SECONDS
    while leaves:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.1)
        finished = list(harness.folder.glob("*.partial/task-*.json"))
        if len(finished) > 4 - 2 * len(leaves):
            cluster.remove_node(leaves.pop(), allow_graceful=False)
            cluster.add_node(num_cpus=1)
    _, message = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, message
    assert records(harness.folder) == local


@pytest.mark.nightly
def test_a_command_runs_elsewhere_as_if_it_ran_here(cluster: Cluster, harness: Harness) -> None:
    harness.environment["RAY_ADDRESS"] = cluster.address
    code = "import os, sys; print(os.environ['GENEB_X'], os.getcwd(), file=sys.stderr); exit(11)"
    harness.environment["GENEB_X"] = "told"
    done = harness.alone("elsewhere", "--", sys.executable, "-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (11, "", f"told {harness.folder}\n")


@pytest.mark.nightly
def test_a_machine_that_dies_meanwhile_prints_nothing(cluster: Cluster, harness: Harness) -> None:
    """Ray names it, and prints the state of its processes, where others expect the output."""
    leaving = cluster.add_node(num_cpus=1)
    harness.environment["RAY_ADDRESS"] = cluster.address
    code = "from pathlib import Path as P; import sys, time; P('begun').touch()\nwhile not "
    code += "P('end').exists(): time.sleep(0.1)\nsys.exit(11)"
    process = harness.started_alone("elsewhere", "--", sys.executable, "-c", code)
    until = time.monotonic() + SECONDS
    while not (harness.folder / "begun").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.1)
    cluster.remove_node(leaving, allow_graceful=False)
    time.sleep(MESSAGE_SECONDS)
    (harness.folder / "end").touch()
    assert (*process.communicate(timeout=SECONDS), process.returncode) == ("", "", 11)


def test_without_ray_one_line_names_the_cure(harness: Harness) -> None:
    code = (
        "import sys; sys.modules['ray'] = None; from reference_harness.cli.main import main; main()"
    )
    process = harness.start("run", "--output", "r.json", "--engine", "ray", code=code)
    message = "error: the package ray is missing: pip install 'geneb-ci[ray]'\n"
    assert (process.communicate(SECONDS)[1], process.returncode) == (message, 2)
