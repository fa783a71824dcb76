"""Files that ship with the package: next to it in a checkout, inside it in a wheel."""

from pathlib import Path

from geneb_ci.common.errors import BrokenInstallation

_PACKAGE = Path(__file__).resolve().parents[1]
_PLACES = {
    "schemas": (_PACKAGE / "_shipped" / "schemas", _PACKAGE.parent / "schemas"),
    "page": (_PACKAGE / "_shipped" / "page", _PACKAGE.parent / "leaderboard"),
    "policy": (_PACKAGE / "_shipped" / "policy", _PACKAGE.parent / "leaderboard" / "policy"),
}


def shipped(folder: str, name: str) -> Path:
    """Return the path of a shipped file; `folder` is "schemas", "page" or "policy".

    Raises BrokenInstallation if it does not exist.
    """
    for place in _PLACES[folder]:
        if (place / name).is_file():
            return place / name
    raise BrokenInstallation(
        f"the shipped file {folder}/{name} is missing",
        "reinstall geneb-ci: pip install --force-reinstall geneb-ci",
    )
