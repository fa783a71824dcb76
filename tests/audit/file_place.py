"""A place with two tasks of GENEB-mini in the 1-shot regime: an audit of it takes seconds."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.audit.installed import Installed
from tools.demo_audit import COMMITTED_AT

MODEL = "two-mers"
TASKS = ("mini_splice", "mini_promoter")
SLOW = """
import time
import numpy as np
from .base import BaseEmbeddingExtractor


class Slow(BaseEmbeddingExtractor):
    layer, pooling, max_length, truncation, dtype = "none", "mean", None, "none", "float32"
    source = {"kind": "none", "location": "", "revision": None}

    def extract_embeddings(self, sequences, batch_size=1):
        time.sleep(0.004 * len(sequences))
        rows = [[s.count(x) / len(s) for x in ("A", "C", "G", "T", "CG")] for s in sequences]
        return np.array(rows, dtype=np.float32)
"""
GO = ("--committed-at", COMMITTED_AT, "--beacon-file", "round.json")


def made(folder: Path, scratch: Path, *, boxed: bool = False) -> Installed:
    """Lay out a repository with one submission of k-mers, two tasks drawn of two."""
    installed = Installed(folder, drawn=2, boxed=boxed)
    installed.environment |= {"TMPDIR": str(scratch), "XDG_CACHE_HOME": str(folder / "cache")}
    installed.audit_one_regime()
    harnessed(installed, MODEL, "kmer", "--option", "k=2")
    return installed


def harnessed(installed: Installed, model_id: str, extractor: str, *options: str) -> Path:
    """Run an extractor over both tasks, and return the submission."""
    file = installed.root / "submissions" / f"{model_id}.json"
    installed.run(
        *("reference_harness", "run", "--extractor", extractor, *options, "--quiet"),
        *("--tasks", ",".join(TASKS), "--output", f"{model_id}.record.json"),
        *("--model-id", model_id, "--submission", str(file), "--submitted-by", "a test"),
    )
    return file


def begun(installed: Installed, *arguments: str) -> "subprocess.Popen[str]":
    """Start a command that can be killed."""
    return subprocess.Popen(
        [sys.executable, "-m", "geneb_ci", "audit", *arguments],
        cwd=installed.root, env=installed.environment, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        # A shell lets its background commands ignore Ctrl-C, and their children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 (set before any thread)
    )  # fmt: skip


def work_of(installed: Installed, model_id: str = MODEL) -> Path:
    """Return the only work folder of a model."""
    (path,) = (
        Path(installed.environment["XDG_CACHE_HOME"]) / "geneb-ci/audits" / model_id
    ).iterdir()
    return path
