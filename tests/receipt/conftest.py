"""Receipts of GENEB-mini, of small tasks that share sequences, and of a real task."""

import shutil
from pathlib import Path

import pytest

from tests.harness.conftest import real_tasks
from tests.receipt.written import Written, defined, run_receipt, small_tasks

__all__ = ["real_tasks"]  # a fixture: pytest finds it by its name here
REAL = "leannmlindsey_GUE_prom_core_tata"
"""Repeats some sequences, within and across its splits."""


@pytest.fixture(scope="session")
def of_mini(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Two tasks of the practice benchmark, never altered."""
    return run_receipt(tmp_path_factory.mktemp("mini"), "--tasks", "mini_tf,mini_splice")


@pytest.fixture(scope="session")
def of_small(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Four small tasks that share sequences, never altered."""
    folder = tmp_path_factory.mktemp("small")
    return run_receipt(folder, *small_tasks(folder / "data"))


@pytest.fixture(scope="session")
def of_real(real_tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A real task, never altered."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "data").mkdir()
    flat, remote = real_tasks / f"{REAL}.csv.gz", real_tasks / "tasks" / REAL
    if flat.is_file():
        shutil.copyfile(flat, folder / "data" / flat.name)
    else:  # in the layout of the Hub
        shutil.copytree(remote, folder / "data" / "tasks" / REAL)
    return run_receipt(folder, *defined(folder / "data"))
