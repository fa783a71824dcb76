"""Records terminal sessions as SVG, for the pages: commands with the output that they print.

Each recording runs its commands in a pseudo-terminal of 80 columns, so that colours and line breaks
are those of a reader's own terminal. The lines appear one after another. If a reader prefers
reduced motion, or a viewer cannot animate, all lines are shown from the beginning.
"""

import io
import json
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.audit import recorded as recorded_audit
from tests.publish.hub import Hub

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/pictures"
ROW = ROOT / "tests/public/submissions/GROVER.json"
CARD = ROOT / "submissions/cards/splicebert-1024nt.md"
PROGRAMS = {"geneb-ci": "geneb_ci", "geneb-harness": "reference_harness"}
HOME = "~"
HOME_LENGTH = 32
"""Length of the folder's path, which is always the same: a command wraps lines that contain it, and
only then is the path replaced by `~`."""
WIDTH = 80
"""Columns of the terminal, which is also the default width of a message."""
READ_BYTES = 65536
LINE_SECONDS, COMMAND_SECONDS = 0.06, 1.0
"""Pauses between two lines of output, and after a command."""
THEME = TerminalTheme(
    (22, 33, 31),
    (226, 232, 230),
    [
        *((22, 33, 31), (255, 138, 128), (129, 212, 138), (240, 200, 100)),
        *((140, 180, 255), (215, 160, 230), (110, 215, 220), (226, 232, 230)),
    ],
)
"""Background, foreground and the eight colours, each with a contrast of at least 7."""
FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix, .{unique_id}-title {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, \
monospace; font-size: {char_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""
"""The SVG template of rich, without the web fonts that it would load."""


class RecordedLine(NamedTuple):
    """A line of a recording."""

    text: Text
    wait: float
    """Seconds between the previous line and this one."""


class Session:
    """A terminal in a folder: commands typed into it, and their output."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.environment = environment
        self.lines: list[RecordedLine] = []

    def type(self, command: str) -> int:
        """Run a command, add it and its output to the recording, and return its exit code.

        The folder of the recording has another name each time, so it is shown as HOME.
        """
        words = shlex.split(command.replace("\\\n", ""))
        code, output = in_terminal(self.folder, words, self.environment)
        wait = COMMAND_SECONDS if self.lines else 0.0
        for number, line in enumerate(command.splitlines()):
            prompt = "" if number else "$ "
            self.lines.append(
                RecordedLine(Text.assemble((prompt, "dim"), line), 0.0 if number else wait)
            )
        output = output.replace(str(self.folder), HOME)
        for number, line in enumerate(output.rstrip().splitlines()):
            wait = LINE_SECONDS if number else COMMAND_SECONDS
            self.lines.append(RecordedLine(Text.from_ansi(line), wait))
        return code

    def svg(self, name: str, title: str) -> str:
        """Return the recording as one picture; the same lines always give the same bytes."""
        console = Console(record=True, width=WIDTH, file=io.StringIO())
        for line in self.lines:
            console.print(line.text, highlight=False)
        console.print()  # otherwise the picture cuts off descenders in the last line
        picture = console.export_svg(
            title=title, theme=THEME, code_format=FORMAT, font_aspect_ratio=0.602, unique_id=name
        )
        spaced = picture.replace("</text><text", "</text>\n<text")
        return spaced.replace("</style>", self._motion(name) + "</style>", 1)

    def _motion(self, name: str) -> str:
        """Return the CSS rules that make each line appear at its time."""
        rules, seconds = [], 0.0
        for number, line in enumerate(self.lines):
            seconds += line.wait
            rules.append(
                f'.{name}-matrix text[clip-path="url(#{name}-line-{number})"] '
                f"{{ animation: {name}-show .01s {seconds:.2f}s both }}\n"
            )
        return (
            f"@keyframes {name}-show {{ from {{ visibility: hidden }} }}\n"
            f"@media (prefers-reduced-motion: no-preference) {{\n{''.join(rules)}}}\n"
        )


def in_terminal(folder: Path, words: list[str], more: dict[str, str]) -> tuple[int, str]:
    """Run one of our programs in a terminal; return its exit code and its output.

    The error stream is a pipe, since progress bars in it would be recorded otherwise.
    """
    our_end, their_end = pty.openpty()
    ioctl(their_end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    inherited = {
        key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "COLUMNS"}
    }
    environment = {**inherited, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **more}
    with subprocess.Popen(
        [sys.executable, "-m", PROGRAMS[words[0]], *words[1:]],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=their_end,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(their_end)
        chunks = []
        try:
            while chunk := os.read(our_end, READ_BYTES):
                chunks.append(chunk)
        except OSError:  # on Linux EIO, once the last writer has closed its end
            pass
        finally:
            os.close(our_end)
        chunks.append(process.stderr.read() if process.stderr else b"")
    return process.returncode, b"".join(chunks).decode().replace("\r\n", "\n")


def check(folder: Path) -> Session:
    """Record `check` on a row with two mistakes, in a repository that has its card."""
    shutil.copytree(ROOT / "schemas", folder / "schemas")
    (folder / "submissions/cards").mkdir(parents=True)
    row = json.loads(ROW.read_text(encoding="utf-8")) | {"model_id": "my-model"}
    row["meta"] |= {"provenance": "self-reported", "display": "My Model 86M"}
    # Two digits of a score are swapped, and a task is missing.
    scores = row["results"]["full"]["leannmlindsey_GUE_mouse_0"]
    digits = str(scores["MCC"])
    scores["MCC"] = float(f"{digits[:3]}{digits[4]}{digits[3]}{digits[5:]}")
    del row["results"]["10shot"]["leannmlindsey_GUE_mouse_1"]
    file = folder / "submissions/my-model.json"
    file.write_text(f"{json.dumps(row, indent=2)}\n", encoding="utf-8")
    details = {"Display name": "My Model 86M", "Parameters": "87,101,793"}
    details |= {"Model id": "my-model", "Submitted by": "DNA Survey authors"}
    card = CARD.read_text(encoding="utf-8")
    for field, answer in details.items():
        card = re.sub(rf"(?m)(?<=\*\*{field}:\*\* ).*", answer, card)
    (folder / "submissions/cards/my-model.md").write_text(card, encoding="utf-8")
    session = Session(folder)
    session.type("geneb-ci check submissions/my-model.json")
    return session


def init(folder: Path) -> Session:
    """Record the plan that `init --dry-run` prints."""
    session = Session(folder)
    session.type("geneb-ci init board --repo org/board --maintainers @org/maintainers --dry-run")
    return session


def run(folder: Path) -> Session:
    """Record a run on two tasks of GENEB-mini."""
    session = Session(folder)
    session.type(
        "geneb-harness run --tasks mini_promoter,mini_splice --jobs 1 \\\n"
        "    --model-id 4-mers --output record.json --submission 4-mers.json"
    )
    return session


def new(folder: Path) -> Session:
    """Record `new` for a model on an imitated Hub; its weights are never read."""
    shutil.copytree(ROOT / "schemas", folder / "schemas")
    for folder_name in ("submissions/cards", "leaderboard/policy"):
        (folder / folder_name).mkdir(parents=True)
    hub = Hub()
    hub.create("models/ada/tiny-dna", TINY)
    session = Session(folder, HF_ENDPOINT=hub.endpoint, HF_HOME=str(folder / "cache"))
    session.type(
        "geneb-ci new ada/tiny-dna --pooling mean --params 24000000 --licence mit \\\n"
        '    --training-data "human genome, GRCh38" --no-zero-shot --overlap unknown \\\n'
        '    --submitted-by "Ada Example"'
    )
    hub.close()
    return session


def recommend(folder: Path) -> Session:
    """Record a recommendation from the public rows."""
    shutil.copytree(ROW.parent, folder / "submissions")
    shutil.copytree(ROOT / "schemas", folder / "schemas")
    shutil.copytree(ROOT / "leaderboard/policy", folder / "leaderboard/policy")
    session = Session(folder)
    session.type('geneb-ci recommend --category "Splice Sites" --regime 10shot --max-params 500M')
    return session


def audit(folder: Path) -> Session:
    """Record the verification of an audit record, and the level that follows."""
    raw = recorded_audit.submission_bytes()
    recorded_audit.repository(folder)
    recorded_audit.put(folder, recorded_audit.outcome_of(recorded_audit.plan_for(raw), raw))
    session = Session(folder)
    session.type("geneb-ci audit verify")
    session.type("geneb-ci trust")
    return session


TINY = {
    "config.json": b"""{"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 512,
        "num_hidden_layers": 6, "max_position_embeddings": 1024}""",
    "tokenizer_config.json": b'{"tokenizer_class": "PreTrainedTokenizerFast"}',
    "tokenizer.json": b"{}",
    "model.safetensors": b"weights",
    ".gitattributes": b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n",
}
"""The files of a model repository that `new` reads."""


class Recording(NamedTuple):
    """The commands of a recording, and the parts of the picture that vary between machines."""

    title: str
    typed: Callable[[Path], Session]
    """Function that types the commands in a folder, and returns the session."""
    varies: str = ""
    """Pattern of the characters that a test ignores; how many there are does not vary."""

    def compared(self, picture: str) -> str:
        """Return a picture without the parts that vary."""
        return re.sub(self.varies, "", picture) if self.varies else picture


RECORDINGS = {
    "check": Recording("geneb-ci check", check, r"\d+(?=&#160;rules)"),
    "init": Recording("geneb-ci init --dry-run", init, r"\d+(?=&#160;files)"),
    "run": Recording("geneb-harness run", run, r"\d\.\d{3}"),
    "new": Recording("geneb-ci new", new),
    "recommend": Recording("geneb-ci recommend", recommend),
    "audit": Recording("geneb-ci audit verify", audit),
}
"""The recordings by file name."""


def recorded(command: str) -> str:
    """Record one of RECORDINGS and return its picture."""
    recording = RECORDINGS[command]
    with tempfile.TemporaryDirectory(prefix="geneb-") as scratch:
        parent = Path(scratch).resolve()
        folder = parent / "home".ljust(HOME_LENGTH - len(f"{parent}/"), "-")
        folder.mkdir()
        return recording.typed(folder).svg(command, recording.title)


def main() -> None:
    """Write every recording."""
    FOLDER.mkdir(exist_ok=True)
    for command in RECORDINGS:
        (FOLDER / f"{command}.svg").write_text(recorded(command), encoding="utf-8")


if __name__ == "__main__":
    main()
