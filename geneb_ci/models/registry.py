"""Entries of the model registry by id, each read when it is asked for."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from geneb_ci.common.config import Layout, naming, policy_bytes
from geneb_ci.common.regular import lies_there
from geneb_ci.common.shipped import shipped
from geneb_ci.models.entry import ReadEntry, parse_entry
from geneb_ci.submission.models import MODEL_ID_MAX, MODEL_ID_PATTERN

FOLDER = "models"
"""Folder of the entries in the policy folder."""
ENTRY_BYTES_MAX = 200_000
"""The largest entry has 4 kB; a model of a thousand files would have 100 kB."""


class ModelRegistry(Mapping[str, Mapping[str, Any]]):
    """Model id to the facts of its entry (`ModelEntry.attributes`).

    An entry is read once, when it is first asked for: a check of one file reads one.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        policy = layout.policy or shipped("policy", "official.json").parent
        self.folder = policy / FOLDER
        self._read: dict[str, ReadEntry | None] = {}

    def entry(self, model_id: str) -> ReadEntry | None:
        """Return the entry of a model, or None where the registry has none.

        Raises BadConfiguration where its file cannot be used.
        """
        if model_id not in self._read:
            self._read[model_id] = self._parsed(model_id)
        return self._read[model_id]

    def _parsed(self, model_id: str) -> ReadEntry | None:
        if len(model_id) > MODEL_ID_MAX or not re.fullmatch(MODEL_ID_PATTERN, model_id):
            return None
        path = self.path(model_id)
        if not lies_there(path):
            return None
        with naming(self._layout, "policy"):
            return parse_entry(policy_bytes(path, ENTRY_BYTES_MAX), str(path))

    def path(self, model_id: str) -> Path:
        """Return the place of an entry, whether it exists or not."""
        return self.folder / f"{model_id}.toml"

    def __getitem__(self, model_id: str) -> Mapping[str, Any]:
        found = self.entry(model_id)
        if found is None:
            raise KeyError(model_id)
        return found.entry.attributes

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(path.stem for path in self.folder.glob("*.toml")))

    def __len__(self) -> int:
        return sum(1 for _ in self)
