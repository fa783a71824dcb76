"""The options by which the entries describe published models, on their lookalikes."""

import json
import tomllib
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from reference_harness.extractors.huggingface import HuggingFaceExtractor
from reference_harness.loading.constructor_arguments import converted_options
from tests.harness.extractors.families import FAMILIES
from tests.paths import ROOT, SUBMISSIONS

LOOKALIKE = {
    "BioFM": ["BioFM-265M"],
    "Caduceus": [
        "PlantCaduceus_l32", "caduceus-ph_seqlen-1k_d_model-256_n_layer-4_lr-8e-3",
        "caduceus-ps_seqlen-131k_d_model-256_n_layer-16",
    ],
    "DNA-GPT 0.1B": ["dna_gpt0.1b_h"],
    "DNA-GPT 3B": ["dna_gpt3b_m"],
    "DNABERT": ["DNABERT-S", "dnabert2-no-flashattention"],
    "DeepGene file": ["deepgene"],
    "Enformer": ["enformer-official-rough"],
    "Evo": ["evo-1-131k-base"],
    "GENA": ["gena-lm-bert-base", "gena-lm-bert-base-t2t-multi", "gena-lm-bert-large-t2t"],
    "GENERator": ["GENERator-eukaryote-1.2b-base", "GENERator-eukaryote-3b-base"],
    "GPT2-Gene": ["gpt2_gene_multi_v2_ft", "gpt2_gene_v1"],
    "GROVER": ["GROVER"],
    "GenomeOcean": ["GenomeOcean-4B", "GenomeOcean-500M"],
    "Genomics-FM": ["genomics-fm"],
    "HyenaDNA": ["hyenadna-large-1m-seqlen-hf", "hyenadna-medium-160k-seqlen-hf"],
    "JanusDNA w": ["JanusDNA_72_w"],
    "JanusDNA wo": ["JanusDNA_72_wo"],
    "LucaOne": ["LucaOne-default-step36M"],
    "METAGENE": ["METAGENE-1"],
    "MutBERT": ["MutBERT"],
    "NT absolute": [
        "agro-nucleotide-transformer-1b", "nucleotide-transformer-2.5b-multi-species",
    ],
    "NT-v2 rotary": [
        "nucleotide-transformer-v2-100m-multi-species",
        "nucleotide-transformer-v2-250m-multi-species",
        "nucleotide-transformer-v2-50m-3mer-multi-species",
        "nucleotide-transformer-v2-50m-multi-species",
    ],
    "Omni-DNA": ["Omni-DNA-1B", "Omni-DNA-300M"],
    "OmniNA": ["OmniNA-220m"],
    "SPACE file": ["space"],
    "eccDNAMamba": ["eccdnamamba_weights"],
}  # fmt: skip
"""Family to the models that it stands for; SpliceBERT has a test of its own below."""
FILE = ("config_arguments", "weights")
JANUS = (*FILE, "pad_to", "vocabulary")
GPT = (*FILE, "k", "vocabulary")
OWN = {
    "DNA-GPT 0.1B": GPT, "DNA-GPT 3B": GPT, "DNABERT": FILE, "DeepGene file": (*FILE, "prefix"),
    "Enformer": (*FILE, "fixed_letters"), "Evo": ("keep_float32", "tokenizer", "vocabulary"),
    "Genomics-FM": FILE, "JanusDNA w": JANUS, "JanusDNA wo": JANUS, "LucaOne": ("model_arguments",),
    "SPACE file": (*FILE, "fixed_letters"), "eccDNAMamba": (*FILE, "auto_class"),
}  # fmt: skip
"""What a lookalike has of its own, or lacks: sizes, names of files, a tokenizer, weights of two
types, for which `test_tensor_files.py` has tests."""
PACKAGE = {"auto_class": "AutoModel", "trust_remote_code": True}
"""In place of Enformer's class of a package, which `benchmarks/bench_environments.py` installs."""
POSITIONS = 36
"""The published number of tokens is beyond those of a lookalike."""


def entry_options(model_id: str) -> dict[str, Any]:
    file = ROOT / f"leaderboard/policy/models/{model_id}.toml"
    return converted_options(tomllib.loads(file.read_text(encoding="utf-8"))["run"]["options"])


@pytest.mark.parametrize("family", LOOKALIKE)
def test_the_options_of_an_entry_run_on_its_lookalike(written, family):
    tried: list[dict[str, Any]] = []
    for model_id in LOOKALIKE[family]:
        options = entry_options(model_id)
        own = OWN.get(family, ())
        options = {name: value for name, value in options.items() if name not in own}
        options |= {k: v for k, v in FAMILIES[family].options.items() if k in own}
        options |= PACKAGE if family == "Enformer" else {}
        if options.get("max_length") is not None:
            options["max_length"] = POSITIONS
        if options in tried:
            continue
        tried.append(options)
        extractor = HuggingFaceExtractor(str(written(family)[0]), **options)
        embeddings = extractor.extract_embeddings(["ACGTACGTTGCA", "GATTACAGCATG" * 2])
        assert embeddings.shape[0] == 2
        assert np.isfinite(embeddings).all()
        assert (embeddings[0] != embeddings[1]).any()


def test_every_public_model_has_a_lookalike():
    named = [model_id for models in LOOKALIKE.values() for model_id in models]
    rows = [path.stem for path in SUBMISSIONS.glob("*.json")]
    assert sorted([*named, "splicebert-1024nt"]) == sorted(rows)


def test_splicebert_is_read_from_its_one_file_by_the_options_of_its_entry(tmp_path):
    """Rows are those of the published windows of 1,024 letters, each half over the one before."""
    file = ROOT / "leaderboard/policy/models/splicebert-1024nt.toml"
    options = converted_options(tomllib.loads(file.read_text(encoding="utf-8"))["run"]["options"])
    sizes = json.loads(options["config_arguments"])
    sizes |= {"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 64}
    config = BertConfig(**sizes, initializer_range=0.3)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = BertForMaskedLM(config)
    model.train(mode=False)
    tensors = {**model.state_dict(), "bert.embeddings.position_ids": torch.arange(1026)[None]}
    torch.save(tensors, tmp_path / options["weights"])
    sequences = ["acgun" * 20, "GATTACR" * 200, "ACGT" * 256]
    made = HuggingFaceExtractor(str(tmp_path), **(options | {"config_arguments": sizes}))
    embeddings = made.extract_embeddings(sequences)

    ids = dict(zip("NACGT", range(5, 10), strict=True)) | {"U": 9, "R": 5}
    for sequence, row in zip(sequences, embeddings, strict=True):
        starts = list(range(0, max(1, len(sequence) - 1023), 512))
        if starts[-1] + 1024 < len(sequence):
            starts.append(len(sequence) - 1024)
        rows = []
        for start in starts:
            letters = sequence.upper()[start : start + 1024]
            with torch.inference_mode():
                states = model.bert(torch.tensor([[2, *map(ids.get, letters), 3]]))
            rows.append(states.last_hidden_state[0].mean(0).double().numpy())
        assert np.abs(np.mean(rows, axis=0) - row).max() < 1e-5
