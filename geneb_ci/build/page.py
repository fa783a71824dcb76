"""The page itself: files that ship with this version, put beside the data of a board."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from geneb_ci.build.files import write_files
from geneb_ci.build.page_source import MAIN_SCRIPT, SCRIPT, SOURCE, STYLE, assembled
from geneb_ci.shipped import shipped

FIXED = ("index.html", "vendor/d3.min.js", "vendor/d3.LICENSE.txt", "vendor/README.md")
NAMES = tuple(sorted((*FIXED, SCRIPT, STYLE)))
"""What every page has, by path below its folder."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types geneb"
)
"""What the page may load, also in its own head: its files, and nothing that is not a file."""


def page_files() -> dict[str, bytes]:
    """Give the files of the page that are the same on every board, by path below its folder.

    Raises BrokenInstallation when one is missing.
    """
    files = {name: shipped("page", name).read_bytes() for name in FIXED}
    folder = shipped("page", MAIN_SCRIPT).parent
    for path in folder.rglob("*.*"):
        files[SOURCE + path.relative_to(folder).as_posix()] = path.read_bytes()
    return assembled(files)


def write_page(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files of the page, some of them below folders of their own.

    Raises what `write_files` raises.
    """
    parents = sorted({PurePosixPath(name).parent for name in files})
    for parent in parents:
        inside = {
            PurePosixPath(name).name: content
            for name, content in files.items()
            if PurePosixPath(name).parent == parent
        }
        write_files(folder / parent, inside)
