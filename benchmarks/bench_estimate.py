"""Compare the time of audits with the estimate of `audit FILE --dry-run`, as a ratio.

Three models without weights, of different cost: k-mers, a tiny BERT with random weights, and an
extractor that sleeps. Times are wall clock, so run it on a machine that does nothing else.
"""

import json
import re
import sys
import tempfile
import time
from pathlib import Path

from tests.audit.file_place import GO, SLOW, TASKS, harnessed, made
from tests.audit.installed import Installed

BERT = """
import numpy as np
import torch
from transformers import BertConfig, BertModel

from .base import BaseEmbeddingExtractor


class Bert(BaseEmbeddingExtractor):
    layer, pooling, max_length, truncation, dtype = "last", "mean", 512, "right", "float32"
    source = {"kind": "none", "location": "", "revision": None}

    def __init__(self, name_model, device="cpu"):
        super().__init__(name_model, device)
        torch.manual_seed(1)
        sizes = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
        self.model = BertModel(BertConfig(vocab_size=6, intermediate_size=128, **sizes)).eval()

    def extract_embeddings(self, sequences, batch_size=1):
        length = max(map(len, sequences))
        ids = [["NACGT".find(c) + 1 for c in s] + [0] * (length - len(s)) for s in sequences]
        tokens = torch.tensor(ids)
        mask = (tokens > 0).long()
        with torch.no_grad():
            hidden = self.model(input_ids=tokens, attention_mask=mask).last_hidden_state
        kept = mask[:, :, None]
        return ((hidden * kept).sum(1) / kept.sum(1)).numpy().astype(np.float32)
"""
MODELS = {
    "k-mers": ("kmer", "", ("--option", "k=4")),
    "tiny BERT": ("Bert", BERT, ()),
    "slow": ("Slow", SLOW, ()),
}


def estimated_seconds_by_step(text: str) -> dict[str, float]:
    """Return the seconds of embedding, scoring and checks that a dry run foresees."""
    line = next(line for line in text.splitlines() if "embedding" in line)
    units = {"s": 1, "min": 60}
    return {
        what: float(value) * units[unit]
        for what, value, unit in re.findall(r"(embedding|scoring|checks) ([\d.]+) (s|min)", line)
    }


def cells_of_model(installed: Installed, name: str) -> list[str]:
    """Return the cells of a row: estimated and real seconds of an audit, and their ratios."""
    extractor, source, options = MODELS[name]
    model_id = name.replace(" ", "-")
    if source:
        file = installed.root / "submissions" / "extractors" / f"{model_id}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(source, encoding="utf-8")
        extractor = f"{file}:{extractor}"
    harnessed(installed, model_id, extractor, *options)
    command = ("geneb_ci", "audit", f"submissions/{model_id}.json", "--unsigned")
    estimate = estimated_seconds_by_step(installed.run(*command, "--dry-run").stdout)
    start = time.monotonic()
    installed.run(
        *command, *GO, check=False
    )  # differs where the extractor does not see what it saw
    total_seconds = time.monotonic() - start
    (work,) = (
        Path(installed.environment["XDG_CACHE_HOME"]) / "geneb-ci/audits" / model_id
    ).iterdir()
    tasks = [work / "tasks" / task for task in TASKS]
    embedding = sum(json.loads((task / "embedded.json").read_bytes())["seconds"] for task in tasks)
    estimated_seconds = sum(estimate.values())
    return [
        name,
        f"{estimate['embedding']:.1f} s",
        f"{embedding:.1f} s",
        f"{embedding / estimate['embedding']:.2f}",
        f"{estimated_seconds:.0f} s",
        f"{total_seconds:.1f} s",
        f"{total_seconds / estimated_seconds:.2f}",
    ]


def main() -> None:
    """Print a line for each model."""
    print("| model | embedding: estimate | took | ratio | all: estimate | took | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(prefix="geneb-ci-bench-") as folder:
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        installed = made(Path(folder), scratch)
        for name in sys.argv[1:] or MODELS:
            print("|", " | ".join(cells_of_model(installed, name)), "|", flush=True)


if __name__ == "__main__":
    main()
