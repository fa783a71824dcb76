"""A copy of the repository, to alter."""

import shutil
from pathlib import Path

from tests.house.tracked import tracked
from tests.paths import ROOT


def copied(folder: Path) -> Path:
    """Copy every file that belongs to the repository, and return the place."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder
