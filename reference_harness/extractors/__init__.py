"""Extractors turn DNA sequences into embeddings: upstream's interface, and the built-ins.

`BUILTINS` has the names of their modules and does not import them, so that help and lists need
neither NumPy nor torch.
"""

from typing import NamedTuple

__all__ = ["BUILTINS", "DEFAULT", "Builtin"]


class Builtin(NamedTuple):
    """An extractor that comes with the harness."""

    module_name: str
    """Name of its module in this folder."""
    class_name: str
    """Name of its class in that module."""
    summary: str
    """Description in lists, one line."""
    helpers: tuple[str, ...] = ()
    """Other files of the harness that the module imports; a record's digest covers them too."""
    plans_batches: bool = False
    """Whether its constructor takes `batching` and `token_budget`."""


BUILTINS = {
    "kmer": Builtin("kmer", "KmerExtractor", "frequencies of k-mers, without weights"),
    "random_init": Builtin(
        "random_init", "RandomInitExtractor", "a transformer of two layers with random weights"
    ),
    "huggingface": Builtin(
        "huggingface",
        "HuggingFaceExtractor",
        "hidden states of a transformers model, pooled",
        helpers=(
            "checkpoint.py",
            "checkpoint_keys.py",
            "compiled.py",
            "device_transfer.py",
            "encoder.py",
            "forward_arguments.py",
            "gated_bert.py",
            "hidden_states.py",
            "janus.py",
            "letter_counts.py",
            "mamba.py",
            "option_rules.py",
            "options.py",
            "origin.py",
            "parallel_encoding.py",
            "pooling.py",
            "preparation.py",
            "space.py",
            "state_dict.py",
            "tensors.py",
            "tokenizer.py",
            "version_advice.py",
            "weight_files.py",
            "word_tokenizer.py",
            "../embedding/batching.py",
            "../embedding/memory.py",
        ),
        plans_batches=True,
    ),
}
"""The built-in extractors by their names on the command line."""
DEFAULT = "kmer"
"""The extractor that runs if none is named."""
