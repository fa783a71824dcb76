"""The tiny models, built once a test process."""

import pytest

from tests.harness.extractors import models


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Return a function from the kind of a model to the folder it is saved in."""
    root = tmp_path_factory.mktemp("models")
    return lambda kind: root / kind if (root / kind).exists() else models.save(kind, root / kind)
