"""The hostile inputs, written once a session."""

import pytest

from tests.hostile import corpus


@pytest.fixture(scope="session")
def hostile_folder(tmp_path_factory):
    """Return a folder with each input below `lf`, and each text below `crlf` and `minified`."""
    root = tmp_path_factory.mktemp("hostile").resolve()
    corpus.write(root)
    return root
