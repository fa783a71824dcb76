"""The options that describe published models, as words of a command line, on their lookalikes."""

import numpy as np
import pytest

from reference_harness.extractors.huggingface import HuggingFaceExtractor
from reference_harness.keywords import texts, values

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
