"""Builds leaderboard/vendor/ from d3's published modules: `python -m tools.vendor_d3 [--check]`.

The page uses a few functions of d3. Its modules are published minified, one file each, and each
adds to the global `d3`. The vendored script is these files joined, byte for byte as published, so
each can be compared with its digest offline. With --check nothing is written, and the exit code is
1 if a file differs. Needs npm.
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / "leaderboard/vendor"
SCRIPT, LICENSE, NOTE = "d3.min.js", "d3.LICENSE.txt", "README.md"


class Module(NamedTuple):
    """One npm package of d3."""

    name: str
    version: str
    sha256: str
    """Digest of dist/<name>.min.js."""


# In the order in which they run, each after those it uses. d3-scale could also use d3-time and
# d3-time-format (scales of time), d3-interpolate d3-color (colours); the page needs neither.
MODULES = (
    Module("d3-array", "3.2.5", "468f7b9ed38d6322083da4d5ae9fa57d47784f964f16dcff96e413d16cc8f9d9"),
    Module(
        "d3-interpolate",
        "3.0.2",
        "09b66887d084b49bf14c93867522e366ce846bee53b9f632c1c3a5e2b00f891a",
    ),
    Module(
        "d3-format", "3.1.3", "1322666da5c4c006a4ea248d7f03afc861fbfb4b1692ee695e4192b76328dceb"
    ),
    Module("d3-scale", "4.0.3", "d76988731b337e1fdd130912f4e8363b3d7895d83f0b7685c86d87ece50712e9"),
    Module("d3-path", "3.1.1", "36dda9df886369e3343fc53e4ec9e9d74250f8edaace324240f26ca15654c55e"),
    Module("d3-shape", "3.2.1", "aff7509747a1df82e41e16fd70868bf029de6032f7d5ab211ad415599b2b15df"),
    Module(
        "d3-selection", "3.0.1", "1dcd563b613b841dbe5a536df5289b0ac64c233a21bc1e954651cbe2a4809877"
    ),
    Module("d3-axis", "3.0.1", "3e2b821c13b93ccdb8f14e52494682ab94794cd2e29e3fc3fc56fac03b3478cd"),
)


class Published(NamedTuple):
    """The files that are taken from a package."""

    script: bytes
    license: bytes


def published(module: Module, folder: Path) -> Published:
    """Fetch a package with npm, which verifies it against the registry's digest.

    Raises ValueError if the script does not have the digest that is pinned here.
    """
    name = f"{module.name}@{module.version}"
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder), name]
    subprocess.run(command, check=True, capture_output=True)
    with tarfile.open(folder / f"{module.name}-{module.version}.tgz") as archive:
        script, text = (
            _member(archive, f"package/{path}")
            for path in (f"dist/{module.name}.min.js", "LICENSE")
        )
    digest = hashlib.sha256(script).hexdigest()
    if digest != module.sha256:
        raise ValueError(f"{name}: sha256 is {digest}, expected {module.sha256 or 'none yet'}")
    return Published(script, text)


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    stream = archive.extractfile(name)
    if stream is None:
        raise ValueError(f"{name} is not a file of the package")
    return stream.read()


ABOUT = """\
# What the page ships of others

`d3.min.js` is the modules of [d3](https://d3js.org) that the page uses: of each npm package
the file `dist/<name>.min.js`, one after the other. Licence: ISC, `d3.LICENSE.txt`. Its sha256 is
`{digest}`.

| module | version | sha256 |
|---|---|---|
{rows}

d3 draws the charts as SVG, so that colours come from the stylesheet, text stays text, and print is
sharp. It runs under `script-src 'self'` without `eval`. The page loads it when the first chart is
drawn. To replace a module: change its version and digest in `tools/vendor_d3.py`, run
`make vendor`, which needs npm, and then `pytest tests/page`.
"""


def note(script: bytes) -> str:
    """Return the text of README.md in the folder."""
    rows = "\n".join(
        f"| {module.name} | {module.version} | `{module.sha256}` |" for module in MODULES
    )
    return ABOUT.format(digest=hashlib.sha256(script).hexdigest(), rows=rows)


def licenses(packages: list[Published]) -> bytes:
    """Return each distinct licence under the names of its modules."""
    texts = dict.fromkeys(package.license.strip() for package in packages)
    parts = []
    for text in texts:
        names = [
            m.name
            for m, package in zip(MODULES, packages, strict=True)
            if package.license.strip() == text
        ]
        parts.append(f"{', '.join(names)}:\n\n".encode() + text)
    return b"\n\n\n".join(parts) + b"\n"


def main() -> int:
    """Write the folder, or with --check name the files that differ; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="vendor-") as name:
        packages = [published(module, Path(name)) for module in MODULES]
    script = b"".join(package.script for package in packages)
    files = {SCRIPT: script, LICENSE: licenses(packages), NOTE: note(script).encode()}
    differ = [name for name, raw in files.items() if (FOLDER / name).read_bytes() != raw]
    for path in differ:
        print(f"{'differs' if '--check' in sys.argv else 'wrote'}: leaderboard/vendor/{path}")
        if "--check" not in sys.argv:
            (FOLDER / path).write_bytes(files[path])
    return int(bool(differ) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
