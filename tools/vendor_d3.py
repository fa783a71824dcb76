"""Builds leaderboard/vendor/ from d3's published modules: `python -m tools.vendor_d3`.

The page uses a few functions of d3. Its modules are published minified, one file each, and each
adds to the global `d3`. The vendored script is these files joined, byte for byte as published, so
each can be compared with its digest offline. Needs npm.
"""

import hashlib
from pathlib import Path
from typing import NamedTuple

from tools.npm import fetched

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


def licenses(licence_texts: list[bytes]) -> bytes:
    """Return each distinct licence under the names of its modules."""
    sections = []
    for licence in dict.fromkeys(licence_texts):
        modules = [m.name for m, t in zip(MODULES, licence_texts, strict=True) if t == licence]
        sections.append(f"{', '.join(modules)}:\n\n".encode() + licence)
    return b"\n\n\n".join(sections) + b"\n"


def main() -> None:
    """Write the folder."""
    scripts, licence_texts = [], []
    for module, version, sha256 in MODULES:
        paths = {f"dist/{module}.min.js": sha256, "LICENSE": None}
        script, licence = fetched(module, version, paths)
        scripts.append(script)
        licence_texts.append(licence.strip())
    script = b"".join(scripts)
    (FOLDER / SCRIPT).write_bytes(script)
    (FOLDER / LICENSE).write_bytes(licenses(licence_texts))
    (FOLDER / NOTE).write_text(note(script), encoding="utf-8")


if __name__ == "__main__":
    main()
