"""The hostile inputs by name, and the folder that the tests check them in.

Inputs are numbered by what is wrong with them. Those that are large, links, pipes or folders are
made by `test_made.py`.
"""

import hashlib
import json
from pathlib import Path

from tests.hostile import cases_bytes, cases_text
from tests.hostile.cases_values import ACCEPTED, REJECTED
from tests.paths import SUBMISSIONS
from tests.small import BENCHMARK_FILE, small

REJECT = {
    f"reject/{case.name}.json": case for case in (*cases_bytes.CASES, *cases_text.CASES, *REJECTED)
}
ACCEPT = {f"accept/{case.name}.json": case for case in ACCEPTED}
BY_FILE = REJECT | ACCEPT
TEXTS = sorted(name for name, case in BY_FILE.items() if not isinstance(case.content, bytes))
LAYOUTS = {"lf": "\n", "crlf": "\r\n", "minified": ""}
"""Ways to lay out one text: the newline that is written, or none."""
CONFIG = '[tool.geneb-ci]\nbenchmark = "../benchmark-small.json"\n'
"""The inputs are checked against a benchmark of three tasks, so that each has about 1 kB."""


def collision(name: str) -> bytes:
    return (json.dumps(small(name), indent=1) + "\n").encode()


def impossible_accuracy_paths() -> bytes:
    """Change the last digit of one accuracy of a real row: no number of test sequences has it."""
    text = (SUBMISSIONS / "splicebert-1024nt.json").read_text(encoding="utf-8")
    head, value, tail = text.partition('"Acc":0.8684034736138944')
    return f"{head}{value[:-4]}{9 - int(value[-4])}{value[-3:]}{tail}".encode()


def inputs() -> dict[str, bytes]:
    """Return the bytes of each input by name."""
    others = {
        # Ids that differ in more than letter case, so that every file system can hold both files.
        "collision/dnabert-2.json": collision("dnabert-2"),
        "collision/DNABERT_2.json": collision("DNABERT_2"),
        "alone/off-grid-accuracy.json": impossible_accuracy_paths(),
    }
    return {name: case.data() for name, case in BY_FILE.items()} | others


def digests() -> str:
    """Return a line for each input: its SHA-256 and its name, as `sha256sum` prints them."""
    return "".join(
        f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(inputs().items())
    )


def write(root: Path) -> None:
    """Write the inputs below `lf`, the texts also below `crlf` and `minified`."""
    (root / "benchmark-small.json").write_bytes(BENCHMARK_FILE.read_bytes())
    files = {f"lf/{name}": data for name, data in inputs().items()}
    for layout in ("crlf", "minified"):
        files |= {f"{layout}/{name}": BY_FILE[name].data(LAYOUTS[layout]) for name in TEXTS}
    files |= {f"{layout}/pyproject.toml": CONFIG.encode() for layout in LAYOUTS}
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
