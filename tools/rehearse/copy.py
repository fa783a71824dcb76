"""Makes a copy of the repository that may be altered."""

import shutil
from pathlib import Path

from tests.house.tracked import tracked
from tests.paths import ROOT


def copied(folder: Path) -> Path:
    """Copy every tracked file into a folder, and return the folder."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder
