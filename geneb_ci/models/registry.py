"""Entries of the model registry by model id, which are read on demand."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geneb_ci.common.config import Layout, policy_bytes, setting_in_errors
from geneb_ci.common.shipped import known_files, shipped
from reference_harness.formats.files import path_exists
from reference_harness.formats.submission_terms import MODEL_ID_MAX, MODEL_ID_PATTERN

if TYPE_CHECKING:
    from geneb_ci.models.entry import ReadEntry

ENTRIES_FOLDER = "models"
"""Folder of the entries in the policy folder."""
_COPIED_WEIGHTS_KEYS = {"kind", "location", "revision", "files"}
"""Keys of `[weights]` that a submission copies from its model's entry."""
ENTRY_BYTES_MAX = 200_000
"""Maximum bytes of an entry: the largest has 4 kB, and a model of 1,000 files would need 100 kB."""
MEANING_BY_WORD = {
    "architecture": {
        "T-enc": "transformer encoder",
        "T-dec": "transformer decoder",
        "T-enc+Graph-Transformer": "transformer encoder with a graph transformer",
        "CNN-Transformer": "convolutions, then a transformer",
        "CNN-Transformer-MoE": "convolutions, then a transformer with mixture of experts",
        "Hybrid-Mamba-MoE": "Mamba and attention with mixture of experts",
        "Mamba": "state-space model",
        "Hyena": "long convolutions",
        "StripedHyena": "long convolutions and attention",
    },
    "tokenization": {
        "SN": "single nucleotides",
        "char": "single nucleotides",
        "BPE": "byte-pair encoding",
        "BPE+k-mer": "byte-pair encoding and k-mers",
        "k-mer": "words of k nucleotides",
        "BioToken": "tokens of its own",
        "mixed": "nucleotides and amino acids",
    },
}
"""Meaning of the words of the paper: by name of a fact, then by word."""


def word_with_meaning(fact: str, word: str | None) -> str | None:
    """Return what a word of the paper means, with the word in brackets.

    A word without an entry in MEANING_BY_WORD is returned unchanged, and so is None.
    """
    meaning = MEANING_BY_WORD[fact].get(word or "")
    return word if meaning is None else f"{meaning} ({word})"


class ModelRegistry(Mapping[str, Mapping[str, Any]]):
    """The facts of each entry (`ModelEntry.attributes`), by model id.

    An entry is read when it is first used, so that a check of one file reads only one entry.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        policy = layout.policy or shipped("policy", "official.json").parent
        self.folder = policy / ENTRIES_FOLDER
        self._prefix = f"{self.folder}{os.sep}"
        self._entries: dict[str, ReadEntry | None] = {}
        self._facts: dict[str, Mapping[str, Any] | None] = {}

    def entry(self, model_id: str) -> "ReadEntry | None":
        """Return the entry of a model; None if the registry has none.

        Raises BadConfiguration if its file is invalid.
        """
        if model_id not in self._entries:
            raw = self.raw(model_id)
            self._entries[model_id] = None if raw is None else self._parsed_entry(model_id, raw)
        return self._entries[model_id]

    def entry_member(self, model_id: str, submission_sha256: str) -> dict[str, Any]:
        """Return the member `registry_entry` of a submission of format 1.1; {} without an entry.

        Facts that the entry lacks are left out. Raises BadConfiguration as `entry` does.
        """
        read_entry = self.entry(model_id)
        if read_entry is None:
            return {}
        entry, run = read_entry.entry, read_entry.entry.run
        weights, published = entry.weights, entry.published
        members = {
            "sha256": read_entry.sha256,
            "submission_sha256": submission_sha256,
            "extractor": run and run.extractor,
            "options": run and run.options,
            "dtype": run and run.dtype,
            "dim": entry.embedding_dim,
            "environment": run and run.environment and run.environment.sha256,
            "weights": weights
            and weights.model_dump(include=_COPIED_WEIGHTS_KEYS, exclude_none=True),
            "published": published and published.model_dump(exclude_none=True),
        }
        return {key: value for key, value in members.items() if value is not None}

    def raw(self, model_id: str) -> bytes | None:
        """Return the bytes of an entry; None if the registry has none.

        Raises BadConfiguration if its file cannot be read.
        """
        if len(model_id) > MODEL_ID_MAX or not re.fullmatch(MODEL_ID_PATTERN, model_id):
            return None
        if not path_exists(
            f"{self._prefix}{model_id}.toml"
        ):  # a path for each of many rows is slow
            return None
        with setting_in_errors(self._layout, "policy"):
            return policy_bytes(self.path(model_id), ENTRY_BYTES_MAX)

    def _parsed_entry(self, model_id: str, raw: bytes) -> "ReadEntry":
        """Return the entry in the bytes of a file. Raises BadConfiguration."""
        from geneb_ci.models.entry import parse_entry  # most entries are shipped ones

        with setting_in_errors(self._layout, "policy"):
            return parse_entry(raw, str(self.path(model_id)))

    def _facts_of(self, model_id: str) -> Mapping[str, Any] | None:
        """Return the facts of an entry; those of a shipped entry are known without parsing it."""
        if model_id in self._entries:
            read_entry = self._entries[model_id]
            return None if read_entry is None else read_entry.entry.attributes
        raw = self.raw(model_id)
        if raw is None:
            return None
        facts = known_files().models.get(hashlib.sha256(raw).hexdigest())
        return self._parsed_entry(model_id, raw).entry.attributes if facts is None else facts

    def path(self, model_id: str) -> Path:
        """Return the path of an entry, whether it exists or not."""
        return self.folder / f"{model_id}.toml"

    def __getitem__(self, model_id: str) -> Mapping[str, Any]:
        if model_id not in self._facts:
            self._facts[model_id] = self._facts_of(model_id)
        facts = self._facts[model_id]
        if facts is None:
            raise KeyError(model_id)
        return facts

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(path.stem for path in self.folder.glob("*.toml")))

    def __len__(self) -> int:
        return sum(1 for _ in self)
