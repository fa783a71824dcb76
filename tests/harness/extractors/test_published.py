"""The options that describe published models, as words of a command line, on their lookalikes."""

import json
import tomllib

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from reference_harness.extractors.huggingface import HuggingFaceExtractor
from reference_harness.keywords import texts, values
from tests.paths import ROOT

REMOTE = "trust_remote_code=true"
MASKED = "auto_class=AutoModelForMaskedLM"
CAUSAL = "auto_class=AutoModelForCausalLM"
# Lengths are those of the lookalikes: a published one is beyond their positions.
PUBLISHED = {
    "METAGENE": ["pooling=mean", "dtype=float32", "max_length=36"],
    "GenomeOcean": ["padding=left", "max_length=36", "dtype=bfloat16"],
    "OmniNA": ["padding=left", "max_length=36"],
    "GPT2-Gene": ["special_tokens=false", "max_length=36"],
    "GROVER": ["max_length=36"],
    "NT absolute": [MASKED, "max_length=36"],
    "NT-v2 rotary": [MASKED, "max_length=36", REMOTE],
    "SpliceBERT": [
        "letters=spaced", "truncation=windows", "max_length=36", "stride=17", "last_window=full",
        "window_weights=equal",
    ],
    "BioFM": [
        "tokenizer=characters", "vocabulary=D,N,A,T,G,C,<cls>,<sep>,<unk>,<pad>", "begin=<cls>",
        "end=<sep>", "unknown=<unk>", "padding=left", "pooling=penultimate", "max_length=36",
        "dtype=bfloat16",
    ],
    "GENERator": [CAUSAL, "prefix={bos_token}", "multiple_of=6", "max_length=36", REMOTE],
    "Omni-DNA": [CAUSAL, "max_length=36", REMOTE],
    "HyenaDNA": ["special_tokens=false", "max_length=36", REMOTE],
    "Caduceus": ["special_tokens=false", "max_length=none", REMOTE],
    "DNABERT": ["output=item:0", "pooling=cls", "max_length=36", REMOTE],
    "GENA": ["submodule=bert", "max_length=36", REMOTE],
    "MutBERT": ["input=one_hot_tokens", "max_length=36", REMOTE],
    "LucaOne": [
        'config_arguments={"task_level": "token_level", "task_type": "embedding"}',
        'tokenizer_arguments={"seq_type": "gene"}', 'model_arguments={"scale": 2.0}',
        "max_length=36", REMOTE,
    ],
}  # fmt: skip
"""Family to options; LucaOne's `scale` is the lookalike's own."""


@pytest.mark.parametrize("family", PUBLISHED)
def test_the_options_of_a_published_model_describe_its_lookalike(written, family):
    words = values(texts(PUBLISHED[family], "--option"))
    extractor = HuggingFaceExtractor(str(written(family)[0]), **words)
    found = extractor.extract_embeddings(["ACGTACGTTGCA", "GATTACAGCATG" * 2])
    assert found.shape[0] == 2
    assert np.isfinite(found).all()


def test_splicebert_is_read_from_its_one_file_by_the_options_of_its_entry(tmp_path):
    """Rows are those of the published windows of 1,024 letters, each half over the one before."""
    file = ROOT / "leaderboard/policy/models/splicebert-1024nt.toml"
    options = values(tomllib.loads(file.read_text(encoding="utf-8"))["run"]["options"])
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
    found = made.extract_embeddings(sequences)

    ids = dict(zip("NACGT", range(5, 10), strict=True)) | {"U": 9, "R": 5}
    for sequence, row in zip(sequences, found, strict=True):
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
