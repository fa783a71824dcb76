"""The packages of a record: measured on the modules that an extractor has loaded."""

import importlib
import importlib.metadata
import json
import os
import shutil
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from reference_harness import environment
from reference_harness.embedding.embedder import EmbedderSpec
from reference_harness.embedding.extractor_calls import Batching
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from reference_harness.extractors.kmer import KmerExtractor
from tests.harness.extractors.models import save
from tests.harness.support import Harness

CPU_SECONDS_MAX = 5.0  # measured: 0.4 on an idle machine, most of it reading metadata

LAZY = """
import numpy as np
from .base import BaseEmbeddingExtractor

class Lazy(BaseEmbeddingExtractor):
    def extract_embeddings(self, sequences, batch_size=8):
        import state_space  # what a model imports in its forward pass
        return np.array([[s.count(c) for c in "ACGT"] for s in sequences], "float32")
"""


INFO = "State_Space.Kernels-1.dist-info"


def install(folder: Path, version: str) -> None:
    """Put a distribution into a folder: its name is not that of its module."""
    (folder / "state_space.py").write_text("")
    info = folder / INFO
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: State_Space.Kernels\nVersion: {version}\n"
    )
    (info / "RECORD").write_text("state_space.py,,\n")


def test_an_upgrade_of_what_a_forward_pass_imports_is_another_cache(harness: Harness) -> None:
    (harness.folder / "lazy.py").write_text(LAZY)
    records_by_number = {}
    for number, version in enumerate(("1.0", "1.0", "1.1")):
        install(harness.folder, version)
        done = harness(
            "run", "--extractor", "lazy.py:Lazy", "--tasks", "mini_tf", "--regimes", "1shot",
            "--quiet", "--output", f"{number}.json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        record = json.loads((harness.folder / f"{number}.json").read_text())
        records_by_number[number] = (
            record["packages"]["state-space-kernels"],
            record["tasks"]["mini_tf"]["embedded_now"] > 0,
        )
    assert records_by_number == {0: ("1.0", True), 1: ("1.0", False), 2: ("1.1", True)}


def test_what_moves_files_and_text_is_left_out() -> None:
    """The Hub's client loads some of it for a download alone, and then another run would differ."""
    importlib.import_module("tqdm")  # the Hub's client requires it

    started = time.process_time()
    packages = environment.packages_of(KmerExtractor(""))
    assert time.process_time() - started < CPU_SECONDS_MAX
    assert packages.items() >= environment.packages().items()
    assert not packages.keys() & {"geneb-ci", "click", "pydantic", "rich", "tqdm", "filelock"}
    assert packages["pytest"] == importlib.metadata.version("pytest")


def test_a_package_that_is_upgraded_in_a_process_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    versions = []
    for second, version in enumerate(("1.0", "1.1"), 1):
        shutil.rmtree(tmp_path / INFO, ignore_errors=True)
        install(tmp_path, version)
        os.utime(tmp_path, (second, second))  # the clock of a file system may be coarse
        monkeypatch.setitem(sys.modules, "state_space", ModuleType("state_space"))
        versions.append(environment.packages_of(KmerExtractor(""))["state-space-kernels"])
    assert versions == ["1.0", "1.1"]


def test_an_extractor_that_refuses_the_short_sequence_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        message = "expected 512 letters"
        raise ValueError(message)

    extractor = KmerExtractor("")
    monkeypatch.setattr(extractor, "extract_embeddings", refuse)
    assert environment.packages_of(extractor)["numpy"] == importlib.metadata.version("numpy")


PRODUCTS, CONVOLUTIONS = torch.backends.cuda.matmul, torch.backends.cudnn
SETTINGS = (
    (PRODUCTS, "allow_tf32"),
    (PRODUCTS, "allow_bf16_reduced_precision_reduction"),
    (PRODUCTS, "allow_fp16_reduced_precision_reduction"),
    (CONVOLUTIONS, "allow_tf32"),
    (CONVOLUTIONS, "benchmark"),
)


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Save a model; what is set of torch, which is global, is undone after the test."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    before = [getattr(*setting) for setting in SETTINGS]
    yield str(save("bert", tmp_path / "model"))
    torch.set_float32_matmul_precision("highest")
    for (where, name), value in zip(SETTINGS, before, strict=True):
        setattr(where, name, value)
    torch.use_deterministic_algorithms(mode=False)


def numerics_of(model: str, mode: Any) -> dict[str, Any]:
    """Return what a record says of the kernels of a model that a run of one mode loads."""
    spec = EmbedderSpec(
        extractor="huggingface", name_model=model, device="cpu", keywords={},
        batching=Batching(mode), measures_budget=False,
    )  # fmt: skip
    return spec.load().facts.numerics


def test_kernels_are_recorded_and_exact_runs_ask_for_deterministic_ones(model):
    """Torch's settings are there without a GPU."""
    before = numerics_of(model, "budget")
    environment.set_exact()
    assert environment.numerics(object())["attention"] == ""
    assert before["attention"] == "sdpa"
    assert set(before["attention_kernels"]) >= {"flash", "math"}
    assert (before["deterministic"], before["matmul_precision"]) == (False, "highest")
    assert numerics_of(model, "exact") == before | {"deterministic": True, "flags": []}
    assert torch.backends.cuda.matmul.allow_tf32 is False


def test_flags_are_recorded_as_an_embedding_leaves_them(model, monkeypatch):
    """An extractor that allows TF32 in its own code, after it is loaded, is seen to."""
    plain = numerics_of(model, "budget")["flags"]
    assert plain == [name for name in environment.TORCH_FLAGS if name in plain]
    assert "cuda.matmul.allow_tf32" not in plain

    embed = HuggingFaceExtractor.extract_embeddings

    def in_tf32(self, *arguments, **options):
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.benchmark = True
        return embed(self, *arguments, **options)

    monkeypatch.setattr(HuggingFaceExtractor, "extract_embeddings", in_tf32)
    after = numerics_of(model, "budget")
    assert set(after["flags"]) == {*plain, "cuda.matmul.allow_tf32", "cudnn.benchmark"}
    assert after["matmul_precision"] == "high"
    torch.backends.cuda.matmul.allow_tf32 = False  # torch refuses to say the precision after that
    assert environment.numerics(object())["matmul_precision"] == environment.MIXED
    environment.set_exact()
    assert environment.numerics(object())["matmul_precision"] == "highest"
    off = {"cudnn.benchmark", *(name for name in environment.TORCH_FLAGS if "allow" in name)}
    assert not off & set(environment.numerics(object())["flags"])


@pytest.mark.usefixtures("model")
def test_tf32_is_set_and_recorded_for_products_and_convolutions():
    """A processor has no TF32."""
    devices = ("cuda", "cuda:1", "cpu")
    environment.set_tf32(allowed=True)
    assert [environment.tf32(device) for device in devices] == [True, True, False]
    environment.set_tf32(allowed=False)
    assert [environment.tf32(device) for device in devices] == [False, False, False]
    torch.backends.cudnn.allow_tf32 = True  # as torch has it for convolutions
    assert environment.tf32("cuda")
    environment.set_exact()
    assert not environment.tf32("cuda")
    assert torch.are_deterministic_algorithms_enabled()


DUBIOUS = "fatal: detected dubious ownership in repository at '/code'"


@pytest.mark.parametrize(
    ("script", "refusal"),
    [
        (f"echo {json.dumps(DUBIOUS)} >&2; exit 128", DUBIOUS),
        ("exit 3", "exit code 3"),
        ("echo 'fatal: not a git repository' >&2; exit 128", ""),
    ],
    ids=["ownership", "silence", "no checkout"],
)
def test_a_refusal_of_git_is_told_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, refusal: str
) -> None:
    program = tmp_path / "git"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert environment.harness().commit is None
    assert environment.git_refusal() == refusal


def test_a_run_says_why_its_record_names_no_commit(
    harness: Harness,
) -> None:
    program = harness.folder / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho {json.dumps(DUBIOUS)} >&2; exit 128\n")
    program.chmod(0o755)
    harness.environment["PATH"] = f"{program.parent}:/usr/bin:/bin"
    done = harness("run", "--tasks", "mini_tf", "--regimes", "1shot", "--output", "r.json")
    assert done.returncode == 0, done.stderr
    assert json.loads((harness.folder / "r.json").read_text())["harness"]["commit"] is None
    text = " ".join(done.stderr.split())
    assert f"the record contains no commit of the harness, as git failed: {DUBIOUS}" in text
