"""The tiny models, built once a test process."""

import subprocess
from types import SimpleNamespace

import pytest
import torch
from transformers import dynamic_module_utils

from reference_harness.conformance import runner
from tests import forked
from tests.harness.extractors import models
from tests.harness.extractors.families import FAMILIES


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Hold torch here, and the processes of a check, to one thread: tiny models lose by more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Return a function from the kind of a model to the folder it is saved in."""
    root = tmp_path_factory.mktemp("models")
    return lambda kind: root / kind if (root / kind).exists() else models.save(kind, root / kind)


@pytest.fixture
def copy(saved, tmp_path):
    """A BERT folder whose weights or configuration a test may change."""
    for file in saved("bert").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


@pytest.fixture(autouse=True)
def _own_code_folder(tmp_path, monkeypatch):
    """Keep the copies that transformers makes of a folder's code out of the user's cache."""
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Return a function from a family to its folder and the model in memory."""
    root, done = tmp_path_factory.mktemp("lookalikes"), {}

    def write(family):
        if family not in done:
            folder = root / family.replace(" ", "-").replace(".", "-")
            folder.mkdir()
            done[family] = (folder, FAMILIES[family].save(folder))
        return done[family]

    return write


@pytest.fixture(autouse=True)
def _forked_checks(monkeypatch):
    """Fork the processes in which properties are tried: each would load NumPy anew.

    Those of a command, in tests/cli, are new interpreters.
    """
    ours = SimpleNamespace(**vars(subprocess) | {"Popen": forked.InPlaceOfProcess})
    monkeypatch.setattr(runner, "subprocess", ours)
