"""The packages of a record: measured on the modules that an extractor has loaded."""

import importlib
import importlib.metadata
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reference_harness import environment
from reference_harness.extractors.kmer import KmerExtractor
from tests.harness.support import Harness
from tests.paths import ROOT

CPU_SECONDS_MAX = 5.0  # measured: 0.4 on an idle machine, most of it reading metadata

LAZY = """
import numpy as np
from .base import BaseEmbeddingExtractor

class Lazy(BaseEmbeddingExtractor):
    def extract_embeddings(self, sequences, batch_size=8):
        import state_space  # what a model imports in its forward pass
        return np.array([[s.count(c) for c in "ACGT"] for s in sequences], "float32")
"""


def install(folder: Path, version: str) -> None:
    """Put a distribution into a folder: its name is not that of its module."""
    (folder / "state_space.py").write_text("")
    info = folder / "State_Space.Kernels-1.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: State_Space.Kernels\nVersion: {version}\n"
    )
    (info / "RECORD").write_text("state_space.py,,\n")


def test_an_upgrade_of_what_a_forward_pass_imports_is_another_cache(harness: Harness) -> None:
    (harness.folder / "lazy.py").write_text(LAZY)
    found = {}
    for number, version in enumerate(("1.0", "1.0", "1.1")):
        install(harness.folder, version)
        done = harness(
            "run", "--extractor", "lazy.py:Lazy", "--tasks", "mini_tf", "--regimes", "1shot",
            "--no-canonical", "--quiet", "--output", f"{number}.json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        record = json.loads((harness.folder / f"{number}.json").read_text())
        found[number] = (
            record["packages"]["state-space-kernels"],
            record["tasks"]["mini_tf"]["embedded_now"] > 0,
        )
    assert found == {0: ("1.0", True), 1: ("1.0", False), 2: ("1.1", True)}


def test_what_moves_files_and_text_is_left_out() -> None:
    """The Hub's client loads some of it for a download alone, and then another run would differ."""
    importlib.import_module("tqdm")  # the Hub's client requires it

    started = time.process_time()
    found = environment.packages_of(KmerExtractor(""))
    assert time.process_time() - started < CPU_SECONDS_MAX
    assert found.items() >= environment.packages().items()
    assert not found.keys() & {"geneb-ci", "click", "pydantic", "rich", "tqdm", "filelock"}
    assert found["pytest"] == importlib.metadata.version("pytest")


def test_an_extractor_that_refuses_the_short_sequence_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        message = "expected 512 letters"
        raise ValueError(message)

    extractor = KmerExtractor("")
    monkeypatch.setattr(extractor, "extract_embeddings", refuse)
    assert environment.packages_of(extractor)["numpy"] == importlib.metadata.version("numpy")


NUMERICS = """
import json, sys
from pathlib import Path
import torch
from reference_harness import environment
from reference_harness.embed import Batching
from reference_harness.embedder import EmbedderSpec
from tests.harness.extractors.models import save

save("bert", Path(sys.argv[1]))

def found(mode):
    spec = EmbedderSpec(
        extractor="huggingface", name_model=sys.argv[1], device="cpu", keywords={},
        batching=Batching(mode), measured=False,
    )
    return spec.load().facts.numerics

before = found("budget")
environment.set_exact()
bare = environment.numerics(object())["attention"]
print(json.dumps([before, found("exact"), torch.backends.cuda.matmul.allow_tf32, bare]))

torch.use_deterministic_algorithms(False)
devices = []
for allowed in (True, False):
    environment.set_tf32(allowed=allowed)
    devices.append([environment.tf32(device) for device in ("cuda", "cuda:1", "cpu")])
torch.backends.cudnn.allow_tf32 = True  # as torch has it for convolutions
devices.append(environment.tf32("cuda"))
environment.set_exact()
devices += [environment.tf32("cuda"), torch.are_deterministic_algorithms_enabled()]
print(json.dumps(devices))
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """Return what a process of its own says: torch's settings are global, and there without a GPU.

    Of the kernels of a model, and of TF32.
    """
    done = subprocess.run(
        [sys.executable, "-c", NUMERICS, str(tmp_path_factory.mktemp("settings") / "model")],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()[-2:]]


def test_kernels_are_recorded_and_exact_runs_ask_for_deterministic_ones(settings):
    before, after, tf32, none = settings[0]
    assert before["attention"] == "sdpa"
    assert set(before["attention_kernels"]) >= {"flash", "math"}
    assert (before["deterministic"], before["matmul_precision"]) == (False, "highest")
    assert after == before | {"deterministic": True}
    assert (tf32, none) == (False, "")


def test_tf32_is_set_and_recorded_for_products_and_convolutions(settings):
    """A processor has no TF32."""
    allowed, forbidden, convolutions, exact, deterministic = settings[1]
    assert (allowed, forbidden) == ([True, True, False], [False, False, False])
    assert (convolutions, exact, deterministic) == (True, False, True)
