"""A model that torch compiles: rows as before but for rounding, or a refusal that says why."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from reference_harness import worker
from reference_harness.cli import run
from reference_harness.embedding.embedder import EmbedderSpec
from reference_harness.embedding.extractor_calls import Batching
from reference_harness.errors import EmbeddingError, OptionError
from reference_harness.extractors import compiled
from reference_harness.extractors.base import ExtractorError
from reference_harness.extractors.huggingface import HuggingFaceExtractor
from reference_harness.loading.constructor_arguments import keywords
from reference_harness.loading.extractor_facts import ExtractorFacts
from reference_harness.run import settings
from reference_harness.worker_options import WorkerOptions
from tests.harness.extractors.models import save

SEQUENCES = ["ACGT" * n for n in (3, 5, 8, 13, 20, 21, 30, 7)] + ["A", "TTTTTTTTTTTT"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    save("bert", folder)
    return str(folder)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch):
    """Set what torch compiles with: "eager" runs the graph that it captured, and is fast."""
    torch._dynamo.reset()
    yield lambda tensor: monkeypatch.setattr(compiled, "BACKEND", tensor)
    torch._dynamo.reset()


def spec(model: str, **options: str) -> EmbedderSpec:
    batching = Batching("budget", 64)
    return EmbedderSpec(
        extractor="huggingface",
        name_model=model,
        device="cpu",
        keywords=keywords("huggingface", options, batching),
        batching=batching,
        measures_budget=False,
    )


@pytest.mark.nightly
def test_the_graph_that_torch_captures_gives_the_same_bits(model, backend):
    """One graph for every length and size of a batch. `make bench-atlas` measures its kernels."""
    backend("eager")
    plain, other = spec(model).load(), spec(model, compile="true").load()
    assert (plain.facts.numerics["compiled"], other.facts.numerics["compiled"]) == (False, True)
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    before, after = (
        subject.extractor.extractor.extract_embeddings(SEQUENCES) for subject in (plain, other)
    )
    assert np.array_equal(before, after)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == graphs


def refuses(_graph, _inputs):
    raise RuntimeError("no C++ compiler was found\nsecond line")


def doubles(graph, _inputs):
    return lambda *arguments: [tensor * 2 for tensor in graph(*arguments)]


class Half(torch.nn.Module):
    def forward(self, x):
        return x / 2


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (refuses, r"cannot be compiled: .*no C\+\+ compiler was found"),
        (doubles, r" compiling changes embeddings by 1.0e\+00 of their length"),
    ],
)
def test_what_torch_cannot_compile_is_refused(backend, how, says):
    backend(how)
    half = Half()
    with pytest.raises(ExtractorError, match=f"^compile=true: Half.*{says}.*: leave compile out$"):
        compiled.compile_in_place(half, lambda: [half(torch.ones(1, 2)).numpy()], 1e-3)


def test_a_model_that_cannot_be_compiled_ends_the_run_before_it_begins(model, backend):
    backend("none of this name")
    with pytest.raises(EmbeddingError, match=r"^compile=true: BertModel cannot be compiled: "):
        spec(model, compile="true").load()


def test_a_model_of_which_nothing_is_compiled_is_refused(backend):
    """As one that asks torch not to compile it: a record must not say that it was."""
    backend("eager")

    class Own(torch.nn.Module):
        @torch.compiler.disable
        def forward(self, x):
            return x

    own = Own()
    with pytest.raises(ExtractorError, match=r"^compile=true: Own: torch.compile compiled no part"):
        compiled.compile_in_place(own, lambda: [own(torch.ones(1, 2)).numpy()], 1e-3)


@pytest.mark.parametrize("other", ["batching=exact", "output=module:encoder"])
def test_what_compiling_excludes(model, other):
    name, _, value = other.partition("=")
    with pytest.raises(ExtractorError, match=f"^compile=true and {other} exclude each other"):
        HuggingFaceExtractor(model, compile=True, **{name: value})


def test_rows_of_a_receipt_are_not_compiled():
    options = {"receipt": Path("r"), "extractor": "huggingface"}
    with pytest.raises(OptionError, match=r"^--receipt and --option compile=true exclude"):
        run._embedder_spec(options, {"compile": "true"})


def test_an_audit_runs_the_model_as_it_is(model, capfd):
    worker_options = WorkerOptions(
        schema_version="1.0", extractor="builtin:huggingface", name_model=model, device="cpu",
        options={"compile": "true"}, batching="file", processes=64,
    )  # fmt: skip
    rows = worker.embed(worker_options, SEQUENCES)
    assert worker.NOT_COMPILED_NOTICE.decode() in capfd.readouterr().err
    plain = HuggingFaceExtractor(model, batching="file").extract_embeddings(SEQUENCES)
    assert np.array_equal(rows, plain)


def test_embeddings_without_tf32_are_not_those_with_it():
    """A receipt says that none was used; a run without one may use it by torch's defaults."""
    empty: dict[str, Any] = dict.fromkeys(ExtractorFacts.__dataclass_fields__)
    facts = ExtractorFacts(**empty | {"tf32": True})

    def key(device: str, facts: ExtractorFacts) -> dict[str, object]:
        graph_module: Any = SimpleNamespace(
            facts=facts, batching=Batching(), name_model="", options={}, device=device
        )
        return settings.key_parts(graph_module)

    without = replace(facts, tf32=False)
    assert key("cuda:0", without) == key("cuda:0", facts) | {"tf32": False}
    assert key("cpu", without) == key("cpu", facts)
