"""The code that a model's page shows runs as it stands, but for the place and the device."""

import ast

import numpy as np
import pytest

from geneb_ci.board.site.model import snippet_of
from geneb_ci.models.entry import ModelEntry
from tests.harness.extractors.lookalikes import LOOKALIKES

FAMILIES = ("GROVER", "SpliceBERT", "BioFM", "GENA", "HyenaDNA", "eccDNAMamba")


def text(value: object) -> str:
    """Return an option as an entry of the registry has it."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_snippet_loads_a_lookalike_and_embeds(written, family):
    folder, _ = written(family)
    options = {name: text(value) for name, value in LOOKALIKES[family].options.items()}
    known = ModelEntry.model_validate(
        {
            "schema_version": "1.0",
            "weights": {"kind": "huggingface", "location": "org/model", "revision": "1" * 40},
            "run": {"extractor": "builtin:huggingface", "options": options},
        }
    )
    made = snippet_of(known)
    assert made is not None
    code = made.code.replace("'org/model'", repr(str(folder))).replace('"cuda"', '"cpu"')
    code = code.replace(f"    revision={'1' * 40!r},\n", "")
    names: dict[str, object] = {}
    exec(compile(ast.parse(code), "snippet", "exec"), names)  # noqa: S102 (what the page shows)
    embeddings = names["embeddings"]
    assert isinstance(embeddings, np.ndarray)
    assert (embeddings.dtype, embeddings.ndim, len(embeddings)) == (np.dtype("float32"), 2, 1)
    assert np.isfinite(embeddings).all()
